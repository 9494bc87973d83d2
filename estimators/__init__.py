"""Post-processing of a release: one estimator a file, and one line each in the registry."""

from collections.abc import Mapping

from estimators.discoveries import Discoveries
from estimators.discriminant import Discriminant
from estimators.estimator import Estimate, Estimator
from estimators.graphical_lasso import GraphicalLasso
from estimators.intervals import Intervals
from estimators.neighbourhood import NeighbourhoodSelection
from estimators.ridge import Ridge
from estimators.scio import Scio
from estimators.threshold import ThresholdedCovariance
from schemas.evidence import Evidence

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

BY_DEFAULT = ("ridge", "graphical-lasso")

__all__ = ["BY_DEFAULT", "Estimate", "Estimator", "Evidence", "registry"]
