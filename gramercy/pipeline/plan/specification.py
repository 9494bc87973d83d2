"""The public facts that determine a release, from its contract and its request."""

from __future__ import annotations

from gramercy.pipeline.plan.grouping import grouping_column, matrix_contract
from gramercy.pipeline.plan.request_model import Request
from gramercy.scaling.chain import starting_facts
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.facts import (
    BudgetFacts,
    ColumnFacts,
    DatasetFacts,
    LevelsFacts,
    PeriodFacts,
)
from gramercy.schemas.manifest import ReleaseSpec


def release_spec(contract: Contract, request: Request) -> ReleaseSpec:
    """The public facts that determine a release."""
    columns = _declared_contract(matrix_contract(contract, request), request).columns
    source = contract.source
    return ReleaseSpec(
        dataset=DatasetFacts(
            id=contract.id,
            title=contract.title,
            curator=contract.curator,
            version=request.version,
            rows=contract.rows,
            persons=contract.persons,
        ),
        columns=tuple(
            LevelsFacts(name=n, levels=c.levels) if isinstance(c, Levels) else _column_facts(n, c)
            for n, c in columns.items()
        ),
        intercept=contract.intercept,
        neighbours=contract.neighbours,
        privacy_unit=contract.protected_unit,
        normalisation=request.normalisation,
        mechanism=request.mechanism.non_default_keys(),
        folds=request.folds,
        by=grouping_column(contract, request),
        missing_codes=contract.missing_codes,
        budget=BudgetFacts.of(contract.budget),
        period=_period_facts(contract, request),
        selection=source.selection if isinstance(source, DatabaseTable) else None,
    )


def _period_facts(contract: Contract, request: Request) -> PeriodFacts | None:
    if contract.budget.per == "lifetime":
        return None
    label, dates = contract.window(request.version), contract.period
    if dates is None:
        return PeriodFacts(label=label)
    return PeriodFacts(label=label, column=dates.column, timezone=dates.timezone)


def _column_facts(name: str, column: Column) -> ColumnFacts:
    if not column.has_bounds:
        return starting_facts(name, None)
    lower, upper = column.limits
    centre, scale = column.effective_centre, column.effective_scale
    return ColumnFacts(name=name, lower=lower, upper=upper, centre=centre, scale=scale)


def _declared_contract(contract: Contract, request: Request) -> Contract:
    """The contract with the constants that the request's normalisation uses."""
    return contract.with_integer_bounds() if request.normalisation.keeps_rows else contract


def scaled_contract(contract: Contract, spec: ReleaseSpec) -> Contract:
    """The contract with the bounds, centres and scales of a release."""
    estimated = spec.scaling is not None
    columns = {
        facts.name: contract.columns[facts.name].in_use(
            facts.model_dump(exclude={"name"}), estimated=estimated
        )
        for facts in spec.columns
    }
    return contract.model_copy(update={"columns": columns})
