"""Post-processing of a release: one estimator a file, and one line each in the registry."""

from collections.abc import Mapping

from estimators.estimator import Estimator, Evidence, Precision
from estimators.graphical_lasso import GraphicalLasso
from estimators.ridge import Ridge

registry: Mapping[str, type[Estimator]] = {"ridge": Ridge, "graphical-lasso": GraphicalLasso}

__all__ = ["Estimator", "Evidence", "Precision", "registry"]
