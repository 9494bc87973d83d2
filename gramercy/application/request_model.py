"""The release request in full: its mechanisms and estimators are those in the registries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter

from gramercy import estimators, mechanisms
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import read_yaml
from gramercy.schemas.request import MechanismSpec, ReleaseRequest


def _one_of(*models: Any) -> Any:
    """A union told apart by `name`; pydantic takes no discriminator for a union of one."""
    return Annotated[reduce(or_, models), Field(discriminator="name")] if models[1:] else models[0]


if TYPE_CHECKING:
    AnyMechanism = MechanismSpec
    AnyEstimator = estimators.Estimator
else:
    AnyMechanism = _one_of(*(each.spec for each in mechanisms.registry.values()))
    AnyEstimator = _one_of(*estimators.registry.values())


class Request(ReleaseRequest[AnyMechanism, AnyEstimator]):
    """One release, as it is asked for."""

    estimates: tuple[AnyEstimator, ...] = tuple(
        estimators.registry[name](name=name) for name in estimators.BY_DEFAULT
    )


def restored(settings: Mapping[str, Any]) -> estimators.Estimator:
    """An estimator from the settings that a manifest states."""
    return TypeAdapter(estimators.registry[settings["name"]]).validate_python(dict(settings))


def read_request(path: Path) -> Request:
    """Read a request from YAML; a contract's path in it is resolved against the file's folder.

    Raises
    ------
    RequestError
        Naming the file, the key and the mend.
    """
    request = read_yaml(Request, path, RequestError)
    if not request.dataset.endswith((".yaml", ".yml")):
        return request
    return request.model_copy(update={"dataset": str(path.resolve().parent / request.dataset)})
