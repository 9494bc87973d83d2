"""Base classes for the keys of a request about its mechanism and its estimates."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from gramercy.schemas import families
from gramercy.schemas.model import Delta, DeltaOrZero, Epsilon, Model, Mu, MuOfPure


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
                "Exactly one of these keys is required: {keys}.",
                keys=self.level_keys,
            )
        if self.calibration == "published" and given == ["mu"]:
            raise families.REQUEST_KEYS(
                "'calibration: published' needs 'epsilon' and 'delta', and not 'mu'.",
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
                "'delta' must be greater than 0: the mechanism is not pure epsilon-DP.",
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
