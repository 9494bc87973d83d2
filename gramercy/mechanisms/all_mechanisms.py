"""All mechanisms, by their names."""

from gramercy.mechanisms.gaussian import Gaussian, GaussianIid
from gramercy.mechanisms.k_norm import KNorm
from gramercy.mechanisms.laplace import Laplace
from gramercy.mechanisms.local import Local
from gramercy.mechanisms.marginals import Marginals
from gramercy.mechanisms.matrix_laplace import MatrixLaplace
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rows import IntegerRows, Rows
from gramercy.mechanisms.wishart import Wishart

_MECHANISMS: tuple[type[Mechanism], ...] = (
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
    Marginals,
)

registry: dict[str, type[Mechanism]] = {each.name: each for each in _MECHANISMS}

__all__ = ["Mechanism", "registry"]
