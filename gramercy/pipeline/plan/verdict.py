"""The verdict on a plan: whether the release would be of use, and what would help.

Red needs certainty: the noise exceeds the largest possible matrix, or a favourable guess of a
typical diagonal entry. Then `gramercy release` asks again. Orange and green are predictions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.predicted_accuracy import (
    PredictedAccuracy,
    depends_on_bounds,
    predicted_accuracy,
    typical_entry,
)
from gramercy.pipeline.plan.remedies import USEFUL, proposal, sufficient_changes
from gramercy.scaling.shares import shares
from gramercy.schemas import families
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.problem import Notice

Colour = Literal["green", "orange", "red"]

_ACCURATE = 0.05  # error of a typical correlation
_NEGLIGIBLE = 0.001
_USEFUL_NOISE = f"A noise of {USEFUL:g} in a typical correlation"
_LOST = 0.3  # noise of a correlation that is shown as unknown


@dataclass(frozen=True)
class Verdict:
    """The verdict on a plan.

    Parameters
    ----------
    level
        ``green``, ``orange`` or ``red``.
    text
        In words, with what would help.
    code
        Code of the warning; empty if green.
    facts
        The numbers of the verdict by name, for programs.
    """

    level: Colour
    text: str
    code: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {"level": self.level, "code": self.code, "text": self.text, "facts": self.facts}


def plan_verdict(plan: Plan) -> Verdict | None:
    """Judge a plan from public facts alone.

    Returns
    -------
    Verdict or None
        None if no second moment is published.
    """
    if plan.mechanism.publishes in {"precision", "marginals"}:
        return None
    facts: dict[str, Any] = {
        "noise_norm": plan.matrix_error,
        "largest_norm": _largest_norm(plan.spec),
        "noise_share_of_entry": share_of_typical_entry(plan),
    }
    expected = predicted_accuracy(plan.spec, plan.group_law)
    if expected is not None:
        facts |= {"noise": expected.noise, "bias": expected.bias, "error": expected.error}
    return useless(plan, facts) or _prediction(plan, expected, facts)


def useless(plan: Plan, facts: Mapping[str, Any] | None = None) -> Verdict | None:
    """The verdict on a red plan; None if it is not red.

    Parameters
    ----------
    plan
        The plan.
    facts
        Numbers that the verdict should have besides those of the changes that would help.
    """
    if plan.mechanism.publishes in {"precision", "marginals"}:
        return None
    share, largest = share_of_typical_entry(plan), _largest_norm(plan.spec)
    if plan.matrix_error > largest:
        reason = (
            f"its noise has a Frobenius norm of about {plan.matrix_error:.2g}, and the largest "
            f"possible matrix one of {largest:.2g}"
        )
    elif share >= 1:
        reason = f"the noise on an entry is {share:.2g} times a typical entry of the diagonal"
    else:
        return None
    changes = sufficient_changes(plan, share / USEFUL)
    notice = families.NOISE(
        "This release would be useless: {reason}.",
        "{remedy}",
        reason=reason,
        remedy=proposal(changes, _USEFUL_NOISE),
    )
    return _of_notice("red", notice, {**(facts or {}), **changes})


def _prediction(plan: Plan, expected: PredictedAccuracy | None, facts: dict[str, Any]) -> Verdict:
    """Green or orange."""
    if expected is None:
        return Verdict("green", "The noise is below the diagonal of the matrix.", facts=facts)
    unit = plan.spec.normalisation.unit_rows
    if expected.error[1] <= _ACCURATE and not unit:
        text = f"A correlation would typically be off by at most {expected.error[1]:.2g}."
        return Verdict("green", text, facts=facts)
    details = f"noise {_range(expected.noise)}, normalisation {_range(expected.bias)}"
    if depends_on_bounds(plan.spec):
        details += ", by how the columns fill their bounds"
    if unit:
        details += "; rows are divided by their length"
    changes, remedies = {}, []
    division, goal = expected.sufficient_division(_ACCURATE), f"An error of about {_ACCURATE:g}"
    if expected.noise[0] > USEFUL:
        division, goal = expected.noise[0] / USEFUL, _USEFUL_NOISE
    if 1 < division < math.inf:
        changes = sufficient_changes(plan, division)
        remedies.append(proposal(changes, goal))
    if depends_on_bounds(plan.spec) and _constants_pay(plan):
        remedies.append("'scaling: private' does not depend on how columns fill their bounds.")
    elif unit and plan.request.scaling.kind == "declared":
        remedies.append("Rows that are clipped have a smaller bias.")
    if not plan.spec.intercept:
        remedies.append("With 'intercept: true' in the contract, means have no effect.")
    notice = families.NOISE(
        "A correlation would typically be off by {error}: {details}.",
        "{remedy}",
        error=_range(expected.error),
        details=details,
        remedy=" ".join(remedies),
    )
    return _of_notice("orange", notice, facts | changes)


def _constants_pay(plan: Plan) -> bool:
    """Whether the rows suffice for constants from private histograms."""
    p, mu = plan.columns - int(plan.spec.intercept), plan.guarantee.mu
    return shares(plan.spec.dataset.count, p, mu) is not None


def share_of_typical_entry(plan: Plan) -> float:
    """Noise on an entry, divided by a favourable guess of a typical entry of the diagonal."""
    law = plan.group_law
    sd = law.sd_off_diagonal if plan.columns > 1 else law.sd_diagonal
    return sd / typical_entry(plan.spec)


def _largest_norm(spec: ReleaseSpec) -> float:
    """Largest Frobenius norm of the matrix without noise."""
    return spec.normalisation.largest_square(spec.largest_norm)


def _of_notice(level: Colour, notice: Notice, facts: dict[str, Any]) -> Verdict:
    return Verdict(level, notice.message, notice.code, facts)


def _range(values: tuple[float, float]) -> str:
    """A range of errors in words; errors above that of a lost correlation are all alike."""
    low, high = values
    if low >= _LOST:
        return f"more than {_LOST:g}"
    lower, upper = (f"{max(each, _NEGLIGIBLE):.2g}" for each in values)
    if high >= _LOST:
        upper = f"more than {_LOST:g}"
    return upper if upper == lower else f"{lower} to {upper}"
