"""Estimators: post-processing of a release. Each has a module, and a line in the registry."""

from collections.abc import Mapping

from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.discriminant import Discriminant
from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.intervals import Intervals
from gramercy.estimators.neighbourhood import NeighbourhoodSelection
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.scio import Scio
from gramercy.estimators.threshold import ThresholdedCovariance
from gramercy.schemas.evidence import Evidence

registry: Mapping[str, type[Estimator]] = {
    "ridge": Ridge,
    "graphical-lasso": GraphicalLasso,
    "scio": Scio,
    "neighbourhood": NeighbourhoodSelection,
    "thresholded": ThresholdedCovariance,
    "discriminant": Discriminant,
    "intervals": Intervals,
    "discoveries": Discoveries,
}

DEFAULT_ESTIMATORS = ("ridge", "graphical-lasso")

__all__ = ["DEFAULT_ESTIMATORS", "Estimate", "Estimator", "Evidence", "registry"]
