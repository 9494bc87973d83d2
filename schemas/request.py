"""The release request: which version of which data set, normalised and made noisy how."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Annotated, Generic, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, WithJsonSchema

from gramercy.schemas.contract import Contract
from gramercy.schemas.engine import Engine, Here
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import Label, Model, digest, label
from gramercy.schemas.normalisation import Normalisation, Unit
from gramercy.schemas.specs import EstimatorSpec, MechanismSpec

MOST_FOLDS = 20

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
