"""Solvers of convex problems, to a stated accuracy; see docs/graphical-lasso.md."""

from gramercy.estimators.solvers.glasso import Path, Solution, graphical_lasso, graphical_lasso_path

__all__ = ["Path", "Solution", "graphical_lasso", "graphical_lasso_path"]
