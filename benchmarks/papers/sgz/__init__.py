"""Su, Guo and Zhang (2020): differentially private precision matrix estimation."""

from __future__ import annotations

from benchmarks.papers.experiment import Paper
from benchmarks.papers.sgz import lasso_losses, ridge_losses

PAPER = Paper(
    title="Su, Guo, Zhang (2020): differentially private precision matrix estimation",
    about=(
        "Independent Gaussian noise on the upper triangle of X^T X / n, then the ridge (Algorithm "
        "1) or the graphical lasso by ADMM (Algorithm 2)."
    ),
    experiments={"table-1": ridge_losses.EXPERIMENT, "table-2": lasso_losses.EXPERIMENT},
)
