"""The release request: the version of a data set, its normalisation and its mechanism."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from gramercy.schemas import families, wordings
from gramercy.schemas.contract import Contract
from gramercy.schemas.model import Label, Model, digest, label, nfc
from gramercy.schemas.normalisation import Clip, Normalisation, Unit
from gramercy.schemas.periods import EXAMPLES, TimeZone, is_label, last_complete
from gramercy.schemas.request_parts import (
    DeclaredScaling,
    Engine,
    EstimatorSpec,
    LocalEngine,
    MechanismSpec,
    PrivateScaling,
    Scaling,
    ScalingFacts,
)
from gramercy.schemas.steps import Cumulative, StepDays

MAX_FOLDS = 20

PERIOD = "{period}"  # in a version, the period of the data
_DIRECTIVES = re.compile(r"%[YmdGVHMj]")  # directives that give a fixed number of digits


def _pattern(version: str) -> str:
    """The version, if it is a label or a pattern that gives a label at any time."""
    if "%" in _DIRECTIVES.sub("", version):
        raise families.VERSION(
            "The version's pattern has an unknown directive.", "Use %Y %m %d %G %V %H %M %j only."
        )
    TypeAdapter(Label).validate_python(_DIRECTIVES.sub("0000", version.replace(PERIOD, "0000")))
    return version


# The pattern is for web forms, which know only the JSON schema.
Version = Annotated[
    str,
    BeforeValidator(label),
    AfterValidator(_pattern),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^(\{period\}|[A-Za-z0-9%])"
            r"((\{period\}|[A-Za-z0-9%._-])*(\{period\}|[A-Za-z0-9]))?$",
        }
    ),
]

MechanismT = TypeVar("MechanismT", bound=MechanismSpec)
EstimateT = TypeVar("EstimateT", bound=EstimatorSpec)


class ReleaseRequest(Model, Generic[MechanismT, EstimateT]):
    """A request for one release.

    Parameters
    ----------
    dataset
        Path of the contract's YAML file, or the id of a registered contract, in `contracts/` of the
        home. A run that Prefect starts can name an id only.
    version
        Public label of the data, such as a date; or, for a schedule, a `strftime` pattern such as
        ``%G-W%V``. In it, ``{period}`` stands for the period of the data. The same request for the
        same version is answered from the archive, even if the table has changed.
    mechanism
        Name, privacy level and other keys of the mechanism.
    normalisation
        Normalisation of the rows: ``unit``, ``box``, ``whole`` or ``{kind: clip, radius: r}``.
        With estimated scaling always ``clip``, at an estimated radius.
    scaling
        Centres and scales of the columns: ``declared`` in the contract; ``private``, estimated
        from noisy histograms and paid for by this release; or ``{from: RELEASE}``, taken from an
        earlier release of the data set.
    estimates
        Estimates to compute from the release; they cost no privacy.
    folds
        Number of disjoint parts of the rows to publish, each with independent noise, for
        cross-validation. Each row is in one part, so the guarantee is that of one release; the
        noise of their sum is sqrt(folds) times that of one part.
    by
        Column of levels by which the rows are grouped: one matrix for each level is published, and
        one for all other rows, at the price of one matrix of all rows. The matrices have the other
        columns.
    cumulative
        Steps of a growing table, such as ``week``, each of which publishes the sum of all rows so
        far; all steps in the window of the budget together have the guarantee of the request. The
        version is the label of the step, such as ``2026-W05``; see `Cumulative`.
    engine
        Engine that reads and sums the table, ``local`` or ``{kind: dask, scheduler: ADDRESS}``. It
        does not change the release, and two requests that differ only in it are the same.
    timezone
        Time zone in which the version's pattern is filled in.
    period
        The period of the data to publish, such as ``2026-11``, with a budget per period; default:
        that of the version. Where the version has ``{period}``, the last one that was complete at
        the time for which the release is scheduled.
    new_charge
        Id of the interrupted release that this one replaces at a new charge. It works once: a
        retry of the same request finds the next release interrupted, and is refused.
    """

    dataset: Annotated[str, Field(min_length=1)]
    version: Version
    mechanism: MechanismT
    normalisation: Normalisation = Unit()
    scaling: Scaling = DeclaredScaling()
    estimates: tuple[EstimateT, ...] = ()
    folds: Annotated[int, Field(strict=True, ge=1, le=MAX_FOLDS)] = 1
    by: Annotated[str, Field(min_length=1), AfterValidator(nfc)] | None = None
    cumulative: Cumulative | None = None
    engine: Engine = LocalEngine()
    timezone: TimeZone = "UTC"
    period: Label | None = None
    new_charge: Label | None = None

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_estimated_scaling(cls, data: Any) -> Any:
        """Histograms imply private scaling and no estimates; an estimated radius implies clip."""
        if not isinstance(data, Mapping):
            return data
        defaults: dict[str, Any] = {}
        mechanism = data.get("mechanism")
        name = mechanism.get("name") if isinstance(mechanism, Mapping) else None
        if name == "marginals":
            defaults |= {"scaling": PrivateScaling(), "estimates": ()}
        scaling = {**defaults, **data}.get("scaling", "declared")
        if scaling not in ("declared", DeclaredScaling(), {"kind": "declared"}):
            defaults["normalisation"] = Clip()
        return {**defaults, **data}

    @model_validator(mode="after")
    def _check_normalisation(self) -> Self:
        lacks_radius = self.normalisation.lacks_radius
        if isinstance(self.scaling, DeclaredScaling):
            if lacks_radius:
                raise wordings.radius_missing()
        elif not lacks_radius:
            raise families.REQUEST_KEYS(
                "'scaling: {kind}' needs 'normalisation: clip' without a radius.",
                "Remove 'normalisation': the radius is chosen together with the centres and "
                "scales.",
                kind=self.scaling.kind,
            )
        return self

    def at(self, moment: datetime.datetime) -> Self:
        """The request with the version's pattern filled in for a moment.

        Examples
        --------
        >>> import datetime
        >>> from gramercy.pipeline.plan.request_model import Request
        >>> mechanism = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}
        >>> weekly = Request(dataset="clinic", version="%G-W%V", mechanism=mechanism)
        >>> weekly.at(datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)).version
        '2026-W48'
        """
        local = moment.astimezone(zoneinfo.ZoneInfo(self.timezone))
        return self.model_copy(update={"version": local.strftime(self.version)})

    @property
    def names_period(self) -> bool:
        """Whether the version or another key names a period of the data."""
        return PERIOD in self.version or self.period is not None

    def in_period(self, contract: Contract, moment: datetime.datetime) -> Self:
        """The request with `period` and the version filled in for a moment."""
        per = contract.budget.per
        if self.cumulative is not None:
            return self._in_step(contract, self.cumulative, moment)
        if per == "lifetime":
            raise families.PERIOD(
                "The request names a period, but the budget of '{dataset}' is for its lifetime.",
                "Remove 'period' and '{{period}}', or register a data set with a budget per "
                "period.",
                dataset=contract.id,
            )
        if self.period is not None and not is_label(per, self.period):
            raise families.PERIOD(
                "'period' is '{period}', but the budget is per {per} of the data.",
                "Write it such as {example}.",
                period=self.period,
                per=per,
                example=EXAMPLES[per],
            )
        label = self.period or last_complete(per, self.day_of(contract, moment))
        version = self.version.replace(PERIOD, label)
        dated = self.model_copy(update={"version": version, "period": label}).at(moment)
        if (window := contract.window(dated.version)) != label:
            raise families.PERIOD(
                "'period' is '{period}', but version '{version}' is of '{window}'.",
                "Write 'version: \"{{period}}\"', or remove 'period'.",
                version=dated.version,
                window=window,
                period=label,
            )
        return dated

    def _in_step(
        self, contract: Contract, cumulative: Cumulative, moment: datetime.datetime
    ) -> Self:
        per, today = contract.budget.per, self.day_of(contract, moment)
        label = self.period or cumulative.last_complete(per, today)
        version = self.version.replace(PERIOD, label)
        dated = self.model_copy(update={"version": version, "period": label}).at(moment)
        if dated.version != label:
            raise families.PERIOD(
                "'period' is '{period}', but the version is '{version}'.",
                "Write 'version: \"{{period}}\"', or remove 'period'.",
                period=label,
                version=dated.version,
            )
        return dated

    def step(self, contract: Contract) -> tuple[StepDays, int] | None:
        """The days of a series, and the number of the step that the version names; None without."""
        if self.cumulative is None:
            return None
        days = self.cumulative.series(contract.budget.per, contract.window(self.version))
        if self.version not in days.labels:
            raise families.PERIOD(
                "'version' is '{version}', which is not the label of a step of the series.",
                "Write one such as '{example}', or '{{period}}' for the last complete step.",
                version=self.version,
                example=days.labels[0],
            )
        return days, days.labels.index(self.version) + 1

    def day_of(self, contract: Contract, moment: datetime.datetime) -> datetime.date:
        """The day on which a moment is, where the periods of the data begin and end.

        Days of dates begin in their own time zone, other days in that of the schedule.
        """
        zone = contract.period.timezone if contract.period else self.timezone
        return moment.astimezone(zoneinfo.ZoneInfo(zone)).date()

    def key(self, contract: Contract, scaling: ScalingFacts | None = None) -> str:
        """Digest of everything that determines the release: equal for the same request."""
        return digest({"version": self.version, **self._facts(contract, scaling)})

    def series_key(self, contract: Contract, scaling: ScalingFacts | None = None) -> str:
        """Digest of what all steps of a cumulative series share, with the window of its budget."""
        window = contract.window(self.version)
        return digest({"window": window, **self._facts(contract, scaling)})

    def _facts(self, contract: Contract, scaling: ScalingFacts | None) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "dataset": contract.id,
            "mechanism": self.mechanism.non_default_keys(),
            "normalisation": self.normalisation.model_dump(),
        }
        if self.folds > 1:
            facts["folds"] = self.folds
        if self.by is not None:
            facts["by"] = self.by
        if self.cumulative is not None:
            facts["cumulative"] = self.cumulative.model_dump(mode="json")
        if scaling is not None:
            facts["scaling"] = scaling.model_dump(include={"kind", "rule", "release", "sha256"})
            facts["scaling"] |= self.scaling.model_dump(include={"share"})
            facts["scaling"] |= self.scaling.model_dump(include={"stages"}, exclude_defaults=True)
        return facts

    def check_delta(self, contract: Contract) -> None:
        """Refuse a delta that allows publishing a whole row."""
        if self.mechanism.delta >= 1 / contract.count:
            raise families.BUDGET_DELTA(
                "mechanism.delta must be less than 1/{count_key} = {limit:.3g}.",
                "Choose a smaller delta: at this one, publishing a whole record would be allowed.",
                count_key=contract.count_key,
                limit=1 / contract.count,
            )
