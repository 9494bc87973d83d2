"""Histograms of every column, from which constants are computed; `histograms` has the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.mechanisms.accounting.composition import split_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import target_mu
from gramercy.mechanisms.histograms import ConstantsNoise
from gramercy.mechanisms.mechanism import Mechanism, PublicParameters
from gramercy.schemas import families
from gramercy.schemas.neighbours import ProtectedUnit
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.publications import MARGINALS, Publication
from gramercy.schemas.request_parts import MechanismSpec

_SHARES = (0.4, 0.2, 0.2, 0.2)  # of three stages and of row lengths, where none are stated


class MarginalsSpec(MechanismSpec):
    """``marginals``: histograms of every column; later releases can take their constants."""

    name: Literal["marginals"] = "marginals"


@dataclass(frozen=True)
class Marginals(Mechanism):
    """Gaussian noise on histograms of all columns, in stages, and on one of row lengths."""

    parameters: PublicParameters  # public facts of the table
    noise: ConstantsNoise  # the noise of each draw

    name: ClassVar[str] = "marginals"
    spec: ClassVar[type[MechanismSpec]] = MarginalsSpec
    publishes: ClassVar[Publication] = MARGINALS
    estimates_constants: ClassVar[bool] = True
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row", "person")

    @classmethod
    def _exact(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        """The squared mu is divided between the draws in the proportions of `histogram_shares`."""
        columns = parameters.table_columns or parameters.p
        shares = parameters.histogram_shares or _SHARES
        *stages, lengths = split_mu(target_mu(spec), shares)
        noise = ConstantsNoise.with_mu(columns, parameters.neighbours, stages, lengths)
        return cls(parameters, noise)

    @classmethod
    def _published(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        raise families.UNSUPPORTED(
            "{mechanism} has no published calibration.",
            "Use 'calibration: exact'.",
            mechanism=cls.name,
        )

    @property
    def guarantee(self) -> Guarantee:
        """Mu of all draws together."""
        return Guarantee(self.noise.mu)

    @property
    def lattice(self) -> Lattice:
        """The integers, since counts are neither scaled nor rounded."""
        return UnscaledLattice(self.parameters.p)

    @property
    def law(self) -> NoiseLaw:
        """No matrix is published. `constants` has the noise of the counts."""
        return NoiseLaw.none()

    @property
    def constants_noise(self) -> ConstantsNoise:
        return self.noise

    def noise_of_sum(self, folds: int) -> float:
        """There is no sum; that of a matrix of the same mu."""
        return math.sqrt(self.parameters.neighbours.changed_units / 2) / self.guarantee.mu

    def constants(self) -> dict[str, float]:
        """See `Mechanism.constants`.

        ``scale`` is that of the last stage, whose histograms are the published marginals.
        """
        stages, lengths = self.noise.stages, self.noise.lengths
        return {
            "scale": stages[-1].scale,
            "sensitivity": math.sqrt(stages[-1].squared_sensitivity),
            **self.noise.constants(),
            "sensitivity_lengths": math.sqrt(lengths.squared_sensitivity),
        }
