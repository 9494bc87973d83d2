"""The release request: which version of which data set, normalised and made noisy how."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import (
    Delta,
    DeltaOrZero,
    Epsilon,
    Label,
    Model,
    Mu,
    MuOfPure,
    Positive,
    digest,
    label,
)
from gramercy.schemas.url import has_secrets

MOST_FOLDS = 20


class Unit(Model):
    """Every row is divided by its own l2 norm; a row with nothing left is the zero row."""

    kind: Literal["unit"] = "unit"


class Clip(Model):
    """Rows beyond a public radius are shortened to it, and the radius becomes 1.

    Parameters
    ----------
    radius
        In units of the scaled columns; sqrt(p) is natural.
    """

    kind: Literal["clip"]
    radius: Positive


class Box(Model):
    """Every row is divided by the longest that the columns' bounds allow: one cell moves no other.

    The normalisation for a guarantee per cell.
    """

    kind: Literal["box"]


class Whole(Model):
    """Rows of whole numbers stay what they are, for ``integer-rows``."""

    kind: Literal["whole"]


def _by_name(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


AnyNormalisation = Unit | Clip | Box | Whole
Normalisation = Annotated[
    Annotated[AnyNormalisation, Field(discriminator="kind")], BeforeValidator(_by_name)
]


class Here(Model):
    """The table is read and summed by the process that publishes."""

    kind: Literal["here"] = "here"


_ADDRESS = r"^[a-z]+://[^\s@?#%\\]+$"


def _address(text: str) -> str:
    if len(text) > 300 or not re.fullmatch(_ADDRESS, text) or has_secrets(text):
        raise ValueError(
            "must be an address such as tls://10.0.0.5:8786, without user, password, query and "
            "fragment; name certificates in Dask's own configuration"
        )
    return text


# The pattern is for forms, which see no more than a schema.
Scheduler = Annotated[
    str,
    AfterValidator(_address),
    WithJsonSchema({"type": "string", "pattern": _ADDRESS, "maxLength": 300}),
]


class Dask(Model):
    """The table is read and summed by the workers of a Dask cluster: the same integers.

    Parameters
    ----------
    scheduler
        Its scheduler's address, such as ``tls://10.0.0.5:8786``. Default: the one that Dask's own
        configuration names. Prefect stores it, so that it has no user, password, query or fragment.
    """

    kind: Literal["dask"]
    scheduler: Scheduler | None = None


Engine = Annotated[Annotated[Here | Dask, Field(discriminator="kind")], BeforeValidator(_by_name)]


class MechanismSpec(Model):
    """What a request says of its mechanism; each mechanism narrows `name` and adds its own keys.

    Parameters
    ----------
    calibration
        ``exact``: the least noise with the guarantee that is asked for. ``published``: the scale
        that a paper gives for this epsilon and delta. Either way the exact guarantee of the scale
        in use is charged, and refused where it is weaker than what was asked.
    epsilon
        What is asked for, at delta: the smaller, the more is protected, and the more noise it is.
    delta
        At which epsilon is asked for, or shown; far below one over the number of rows.
    mu
        Asked for instead of epsilon: as in Gaussian differential privacy.
    arithmetic
        ``floating-point`` accepts a mechanism whose noise is not exact on the lattice.
    """

    name: str
    calibration: Literal["exact", "published"] = "exact"
    epsilon: Epsilon | None = None
    delta: Delta
    mu: Mu | None = None
    arithmetic: Literal["exact", "floating-point"] = "exact"

    ways: ClassVar[tuple[str, ...]] = ("epsilon", "mu")

    @model_validator(mode="after")
    def _asks_once(self) -> Self:
        known = ("epsilon", "mu", "snr")
        named = [way for way in known if getattr(self, way, None) is not None]
        if len(named) != 1 or named[0] not in self.ways:
            raise ValueError(f"needs {' or '.join(map(repr, self.ways))}, and nothing beside it")
        if self.calibration == "published" and named == ["mu"]:
            raise ValueError("'calibration: published' starts from 'epsilon' and 'delta'")
        return self

    def asked(self) -> dict[str, Any]:
        """What was asked for, by key; what it leaves at its default is left out."""
        return {"name": self.name, **self.model_dump(exclude_defaults=True)}


class PureSpec(MechanismSpec):
    """What a request says of a mechanism with a pure epsilon, which needs no delta."""

    delta: DeltaOrZero = 0.0
    mu: MuOfPure | None = None


class SaidToBePureSpec(PureSpec):
    """What a request says of a mechanism that was published as pure, and is not.

    Only ``calibration: published`` may do without delta, and is refused for what it costs.
    """

    @model_validator(mode="after")
    def _never_pure(self) -> Self:
        if self.calibration == "exact" and self.delta == 0:
            raise ValueError("'delta' must be greater than 0: this noise is never pure")
        return self


class EstimatorSpec(Model):
    """What a request says of an estimate; each estimator narrows `name` and adds its own keys."""

    name: str


_DIRECTIVES = re.compile(r"%[YmdGVHMj]")  # fixed width, digits alone


def _pattern(version: str) -> str:
    """A label, or a pattern of strftime that becomes one whatever the moment."""
    if "%" in _DIRECTIVES.sub("", version):
        raise ValueError("may hold %Y %m %d %G %V %H %M %j, and no other '%'")
    TypeAdapter(Label).validate_python(_DIRECTIVES.sub("0000", version))
    return version


def _zone(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is no time zone; write one such as Europe/Berlin") from None
    return name


# The pattern is for forms, which see no more than a schema.
Version = Annotated[
    str,
    BeforeValidator(label),
    AfterValidator(_pattern),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9%]([A-Za-z0-9%._-]*[A-Za-z0-9])?$"}),
]

MechanismT = TypeVar("MechanismT", bound=MechanismSpec)
EstimateT = TypeVar("EstimateT", bound=EstimatorSpec)


class ReleaseRequest(Model, Generic[MechanismT, EstimateT]):
    """One release, as it is asked for.

    Parameters
    ----------
    dataset
        The contract: the path of its YAML file, or the id of one in the home's `contracts/`.
    version
        Public label of the data, such as a date; or a pattern of `strftime` that becomes one, such
        as ``%G-W%V``, for a schedule. The same request for the same version is
        answered from the archive, whatever the table now holds.
    mechanism
        Name, epsilon, delta, and the mechanism's own keys.
    normalisation
        What is done to the length of every row: ``unit`` or ``{kind: clip, radius: r}``.
    estimates
        What to estimate from the release afterwards; costs no privacy.
    folds
        How many disjoint parts of the rows to publish, each with noise of its own, for
        cross-validation by analysts. One row is in one part, so that the guarantee is that of one
        release; the noise of all parts together is sqrt(folds) times that of one.
    engine
        Where the table is read and summed, ``here`` or ``{kind: dask, scheduler: ADDRESS}``. It
        changes nothing that is published, and is no part of what makes two requests the same.
    timezone
        In which the version's pattern is read.
    new_charge
        Id of the interrupted release that this one is paid for instead of. It works once: a retry
        of the same request finds another one interrupted, and is refused.
    """

    dataset: Annotated[str, Field(min_length=1)]
    version: Version
    mechanism: MechanismT
    normalisation: Normalisation = Unit()
    estimates: tuple[EstimateT, ...] = ()
    folds: Annotated[int, Field(strict=True, ge=1, le=MOST_FOLDS)] = 1
    engine: Engine = Here()
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
    new_charge: Label | None = None

    def on(self, moment: datetime.datetime) -> Self:
        """The request as it is asked for at a moment: its version's pattern filled in.

        Examples
        --------
        >>> import datetime
        >>> from gramercy.application.request_model import Request
        >>> mechanism = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}
        >>> weekly = Request(dataset="clinic", version="%G-W%V", mechanism=mechanism)
        >>> weekly.on(datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)).version
        '2026-W48'
        """
        there = moment.astimezone(zoneinfo.ZoneInfo(self.timezone))
        return self.model_copy(update={"version": there.strftime(self.version)})

    def key(self, contract: Contract) -> str:
        """Name of 'the same request': everything that shapes the release, and nothing private."""
        asked = {
            "dataset": contract.id,
            "version": self.version,
            "mechanism": self.mechanism.asked(),
            "normalisation": self.normalisation.model_dump(),
        }
        return digest(asked if self.folds == 1 else asked | {"folds": self.folds})

    def check(self, contract: Contract) -> None:
        """Refuse a delta at which a whole row may be given away.

        Raises
        ------
        RequestError
            If delta >= 1/n, with n the public number of rows (or the planning figure).
        """
        if self.mechanism.delta >= 1 / contract.count:
            raise RequestError(
                f"key 'mechanism.delta': must lie below 1/{contract.count_key} = "
                f"{1 / contract.count:.3g}.",
                f"At 1/{contract.count_key} or more, publishing one of them outright would do.",
            )
