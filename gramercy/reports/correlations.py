"""Correlations as released, with what noise hides of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.release_bundle import ReleaseBundle
from gramercy.estimators.moments import centred, without_means

Array = NDArray[np.float64]

INSIDE = 2.0  # deviations: an entry within them cannot be told from noise


@dataclass(frozen=True)
class Correlations:
    """Released correlations.

    Parameters
    ----------
    names
        Of the columns; the intercept is none of them where it took the means out.
    matrix
        NaN where a column's own variation is lost in the noise.
    hidden
        Which entries lie inside their noise, or belong to a column that does.
    centred
        Whether they are about the means; else about the public centres.
    """

    names: list[str]
    matrix: Array
    hidden: NDArray[np.bool_]
    centred: bool


def correlations(bundle: ReleaseBundle) -> Correlations:
    """Correlations of the matrix as released, about the means where an intercept carries them.

    Those of noisy rows are about the public centres all the same: see `estimators.moments`.
    """
    facts, law = bundle.manifest, bundle.manifest.noise
    names, matrix = facts.names, bundle.unbiased
    sd = bundle.deviations
    if facts.kind == "precision":
        told = _scaled(_with_signs(matrix), sd)
        return Correlations(names, told, (np.abs(matrix) <= INSIDE * sd) | np.isnan(told), False)
    found = centred(matrix, law) if facts.intercept and len(names) > 1 else None
    if found is not None:
        names, matrix, sd = names[1:], found.matrix, found.sd
    told = _scaled(matrix, sd)
    hidden = (np.abs(matrix) <= INSIDE * sd) | np.isnan(told)
    return Correlations(names, told, hidden, found is not None)


def _with_signs(precision: Array) -> Array:
    """A precision matrix with the signs of its partial correlations off the diagonal."""
    found: Array = 2 * np.diag(np.diag(precision)) - precision
    return found


def _scaled(matrix: Array, sd: Array) -> Array:
    diagonal = np.diag(matrix)
    known = np.where(diagonal > INSIDE * np.diag(sd), diagonal, np.nan)
    found: Array = np.clip(matrix / np.sqrt(np.outer(known, known)), -1, 1)
    return found


def repaired_correlations(bundle: ReleaseBundle, about_means: bool) -> Array:
    """Of the repaired matrix, shape (p, p); NaN where there is none."""
    p = len(bundle.manifest.names)
    found = np.full((p, p), np.nan)
    first = int(about_means and bundle.repaired[0, 0] > 0)
    matrix = without_means(bundle.repaired) if first else bundle.repaired
    if bundle.manifest.kind == "precision":
        matrix = _with_signs(matrix)
    found[first:, first:] = _scaled(matrix, np.zeros_like(matrix))
    return found
