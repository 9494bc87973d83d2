"""Estimates of analyses, computed from an opened release by the name of the estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.estimators import Estimate, Evidence, registry
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse


def analysis(name: str, settings: Mapping[str, Any], evidence: Evidence) -> Estimate:
    """The estimate of this name; settings that are None keep their defaults.

    Raises
    ------
    RequestError
        If a setting is invalid, or the estimate is not possible for this release.
    """
    given = {key: value for key, value in settings.items() if value is not None}
    spec = parse(registry[name], {"name": name, **given}, f"estimate '{name}'", RequestError)
    return spec.fit(evidence)
