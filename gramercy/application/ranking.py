"""Rank the mechanisms that could answer a request, from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gramercy import mechanisms
from gramercy.application.calibration import calibrate, noise_law
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Arithmetic, Mechanism
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.schemas.manifest import Asked, ReleaseKind
from gramercy.schemas.model import parse
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.specs import MechanismSpec, PureSpec, SaidToBePureSpec


@dataclass(frozen=True)
class Offer:
    """What a mechanism would do for a request.

    Parameters
    ----------
    name, publishes, arithmetic
        Of the mechanism.
    guarantee, law
        Its exact guarantee, and its noise on the released matrix.
    error
        Root mean square of the noise's Frobenius norm, before any repair.
    """

    name: str
    publishes: ReleaseKind
    arithmetic: Arithmetic
    guarantee: Guarantee
    law: NoiseLaw
    error: float


@dataclass(frozen=True)
class Declined:
    """A mechanism that cannot answer a request, and why."""

    name: str
    why: str


def compare(public: Asked, spec: MechanismSpec) -> tuple[list[Offer], list[Declined]]:
    """Every mechanism at the guarantee that is asked for, calibrated exactly.

    Parameters
    ----------
    public
        Facts of the table, and of how its rows are normalised.
    spec
        What is asked for; its own mechanism is one of those that are compared.

    Returns
    -------
    offers
        By the error of the second moment, least first. Who publishes a precision matrix is
        declined: its error is of another kind.
    declined
        The others.
    """
    target = _target(public, spec)
    offers: list[Offer] = []
    declined: list[Declined] = []
    for name, known in mechanisms.registry.items():
        if known.publishes == "precision":
            declined.append(Declined(name, "publishes a precision matrix, no second moment"))
        elif name == spec.name:
            stated = spec.model_copy(update={"calibration": "exact"}).asked()
            stated.pop("paper", None)
            offers.append(_offer(public, known, stated))
        elif target["delta"] == 0 and not _pure(known):
            declined.append(Declined(name, "has no pure epsilon: needs a delta"))
        elif (way := next(iter(target))) not in known.spec.ways:
            declined.append(Declined(name, f"is not calibrated from {way}"))
        else:
            try:
                named = {"name": name, "arithmetic": known.arithmetic}
                offers.append(_offer(public, known, named | target))
            except GramercyError as error:
                declined.append(Declined(name, str(error)))
    return sorted(offers, key=lambda each: each.error), declined


def _target(public: Asked, spec: MechanismSpec) -> dict[str, float]:
    """Epsilon or mu, and delta. What is named another way is what it turns out to be: a mu."""
    if spec.epsilon is not None:
        return {"epsilon": spec.epsilon, "delta": spec.delta}
    mu = spec.mu
    if mu is None:
        own = public.model_copy(update={"mechanism": spec.asked()})
        mu = calibrate(own).guarantee.mu
    return {"mu": mu, "delta": spec.delta}


def _pure(known: type[Mechanism]) -> bool:
    return issubclass(known.spec, PureSpec) and not issubclass(known.spec, SaidToBePureSpec)


def _offer(public: Asked, known: type[Mechanism], stated: dict[str, Any]) -> Offer:
    spec = parse(known.spec, stated, f"mechanism '{known.name}'", RequestError)
    mechanism = calibrate(public.model_copy(update={"mechanism": spec.asked()}))
    law = noise_law(mechanism, public.dataset.count, public.folds)
    return Offer(
        known.name,
        mechanism.publishes,
        mechanism.arithmetic,
        mechanism.guarantee,
        law,
        law.norm(len(public.names)),
    )
