"""The verdict on a plan: whether the release would be of use, and what would help.

Where constants are private, the verdict is what the report would say of a plain table: see
`plain_table`. Otherwise red needs certainty: the noise exceeds the largest possible matrix, or a
favourable guess of a typical diagonal entry. Before a red release, `gramercy release` asks again.

Orange and green are then predictions, from public facts alone. Nothing is known of how columns fill
their bounds, so the error of correlations is simulated for several tables within them, whose
columns are Gaussian or skewed and have correlations of 0.3. Green is shown only where the report
can be green, too: not without an intercept, for rows that are divided by their length, or where
shares of missing cells are not published.

- constants from histograms, or declared for a column: the mean at the centre, the deviation equal
  to the scale;
- the middle and half width of bounds: the mean in the middle and a sixth of the range as the
  deviation, or a mean halfway to a bound and a twentieth of the range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gramercy.estimators.accuracy.clipped_accuracy import LARGEST, TYPICAL
from gramercy.estimators.accuracy.row_simulation import (
    Law,
    Normalisation,
    before_and_after,
    gaussian,
    lognormal,
    one_factor_rows,
)
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.plan.plain_table import PlainAccuracy, plain_accuracy
from gramercy.pipeline.plan.planning import Plan
from gramercy.scaling.column_constants import WINSOR
from gramercy.scaling.shares import shares
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Clip
from gramercy.schemas.problem import Notice

Array = NDArray[np.float64]

_CORRELATION = 0.3
_SKEWNESS = 0.6
_LAWS: tuple[Law, ...] = (gaussian, lognormal(_SKEWNESS))
_FILLS = ((0.0, 1 / 3), (0.5, 0.1))  # mean and deviation, in half widths from the middle
_RADII = (1.2, 3.0)  # an estimated radius in units of sqrt(q): for Gaussian and for skewed columns
_SAME_SCALE = 1e-9


@dataclass(frozen=True)
class PredictedAccuracy:
    """The error of correlations, for each of the simulated tables."""

    # standard deviation of the noise in a typical correlation, and root mean square of the change
    # of correlations by the normalisation, by table
    tables: tuple[tuple[float, float], ...]

    @property
    def noise(self) -> tuple[float, float]:
        """The least and the largest noise."""
        return _range([noise for noise, _ in self.tables])

    @property
    def bias(self) -> tuple[float, float]:
        """The least and the largest change by the normalisation."""
        return _range([bias for _, bias in self.tables])

    @property
    def error(self) -> tuple[float, float]:
        """The least and the largest error: noise and bias together."""
        return _range([math.hypot(*each) for each in self.tables])


def _range(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def predicted_accuracy(spec: ReleaseSpec, law: NoiseLaw) -> PredictedAccuracy | None:
    """Predict the error of the correlations of a release."""
    if len(spec.names) - int(spec.intercept) < 2:
        return None
    return PredictedAccuracy(tuple(_simulated(spec, law.sd_off_diagonal)))


def typical_entry(spec: ReleaseSpec) -> float:
    """A favourable guess of a typical diagonal entry of the matrix: the noise must be below it."""
    q = len(spec.names)
    normalisation = spec.normalisation
    if normalisation.unit_rows:
        return 1 / q
    if normalisation.lacks_radius:
        return 1 / (q * _RADII[0] ** 2)
    if isinstance(normalisation, Clip):
        return 1 / normalisation.length**2
    widths = [
        1.0 if isinstance(c, LevelsFacts) else ((c.upper - c.lower) / (2 * c.scale)) ** 2 / 3
        for c in spec.columns
    ]
    scale = normalisation.divisor(spec.largest_norm) or 1.0
    return float(np.median(widths)) / scale**2


def depends_on_bounds(spec: ReleaseSpec) -> bool:
    """Whether the error depends on how columns fill their bounds: no scale was chosen for some."""
    return spec.scaling is None and any(
        isinstance(column, ColumnFacts) and _has_default_scale(column, spec)
        for column in spec.columns
    )


def _has_default_scale(column: ColumnFacts, spec: ReleaseSpec) -> bool:
    """Whether the scale is half of the range, or that of whole numbers."""
    half = (column.upper / 2 - column.lower / 2) / column.scale
    return abs(half - 1) <= _SAME_SCALE or spec.normalisation.keeps_rows


def _simulated(spec: ReleaseSpec, sd: float) -> Iterator[tuple[float, float]]:
    """Noise and bias of a typical correlation, by table."""
    columns = [  # the table column of each matrix column but the intercept
        column
        for column in spec.columns
        for _ in range(len(column.levels) if isinstance(column, LevelsFacts) else 1)
    ]
    cells = one_factor_rows(len(columns), _CORRELATION)
    persons = max(1, round(spec.dataset.rows / spec.dataset.count))
    cells = cells[: len(cells) // persons * persons]
    divisor = 1.0 if spec.normalisation.keeps_rows else None
    for law, radius in zip(_LAWS, _radii(spec), strict=True):
        drawn = law(cells)
        drawn = (drawn - drawn.mean(axis=0)) / drawn.std(axis=0)
        for fill in _FILLS[: 1 if spec.scaling is not None else None]:
            constants = [_fill(column, spec, fill) for column in columns]
            mean, deviation, lower, upper = np.array(constants).T
            rows = drawn * deviation + mean
            for j, column in enumerate(columns):
                if isinstance(column, LevelsFacts):
                    rows[:, j] = cells[:, j] < ndtri(1 / (len(column.levels) + 1))
            limits = np.array([lower, upper])
            how = Normalisation(radius, spec.intercept, limits, rows_per_person=persons)
            simulated = before_and_after(rows, how)
            entry = float(np.median(simulated.variance)) * simulated.mean_weight * persons
            noise = sd * (divisor or radius or 1.0) ** 2 / max(entry, 1e-300)
            # Root mean square change of the correlations by the normalisation.
            pairs = np.triu_indices(len(simulated.correlation), 1)
            change = (simulated.normalised - simulated.correlation)[pairs]
            yield min(noise, 1.0), float(np.sqrt(np.mean(change**2)))


def _radii(spec: ReleaseSpec) -> tuple[float | None, float | None]:
    """Clipping radii for Gaussian and for skewed columns; None for unit rows."""
    normalisation = spec.normalisation
    if normalisation.lacks_radius:
        small, large = (times * math.sqrt(len(spec.names)) for times in _RADII)
        return small, large
    radius = normalisation.longest(spec.largest_norm)
    return radius, radius


def _fill(
    column: ColumnFacts | LevelsFacts, spec: ReleaseSpec, fill: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Mean, deviation and bounds of a simulated column, in scaled units."""
    if isinstance(column, LevelsFacts):
        return 0.0, 1.0, 0.0, 1.0
    if spec.scaling is not None:
        return 0.0, 1.0, -WINSOR, WINSOR
    lower, upper = ((end - column.centre) / column.scale for end in (column.lower, column.upper))
    if not _has_default_scale(column, spec):
        return 0.0, 1.0, lower, upper
    half = upper / 2 - lower / 2
    return lower / 2 + upper / 2 + fill[0] * half, fill[1] * half, lower, upper


USEFUL = 0.1  # noise in a typical correlation that makes a useless release useful
_MOST_EPSILON, _STEPS = 50.0, 14


def sufficient_changes(plan: Plan, times: float) -> dict[str, float | int]:
    """Single changes of a plan that would divide the noise in a typical correlation by a number.

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
        update: dict[str, Any] = {"columns": spec.columns[:number]}
        if spec.scaling is not None:
            bounds = spec.scaling.bounds[:number]
            update["scaling"] = spec.scaling.model_copy(update={"bounds": bounds, "present": None})
        fewer = spec.model_copy(update=update)
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
    # Rounded up to two digits.
    step = 10.0 ** (math.floor(math.log10(high)) - 1)
    return float(f"{math.ceil(high / step - 1e-9) * step:.3g}")


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


def _rounded_up(count: int) -> int:
    """A number of rows rounded up to two digits."""
    step = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // step) * step


Colour = Literal["green", "orange", "red"]

_ACCURATE = 0.05  # error of a typical correlation
_NEGLIGIBLE = 0.001
_USEFUL_NOISE = f"A noise of {USEFUL:g} in a typical correlation"
_LOST = 0.3  # noise of a correlation that is shown as unknown


@dataclass(frozen=True)
class Verdict:
    """The verdict on a plan."""

    level: Colour  # `green`, `orange` or `red`
    text: str  # in words, with what would help
    code: str = ""  # code of the warning; empty if green
    # the numbers of the verdict by name, for programs
    facts: dict[str, Any] = field(default_factory=dict)


def plan_verdict(plan: Plan) -> Verdict | None:
    """Judge a plan from public facts alone; of a step of a series, the sum over all steps."""
    if not plan.mechanism.publishes.is_moment:
        return None
    return _if_rows_stay(plan.spec, _judged(plan))


def _if_rows_stay(spec: ReleaseSpec, verdict: Verdict) -> Verdict:
    """A verdict that is not green for a series: its reports cannot be after the first step."""
    if verdict.level != "green" or spec.cumulative is None or spec.cumulative.steps == 1:
        return verdict
    notice = families.READING(
        "{sentence} That is so if no row is added, corrected or deleted after its step: such rows "
        "count in part, and nothing that is published says how many there are.",
        "Choose 'lag' so long that rows are complete.",
        sentence=verdict.text,
    )
    return replace(verdict, level="orange", text=notice.message, code=notice.code)


def _judged(plan: Plan) -> Verdict:
    facts: dict[str, Any] = {
        "noise_norm": plan.matrix_error,
        "largest_norm": _largest_norm(plan.spec),
        "noise_share_of_entry": share_of_typical_entry(plan),
    }
    plain = plain_accuracy(plan)
    if plain is not None:
        facts |= _numbers(plain)
        return _certainly_useless(plan, facts) or _of_plain_table(plan, plain, facts)
    expected = predicted_accuracy(plan.spec, plan.group_law)
    if expected is not None:
        facts |= {"noise": expected.noise, "bias": expected.bias, "error": expected.error}
    return _certainly_useless(plan, facts) or _prediction(plan, expected, facts)


def useless(plan: Plan) -> Verdict | None:
    """The verdict on a red plan; None if it is not red."""
    if not plan.mechanism.publishes.is_moment:
        return None
    certain, plain = _certainly_useless(plan, {}), plain_accuracy(plan)
    if certain is not None or plain is None or plain.level != "danger":
        return certain
    return _of_plain_table(plan, plain, _numbers(plain))


def _certainly_useless(plan: Plan, facts: dict[str, Any]) -> Verdict | None:
    """The verdict on a release that is noise for any table, with more facts; None for others."""
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
    return _of_notice("red", notice, facts | changes)


def _numbers(plain: PlainAccuracy) -> dict[str, Any]:
    """The errors of a plain table by name; those of lost correlations are 1."""
    noise, bias, error, largest = (
        min(each, 1.0) for each in (plain.noise, plain.clipping, plain.typical, plain.largest)
    )
    return {
        "noise": (noise, noise),
        "bias": (bias, bias),
        "error": (error, error),
        "largest_error": largest,
        "lost_share": plain.lost_share,
    }


def _of_plain_table(plan: Plan, plain: PlainAccuracy, facts: dict[str, Any]) -> Verdict:
    """What the report would say of a plain table, in one sentence."""
    where = "" if plan.spec.by is None else ", within a group of equal size"
    sentence = (
        f"If the table is plain, correlations{where} are typically within {_text(plain.typical)} "
        f"of its own, and none is off by more than about {_text(plain.largest)}."
    )
    if plain.level == "good":
        return Verdict("green", f"{sentence} {_UNKNOWN}", facts=facts)
    division = max(plain.typical / TYPICAL, plain.largest / LARGEST)
    if not division < _LARGEST_DIVISION:
        division = _LARGEST_OF_TYPICAL * share_of_typical_entry(plan) / LARGEST
    # Bounds of the bias fall more slowly than the noise.
    changes = sufficient_changes(plan, max(division, 1.0) ** _POWER)
    changes.pop("columns", None)  # the bounds of fewer columns fall by less
    if plain.level == "danger":
        sentence = (
            f"Even if the table is plain, correlations{where} are unreliable: typically off by "
            f"{_text(plain.typical)}."
        )
    notice = families.NOISE(
        "{sentence}",
        "{remedy} {unknown}",
        sentence=sentence,
        remedy=proposal(changes, "A green verdict"),
        unknown=_UNKNOWN,
    )
    level: Colour = "red" if plain.level == "danger" else "orange"
    return _of_notice(level, notice, facts | changes)


_UNKNOWN = "Long tails and missing cells, which a plan cannot know, make a report worse."
_LARGEST_DIVISION, _POWER = 1e3, 1.4
_LARGEST_OF_TYPICAL = 4.0  # errors


def _text(error: float) -> str:
    return f"{error:.2g}" if error < 1 else "1"


def _prediction(plan: Plan, expected: PredictedAccuracy | None, facts: dict[str, Any]) -> Verdict:
    """Green or orange."""
    if expected is None:
        return Verdict("green", "The noise is below the diagonal of the matrix.", facts=facts)
    unit, unknown = plan.spec.normalisation.unit_rows, _missing_unknown(plan.spec)
    bounded = plan.spec.intercept and not unit and not unknown
    if expected.error[1] <= _ACCURATE and bounded:
        text = f"A correlation would typically be off by at most {expected.error[1]:.2g}."
        return Verdict("green", text, facts=facts)
    details = f"noise {_in_words(expected.noise)}, normalisation {_in_words(expected.bias)}"
    if depends_on_bounds(plan.spec):
        details += ", by how the columns fill their bounds"
    if unit:
        details += "; rows are divided by their length"
    changes, remedies = {}, []
    # What the noise has to be divided by, so that no table has a larger error.
    division, goal = math.inf, f"An error of about {_ACCURATE:g}"
    if expected.bias[1] < _ACCURATE:
        division = max(noise / math.sqrt(_ACCURATE**2 - bias**2) for noise, bias in expected.tables)
    if expected.noise[0] > USEFUL:
        division, goal = expected.noise[0] / USEFUL, _USEFUL_NOISE
    if 1 < division < math.inf:
        changes = sufficient_changes(plan, division)
        remedies.append(proposal(changes, goal))
    if depends_on_bounds(plan.spec) and _constants_pay(plan):
        remedies.append(f"{_estimated(plan)} does not depend on how columns fill their bounds.")
    elif unit and plan.request.scaling.kind == "declared":
        remedies.append("Rows that are clipped have a smaller bias.")
    if unknown:
        remedies.append(f"Shares of missing cells are published with {_estimated(plan)} alone.")
    if not plan.spec.intercept:
        remedies.append("With 'intercept: true' in the contract, means have no effect.")
    notice = families.NOISE(
        "A correlation would typically be off by {error}: {details}.",
        "{remedy}",
        error=_in_words(expected.error),
        details=details,
        remedy=" ".join(remedies),
    )
    return _of_notice("orange", notice, facts | changes)


def _estimated(plan: Plan) -> str:
    """The scaling of a request whose constants are estimated; steps of a series need the same."""
    if plan.spec.cumulative is None:
        return "'scaling: private'"
    return "'scaling: {from: RELEASE}', of a release with 'mechanism: {name: marginals, ...}',"


def _missing_unknown(spec: ReleaseSpec) -> bool:
    """Whether cells may be missing whose shares are not published."""
    numeric = any(isinstance(column, ColumnFacts) for column in spec.columns)
    return numeric and spec.scaling is None


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


def _in_words(values: tuple[float, float]) -> str:
    """A range of errors in words; errors above that of a lost correlation are all alike."""
    low, high = values
    if low >= _LOST:
        return f"more than {_LOST:g}"
    lower, upper = (f"{max(each, _NEGLIGIBLE):.2g}" for each in values)
    if high >= _LOST:
        upper = f"more than {_LOST:g}"
    return upper if upper == lower else f"{lower} to {upper}"
