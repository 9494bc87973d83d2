"""Changes of a plan that would bring its noise down far enough, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.predicted_accuracy import typical_entry
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.manifest import ReleaseSpec

USEFUL = 0.1  # noise in a typical correlation that makes a useless release useful
_MOST_EPSILON, _STEPS = 50.0, 14


def sufficient_changes(plan: Plan, times: float) -> dict[str, float | int]:
    """Single changes of a plan that would divide the noise in a typical correlation by a number.

    Parameters
    ----------
    plan
        The plan.
    times
        The number, above 1.

    Returns
    -------
    dict
        The least ``epsilon`` up to 50, the least number of ``rows`` or ``persons``, and the most
        ``columns`` of the table; without those that do not exist.
    """
    spec, law = plan.spec, plan.law
    count = math.ceil(spec.dataset.count * times)
    changes: dict[str, float | int] = {spec.count_key: _rounded_up(count)}
    wanted = law.sd_off_diagonal / times

    def with_epsilon(epsilon: float) -> bool:
        keys = {key: x for key, x in spec.mechanism.items() if key not in ("mu", "snr")}
        changed = spec.model_copy(update={"mechanism": keys | {"epsilon": epsilon}})
        return _sd(changed) <= wanted

    def with_columns(number: int) -> bool:
        fewer = _first_columns(spec, number)
        return _sd(fewer) / typical_entry(fewer) <= wanted / typical_entry(spec)

    start = plan.guarantee.epsilon(plan.request.mechanism.delta)
    if math.isfinite(start) and start < _MOST_EPSILON:
        epsilon = _least_epsilon(with_epsilon, start)
        if epsilon is not None:
            changes["epsilon"] = epsilon
    columns = _most_columns(with_columns, len(spec.columns))
    if columns is not None:
        changes["columns"] = columns
    return changes


def _least_epsilon(enough: Callable[[float], bool], start: float) -> float | None:
    """The least sufficient epsilon, to two digits; None above the largest that is considered."""
    low, high = start, _MOST_EPSILON
    try:
        if not enough(high):
            return None
        for _ in range(_STEPS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
    except GramercyError:  # the mechanism is not defined there
        return None
    return _two_digits_up(high)


def _most_columns(enough: Callable[[int], bool], now: int) -> int | None:
    """The largest sufficient number of columns of the table; None if there is none."""
    low, high = 1, now
    try:
        if now < 3 or not enough(2):
            return None
        low = 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if enough(middle) else (low, middle)
    except GramercyError:
        return None
    return low


def _sd(spec: ReleaseSpec) -> float:
    """Standard deviation of the noise on an entry off the diagonal."""
    mechanism = calibrate(spec).mechanism
    return mechanism.matrix_law(spec.dataset.count, spec.parts).sd_off_diagonal


def _first_columns(spec: ReleaseSpec, number: int) -> ReleaseSpec:
    """The release of the first columns only."""
    update: dict[str, Any] = {"columns": spec.columns[:number]}
    if spec.scaling is not None:
        bounds = spec.scaling.bounds[:number]
        update["scaling"] = spec.scaling.model_copy(update={"bounds": bounds, "present": None})
    return spec.model_copy(update=update)


def proposal(changes: dict[str, float | int], goal: str) -> str:
    """The changes that reach a goal, such as ``a noise of 0.1``, in one sentence."""
    parts = []
    if "epsilon" in changes:
        parts.append(f"epsilon {changes['epsilon']:g}")
    parts += [f"{changes[key]:,} {key}" for key in ("rows", "persons") if key in changes]
    if "columns" in changes:
        parts.append(f"at most {changes['columns']} columns")
    either = " or ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"{goal} takes {either}."


def _two_digits_up(value: float) -> float:
    """The value rounded up to two digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.3g}")


def _rounded_up(count: int) -> int:
    """A number of rows rounded up to two digits."""
    step = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // step) * step
