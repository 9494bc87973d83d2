"""Calibrate the noise of a release, and compute its law and exact guarantee.

Only public facts are used.
"""

from __future__ import annotations

import math

from gramercy import mechanisms
from gramercy.application.public_parameters import public_parameters
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import finite_or_none
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Whole
from gramercy.schemas.problems import publication as problems
from gramercy.schemas.specs import MechanismSpec


def calibrate(spec: ReleaseSpec) -> Mechanism:
    """Calibrate the noise of a release from public facts alone.

    Raises
    ------
    RequestError
        If the mechanism is not defined for such a table.
    GuaranteeRefused
        If the exact guarantee of the noise is weaker than requested.
    """
    mechanism_type = mechanisms.registry[spec.mechanism["name"]]
    requested = mechanism_type.spec.model_validate(spec.mechanism)
    if isinstance(spec.normalisation, Whole) != (mechanism_type.name == "integer-rows"):
        raise problems.whole_numbers_mismatch()
    mechanism = mechanism_type.from_spec(requested, public_parameters(spec))
    check_guarantee(mechanism, requested)
    if spec.folds > 1:
        _check_folds(spec, mechanism)
    return mechanism


def _check_folds(spec: ReleaseSpec, mechanism: Mechanism) -> None:
    if not isinstance(mechanism, Additive) or mechanism.law.family not in _CLOSED_UNDER_SUMS:
        raise problems.folds_not_supported(mechanism.name)
    if spec.privacy_unit == "person":
        raise problems.folds_of_persons()
    if spec.folds > spec.dataset.rows:
        raise problems.more_folds_than_rows(spec.folds, spec.dataset.rows)


_CLOSED_UNDER_SUMS = ("gaussian-isotropic", "gaussian-iid")


def check_guarantee(mechanism: Mechanism, requested: MechanismSpec) -> None:
    """Refuse noise whose exact guarantee is weaker than requested.

    Raises
    ------
    GuaranteeRefused
        With the requested and the exact epsilon and delta.
    """
    exact = mechanism.guarantee
    exact_epsilon = exact.epsilon(requested.delta)
    if requested.epsilon is None:
        if math.isinf(exact_epsilon):
            raise problems.no_finite_epsilon(mechanism.name, requested.delta)
        return
    exact_delta = exact.delta(requested.epsilon)
    if exact_delta > requested.delta:
        raise problems.guarantee_too_weak(
            mechanism.name, requested.epsilon, requested.delta, exact_delta, exact_epsilon
        )


def noise_law(mechanism: Mechanism, rows: float, folds: int = 1) -> NoiseLaw:
    """Noise law of the released matrix, which is a sum over rows divided by their number."""
    law = mechanism.law.summed(folds) if folds > 1 else mechanism.law
    return law if mechanism.publishes == "precision" else law.divided_by(rows)


def guarantee_facts(exact: Guarantee, delta: float) -> GuaranteeFacts:
    """A guarantee as mu-GDP, (epsilon, delta)-DP, zCDP and pure DP; see `GuaranteeFacts`."""
    rho, failure = exact.rho()
    return GuaranteeFacts(
        mu=exact.mu,
        delta0=exact.delta0,
        pure_epsilon=finite_or_none(exact.pure),
        epsilon=exact.epsilon(delta),
        delta=delta,
        rho=finite_or_none(rho),
        rho_failure=failure,
        power=exact.power(0.05),
        profile={f"{epsilon:g}": exact.delta(epsilon) for epsilon in _PROFILE_EPSILONS},
    )


_PROFILE_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
