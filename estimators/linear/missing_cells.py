"""Sampling errors of a regression whose cells are missing at random, independently of each other.

A cell is present with probability o_j, and counts as 1 / o_j of itself; v_j = 1 / o_j - 1 is the
variance of this factor. For Gaussian columns z = m + x with covariance C and second moments
M_j = C_jj + m_j^2, residuals e^T z of variance res that are independent of the regressors, and
a_j = v_j e_j^2, the scores s_i = u_i - m_i u_0 of a row have the covariances

Var s_i = res (C_ii + v_i M_i) + m_i^2 a_i M_i
          + sum over j != i of a_j (C_ii M_j + 2 C_ij^2 + v_i Z_ij),
Cov(s_i, s_k) = C_ik (res - 2 a_i m_i^2 - 2 a_k m_k^2) + v_i v_k e_i e_k Z_ik
          + sum over j != i, k of a_j (C_ik M_j + 2 C_ij C_kj),
Cov(s_i, u_0) = 2 sum over j != i of a_j m_j C_ij - a_i m_i M_i,
Var u_0 = res + sum of a_j M_j,

where Z_ij = E[z_i^2 z_j^2] = M_i M_j + 2 C_ij^2 + 4 m_i m_j C_ij. They keep this form for the
columns o_j z_j, if C, m and e are theirs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.linear.moments import Moments

Array = NDArray[np.float64]


def incomplete_scores(
    moments: Moments, positive: Array, residual: Array, variance: float, present: Array
) -> Array:
    """Sampling covariance of sqrt(n) times (u_0, u_x - m_x u_0); shape (1 + k, 1 + k).

    Parameters
    ----------
    moments, positive, variance
        See `errors.sampling_of_scores`.
    residual
        Coefficients (1, -b) of the residual, shape (1 + k,).
    present
        Share o_j of the cells that are present, positive; shape (1 + k,).
    """
    c = moments.covariance.copy()
    c[1:, 1:] = positive
    c[0, 0] = max(c[0, 0], variance)
    m, v = moments.mean * np.sqrt(moments.weight), 1 / present - 1
    second, a = np.diag(c) + m**2, v * residual**2
    fourth = np.outer(second, second) + 2 * c**2 + 4 * np.outer(m, m) * c

    total, own = float(a @ second), a * second
    products = (c * a) @ c.T - c * np.add.outer(a * np.diag(c), a * np.diag(c))
    scores: Array = c * (variance + total - np.add.outer(own, own)) + 2 * products
    scores -= 2 * c * np.add.outer(a * m**2, a * m**2)
    scores += np.outer(v * residual, v * residual) * fourth

    others = np.outer(np.diag(c), second) + 2 * c**2 + v[:, None] * fourth
    by_others = others @ a - np.diag(others) * a
    variances = variance * (np.diag(c) + v * second) + m**2 * own + by_others
    np.fill_diagonal(scores, variances)

    scores[0, :] = scores[:, 0] = 2 * (c @ (a * m) - np.diag(c) * a * m) - own * m
    scores[0, 0] = moments.weight * (variance + total)
    return scores
