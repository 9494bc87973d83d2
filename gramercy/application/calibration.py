"""The noise of a release, its law and its exact guarantee, from public facts alone."""

from __future__ import annotations

import math

from gramercy import mechanisms
from gramercy.application.public_parameters import setting
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.schemas.errors import GuaranteeRefused, RequestError
from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.manifest import Asked
from gramercy.schemas.model import finite
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Whole
from gramercy.schemas.specs import MechanismSpec


def calibrate(asked: Asked) -> Mechanism:
    """The noise of a release, from public facts alone.

    Raises
    ------
    RequestError
        If the mechanism has no meaning for such a table.
    GuaranteeRefused
        If the exact guarantee of the noise is weaker than what was asked for.
    """
    known = mechanisms.registry[asked.mechanism["name"]]
    spec = known.spec.model_validate(asked.mechanism)
    if isinstance(asked.normalisation, Whole) != (known.name == "integer-rows"):
        raise RequestError(
            "key 'normalisation': 'whole' and the mechanism 'integer-rows' go together.",
            "Use both, or neither.",
        )
    mechanism = known.of(spec, setting(asked))
    refuse_weaker(mechanism, spec)
    if asked.folds > 1:
        _check_folds(asked, mechanism)
    return mechanism


def _check_folds(asked: Asked, mechanism: Mechanism) -> None:
    if not isinstance(mechanism, Additive) or mechanism.law.family not in _SUMS:
        raise RequestError(
            f"key 'folds': '{mechanism.name}' is not published in folds.",
            "Use 'gaussian' or 'gaussian-iid', whose sums have a law of the same kind.",
        )
    if asked.unit == "person":
        raise RequestError(
            "key 'folds': a table of persons is not published in folds.", "Leave the key out."
        )
    if asked.folds > asked.dataset.rows:
        raise RequestError("key 'folds': there are fewer rows than folds.", "Ask for fewer.")


_SUMS = ("gaussian-isotropic", "gaussian-iid")


def refuse_weaker(mechanism: Mechanism, spec: MechanismSpec) -> None:
    """Refuse noise whose exact guarantee does not fit what was asked, with both numbers.

    Raises
    ------
    GuaranteeRefused
        As said.
    """
    exact = mechanism.guarantee
    if math.isinf(exact.epsilon(spec.delta)) and spec.epsilon is None:
        raise GuaranteeRefused(
            f"{mechanism.name}: this noise has no epsilon at delta {spec.delta:g}.",
            "Ask for more noise, or a larger delta.",
        )
    if spec.epsilon is None:
        return
    delta = exact.delta(spec.epsilon)
    if delta <= spec.delta:
        return
    epsilon = exact.epsilon(spec.delta)
    instead = f"or epsilon {epsilon:.4g} at the delta asked for" if math.isfinite(epsilon) else ""
    raise GuaranteeRefused(
        f"{mechanism.name}: asked for epsilon {spec.epsilon:g} at delta {spec.delta:g}; this noise "
        f"guarantees delta {delta:.4g} at that epsilon{', ' + instead if instead else ''}.",
        "Use 'calibration: exact', which finds the noise that it takes.",
    )


def noise_law(mechanism: Mechanism, rows: float, folds: int = 1) -> NoiseLaw:
    """The law of the released matrix: a sum over rows is divided by their number."""
    law = mechanism.law.summed(folds) if folds > 1 else mechanism.law
    return law if mechanism.publishes == "precision" else law.divided_by(rows)


def guarantee_facts(exact: Guarantee, delta: float) -> GuaranteeFacts:
    """A guarantee in all the field's languages."""
    rho, failure = exact.rho()
    return GuaranteeFacts(
        mu=exact.mu,
        delta0=exact.delta0,
        pure=finite(exact.pure),
        epsilon=exact.epsilon(delta),
        delta=delta,
        rho=finite(rho),
        rho_failure=failure,
        power=exact.power(0.05),
        curve={f"{epsilon:g}": exact.delta(epsilon) for epsilon in _CURVE},
    )


_CURVE = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
