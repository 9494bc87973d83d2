"""Independent Gaussian noise of one scale on the upper triangle, as the papers publish it.

Su, Guo and Zhang (2020), Algorithms 1 and 2; Wang and Xu (2019), equation 7; Li and Wang (2023),
Algorithm 1. The upper triangle of x x^T moves by sqrt2 when a row is replaced, and by 1 when one is
present or absent: both are attained at basis vectors, so mu = Delta / s exactly. The isotropic
mechanism has the same guarantee with sqrt2 less noise on every off-diagonal entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from gramercy.mechanisms.gaussian import Gaussian, classical
from gramercy.mechanisms.mechanism import Setting
from gramercy.schemas.noise import Family
from gramercy.schemas.specs import MechanismSpec


class GaussianIidSpec(MechanismSpec):
    """``gaussian-iid``: the Gaussian mechanism as published, for comparison.

    Parameters
    ----------
    paper
        Whose scale ``calibration: published`` takes, by default SGZ. SGZ and LW use the sensitivity
        sqrt2; WX (and WHX) use 1, which is too small by sqrt2 under replace-one.
    """

    name: Literal["gaussian-iid"] = "gaussian-iid"
    paper: Literal["SGZ", "WX", "LW"] | None = None

    @model_validator(mode="after")
    def _paper_of_what(self) -> Self:
        if self.paper is not None and self.calibration != "published":
            raise ValueError("'paper' goes with 'calibration: published'")
        return self


@dataclass(frozen=True)
class GaussianIid(Gaussian):
    """Independent Gaussian noise of one scale; see `Gaussian`."""

    name: ClassVar[str] = "gaussian-iid"
    spec: ClassVar[type[MechanismSpec]] = GaussianIidSpec
    family: ClassVar[Family] = "gaussian-iid"

    @classmethod
    def _published(cls, spec: GaussianIidSpec, setting: Setting) -> Self:  # type: ignore[override]
        """Sensitivity over epsilon times sqrt(2 ln(1.25 / delta)), sensitivity sqrt2 or 1."""
        return cls(setting, classical(spec, 1.0 if spec.paper == "WX" else math.sqrt(2)))

    def _scales(self) -> tuple[float, float]:
        scale = self.scale * self.lattice.ball
        return scale, scale
