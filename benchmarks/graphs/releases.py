"""The compared releases: one exact replace-one guarantee, seeded noise (benchmarks only)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.utility.matrices import goe, triangle
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.mechanisms.gaussian import Gaussian, GaussianIid
from gramercy.mechanisms.rows import Rows
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.noise import Family, NoiseLaw

DELTA = 1e-6
FOLDS = 5
_MECHANISMS: dict[str, type[Gaussian | Rows]] = {
    "gaussian": Gaussian,
    "gaussian-iid": GaussianIid,
    "rows": Rows,
}


@lru_cache
def scale(mechanism: str, p: int, epsilon: float) -> float:
    """Scale of the noise on the Gram matrix, or on a cell; it does not depend on the rows."""
    made = _MECHANISMS[mechanism].calibrated(
        p=p, n=1000, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon, delta=DELTA
    )
    return made.scale


def isotropic(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """Gramercy's default release: white noise in svec coordinates."""
    n, p = rows.shape
    s = scale("gaussian", p, epsilon) / n
    return _evidence(rows.T @ rows / n + goe(rng, p, s), gaussian_law(s), n)


def folded(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """Gramercy's release in folds. Each fold has full noise, because a row is in one fold only."""
    n, p = rows.shape
    s = scale("gaussian", p, epsilon)
    folds = []
    for part in np.array_split(rows, FOLDS):
        m = len(part)
        folds.append(Fold(part.T @ part / m + goe(rng, p, s / m), float(m)))
    raw = sum((fold.moment * fold.rows for fold in folds), np.zeros((p, p))) / n
    s *= math.sqrt(FOLDS) / n
    return _evidence(raw, gaussian_law(s), n, tuple(folds))


def independent(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """The release of SGZ, WX and LW: independent noise of one scale on the upper triangle."""
    n, p = rows.shape
    s = scale("gaussian-iid", p, epsilon) / n
    noise = triangle(lambda shape: rng.standard_normal(shape) * s, p)
    return _evidence(rows.T @ rows / n + noise, _law("gaussian-iid", s, s), n)


def noisy_rows(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """The release of GPP: noise on every row, and its variance subtracted from the moment."""
    n, p = rows.shape
    s = scale("rows", p, epsilon)
    noisy = rows + rng.standard_normal(rows.shape) * s
    v = s * s
    law = NoiseLaw(
        family="noisy-rows",
        sd_diagonal=math.sqrt((4 * v / p + 2 * v * v) / n),
        sd_off_diagonal=math.sqrt((2 * v / p + v * v) / n),
        cell_variance=v,
    )
    return _evidence(noisy.T @ noisy / n - v * np.eye(p), law, n)


def exact(rows: Array) -> Evidence:
    """The exact second moment, without privacy."""
    n = len(rows)
    return _evidence(rows.T @ rows / n, NoiseLaw.none(), n)


def gaussian_law(s: float) -> NoiseLaw:
    """The law of isotropic noise of scale s."""
    return _law("gaussian-isotropic", s, s / math.sqrt(2))


def _law(family: Family, diagonal: float, off_diagonal: float) -> NoiseLaw:
    return NoiseLaw(family=family, sd_diagonal=diagonal, sd_off_diagonal=off_diagonal)


def _evidence(raw: Array, law: NoiseLaw, n: int, folds: tuple[Fold, ...] = ()) -> Evidence:
    """Build the evidence. Gramercy's methods use a denoised matrix, the papers' the raw matrix."""
    ours = law.family == "gaussian-isotropic"
    repaired = denoise(raw, law, 1.0, float(n)) if ours else project(raw)
    return Evidence(raw, repaired, law, float(n), folds=folds)
