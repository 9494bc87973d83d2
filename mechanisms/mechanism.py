"""What every publishing mechanism offers. No I/O here, and no private value leaves `perturb`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from numpy.typing import NDArray

from mechanisms.guarantee import Guarantee
from schemas.contract import Neighbours
from schemas.lattice import Lattice
from schemas.noise import NoiseLaw
from schemas.request import MechanismSpec


@dataclass(frozen=True)
class Noisy:
    """What may be published: integers on the lattice.

    Parameters
    ----------
    gram
        Noisy Gram matrix in lattice units, symmetric, shape (p, p).
    rows
        Noisy number of rows, where one was paid for.
    """

    gram: NDArray[Any]
    rows: int | None


class Mechanism(ABC):
    """Noise of one public scale, and its exact guarantee."""

    name: ClassVar[str]
    spec: ClassVar[type[MechanismSpec]]
    arithmetic: ClassVar[Literal["exact", "floating-point"]]
    scale: float

    @classmethod
    @abstractmethod
    def calibrated(
        cls,
        *,
        p: int,
        n: int,
        neighbours: Neighbours,
        epsilon: float,
        delta: float,
        counted: bool = False,
    ) -> Self:
        """The least noise that is (epsilon, delta)-differentially private.

        Parameters
        ----------
        p, n
            Shape of the table, as declared in public.
        neighbours
            What one record may change.
        epsilon, delta
            What is asked for.
        counted
            Whether the number of rows is published as well, with noise.
        """

    @property
    @abstractmethod
    def sd_rows(self) -> float | None:
        """Standard deviation of the noisy number of rows, where one is published."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The exact guarantee of this scale, rounded towards less privacy."""

    @abstractmethod
    def law(self, lattice: Lattice) -> NoiseLaw:
        """The noise on the Gram matrix of the original rows: after `lattice.divisor`."""

    @abstractmethod
    def facts(self) -> dict[str, float]:
        """The public constants of this noise, by name, as the manifest and the plan show them."""

    @abstractmethod
    def perturb(self, gram: NDArray[Any], rows: int, lattice: Lattice) -> Noisy:
        """Draw the noise, once, and add it.

        Parameters
        ----------
        gram
            Exact Gram matrix of the integer rows, shape (p, p), integers.
        rows
            Exact number of rows.
        lattice
            What the integers count.
        """
