"""Rank the mechanisms that could answer a request, from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

import mechanisms
from mechanisms.guarantee import Guarantee
from mechanisms.mechanism import Arithmetic, Kind
from schemas.errors import GramercyError, RequestError
from schemas.model import parse
from schemas.noise import NoiseLaw
from tasks.manifest import calibrate, noise_law
from tasks.plan import Plan


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
    publishes: Kind
    arithmetic: Arithmetic
    guarantee: Guarantee
    law: NoiseLaw
    error: float


@dataclass(frozen=True)
class Declined:
    """A mechanism that cannot answer a request, and why."""

    name: str
    why: str


def compare(plan: Plan) -> tuple[list[Offer], list[Declined]]:
    """Every mechanism at the guarantee that is asked for, calibrated exactly.

    Parameters
    ----------
    plan
        Of the request; its own mechanism is one of those that are compared.

    Returns
    -------
    offers
        By the error of the second moment, least first. Who publishes a precision matrix is
        declined: its error is of another kind.
    declined
        The others.
    """
    offers: list[Offer] = []
    declined: list[Declined] = []
    for name, known in mechanisms.registry.items():
        if known.publishes == "precision":
            declined.append(Declined(name, "publishes a precision matrix, no second moment"))
            continue
        try:
            offers.append(_offer(plan, name))
        except GramercyError as error:
            declined.append(Declined(name, str(error)))
    return sorted(offers, key=lambda each: each.error), declined


def _offer(plan: Plan, name: str) -> Offer:
    known, asked = mechanisms.registry[name], plan.request.mechanism
    stated = {"name": name, "arithmetic": known.arithmetic, "delta": asked.delta}
    if asked.mu is not None:
        stated["mu"] = asked.mu
    elif asked.epsilon is not None:
        stated["epsilon"] = asked.epsilon
    else:  # named another way, such as by decibels: what that turned out to be
        stated["epsilon"] = plan.guarantee.epsilon(asked.delta)
    spec = parse(known.spec, stated, f"mechanism '{name}'", RequestError)
    public = plan.asked.model_copy(update={"mechanism": spec.asked()})
    mechanism = calibrate(public)
    law = noise_law(mechanism, plan.contract.rows)
    return Offer(
        name,
        mechanism.publishes,
        mechanism.arithmetic,
        mechanism.guarantee,
        law,
        law.norm(plan.columns),
    )
