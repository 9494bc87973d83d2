"""Estimators: post-processing of a release. Each has a module, and a line in the registry."""

from gramercy.estimators.clime import Clime
from gramercy.estimators.components import Components
from gramercy.estimators.cross_tables import CrossTables
from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.discriminant import Discriminant
from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.factors import FactorAnalysis
from gramercy.estimators.graph_difference import Difference
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.intervals import Intervals
from gramercy.estimators.joint_graphical_lasso import JointGraphicalLasso
from gramercy.estimators.neighbourhood import NeighbourhoodSelection
from gramercy.estimators.pooled_releases import PooledReleases
from gramercy.estimators.quadratic_discriminant import QuadraticDiscriminant
from gramercy.estimators.regression import LinearRegression
from gramercy.estimators.reliability import Reliability
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.scio import Scio
from gramercy.estimators.summary_table import SummaryTable
from gramercy.estimators.synthetic import Synthetic
from gramercy.estimators.threshold import ThresholdedCovariance
from gramercy.estimators.wishart_prior import WishartPrior
from gramercy.schemas.evidence import Evidence

_ESTIMATORS: tuple[type[Estimator], ...] = (
    *(Ridge, GraphicalLasso, Scio, Clime, WishartPrior, NeighbourhoodSelection),
    ThresholdedCovariance,
    *(Discriminant, QuadraticDiscriminant, Intervals, Discoveries, LinearRegression, Components),
    *(FactorAnalysis, CrossTables, SummaryTable, Synthetic, JointGraphicalLasso, PooledReleases),
    *(Difference, Reliability),
)
registry: dict[str, type[Estimator]] = {
    each.model_fields["name"].default: each for each in _ESTIMATORS
}

DEFAULT_ESTIMATORS = ("ridge", "graphical-lasso")

__all__ = ["DEFAULT_ESTIMATORS", "Estimate", "Estimator", "Evidence", "registry"]
