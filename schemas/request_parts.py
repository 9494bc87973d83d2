"""Parts of a request: base classes for mechanisms and estimators, the scaling, the engine."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from gramercy.schemas import families
from gramercy.schemas.form import Select
from gramercy.schemas.model import (
    Delta,
    DeltaOrZero,
    Digest,
    Epsilon,
    Label,
    Model,
    Mu,
    MuOfPure,
    NotNegative,
    Positive,
    Real,
    expand_kind,
    in_nfc,
)
from gramercy.schemas.url import has_secrets


class MechanismSpec(Model):
    """Keys of a request about its mechanism; each mechanism narrows `name` and adds its own keys.

    Parameters
    ----------
    calibration
        ``exact``: the least noise with the requested guarantee. ``published``: the scale that a
        paper gives for this epsilon and delta. In both cases the exact guarantee of the scale in
        use is charged, and the release is refused if it is weaker than requested.
    epsilon
        Privacy level epsilon at delta. A smaller epsilon gives more privacy and more noise.
    delta
        Probability delta at which epsilon is requested or reported; it should be far below one
        over the number of rows.
    mu
        Privacy level mu of Gaussian differential privacy, instead of epsilon.
    arithmetic
        Accepted arithmetic: ``floating-point`` accepts a mechanism whose noise is not exact on the
        integer lattice.
    """

    name: str
    calibration: Literal["exact", "published"] = "exact"
    epsilon: Epsilon | None = None
    delta: Delta
    mu: Mu | None = None
    arithmetic: Literal["exact", "floating-point"] = "exact"

    level_keys: ClassVar[tuple[str, ...]] = ("epsilon", "mu")

    @model_validator(mode="after")
    def _check_privacy_level(self) -> Self:
        given = [key for key in ("epsilon", "mu", "snr") if getattr(self, key, None) is not None]
        if len(given) != 1 or given[0] not in self.level_keys:
            raise families.REQUEST_KEYS(
                "Exactly one of these keys is required: {keys}.", keys=self.level_keys
            )
        if self.calibration == "published" and given == ["mu"]:
            raise families.REQUEST_KEYS(
                "'calibration: published' needs 'epsilon' and 'delta', and not 'mu'."
            )
        return self

    def non_default_keys(self) -> dict[str, Any]:
        """The name, and all keys that differ from their defaults."""
        return {"name": self.name, **self.model_dump(exclude_defaults=True)}


class PureSpec(MechanismSpec):
    """Keys of a request about a mechanism with a pure epsilon, which needs no delta."""

    delta: DeltaOrZero = 0.0
    mu: MuOfPure | None = None


class ClaimedPureSpec(PureSpec):
    """Keys of a request about a mechanism that a paper wrongly claims to be pure.

    Only ``calibration: published`` may have delta = 0; the release is then refused, because its
    exact guarantee is weaker.
    """

    @model_validator(mode="after")
    def _check_delta(self) -> Self:
        if self.calibration == "exact" and self.delta == 0:
            raise families.VALUE(
                "'delta' must be greater than 0: the mechanism is not pure epsilon-DP."
            )
        return self


class EstimatorSpec(Model):
    """Keys of a request about an estimate; each estimator narrows `name` and adds its own keys.

    Parameters
    ----------
    group
        Name of the group of rows to estimate from, if the release has groups. Default: all rows.
    """

    name: str
    group: Annotated[str, Field(min_length=1)] | None = None

    form_keeps_null: ClassVar[bool] = True

    @model_validator(mode="before")
    @classmethod
    def _normalise(cls, data: Any) -> Any:
        """Names of columns in NFC, as in contracts."""
        return in_nfc(data)


SHARE = Field(strict=True, gt=0, lt=1, allow_inf_nan=False)


def _not_boolean(value: Any) -> Any:
    """The value; in Python true equals 1, and YAML reads yes as true."""
    if isinstance(value, bool):
        raise families.VALUE("Must be 'adaptive' or 1.")
    return value


Stages = Annotated[Literal["adaptive", 1], BeforeValidator(_not_boolean)]


class DeclaredScaling(Model):
    """``declared``: the constants of the contract, or the middle and half width of the bounds."""

    kind: Literal["declared"] = "declared"


class PrivateScaling(Model):
    """``private``: constants from noisy histograms, paid for from the same budget.

    Parameters
    ----------
    share
        Share of mu squared that is spent on constants; by default chosen from public facts.
    stages
        ``adaptive``: a small pilot matrix shows in which directions the columns vary, and the
        matrix is drawn in its metric if that pays; where there is too much noise for a pilot, and
        with mechanisms other than ``gaussian``, as with 1. ``1``: the matrix is drawn in one stage.
    """

    kind: Literal["private"] = "private"
    share: Annotated[float, SHARE] | None = None
    stages: Stages = "adaptive"


class ReleasedScaling(Model):
    """``{from: RELEASE}``: the constants of an earlier release of the same data set.

    Parameters
    ----------
    release
        Id of that release.
    """

    kind: Literal["release"] = "release"
    release: Label


AnyScaling = DeclaredScaling | PrivateScaling | ReleasedScaling


def _expand(value: Any) -> Any:
    if isinstance(value, Mapping) and "from" in value and "kind" not in value:
        if "stages" in value:
            raise families.REQUEST_KEYS(
                "'stages' cannot be used with 'scaling: {{from: RELEASE}}', which draws its matrix "
                "as the other release did.",
                "Leave 'stages' out.",
            )
        return {"kind": "release", "release": value["from"]} | {
            key: each for key, each in value.items() if key != "from"
        }
    return expand_kind(value)


Scaling = Annotated[
    Annotated[AnyScaling, Field(discriminator="kind"), Select("kind")], BeforeValidator(_expand)
]


# The moments of `ColumnTails`, in their order.
TailFacts = tuple[
    Real, NotNegative, NotNegative, NotNegative, NotNegative, NotNegative, NotNegative
]


class ScalingFacts(Model):
    """How the constants of a release were chosen.

    Parameters
    ----------
    kind
        ``private``: from this release's own noisy histograms; ``release``: from those of another.
    bounds
        Declared bounds of every column of the table; null for levels, and without bounds.
    stages, lengths, lost, pilot, turned
        Shares of mu squared for the histograms of each stage, for that of row lengths, for the
        matrix of lost moments, and for the pilot matrix and the row lengths in its metric; 0 for
        what is not published. With the metric of another release, there is no pilot matrix.
    present
        Published share of rows with a value, for every column of the table; 1 for levels. Null
        before the histograms are drawn.
    cut
        Largest Frobenius norm of what a row loses in the matrix of lost moments, by the squared
        radius. Null without such a matrix, and before the histograms are drawn.
    missing_cut
        Largest squared norm of the indicators of a row's missing cells in the matrix of missing
        cells. Null without such a matrix: if fewer than two columns have missing cells.
    signs
        Columns of which only is published which cells differ from the value that nearly all have.
    metric_radius
        Largest l2 norm of a row in the metric of the pilot matrix, or in that of the other release,
        in which the matrix was then drawn. Null if rows are clipped in the metric of scaled
        columns.
    release, sha256
        The other release, with the digest of its SHA256SUMS.
    tails
        What is beyond the bounds in use by the histograms of the other release, by column, where
        there is anything: see `ColumnTails`.
    """

    kind: Literal["private", "release"]
    bounds: tuple[tuple[Real, Real] | None, ...]
    stages: tuple[Positive, ...] = ()
    lengths: NotNegative = 0.0
    lost: NotNegative = 0.0
    pilot: NotNegative = 0.0
    turned: NotNegative = 0.0
    present: tuple[NotNegative, ...] | None = None
    signs: tuple[str, ...] = ()
    metric_radius: Positive | None = None
    cut: Positive | None = None
    missing_cut: Positive | None = None
    release: Label | None = None
    sha256: Digest | None = None
    tails: dict[str, TailFacts] = Field(default_factory=dict)

    @property
    def spent(self) -> float:
        """Share of mu squared for all that is published besides the matrix."""
        return math.fsum((*self.stages, self.lengths, self.lost, self.share_of_pilot))

    @property
    def share_of_pilot(self) -> float:
        """Share of mu squared for the pilot matrix and row lengths in its metric; may be 0."""
        return self.pilot + self.turned


_ADDRESS = r"^[a-z]+://[^\s@?#%\\]+$"


class LocalEngine(Model):
    """The table is read and summed by the process that publishes."""

    kind: Literal["local"] = "local"


def _address(text: str) -> str:
    if len(text) > 300 or not re.fullmatch(_ADDRESS, text) or has_secrets(text):
        raise families.VALUE(
            "Must be an address such as tls://10.0.0.5:8786, without user, password, query and "
            "fragment.",
            "Name certificates in Dask's own configuration.",
        )
    return text


# The pattern is for web forms, which know only the JSON schema.
Scheduler = Annotated[
    str,
    AfterValidator(_address),
    WithJsonSchema({"type": "string", "pattern": _ADDRESS, "maxLength": 300}),
]


class DaskEngine(Model):
    """The table is read and summed by the workers of a Dask cluster, with the same result.

    Parameters
    ----------
    scheduler
        Address of the Dask scheduler, such as ``tls://10.0.0.5:8786``. Default: the address in
        Dask's own configuration. Prefect stores it, so it must not have a user, password, query or
        fragment.
    """

    kind: Literal["dask"]
    scheduler: Scheduler | None = None


Engine = Annotated[
    Annotated[LocalEngine | DaskEngine, Field(discriminator="kind"), Select("kind")],
    BeforeValidator(expand_kind),
]
