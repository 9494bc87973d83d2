"""Propose folds where their noise is nothing: they make intervals free of assumptions."""

from __future__ import annotations

import math

from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.pipeline.plan.calibration import Calibration
from gramercy.scaling.shares import shares
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.normalisation import Clip

FOLDS = 10  # ten cover as well as twenty, and cost less noise
_NEGLIGIBLE = 1 / 3  # of the sampling error
TYPICAL_SQUARE = 12.0  # of an estimated radius, per matrix column: the median of 13 tables
_CLOSED_UNDER_SUMS = ("gaussian", "gaussian-iid")


def proposed_folds(spec: ReleaseSpec, calibration: Calibration) -> int:
    """Number of folds that a planned release without folds should have; 1 for none.

    Their noise is sqrt(folds) times as large. It must stay below a third of the sampling error of a
    correlation, 1 / sqrt(n). Not for persons, whose releases have no folds.
    """
    if spec.folds > 1 or spec.by is not None or spec.privacy_unit != "row":
        return spec.folds
    if spec.mechanism["name"] not in _CLOSED_UNDER_SUMS:
        return 1
    q, n = len(spec.names), spec.dataset.rows
    square = float(q)  # unit rows: a diagonal entry is 1/q
    if isinstance(spec.normalisation, Clip):
        radius = spec.normalisation.radius
        square = TYPICAL_SQUARE * q if radius is None else radius**2
    return _folds(calibration.mechanism.law.sd_off_diagonal * square, n)


def folds_of_draft(n: int, columns: int, epsilon: float, delta: float) -> int:
    """The same for a release that is not planned yet, with private constants.

    Parameters
    ----------
    n, columns
        Number of rows, and of columns of the table.
    epsilon, delta
        Privacy level of the release.
    """
    mu = gdp_mu(epsilon, delta)
    planned = shares(n, columns, mu)
    left = 1.0 if planned is None else 1 - sum(planned.stages) - planned.lengths
    return _folds(TYPICAL_SQUARE * (columns + 1) / (mu * math.sqrt(left)), n)


def _folds(noise_of_sum: float, n: int) -> int:
    """Folds for a noise of the sum of products of scaled columns, and n rows."""
    largest = _NEGLIGIBLE * math.sqrt(n)
    return FOLDS if math.sqrt(FOLDS) * noise_of_sum <= largest else 1
