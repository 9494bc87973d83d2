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

from gramercy.schemas.contract import Contract
from gramercy.schemas.engine import Engine, LocalEngine
from gramercy.schemas.model import Label, Model, digest, label
from gramercy.schemas.normalisation import Clip, Normalisation, Unit
from gramercy.schemas.problems import request as problems
from gramercy.schemas.scaling import DeclaredScaling, PrivateScaling, Scaling, ScalingFacts
from gramercy.schemas.specs import EstimatorSpec, MechanismSpec

MAX_FOLDS = 20

_DIRECTIVES = re.compile(r"%[YmdGVHMj]")  # directives that give a fixed number of digits


def _pattern(version: str) -> str:
    """The version, if it is a label or a strftime pattern that gives a label at any time."""
    if "%" in _DIRECTIVES.sub("", version):
        raise problems.version_pattern()
    TypeAdapter(Label).validate_python(_DIRECTIVES.sub("0000", version))
    return version


def _zone(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise problems.timezone_unknown() from None
    return name


# The pattern is for web forms, which know only the JSON schema.
Version = Annotated[
    str,
    BeforeValidator(label),
    AfterValidator(_pattern),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9%]([A-Za-z0-9%._-]*[A-Za-z0-9])?$"}),
]

MechanismT = TypeVar("MechanismT", bound=MechanismSpec)
EstimateT = TypeVar("EstimateT", bound=EstimatorSpec)


class ReleaseRequest(Model, Generic[MechanismT, EstimateT]):
    """A request for one release.

    Parameters
    ----------
    dataset
        Path of the contract's YAML file, or the id of a contract in `contracts/` of the home
        folder.
    version
        Public label of the data, such as a date; or, for a schedule, a `strftime` pattern such as
        ``%G-W%V``. The same request for the same version is answered from the archive, even if the
        table has changed.
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
    engine
        Engine that reads and sums the table, ``local`` or ``{kind: dask, scheduler: ADDRESS}``. It
        does not change the release, and two requests that differ only in it are the same.
    timezone
        Time zone in which the version's pattern is filled in.
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
    engine: Engine = LocalEngine()
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
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
        clips_without_radius = isinstance(self.normalisation, Clip) and (
            self.normalisation.radius is None
        )
        if isinstance(self.scaling, DeclaredScaling):
            if clips_without_radius:
                raise problems.radius_missing()
        elif not clips_without_radius:
            raise problems.scaling_needs_clip(self.scaling.kind)
        return self

    def at(self, moment: datetime.datetime) -> Self:
        """The request with the version's pattern filled in for a moment.

        Examples
        --------
        >>> import datetime
        >>> from gramercy.application.request_model import Request
        >>> mechanism = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}
        >>> weekly = Request(dataset="clinic", version="%G-W%V", mechanism=mechanism)
        >>> weekly.at(datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)).version
        '2026-W48'
        """
        local = moment.astimezone(zoneinfo.ZoneInfo(self.timezone))
        return self.model_copy(update={"version": local.strftime(self.version)})

    def key(self, contract: Contract, scaling: ScalingFacts | None = None) -> str:
        """Digest of everything that determines the release: equal for the same request.

        Parameters
        ----------
        contract
            The contract of the data set.
        scaling
            How the planned release chooses its constants, if they are not declared.
        """
        facts: dict[str, Any] = {
            "dataset": contract.id,
            "version": self.version,
            "mechanism": self.mechanism.non_default_keys(),
            "normalisation": self.normalisation.model_dump(),
        }
        if self.folds > 1:
            facts["folds"] = self.folds
        if scaling is not None:
            facts["scaling"] = scaling.model_dump(include={"kind", "rule", "release", "sha256"})
            facts["scaling"] |= self.scaling.model_dump(include={"share"})
        return digest(facts)

    def check_delta(self, contract: Contract) -> None:
        """Refuse a delta that allows publishing a whole row.

        Raises
        ------
        RequestError
            If delta >= 1/n, with n the public number of rows (or the planning figure).
        """
        if self.mechanism.delta >= 1 / contract.count:
            raise problems.delta_too_large(contract.count_key, 1 / contract.count)
