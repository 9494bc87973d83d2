"""Rank the mechanisms for a request by their error, from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gramercy import mechanisms
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Arithmetic, Mechanism
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import parse
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import ClaimedPureSpec, MechanismSpec, PureSpec


@dataclass(frozen=True)
class RankedMechanism:
    """A mechanism that can answer a request."""

    # name, publishes, arithmetic: properties of the mechanism
    name: str
    publishes: str
    arithmetic: Arithmetic
    # guarantee, law: its exact guarantee, and its noise law on the released matrix
    guarantee: Guarantee
    law: NoiseLaw
    error: float  # root mean square of the Frobenius norm of the noise, before any repair


@dataclass(frozen=True)
class UnsuitableMechanism:
    """A mechanism that cannot answer a request, and why."""

    name: str
    reason: str


def rank_mechanisms(
    spec: ReleaseSpec, requested: MechanismSpec
) -> tuple[list[RankedMechanism], list[UnsuitableMechanism]]:
    """Compare all mechanisms at the requested guarantee, each calibrated exactly.

    Returns
    -------
    ranked
        By the error of the second moment, in ascending order. A mechanism that publishes a
        precision matrix is unsuitable, because its error is not comparable.
    """
    target = _target(spec, requested)
    ranked: list[RankedMechanism] = []
    unsuitable: list[UnsuitableMechanism] = []
    for name, mechanism_type in mechanisms.registry.items():
        if not mechanism_type.publishes.is_moment:
            reason = f"publishes {mechanism_type.publishes.short}, not a second moment"
            unsuitable.append(UnsuitableMechanism(name, reason))
        elif name == requested.name:
            keys = requested.model_copy(update={"calibration": "exact"}).non_default_keys()
            keys.pop("paper", None)
            ranked.append(_calibrated(spec, mechanism_type, keys))
        elif target["delta"] == 0 and not _is_pure(mechanism_type):
            unsuitable.append(UnsuitableMechanism(name, "is not pure epsilon-DP: needs a delta"))
        elif (level := next(iter(target))) not in mechanism_type.spec.level_keys:
            unsuitable.append(UnsuitableMechanism(name, f"cannot be calibrated by {level}"))
        else:
            try:
                keys = {"name": name, "arithmetic": mechanism_type.arithmetic, **target}
                ranked.append(_calibrated(spec, mechanism_type, keys))
            except GramercyError as error:
                unsuitable.append(UnsuitableMechanism(name, str(error)))
    return sorted(ranked, key=lambda each: each.error), unsuitable


def _target(spec: ReleaseSpec, requested: MechanismSpec) -> dict[str, float]:
    """The requested epsilon or mu, with delta; if neither is requested, the exact mu."""
    if requested.epsilon is not None:
        return {"epsilon": requested.epsilon, "delta": requested.delta}
    mu = requested.mu
    if mu is None:
        requested_spec = spec.model_copy(update={"mechanism": requested.non_default_keys()})
        mu = calibrate(requested_spec).guarantee.mu
    return {"mu": mu, "delta": requested.delta}


def _is_pure(mechanism_type: type[Mechanism]) -> bool:
    spec = mechanism_type.spec
    return issubclass(spec, PureSpec) and not issubclass(spec, ClaimedPureSpec)


def _calibrated(
    spec: ReleaseSpec, mechanism_type: type[Mechanism], keys: dict[str, Any]
) -> RankedMechanism:
    name = mechanism_type.name
    requested = parse(mechanism_type.spec, keys, f"mechanism '{name}'", RequestError)
    calibration = calibrate(spec.model_copy(update={"mechanism": requested.non_default_keys()}))
    mechanism = calibration.mechanism
    law = mechanism.matrix_law(spec.dataset.count, spec.parts)
    return RankedMechanism(
        name,
        mechanism.publishes.name,
        mechanism.arithmetic,
        calibration.guarantee,
        law,
        law.norm(len(spec.names)),
    )
