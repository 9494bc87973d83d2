"""The release request, with the mechanisms and estimators of the registries."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from gramercy import estimators, mechanisms
from gramercy.schemas.form import Select, Tabs
from gramercy.schemas.request import ReleaseRequest
from gramercy.schemas.request_parts import MechanismSpec


def _one_of(models: Iterable[Any], form: Select | Tabs) -> Any:
    """A union discriminated by `name`, and its form on Prefect's pages."""
    return Annotated[reduce(or_, models), Field(discriminator="name"), form]


if TYPE_CHECKING:
    AnyMechanism = MechanismSpec
    AnyEstimator = estimators.Estimator
else:
    AnyMechanism = _one_of((each.spec for each in mechanisms.registry.values()), Select("name"))
    AnyEstimator = _one_of(estimators.registry.values(), Tabs())


class Request(ReleaseRequest[AnyMechanism, AnyEstimator]):
    """A request for one release."""

    estimates: tuple[AnyEstimator, ...] = tuple(
        estimators.registry[name](name=name) for name in estimators.DEFAULT_ESTIMATORS
    )
