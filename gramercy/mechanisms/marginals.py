"""Histograms of all columns and of row lengths, from which public constants are computed.

The draws are adaptive: the bins of a stage follow from the histograms published before it, and row
lengths are measured with the constants that follow from the last stage. Each draw is Gaussian noise
on counts (`mechanisms.histograms`), whose mu is fixed in advance. So all of them together are
mu-GDP with mu the root of the sum of squares. The proof is in docs/mechanisms/marginals.md.
"""

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
from gramercy.schemas.contract import ProtectedUnit
from gramercy.schemas.manifest import ReleaseKind
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import MechanismSpec

_SHARES = (0.4, 0.2, 0.2, 0.2)  # of three stages and of row lengths, where none are stated


class MarginalsSpec(MechanismSpec):
    """``marginals``: histograms of every column; later releases can take their constants."""

    name: Literal["marginals"] = "marginals"


@dataclass(frozen=True)
class Marginals(Mechanism):
    """Gaussian noise on histograms of all columns, in stages, and on one of row lengths.

    Parameters
    ----------
    parameters
        Public facts of the table.
    noise
        The noise of each draw.
    """

    parameters: PublicParameters
    noise: ConstantsNoise

    name: ClassVar[str] = "marginals"
    spec: ClassVar[type[MechanismSpec]] = MarginalsSpec
    publishes: ClassVar[ReleaseKind] = "marginals"
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
        """See `Mechanism.lattice`: the integers, since counts are neither scaled nor rounded."""
        return UnscaledLattice(self.parameters.p)

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`: no matrix is published. `constants` has the noise of the counts."""
        return NoiseLaw.none()

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
