"""Estimators by name, for estimating from an opened release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.scikit import DiscriminantClassifier, MatrixEstimator, by_name
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse
from gramercy.schemas.problems.analysis import (
    group_in_settings,
    has_own_call,
    unknown_estimator,
)

_OWN_CALLS = {  # estimators of requests and the command line that are methods in Python
    "intervals": ".correlation.interval() or .covariance.interval()",
    "regression": ".regression('y ~ a + b')",
    "pca": ".pca()",
    "tables": ".crosstab('COLUMN')",
    "moments": ".describe()",
    "synthetic": ".synthesize()",
    "quadratic-discriminant": ".groups.classifier()",
    "pool": "gramercy.pool([release, other])",
}
_OTHER_NAMES = {"glasso": "graphical-lasso", "lda": "discriminant", "qda": "quadratic-discriminant"}


def estimator(name: str, settings: Mapping[str, Any]) -> MatrixEstimator | DiscriminantClassifier:
    """The unfitted estimator of this name.

    Raises
    ------
    RequestError
        If the estimator or a setting is unknown.
    """
    if name not in by_name:
        if name in _OWN_CALLS:
            raise has_own_call(name, _OWN_CALLS[name])
        wanted = _OTHER_NAMES.get(name.lower(), name)
        raise unknown_estimator(name, most_similar_first(wanted, [*by_name, *_OWN_CALLS]))
    if "group" in settings:
        raise group_in_settings(name, str(settings["group"]))
    parse(by_name[name].spec, {"name": name, **settings}, f"estimate '{name}'", RequestError)
    return by_name[name](**settings)
