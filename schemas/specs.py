"""What a request says of its mechanism and of an estimate: each narrows these with its own keys."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from gramercy.schemas.model import Delta, DeltaOrZero, Epsilon, Model, Mu, MuOfPure


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
