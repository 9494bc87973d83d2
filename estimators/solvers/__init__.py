"""Solvers of convex problems, to a stated accuracy; see docs/graphical-lasso.md."""

from gramercy.estimators.solvers.blockwise import Solution
from gramercy.estimators.solvers.glasso import graphical_lasso
from gramercy.estimators.solvers.path import Path, graphical_lasso_path

__all__ = ["Path", "Solution", "graphical_lasso", "graphical_lasso_path"]
