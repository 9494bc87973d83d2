"""The law of a sum of the noise of several releases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.evidence import Evidence, NoiseTerm
from gramercy.schemas.noise import Family, NoiseLaw

Array = NDArray[np.float64]

_INDEPENDENT = {"gaussian-iid", "laplace"}


def noise_terms(evidence: Evidence, linear: Array) -> tuple[NoiseTerm, ...]:
    """The noise of a release, or of a pool, after the map S -> L S L^T."""
    if not evidence.law.has_noise:
        return ()
    if not evidence.terms:
        return (NoiseTerm(evidence.law, linear),)
    return tuple(NoiseTerm(term.law, linear @ term.linear) for term in evidence.terms)


def noise_sum(terms: Sequence[NoiseTerm], p: int) -> tuple[NoiseLaw, tuple[NoiseTerm, ...]]:
    """The law of the sum, and the terms that are needed to describe it.

    Parameters
    ----------
    terms
        Independent parts of the noise.
    p
        Number of columns.

    Returns
    -------
    tuple
        The law, and no terms if the law has the exact covariance of all entries. Otherwise the law
        has the root mean square of the variances, on the diagonal and off it.

    Notes
    -----
    The sum of matrices of one family is not of this family, unless it is Gaussian or Wishart. Its
    tails are lighter than those of the family, which is kept, so that intervals are at least as
    wide as needed. Degrees of freedom are those of Satterthwaite.
    """
    if not terms:
        return NoiseLaw.none(), ()
    variances = [term.variance for term in terms]
    variance = np.sum(variances, axis=0)
    off = ~np.eye(p, dtype=bool)
    diagonal = float(np.diag(variance).mean())
    shares = [float(np.diag(each).mean()) for each in variances]
    law = NoiseLaw(
        family=_family(terms, shares),
        sd_diagonal=diagonal**0.5,
        sd_off_diagonal=float(variance[off].mean()) ** 0.5 if p > 1 else (diagonal / 2) ** 0.5,
        dof=_degrees_of_freedom(terms, shares),
    )
    kinds = {term.law.family in _INDEPENDENT for term in terms}
    if len(kinds) == 1 and all(_is_multiple_of_identity(term.linear) for term in terms):
        return law, ()
    return law, tuple(terms)


def _family(terms: Sequence[NoiseTerm], shares: Sequence[float]) -> Family:
    """The Gaussian family of all terms, or else the largest term's that is not Gaussian."""
    order = sorted(range(len(terms)), key=lambda k: -shares[k])
    families: list[Family] = [terms[k].law.family for k in order]
    return next((each for each in families if not each.startswith("gaussian")), families[0])


def _degrees_of_freedom(terms: Sequence[NoiseTerm], shares: Sequence[float]) -> float | None:
    known = [(share, term.law.dof) for share, term in zip(shares, terms, strict=True)]
    inverse = sum(share**2 / dof for share, dof in known if dof is not None)
    return sum(shares) ** 2 / inverse if inverse > 0 else None


def _is_multiple_of_identity(linear: Array) -> bool:
    return bool((linear == linear[0, 0] * np.eye(len(linear))).all())
