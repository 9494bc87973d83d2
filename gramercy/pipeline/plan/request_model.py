"""The release request, with the mechanisms and estimators of the registries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from gramercy import estimators, mechanisms
from gramercy.schemas.form import Select, Tabs
from gramercy.schemas.request import ReleaseRequest
from gramercy.schemas.request_parts import MechanismSpec

Find = Callable[[str], Any]


def _one_of(models: Mapping[str, Any], registered: Find, form: Select | Tabs) -> Any:
    """A union discriminated by `name`, and its form on Prefect's pages.

    What was registered after this module was imported is validated as well; forms do not show it.
    """

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        name = value.get("name") if isinstance(value, Mapping) else getattr(value, "name", None)
        model = None if name in models or not isinstance(name, str) else registered(name)
        return handler(value) if model is None else model.model_validate(value)

    union = reduce(or_, models.values())
    return Annotated[union, Field(discriminator="name"), WrapValidator(validate), form]


def _spec(name: str) -> type[MechanismSpec] | None:
    mechanism = mechanisms.registry.get(name)
    return None if mechanism is None else mechanism.spec


if TYPE_CHECKING:
    AnyMechanism = MechanismSpec
    AnyEstimator = estimators.Estimator
else:
    _specs = {name: each.spec for name, each in mechanisms.registry.items()}
    AnyMechanism = _one_of(_specs, _spec, Select("name"))
    AnyEstimator = _one_of({**estimators.registry}, estimators.registry.get, Tabs())


class Request(ReleaseRequest[AnyMechanism, AnyEstimator]):
    """A request for one release."""

    estimates: tuple[AnyEstimator, ...] = tuple(
        estimators.registry[name](name=name) for name in estimators.DEFAULT_ESTIMATORS
    )
