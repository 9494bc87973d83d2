"""The public facts that determine a release, from its contract and its request."""

from __future__ import annotations

from gramercy.archive.bundles.release_bundle import ReleaseBundle, read_release
from gramercy.common.similar_names import most_similar_first
from gramercy.mechanisms import registry
from gramercy.mechanisms.gaussian import target_mu
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.plan.request_model import Request
from gramercy.scaling.chain import replayed, starting_facts
from gramercy.scaling.shares import Shares, shares
from gramercy.schemas import families, wordings
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.errors import RequestError
from gramercy.schemas.facts import (
    BudgetFacts,
    ColumnFacts,
    DatasetFacts,
    LevelsFacts,
    PeriodFacts,
)
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.normalisation import Unit
from gramercy.schemas.problem import Wording
from gramercy.schemas.request_parts import PrivateScaling, ReleasedScaling, ScalingFacts


def grouping_column(contract: Contract, request: Request) -> LevelsFacts | None:
    """The column of levels by which the rows are grouped; None if they are not."""
    name = request.by
    if name is None:
        return None
    if name not in contract.columns:
        raise families.GROUPS(
            "'by': the contract has no column '{name}'.",
            "Similar columns: {similar}.",
            name=name,
            similar=most_similar_first(name, contract.names),
        )
    levels = contract.levels(name)
    if levels is None:
        raise families.GROUPS(
            "'by': the column '{name}' has no levels.",
            "Declare 'levels' for it in the contract, or group by a column that has them.",
            name=name,
        )
    if len(contract.columns) == 1:
        raise families.GROUPS(
            "'by': '{name}' is the only column of the contract.",
            "Leave 'by' out, or declare more columns.",
            name=name,
        )
    return LevelsFacts(name=name, levels=levels)


def matrix_contract(contract: Contract, request: Request) -> Contract:
    """The contract of the columns of the matrix: without the one that groups the rows."""
    by = grouping_column(contract, request)
    return contract if by is None else contract.without_column(by.name)


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


_release_without_constants = Wording(
    families.SCALING,
    "Release '{release}' has no constants for this request: {reason}.",
    "Name a release of this data set with estimated scaling, or write 'scaling: private'.",
)


Bounds = tuple[tuple[float, float] | None, ...]


def with_planned_scaling(
    context: Context, contract: Contract, request: Request, declared: ReleaseSpec
) -> ReleaseSpec:
    """The facts of a release, with the scaling that its request asks for."""
    scaling = request.scaling
    if isinstance(scaling, ReleasedScaling):
        return _with_released_constants(context, scaling, contract, declared)
    without_bounds = tuple(contract.columns_without_bounds)
    if not isinstance(scaling, PrivateScaling):
        if without_bounds:
            raise families.SCALING(
                "Columns without bounds need estimated scaling: {columns}.",
                "Declare 'lower' and 'upper' in the contract, or write 'scaling: private' in the "
                "request.",
                columns=without_bounds,
            )
        return declared
    planned = _shares(scaling, contract, request, declared)
    if planned is None:
        if without_bounds:
            raise _too_few_rows(contract, request, declared)
        # Unit rows need no radius, and lose the least where constants cannot be estimated.
        return declared.model_copy(update={"normalisation": Unit()})
    facts = ScalingFacts(
        kind="private",
        bounds=_bounds(contract),
        stages=planned.stages,
        lengths=planned.lengths,
        lost=0.0 if registry[request.mechanism.name].estimates_constants else planned.lost,
    )
    columns = tuple(
        column if isinstance(column, LevelsFacts) else starting_facts(column.name, limits)
        for column, limits in zip(declared.columns, facts.bounds, strict=True)
    )
    return declared.model_copy(update={"scaling": facts, "columns": columns})


def _shares(
    scaling: PrivateScaling, contract: Contract, request: Request, spec: ReleaseSpec
) -> Shares | None:
    if request.mechanism.delta == 0:
        raise wordings.scaling_needs_delta()
    histograms_only = registry[request.mechanism.name].estimates_constants
    share = 1.0 if histograms_only else scaling.share
    return shares(contract.count, _p(spec), target_mu(request.mechanism), share)


def _too_few_rows(contract: Contract, request: Request, spec: ReleaseSpec) -> RequestError:
    p = _p(spec)
    needed = rows_needed(p, target_mu(request.mechanism))
    return families.SCALING(
        "{count} {count_key} are too few to estimate the constants of columns without "
        "bounds: about {needed} are needed for {p} columns at this guarantee.",
        "Declare bounds for all columns in the contract.",
        count=contract.count,
        count_key=contract.count_key,
        needed=needed,
        p=p,
    )


def rows_needed(p: int, mu: float) -> int:
    """The smallest number of rows at which private constants pay."""
    low, high = 0, 1
    while shares(high, p, mu) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if shares(middle, p, mu) is None else (low, middle)
    return high


def _p(spec: ReleaseSpec) -> int:
    """Number of columns of the matrix without the intercept."""
    return len(spec.names) - int(spec.intercept)


def _bounds(contract: Contract) -> Bounds:
    return tuple(
        column.limits if isinstance(column, Column) and column.has_bounds else None
        for column in contract.columns.values()
    )


def _with_released_constants(
    context: Context, scaling: ReleasedScaling, contract: Contract, declared: ReleaseSpec
) -> ReleaseSpec:
    """The facts with the constants of an earlier release; they cost nothing."""
    place = context.archive.release(contract.id, scaling.release)
    if not context.archive.contains(place):
        raise _release_without_constants(scaling.release, "it is not in the archive")
    bundle = read_release(place)
    other = bundle.manifest.scaling
    if other is None or not bundle.histograms:
        raise _release_without_constants(scaling.release, "it has no histograms")
    same_table = bundle.manifest.names == declared.names and other.bounds == _bounds(contract)
    if not same_table or bundle.manifest.privacy_unit != declared.privacy_unit:
        reason = "its columns, bounds, intercept or privacy unit differ"
        raise _release_without_constants(scaling.release, reason)
    planned = ScalingFacts(
        kind="release",
        bounds=other.bounds,
        release=scaling.release,
        sha256=bundle.sha256,
    )
    return constants_of_release(declared.model_copy(update={"scaling": planned}), bundle)


def constants_of_release(spec: ReleaseSpec, source: ReleaseBundle) -> ReleaseSpec:
    """The facts of a release with the constants that another release's histograms give.

    Parameters
    ----------
    source
        The release with the histograms. The radius is chosen again, for the noise of `spec`.
    """
    facts = source.manifest
    noise = calibrate(facts).noise_of_sum(facts)
    chain, histograms = replayed(facts, source.histograms, noise)
    constants = chain.clipped(histograms[-1], calibrate(spec).noise_of_sum(spec))
    if spec.scaling is None or constants.scaling is None:
        raise TypeError("the constants of this release are declared")
    stated = {"present": constants.scaling.present, "signs": constants.scaling.signs}
    update = {
        "columns": constants.columns,
        "normalisation": constants.normalisation,
        "scaling": spec.scaling.model_copy(update=stated),
    }
    return spec.model_copy(update=update)
