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
    intervals_not_an_estimate,
    unknown_estimator,
)


def estimator(name: str, settings: Mapping[str, Any]) -> MatrixEstimator | DiscriminantClassifier:
    """The unfitted estimator of this name.

    Raises
    ------
    RequestError
        If the estimator or a setting is unknown.
    """
    if name not in by_name:
        if name == "intervals":
            raise intervals_not_an_estimate()
        raise unknown_estimator(name, most_similar_first(name, by_name))
    if "group" in settings:
        raise group_in_settings(name, str(settings["group"]))
    parse(by_name[name].spec, {"name": name, **settings}, f"estimate '{name}'", RequestError)
    return by_name[name](**settings)
