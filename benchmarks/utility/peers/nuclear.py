"""Nuclear-norm noise: d'Orsi, Novikov (ALT 2026), "On purely private covariance estimation".

Pure epsilon: noise with density proportional to exp(-epsilon ||Z||_* / 2) on the Gram matrix, whose
nuclear norm moves by at most 2 under replace-one; then projection onto plausible matrices (the
paper: onto a nuclear-norm ball). Here the noise is Haar eigenvectors, an exact length Gamma(D, 2 /
epsilon), and a shape from a Markov chain on the eigenvalues, density prod |l_i - l_j| exp(-sum
|l_i|). That is accurate enough to measure errors; a release would need an exact sampler.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import Privacy
from benchmarks.utility.matrices import assemble, haar, projected
from benchmarks.utility.method import Forms, Method, independent_draws

CHAINS, SWEEPS, TUNING = 30, 200, 50


def nuclear(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    """Release a second moment with nuclear-norm noise."""
    p = data.p
    length = rng.gamma(p * (p + 1) / 2, 2 / privacy.epsilon) / data.n
    shape = shapes(p)[rng.integers(CHAINS)]
    noisy = data.moment + assemble(haar(rng, p), length * shape)
    return {"raw": noisy, "projected": projected(noisy)}


@lru_cache(maxsize=2)
def shapes(p: int) -> Array:
    """Draw eigenvalues from independent chains, divided by their nuclear norm; shape (CHAINS, p).

    Every chain starts from independent draws of the limiting law (Ullman's: a uniform times an
    arcsine variable) and takes single-site Metropolis sweeps.
    """
    rng = np.random.default_rng(p)
    state = rng.random((CHAINS, p)) * np.cos(np.pi * rng.random((CHAINS, p)))
    state *= (p * (p + 1) / 2) / np.abs(state).sum(axis=1, keepdims=True)
    step = 2.0
    for sweep in range(SWEEPS):
        accepted = np.mean([_move(state, i, step, rng) for i in range(p)])
        if sweep < TUNING:
            step *= np.exp(accepted - 0.44)
    scaled: Array = state / np.abs(state).sum(axis=1, keepdims=True)
    return scaled


def _move(state: Array, i: int, step: float, rng: Rng) -> float:
    """Make a Metropolis step of every chain's eigenvalue i; return the acceptance rate."""
    old = state[:, i].copy()
    new = old + step * rng.standard_normal(len(state))
    others = np.delete(state, i, axis=1)
    ratios = np.abs((new[:, None] - others) / (old[:, None] - others))
    gain = np.log(ratios).sum(axis=1) - np.abs(new) + np.abs(old)
    accepted = np.log(rng.random(len(state))) < gain
    state[accepted, i] = new[accepted]
    return float(accepted.mean())


METHODS = (
    Method(
        "nuclear-norm",
        "Nuclear-norm noise",
        "d'Orsi, Novikov (2026): density exp(-epsilon ||Z||_* / 2), projected. Eigenvalues from a "
        "Markov chain: an approximate sampler, used only for this measurement.",
        ("pure",),
        independent_draws(nuclear),
    ),
)
