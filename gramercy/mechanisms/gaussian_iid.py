"""Independent Gaussian noise of equal scale on the upper triangle, as the papers publish it.

Sources: Su, Guo and Zhang (2020), Algorithms 1 and 2; Wang and Xu (2019), equation 7; Li and Wang
(2023), Algorithm 1.

The l2 sensitivity of the upper triangle is sqrt2 if a row is replaced, and 1 if a row is added or
removed. Basis vectors attain both, so mu = Delta / s exactly. The isotropic mechanism has the same
guarantee with sqrt2 less noise on every off-diagonal entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from gramercy.mechanisms.gaussian import Gaussian, classical_scale
from gramercy.mechanisms.mechanism import PublicParameters
from gramercy.schemas import families
from gramercy.schemas.noise import Family
from gramercy.schemas.request_parts import MechanismSpec


class GaussianIidSpec(MechanismSpec):
    """``gaussian-iid``: the Gaussian mechanism as published, for comparison.

    Parameters
    ----------
    paper
        Paper whose scale ``calibration: published`` uses; the default is SGZ. SGZ and LW use the
        sensitivity sqrt2; WX (and WHX) use 1, which is too small by sqrt2 under replace-one.
    """

    name: Literal["gaussian-iid"] = "gaussian-iid"
    paper: Literal["SGZ", "WX", "LW"] | None = None

    @model_validator(mode="after")
    def _paper_needs_published(self) -> Self:
        if self.paper is not None and self.calibration != "published":
            raise families.REQUEST_KEYS(
                "'paper' needs 'calibration: published'.",
            )
        return self


@dataclass(frozen=True)
class GaussianIid(Gaussian):
    """Independent Gaussian noise of equal scale; see `Gaussian`."""

    name: ClassVar[str] = "gaussian-iid"
    spec: ClassVar[type[MechanismSpec]] = GaussianIidSpec
    family: ClassVar[Family] = "gaussian-iid"

    @classmethod
    def _published(cls, spec: GaussianIidSpec, parameters: PublicParameters) -> Self:  # type: ignore[override]
        """Delta sqrt(2 ln(1.25 / delta)) / epsilon, with Delta = 1 for WX, else sqrt2."""
        return cls(parameters, classical_scale(spec, 1.0 if spec.paper == "WX" else math.sqrt(2)))

    def _scales(self) -> tuple[float, float]:
        scale = self.scale * self.lattice.squared_radius
        return scale, scale
