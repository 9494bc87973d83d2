"""The methods that are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.analyses import components, regressions
from benchmarks.analyses.populations import Population
from benchmarks.peers import OPENDP, Peer

Scores = dict[str, dict[str, float]]
TABLES = ("normal", "normal, wide", "lognormal", "Likert", "mixed", "collinear", "three columns")
EPSILONS = (0.5, 1.0, 4.0)
COMPONENT_TABLES = ("counts", "off-centre", "three columns")
COMPONENT_EPSILONS = (0.5, 1.0)


@dataclass(frozen=True)
class Method:
    """A way to an analysis.

    Parameters
    ----------
    title, note
        On the page.
    scores
        Scores of `times` releases of samples of a population, by form.
    tables, epsilons
        Those that it is measured on.
    peer
        The library that it runs; None for Gramercy and for procedures that are written here.
    releases
        Number of releases per cell.
    """

    title: str
    note: str
    scores: Callable[[Population, float, np.random.Generator, int], Scores]
    tables: tuple[str, ...] = TABLES
    epsilons: tuple[float, ...] = EPSILONS
    peer: Peer | None = None
    releases: int = 30


REGRESSIONS: Mapping[str, Method] = {
    "private": Method(
        "Gramercy, private constants",
        "`scaling: private` and the estimator `regression`, without folds; and least squares from "
        "the same matrix, raw and denoised",
        regressions.private,
    ),
    "declared": Method(
        "Gramercy, bounds",
        "the same with the middle and the half width of the bounds as constants, no row clipped",
        regressions.declared,
    ),
    "AdaSSP, bounds": Method(
        "AdaSSP, bounds",
        "Wang (2018), on rows that the bounds carry to [-1, 1]^p, no row clipped",
        regressions.from_bounds,
    ),
    "AdaSSP, true constants": Method(
        "AdaSSP, true constants",
        "the same with true means and deviations, which cost it nothing, the outcome clipped at 3 "
        "deviations, and for each figure the best of four lengths of rows, chosen afterwards",
        regressions.from_true_constants,
    ),
}
COMPONENTS: Mapping[str, Method] = {
    "components, private": Method(
        "Gramercy, private constants",
        "`scaling: private` and the estimator `pca`, at delta = 1e-6",
        components.private,
        COMPONENT_TABLES,
        COMPONENT_EPSILONS,
    ),
    "components, pure": Method(
        "Gramercy, pure",
        "matrix Laplace noise, the middle and the half width of the bounds, no row clipped: pure "
        "epsilon as for OpenDP",
        components.pure,
        COMPONENT_TABLES,
        COMPONENT_EPSILONS,
    ),
    "components, OpenDP": Method(
        "OpenDP DP-PCA",
        "`make_private_pca` with its private mean; the better of two lengths of rows, chosen "
        "afterwards; [what is known of its sampler](../utility/results.md)",
        components.opendp,
        COMPONENT_TABLES,
        COMPONENT_EPSILONS,
        peer=OPENDP,
        releases=2,
    ),
}
METHODS: Mapping[str, Method] = {**REGRESSIONS, **COMPONENTS}
