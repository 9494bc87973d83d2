"""What a release tells: all that an estimator may look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Divisor = Literal["public", "noisy", "itself"]


@dataclass(frozen=True)
class Fold:
    """One of several disjoint parts of the rows, published with noise of its own.

    Parameters
    ----------
    moment
        Second moment of the part, less the noise's mean; shape (p, p).
    rows
        Public or noisy number of its rows.
    """

    moment: Array
    rows: float


@dataclass(frozen=True)
class Evidence:
    """All that an estimator may look at: what a release has published.

    Parameters
    ----------
    raw
        Released second moment, less the noise's mean; symmetric, shape (p, p), may be indefinite.
        Thresholds, intervals and tests take it, because they know its noise.
    repaired
        The best positive semidefinite form of it: denoised, or else projected; shape (p, p).
    law
        Noise law in the units of `raw`.
    rows
        Public or noisy number of rows.
    names
        Of the p columns; may be empty.
    columns
        The table's column behind each column of the matrix, None for the intercept; may be empty.
    unit
        Whether rows were divided by their own length.
    folds
        Disjoint parts of the rows, where the release has them: `raw` is what they make together.
    trace
        A public bound on the trace of the matrix without noise: 1 for rows of the unit ball.
    divisor
        What the matrix was divided by: a ``public`` number, a ``noisy`` one, or the noisy trace of
        the matrix ``itself``.
    rows_sd
        Standard deviation of a noisy number of rows.
    """

    raw: Array
    repaired: Array
    law: NoiseLaw
    rows: float
    names: tuple[str, ...] = ()
    columns: tuple[ColumnFacts | LevelsFacts | None, ...] = ()
    unit: bool = True
    folds: tuple[Fold, ...] = ()
    trace: float = 1.0
    divisor: Divisor = "public"
    rows_sd: float = 0.0

    @property
    def deviations(self) -> Array:
        """Standard deviation of the noise on every entry of `raw`, shape (p, p).

        Of noisy rows to first order: they follow from the matrix itself, taken as repaired.
        """
        return self.law.row_deviations(np.diag(self.repaired), self.rows)

    @property
    def typical_noise(self) -> float:
        """Standard deviation of the noise off the diagonal; of noisy rows, root mean square."""
        p = len(self.raw)
        if self.law.cell_variance is None or p == 1:
            return self.law.sd_off_diagonal
        return float(np.sqrt(np.mean(self.deviations[np.triu_indices(p, 1)] ** 2)))
