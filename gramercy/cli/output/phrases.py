"""A guarantee, an attacker, a normalisation: each in one line."""

from __future__ import annotations

from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.normalisation import AnyNormalisation, Clip


def privacy_loss_text(epsilon: float, delta: float, digits: int = 4) -> str:
    """Epsilon and delta as terminals show them."""
    return f"epsilon={epsilon:.{digits}g}, delta={delta:g}"


def guarantee_text(facts: GuaranteeFacts) -> str:
    """A guarantee in one line."""
    failing = f", except with probability {facts.delta0:.2g}" if facts.delta0 else ""
    return f"{privacy_loss_text(facts.epsilon, facts.delta, 6)}; {facts.mu:.6g}-GDP{failing}"


def attacker_text(power: float) -> str:
    """A guarantee as the best hypothesis test between neighbouring tables.

    Parameters
    ----------
    power
        True positive rate at a false positive rate of 0.05.
    """
    return f"{100 * power:.1f} % true positives at 5 % false positives"


def concentrated_text(facts: GuaranteeFacts) -> str:
    """A guarantee as zero-concentrated differential privacy."""
    if facts.rho is None:
        return "none"
    failing = f", except with probability {facts.rho_failure:.2g}" if facts.rho_failure else ""
    return f"rho={facts.rho:.4g}{failing}"


def normalisation_text(normalisation: AnyNormalisation) -> str:
    """A normalisation in a few words."""
    if isinstance(normalisation, Clip):
        if normalisation.radius is None:
            return "rows clipped at a private radius"
        return f"rows clipped at {normalisation.radius:g}"
    names = {"unit": "unit rows", "box": "rows within their bounds"}
    return names.get(normalisation.kind, "whole numbers")
