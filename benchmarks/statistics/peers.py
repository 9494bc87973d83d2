"""Means, deviations and correlations by other libraries, from the declared bounds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.peers import DIFFPRIVLIB, OPENDP, SMARTNOISE, Peer
from benchmarks.statistics import moments
from benchmarks.statistics.correlations import about_means, about_zero, error
from benchmarks.statistics.methods import (
    Errors,
    Method,
    middle_and_half,
    scaled_rows,
)
from benchmarks.statistics.tables import Table
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms import registry
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.noise import NoiseLaw
from tests.support.private_release import clipped_moment

SCRIPTS = Path(__file__).with_name("scripts")
FEW_COLUMNS = ("bimodal", "counts", "three columns", "wine_quality")  # SmartNoise takes long
DECOMPOSED = ("counts", "off-centre", "three columns")
DECOMPOSED_EPSILONS = (0.1, 1.0)
LENGTHS = (1.0, 0.3)  # of rows in [-1, 1]^p, in units of sqrt(p)
SECONDS = 15  # of processor time, for two fits


def _moments(
    peer: Peer, script: str, table: Table, epsilon: float, _: np.random.Generator, times: int
) -> Errors:
    """From rows that the bounds carry to [-1, 1]."""
    middle, half = middle_and_half(table)
    rows = (table.cells - middle) / half
    found = peer.run(SCRIPTS / f"{script}_moments.py", {"rows": rows}, epsilon, times)
    variances = np.where(found["variances"] > 0, found["variances"], np.nan)
    return moments.errors_of(table, middle + half * found["means"], half * np.sqrt(variances))


def _components(
    peer: Peer, script: str, table: Table, epsilon: float, _: np.random.Generator, times: int
) -> Errors:
    """From the covariance that all components give, for every length of rows that is fast."""
    middle, half = middle_and_half(table)
    rows = (table.cells - middle) / half
    errors: Errors = {}
    for length in LENGTHS:
        given = {"rows": rows, "length": np.array(length * np.sqrt(table.p))}
        try:
            found = peer.run(SCRIPTS / f"{script}_pca.py", given, epsilon, times, seconds=SECONDS)
        except TimeoutError:
            continue
        errors[f"{length:g}"] = [
            error(about_zero(each), table.correlations) for each in found["covariances"]
        ]
    return errors


def _pure(table: Table, epsilon: float, rng: np.random.Generator, times: int) -> Errors:
    """Matrix Laplace noise on rows in bounds: of length one, or not clipped."""
    rows, p = scaled_rows(table.cells, *middle_and_half(table)), table.p + 1
    errors: Errors = {}
    mechanism = registry["matrix-laplace"].calibrated(
        p=p, n=table.n, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon, delta=None, mu=None
    )
    scale = float(mechanism.constants()["scale"]) / table.n
    deviation = scale * np.sqrt(2 * (p + 1))
    law = NoiseLaw(
        family="matrix-laplace",
        sd_diagonal=float(deviation * np.sqrt(2)),
        sd_off_diagonal=float(deviation),
        dof=p + 1,
    )
    for form, radius in (("unit rows", None), ("no row clipped", float(np.sqrt(p)))):
        moment, errors[form] = clipped_moment(rows, radius), []
        for _ in range(times):
            left, right = rng.standard_normal((2, p, p + 1))
            released = moment + scale * (left @ left.T - right @ right.T)
            estimate = about_means(denoise(released, law), np.ones(table.p))
            errors[form].append(error(estimate, table.correlations))
    return errors


METHODS: Mapping[str, Method] = {
    "OpenDP moments": Method(
        "OpenDP",
        "Gaussian noise on `then_mean` and `then_variance`, composed in zCDP; OpenDP's own "
        "conversion to epsilon and delta",
        partial(_moments, OPENDP, "opendp"),
        peer=OPENDP,
        needs_bounds=True,
        tables=moments.MEASURED,
        epsilons=moments.EPSILONS,
    ),
    "diffprivlib moments": Method(
        "diffprivlib",
        "`tools.mean` and `tools.var`, composed by its `BudgetAccountant` with all of delta as the "
        "slack of advanced composition",
        partial(_moments, DIFFPRIVLIB, "diffprivlib"),
        peer=DIFFPRIVLIB,
        needs_bounds=True,
        tables=moments.MEASURED,
        epsilons=moments.EPSILONS,
        repetitions=4,
    ),
    "SmartNoise moments": Method(
        "SmartNoise",
        "`AVG` and `VAR` in one query of SmartNoise SQL, composed by its odometer; its guarantee "
        "is for one row more or less, so a replaced row counts as two steps",
        partial(_moments, SMARTNOISE, "smartnoise"),
        peer=SMARTNOISE,
        needs_bounds=True,
        tables=FEW_COLUMNS,
        epsilons=moments.EPSILONS,
        repetitions=2,
    ),
    "pure": Method(
        "Gramercy, pure",
        "matrix Laplace noise, bounds alone, with an intercept: pure epsilon as for the two peers; "
        "rows of length one or not clipped, whichever is more accurate",
        _pure,
        needs_bounds=True,
        tables=DECOMPOSED,
        epsilons=DECOMPOSED_EPSILONS,
    ),
    "OpenDP components": Method(
        "OpenDP DP-PCA",
        "`make_private_pca` with its private mean and all components; [what is known of its "
        "sampler](../utility/results.md)",
        partial(_components, OPENDP, "opendp"),
        peer=OPENDP,
        needs_bounds=True,
        tables=DECOMPOSED,
        epsilons=DECOMPOSED_EPSILONS,
        repetitions=2,
    ),
    "diffprivlib components": Method(
        "diffprivlib PCA",
        "`models.PCA` with its private mean and all components",
        partial(_components, DIFFPRIVLIB, "diffprivlib"),
        peer=DIFFPRIVLIB,
        needs_bounds=True,
        tables=DECOMPOSED,
        epsilons=DECOMPOSED_EPSILONS,
        repetitions=2,
    ),
}
