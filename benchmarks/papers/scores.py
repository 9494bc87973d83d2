"""Scores of ranked pairs, and errors of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.graphs import scores

Edges = NDArray[np.bool_]
FALSE = np.linspace(0, 1, 51)  # false positive rates at which curves are stored


def auc(ranks: Array, edges: Edges) -> float:
    """Area under the ROC curve of pairs ranked by `ranks`, shape (p, p); nan without a graph."""
    result = scores.auc(ranks, edges)
    return float("nan") if result is None else result


def curve(axes: Axes, curves: Array, label: str, **style: Any) -> None:
    """Draw the mean of ROC curves, shape (repetitions, len(FALSE)), and one deviation around it."""
    mean, sd = curves.mean(axis=0), curves.std(axis=0)
    (line,) = axes.plot(FALSE, mean, label=label, **style)
    axes.fill_between(FALSE, mean - sd, mean + sd, alpha=0.15, color=line.get_color(), linewidth=0)
    axes.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="share of false edges")


def relative(result: Array, wanted: Array) -> float:
    """Frobenius error, divided by the norm of the wanted matrix."""
    return float(np.linalg.norm(result - wanted) / np.linalg.norm(wanted))


def partial_correlations(precision: Array) -> Array:
    """Absolute partial correlations, shape (p, p)."""
    root = np.sqrt(np.diagonal(precision))
    result: Array = np.abs(precision / np.outer(root, root))
    return result
