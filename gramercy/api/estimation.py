"""Estimators by name, for whoever estimates from an opened release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.estimators.scikit import DiscriminantClassifier, MatrixEstimator, by_name
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse


def estimator(name: str, settings: Mapping[str, Any]) -> MatrixEstimator | DiscriminantClassifier:
    """An estimator of this name, not fitted yet.

    Raises
    ------
    RequestError
        If there is no such estimator or setting.
    """
    if name not in by_name:
        known = f"Known: {', '.join(by_name)}."
        if name == "intervals":
            known = "Use .correlation.interval(), or .covariance.interval()."
        raise RequestError(f"estimate: no estimator '{name}'.", known)
    parse(by_name[name].spec, {"name": name, **settings}, f"estimate '{name}'", RequestError)
    return by_name[name](**settings)
