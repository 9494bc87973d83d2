"""Draw the noise of every part of a table, and form the matrices that are published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.groups_file import GroupMatrices
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms.additive import Additive
from gramercy.schemas import wordings
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.schemas.normalisation import Unit
from gramercy.tables.sums.streaming import Accumulated

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NoisySums:
    """The noisy sums over all parts of a table, which may be published.

    Parameters
    ----------
    sums
        Noisy sums of x x^T over the rows of each part; shape (groups, folds, p, p).
    part_rows
        Noisy numbers of rows, shape (groups, folds), or public sizes of folds.
    fold_rows
        Numbers of rows of all groups, shape (folds,): public sizes, or sums of noisy numbers.
    """

    sums: Array
    part_rows: Array
    fold_rows: Array

    def matrix(self, manifest: ReleaseManifest) -> Array:
        """The second moment of all rows."""
        total: Array = self.sums.sum(axis=(0, 1)) / manifest.rows.value
        return total

    def folds(self, manifest: ReleaseManifest) -> list[Array]:
        """The second moments of the folds, if there are any."""
        of_folds = self.sums.sum(axis=0)
        return [
            matrix / rows.value for matrix, rows in zip(of_folds, manifest.fold_rows, strict=False)
        ]

    def groups(self, manifest: ReleaseManifest) -> list[GroupMatrices]:
        """The second moments of the groups, if there are any."""
        groups = []
        for facts, sums in zip(manifest.groups, self.sums, strict=False):
            raw = sums.sum(axis=0) / facts.rows.value
            folds = [x / rows.value for x, rows in zip(sums, facts.fold_rows, strict=False)]
            denoised = denoised_group(manifest, facts.rows.value, raw)
            groups.append(GroupMatrices(facts.level, raw, denoised, tuple(folds)))
        return groups


def draw_noise(spec: ReleaseSpec, mechanism: Additive, sums: Accumulated) -> NoisySums:
    """Draw independent noise for every part, once.

    Parameters
    ----------
    spec, mechanism
        The planned release and its noise.
    sums
        The exact sums over the parts. Private.
    """
    if len(sums.part_sums) != spec.parts:
        raise wordings.sums_not_as_planned()
    drawn = [mechanism.perturb(require_gram(part.gram), part.rows) for part in sums.part_sums]
    matrices = [each.gram.astype(np.float64) / mechanism.lattice.divisor for each in drawn]
    parts = (spec.groups_count, spec.folds)
    exact = _numbers([part.rows for part in sums.part_sums]).reshape(parts)
    noisy = exact
    if spec.neighbours == "add-remove" or spec.by is not None:
        mean = mechanism.law.mean * mechanism.parameters.p
        noisy = _numbers(
            [
                float(np.trace(matrix)) - mean if each.rows is None else each.rows
                for matrix, each in zip(matrices, drawn, strict=True)
            ]
        ).reshape(parts)
    # A fold is drawn independently of the data: if the number of rows is public, so is its size.
    fold_rows = (exact if spec.neighbours == "replace-one" else noisy).sum(axis=0)
    return NoisySums(np.array(matrices).reshape(*parts, *matrices[0].shape), noisy, fold_rows)


def _numbers(values: Sequence[float]) -> Array:
    return np.array(values, np.float64)


def require_gram(gram: NDArray[Any] | None) -> NDArray[Any]:
    """The Gram matrix of a sum, which exists unless rows are unscaled."""
    if gram is None:
        raise wordings.sums_not_as_planned()
    return gram


def denoised_group(manifest: ReleaseManifest, rows: float, raw: Array) -> Array:
    """The denoised matrix of a group; shape (p, p).

    Parameters
    ----------
    manifest
        The release.
    rows, raw
        The group's noisy number of rows, and its matrix as released.
    """
    law, unit = manifest.group_noise(rows), isinstance(manifest.normalisation, Unit)
    bound = manifest.trace_bound
    matrix: Array = denoise(raw, law, bound, rows, unit=unit)
    return matrix
