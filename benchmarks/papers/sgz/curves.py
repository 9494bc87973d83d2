"""ROC curves of the graphs along the path of the graphical lasso."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.papers.experiment import Figures, Measured, Scalar
from benchmarks.papers.scores import FALSE, curve
from gramercy.estimators.solvers.glasso import graphical_lasso_path
from gramercy.estimators.tuning.penalty_rule import edge_mask, penalty_grid
from gramercy.schemas.errors import RequestError

Edges = NDArray[np.bool_]
_PENALTIES = 40
_REACH = 1000.0  # ratio of the largest penalty to the smallest
_GAP = 1e-7  # duality gap per column
# Suffixes in the names of figures: without privacy, and at an epsilon.
EXACT = "non-private"


def named(epsilon: float | None) -> str:
    return EXACT if epsilon is None else f"epsilon {epsilon:g}"


def support_scores(matrix: Array, truths: dict[str, Edges]) -> Figures:
    """ROC curves of a matrix against each true graph, and the share of its path with minimisers."""
    grid = penalty_grid(matrix, count=_PENALTIES, ratio=_REACH)
    graphs: list[Edges] = []
    try:
        path = graphical_lasso_path(
            matrix, list(grid), penalize_diagonal=True, tol=_GAP, conditions=False
        )
        graphs = [edge_mask(each.precision) for each in path]
    except RequestError:  # no minimiser at the largest penalty
        pass
    figures: Figures = {"solved": len(graphs) / len(grid)}
    for name, edges in truths.items():
        figures |= {f"{key}{name}": value for key, value in of_graphs(graphs, edges).items()}
    return figures


def of_graphs(graphs: list[Edges], edges: Edges) -> Figures:
    """ROC curve with one point per graph, then a straight line to the set of all pairs."""
    upper = np.triu_indices(len(edges), 1)
    true = edges[upper]
    points = [(0.0, 0.0)]
    for each in graphs:
        known = each[upper]
        points.append((float(known[~true].mean()), float(known[true].mean())))
    false, right = np.array(sorted([*points, (1.0, 1.0)])).T
    return {
        "auc": float(np.trapezoid(right, false)),
        "curve": np.interp(FALSE, false, right),
    }


def add_suffix(figures: Figures, name: str) -> Figures:
    return {f"{key} {name}": value for key, value in figures.items()}


def draw(axes: Axes, measured: Measured, epsilon: float | None, of: str, **setting: Scalar) -> None:
    """Draw the mean curve at an epsilon; `of` is the name of its figure without the epsilon."""
    name = named(epsilon)
    curve(axes, measured.values(f"curve {of}{name}", **setting), name)


def draw_chance(axes: Axes) -> None:
    axes.plot((0, 1), (0, 1), color="grey", linestyle=":", linewidth=1)
