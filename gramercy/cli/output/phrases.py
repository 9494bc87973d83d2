"""A guarantee, an attacker, a normalisation: each in one line."""

from __future__ import annotations

from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.normalisation import AnyNormalisation, Clip


def guarantee_text(facts: GuaranteeFacts) -> str:
    """A guarantee in one line."""
    at = f"epsilon {facts.epsilon:.6g} at delta {facts.delta:g}"
    failing = f" but for probability {facts.delta0:.2g}" if facts.delta0 else ""
    return f"{at}; {facts.mu:.6g}-GDP{failing}"


def attacker_text(power: float, unit: str) -> str:
    """How a guarantee reads as a hypothesis test."""
    return f"finds {100 * power:.3g} {unit}s of 100, at 5 false alarms in 100"


def concentrated_text(facts: GuaranteeFacts) -> str:
    """A guarantee as zero-concentrated differential privacy."""
    if facts.rho is None:
        return "none"
    failing = f" but for probability {facts.rho_failure:.2g}" if facts.rho_failure else ""
    return f"rho {facts.rho:.4g}{failing}"


def normalisation(how: AnyNormalisation) -> str:
    """What is done to every row, in short."""
    if isinstance(how, Clip):
        return f"rows clipped at {how.radius:g}"
    return {"unit": "unit rows", "box": "rows within their bounds"}.get(how.kind, "whole numbers")
