"""Noise and its exact guarantee: one mechanism a file, and one line each in the registry."""

from collections.abc import Mapping

from mechanisms.gaussian import Gaussian
from mechanisms.gaussian_iid import GaussianIid
from mechanisms.integer_rows import IntegerRows
from mechanisms.k_norm import KNorm
from mechanisms.laplace import Laplace
from mechanisms.local import Local
from mechanisms.matrix_laplace import MatrixLaplace
from mechanisms.mechanism import Mechanism
from mechanisms.output import Output
from mechanisms.rows import Rows
from mechanisms.wishart import Wishart

_KNOWN: tuple[type[Mechanism], ...] = (
    Gaussian,
    GaussianIid,
    Laplace,
    KNorm,
    MatrixLaplace,
    Wishart,
    Rows,
    IntegerRows,
    Local,
    Output,
)

registry: Mapping[str, type[Mechanism]] = {each.name: each for each in _KNOWN}

__all__ = ["Mechanism", "registry"]
