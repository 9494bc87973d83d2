"""The methods that are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.analyses import (
    components,
    procedures,
    regressions,
    synthetic_rows,
    transforms,
)
from benchmarks.analyses.surveys import SURVEYS
from benchmarks.analyses.tables import FOLDED, PAIRS
from benchmarks.peers import OPENDP, SMARTNOISE_SYNTH, Peer

Scores = dict[str, dict[str, float]]
TABLES = ("normal", "normal, wide", "lognormal", "Likert", "mixed", "collinear", "three columns")
EPSILONS = (0.5, 1.0, 4.0)
COMPONENT_TABLES = ("counts", "off-centre", "three columns")
COMPONENT_EPSILONS = (0.5, 1.0)
FOLDED_EPSILONS = (4.0, 8.0)
AIM_SURVEYS = ("clinic",)  # AIM takes long
_PURE = (
    "matrix Laplace noise, the middle and the half width of the bounds, no row clipped: pure "
    "epsilon as for OpenDP"
)


@dataclass(frozen=True)
class Method:
    """A way to an analysis.

    Parameters
    ----------
    title, note
        On the page.
    scores
        Scores by form, of a `Population`, `Survey` or `Table`, an epsilon, a generator and a number
        of releases.
    tables, epsilons
        Those that it is measured on.
    peer
        The library that it runs; None for Gramercy and for procedures that are written here.
    releases
        Number of releases per cell.
    """

    title: str
    note: str
    scores: Callable[..., Scores]
    tables: tuple[str, ...] = TABLES
    epsilons: tuple[float, ...] = EPSILONS
    peer: Peer | None = None
    releases: int = 30


REGRESSIONS: Mapping[str, Method] = {
    "private": Method(
        "Gramercy, private constants",
        "`scaling: private` and the estimator `regression`, without folds; the same from releases "
        "of the same samples in one stage; and least squares from the matrix, raw and denoised",
        regressions.private,
        releases=30,
    ),
    "declared": Method(
        "Gramercy, bounds",
        "the same with the middle and the half width of the bounds as constants, no row clipped",
        regressions.declared,
    ),
    "AdaSSP, bounds": Method(
        "AdaSSP, bounds",
        "Wang (2018), on rows that the bounds carry to [-1, 1]^p, no row clipped",
        procedures.adassp_from_bounds,
    ),
    "AdaSSP, true constants": Method(
        "AdaSSP, true constants",
        "the same with true means and deviations, which cost it nothing, the outcome clipped at 3 "
        "deviations, and for each figure the best of four lengths of rows, chosen afterwards",
        procedures.adassp_from_true_constants,
    ),
    "dp-statsmodels, bounds": Method(
        "dp-statsmodels, bounds",
        "Ghenis (2024): least squares from noisy sums of squares and products, on rows that the "
        "bounds carry to [-1, 1]^p",
        procedures.statistics_from_bounds,
    ),
    "dp-statsmodels, true constants": Method(
        "dp-statsmodels, true constants",
        "the same with bounds at three true deviations around true means, which cost it nothing",
        procedures.statistics_from_true_constants,
    ),
    "BinAgg, bounds": Method(
        "BinAgg, bounds",
        "Lin, Slavkovic and Bhoomireddy (2026): weighted least squares from noisy sums in private "
        "bins of the regressors, corrected for the noise, with the authors' shares of the budget",
        procedures.binagg_from_bounds,
    ),
    "BinAgg, true constants": Method(
        "BinAgg, true constants",
        "the same with bounds at three true deviations around true means, which cost it nothing",
        procedures.binagg_from_true_constants,
    ),
}
FOLDS: Mapping[str, Method] = {
    "folds": Method(
        "Gramercy, private constants",
        "`scaling: private` and the estimator `regression`, with ten folds and without",
        regressions.with_and_without,
        tuple(FOLDED),
        FOLDED_EPSILONS,
        releases=12,
    ),
}
ONE_REGRESSOR: Mapping[str, Method] = {
    "one regressor, private": Method(
        "Gramercy, private constants",
        "`scaling: private` and the estimator `regression`, at delta = 1e-6",
        regressions.private,
        tuple(PAIRS),
    ),
    "one regressor, pure": Method(
        "Gramercy, pure",
        _PURE,
        regressions.pure,
        tuple(PAIRS),
    ),
    "one regressor, OpenDP": Method(
        "OpenDP Theil-Sen",
        "`make_private_theil_sen` at pure epsilon: medians of predictions of random pairs, one "
        "run, in the bounds; 100 candidates as by default, or 1,000, whichever is more accurate",
        regressions.opendp,
        tuple(PAIRS),
        peer=OPENDP,
        releases=20,
    ),
}
_components = partial(Method, tables=COMPONENT_TABLES, epsilons=COMPONENT_EPSILONS)
COMPONENTS: Mapping[str, Method] = {
    "components, private": _components(
        "Gramercy, private constants",
        "`scaling: private` and the estimator `pca`, at delta = 1e-6",
        components.private,
    ),
    "components, pure": _components(
        "Gramercy, pure",
        _PURE,
        components.pure,
    ),
    "components, OpenDP": _components(
        "OpenDP DP-PCA",
        "`make_private_pca` with its private mean; the better of two lengths of rows, chosen "
        "afterwards; [what is known of its sampler](../utility/results.md)",
        components.opendp,
        peer=OPENDP,
        releases=2,
    ),
}
SYNTHETIC: Mapping[str, Method] = {
    "synthetic, private": Method(
        "Gramercy, private constants",
        "`scaling: private` and the estimator `synthetic`, at delta = 1e-6",
        synthetic_rows.copula,
        SURVEYS,
        releases=10,
    ),
    "synthetic, MST": Method(
        "SmartNoise MST",
        "`MSTSynthesizer`, McKenna, Miklau and Sheldon (2021), at delta = 1e-6: a replaced row is "
        "counted in each of its steps; numbers in 10 or 20 equal bins between the bounds, "
        "whichever is more accurate, with cells spread evenly in their bin",
        partial(synthetic_rows.smartnoise, (10, 20), False),
        SURVEYS,
        peer=SMARTNOISE_SYNTH,
        releases=1,
    ),
    "synthetic, AIM": Method(
        "SmartNoise AIM",
        "`AIMSynthesizer`, McKenna, Mullins, Sheldon and Miklau (2022), of pairs of columns; the "
        "same with 20 bins",
        partial(synthetic_rows.smartnoise, (20,), True),
        AIM_SURVEYS,
        peer=SMARTNOISE_SYNTH,
        releases=1,
    ),
    "synthetic, sample": Method(
        "the sample",
        "the rows themselves, without privacy: what sampling alone does",
        synthetic_rows.resampled,
        SURVEYS,
        epsilons=(1.0,),
        releases=10,
    ),
}
DERIVED: Mapping[str, Method] = {
    "derived columns": Method(
        "Gramercy, private constants",
        "`scaling: private`, at delta = 1e-6, of the same samples for every form",
        transforms.of_forms,
        transforms.available(),
    ),
    "ranks": Method(
        "Gramercy, private constants",
        "the same of normal scores by the histograms of the release",
        transforms.of_ranks,
        transforms.available(),
    ),
}
METHODS: Mapping[str, Method] = {
    **REGRESSIONS,
    **FOLDS,
    **ONE_REGRESSOR,
    **COMPONENTS,
    **SYNTHETIC,
    **DERIVED,
}
