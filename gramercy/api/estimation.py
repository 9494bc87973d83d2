"""Estimators by name, for estimating from an opened release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.scikit import DiscriminantClassifier, MatrixEstimator, by_name
from gramercy.schemas import families
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse

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
            raise families.ESTIMATE(
                "The estimator '{estimator}' is not available in .estimate().",
                "Use {call}.",
                estimator=name,
                call=_OWN_CALLS[name],
            )
        wanted = _OTHER_NAMES.get(name.lower(), name)
        raise families.ESTIMATE(
            "'{name}' is not the name of an estimator.",
            "Known: {known}.",
            name=name,
            known=most_similar_first(wanted, [*by_name, *_OWN_CALLS]),
        )
    if "group" in settings:
        raise families.ESTIMATE(
            "'group' is not a setting of .estimate().",
            "Use .groups['{group}'].estimate('{estimator}').",
            estimator=name,
            group=str(settings["group"]),
        )
    parse(by_name[name].spec, {"name": name, **settings}, f"estimate '{name}'", RequestError)
    return by_name[name](**settings)
