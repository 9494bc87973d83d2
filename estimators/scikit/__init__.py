"""The estimators in the style of scikit-learn: ``fit``, ``covariance_``, ``precision_``.

Each has the settings of its estimator, whose documentation explains them. `fit` takes an opened
release, its `Evidence`, or rows that are not private; `fit_matrix` takes a second moment and its
noise law. See `estimators.scikit.matrix_estimators.MatrixEstimator`.

>>> import numpy as np
>>> from gramercy.estimators.scikit import RidgePrecision
>>> rows = np.array([[1.0, 0.5], [-1.0, 0.5], [0.0, -1.0], [1.0, 1.0]])
>>> RidgePrecision(penalty=0.1).fit(rows).precision_.round(2)
array([[ 1.09, -0.25],
       [-0.25,  1.21]])
"""

from collections.abc import Mapping

from gramercy.estimators.scikit.classifier import DiscriminantClassifier
from gramercy.estimators.scikit.matrix_estimators import (
    ClimePrecision,
    DiscoveredGraph,
    MatrixEstimator,
    NeighbourhoodGraph,
    RidgePrecision,
    ScioPrecision,
    SparseCovariance,
    SparsePrecision,
    WishartPriorPrecision,
)

by_name: Mapping[str, type[MatrixEstimator] | type[DiscriminantClassifier]] = {
    each.spec.model_fields["name"].default: each
    for each in (
        RidgePrecision,
        SparsePrecision,
        ScioPrecision,
        ClimePrecision,
        WishartPriorPrecision,
        NeighbourhoodGraph,
        SparseCovariance,
        DiscriminantClassifier,
        DiscoveredGraph,
    )
}

__all__ = [
    "ClimePrecision",
    "DiscoveredGraph",
    "DiscriminantClassifier",
    "MatrixEstimator",
    "NeighbourhoodGraph",
    "RidgePrecision",
    "ScioPrecision",
    "SparseCovariance",
    "SparsePrecision",
    "WishartPriorPrecision",
]
