"""All steps of a cumulative series together are as private as the one charge for its window.

Two courses of a table, which differ in one row, are read and drawn by the pipeline step by step, at
one published history. The row may come late, be corrected or be deleted; its step is fixed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.mechanism import PublicParameters, squared_sensitivity
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.schemas.neighbours import Neighbours
from tests.support.black_box.chain import Replayed, squared_distance
from tests.support.black_box.series import replay_series
from tests.support.caveat_release import seeded_noise
from tests.support.factories import run_release, write_request

Course = Sequence[str | None]  # the line of the row at each reading, if it is in the table

WEEKS = {"2026-12": (49, 50, 51, 52, 53), "2027-01": (0, 1, 2, 3, 4)}
_RNG = np.random.default_rng(50)
BASE = [
    f"{x:.2f},{y:.2f},{z:.2f},{ward},2026-12-{day:02}"
    for day, ward, (x, y, z) in zip(
        range(1, 32), "abacb" * 7, _RNG.normal(size=(31, 3)), strict=False
    )
] + ["1,1,1,a,2027-01-02", "2,0,1,b,2027-01-20", "1,2,3,a,", "9,9"]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "home"))


def plans_for(
    folder: Path,
    neighbours: str,
    *,
    window: str = "2026-12",
    by: str | None = None,
    steps: Sequence[int] = (1, 2, 3, 4, 5),
    rows: int = 400,
    **keys: Any,
) -> list[Plan]:
    """The plan of every draw of a series of weeks in a month."""
    columns: dict[str, Any] = {f"c{k}": {"lower": -5.0, "upper": 5.0} for k in range(3)}
    found = []
    for step in steps:
        request = {
            "version": f"{window}-W{WEEKS[window][step - 1]:02}",
            "cumulative": "week",
            "mechanism": {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6},
            "normalisation": {"kind": "clip", "radius": 1.0},
            "estimates": [],
            "by": by,
        } | keys
        path = write_request(
            folder,
            columns=columns | ({"ward": {"levels": ["a", "b"]}} if by else {}),
            rows=rows,
            neighbours=neighbours,
            budget={"epsilon": 99.0, "delta": 1e-5, "per": "month"},
            period={"column": "visited"},
            request={key: value for key, value in request.items() if value is not None},
        )
        found.append(make_plan(Context.default(), read_request(path)))
    return found


def tables(course: Course, base: Sequence[str] = BASE) -> list[str]:
    """The table at every reading; the row is in the middle."""
    header, half = "c0,c1,c2,ward,visited", len(base) // 2
    return [
        "\n".join([header, *base[:half], *([] if line is None else [line]), *base[half:], ""])
        for line in course
    ]


# --- Neighbouring courses -----------------------------------------------------------------------

LONG, ACROSS, SHORT = "5,0,0,a", "0,5,0,a", "1,1,0,b"
ABSENT: Course = [None] * 5


def dated(cells: str, date: str) -> str:
    return f"{cells},{date}"


def always(cells: str, date: str) -> Course:
    return [dated(cells, date)] * 5


# Of a row that one of two tables has: its line at each of five readings. The weeks of December
# begin on the 1st, 7th, 14th, 21st and 28th.
ADDED: dict[str, Course] = {
    "first step": always(LONG, "2026-12-01"),
    "second step": always(ACROSS, "2026-12-13"),
    "week 53": always(LONG, "2026-12-31"),
    "known before its step": always(LONG, "2026-12-28"),
    "last moment of a step": always(LONG, "2026-12-06T23:59:59.999"),
    "first moment of a step": always(LONG, "2026-12-07T00:00:00"),
    "in another zone": always(LONG, "2026-12-06T23:30:00-01:00"),
    "one step late": [None, *always(LONG, "2026-12-01")[1:]],
    "three steps late": [None, None, None, *always(LONG, "2026-12-03")[3:]],
    "at the last reading only": [None] * 4 + [dated(LONG, "2026-12-02")],
    "deleted at once": [dated(LONG, "2026-12-02"), *ABSENT[1:]],
    "deleted at the end": [*always(LONG, "2026-12-02")[1:], None],
    "deleted and entered again": [
        None if k in (1, 3) else dated(LONG, "2026-12-05") for k in range(5)
    ],
    "corrected at every reading": [
        dated(cells, "2026-12-01") for cells in (LONG, ACROSS, SHORT, "-5,5,5,b", ",,5,a")
    ],
    "without cells at times": [
        dated(cells, "2026-12-08") for cells in (",,,", LONG, ",,,", "1e308,x,-1e308,c", LONG)
    ],
    "far out": always("1e300,-1e300,5e-324,b", "2026-12-15"),
    "a row of zeros": always("0,0,0,b", "2026-12-15"),
    "malformed at times": [
        '"open,1,2,a,2026-12-01' if k in (1, 2) else dated(LONG, "2026-12-01") for k in range(5)
    ],
    "malformed before its step": [
        '"open,1,2,a,2026-12-18' if k < 2 else dated(LONG, "2026-12-18") for k in range(5)
    ],
    "too wide at times": [
        "1,2,3,a,2026-12-01,9" if k == 3 else dated(LONG, "2026-12-01") for k in range(5)
    ],
    "without a date at times": [dated(LONG, "" if k == 2 else "2026-12-10") for k in range(5)],
    "date written in other ways": [
        dated(LONG, date)
        for date in (
            "2026-12-07",
            " 2026-12-13T23:59 ",
            "2026-W50",
            "2026-12-14T00:30+01:00",
            "2026-12-07T00:00:00Z",
        )
    ],
    "another group at every reading": [
        dated(f"5,0,0,{ward}", "2026-12-02") for ward in ("a", "b", "", "none of them", "a")
    ],
}
OUTSIDE: dict[str, Course] = {
    "the day before": always(LONG, "2026-11-30"),
    "1 January": always(LONG, "2027-01-01"),
    "1 January in another zone": always(LONG, "2026-12-31T23:30-01:00"),
    "week 53 of the year before": always(LONG, "2020-W53"),
}
# Shorter than a row may be at some readings, or not in the table.
LESS = {
    "one step late",
    "three steps late",
    "at the last reading only",
    "deleted at once",
    "deleted at the end",
    "deleted and entered again",
    "corrected at every reading",
    "without cells at times",
    "a row of zeros",
    "malformed at times",
    "too wide at times",
    "without a date at times",
}
# Of a row that is replaced: both lines at each reading.
REPLACED: dict[str, tuple[Course, Course]] = {
    "orthogonal": (always(LONG, "2026-12-01"), always(ACROSS, "2026-12-06")),
    "orthogonal in week 53": (always(LONG, "2026-12-28"), always(ACROSS, "2026-12-31")),
    "antipodal": (always(LONG, "2026-12-10"), always("-5,0,0,a", "2026-12-10")),
    "missing": (always(LONG, "2026-12-10"), always(",x,,", "2026-12-11")),
    "corrected at once": (
        [dated(SHORT, "2026-12-20"), *always(LONG, "2026-12-20")[1:]],
        always(ACROSS, "2026-12-14"),
    ),
    "corrected at every reading": (
        [dated(LONG if k % 2 else ACROSS, "2026-12-03") for k in range(5)],
        [dated(ACROSS if k % 2 else LONG, "2026-12-02T12:00") for k in range(5)],
    ),
    "both late": (
        [None, None, *always(LONG, "2026-12-01")[2:]],
        [None, None, *always(ACROSS, "2026-12-01")[2:]],
    ),
    "both deleted": (
        [*always(LONG, "2026-12-01")[:3], None, None],
        [*always(ACROSS, "2026-12-01")[:3], None, None],
    ),
    "another group": (always("5,0,0,b", "2026-12-01"), always("5,0,0,a", "2026-12-01")),
    "another group at every reading": (
        [dated(f"5,0,0,{ward}", "2026-12-08") for ward in "ababa"],
        [dated(f"5,0,0,{ward}", "2026-12-09") for ward in "babab"],
    ),
}
PAIRS: dict[str, dict[str, tuple[Course, Course]]] = {
    "add-remove": {label: (course, ABSENT) for label, course in (ADDED | OUTSIDE).items()},
    "replace-one": REPLACED,
}


def shares(
    plans: Sequence[Plan],
    folder: Path,
    pairs: Mapping[str, tuple[Course, Course]],
    base: Sequence[str] = BASE,
) -> dict[str, float]:
    """The mu that each pair of courses uses up at one history, as a share of the stated mu."""
    runs: dict[tuple[str | None, ...], Replayed] = {}
    history = replay_series(plans, tables([None] * len(plans), base), folder).history
    expected = [each.tolist() for each in history]

    def run(course: Course) -> Replayed:
        key = tuple(course)
        if key not in runs:
            runs[key] = replay_series(plans, tables(course, base), folder, history)
        return runs[key]

    found = {}
    for label, pair in pairs.items():
        one, two = map(run, pair)
        if any([each.tolist() for each in x.history] != expected for x in (one, two)):
            found[label] = math.inf  # noise does not lead to this history
        else:
            found[label] = math.sqrt(squared_distance(one, two)) / one.published[-1].mu
    return found


@pytest.mark.slow
@pytest.mark.parametrize("by", [None, "ward"], ids=["", "groups"])
@pytest.mark.parametrize("neighbours", PAIRS)
def test_all_steps_together_are_within_the_charged_mu(
    neighbours: str, by: str | None, tmp_path: Path
) -> None:
    """At least thirty pairs of courses under both relations; the charge is nearly attained."""
    assert sum(len(pairs) for pairs in PAIRS.values()) >= 30
    plans = plans_for(tmp_path, neighbours, by=by)
    assert len({plan.guarantee for plan in plans}) == 1
    found = shares(plans, tmp_path, PAIRS[neighbours])
    assert 0.99 < max(found.values()) <= 1
    assert all(found[label] == 0 for label in OUTSIDE.keys() & found.keys())
    attained = ADDED.keys() - LESS if neighbours == "add-remove" else {"another group"}
    if by is None and neighbours == "replace-one":  # else, one count more may move
        attained = {"orthogonal", "orthogonal in week 53", "corrected at every reading"}
    assert all(found[label] > 0.99 for label in attained)


CORRELATED = [
    f"{x:.3f},{y:.3f},{z:.3f},a,2026-12-{1 + k % 30:02}"
    for k, (x, y, z) in enumerate(_RNG.normal(size=(3000, 1)) + 0.2 * _RNG.normal(size=(3000, 3)))
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "base", "epsilon"), [("marginals", BASE, 4.0), ("gaussian", CORRELATED, 20.0)]
)
def test_constants_of_another_release_do_not_change_the_mu(
    name: str, base: Sequence[str], epsilon: float, tmp_path: Path
) -> None:
    """Constants, radius and metric are published before the first step."""
    earlier = [line.replace("2026-12", "2026-11") for line in base]
    (tmp_path / "table.csv").write_text(tables([None], earlier)[0])
    common: dict[str, Any] = {"rows": len(base), "normalisation": None}
    mechanism = {"name": name, "epsilon": epsilon, "delta": 1e-6}
    source = {"version": "2026-11", "mechanism": mechanism, "scaling": "private"}
    plans_for(tmp_path, "add-remove", steps=(1,), cumulative=None, **common, **source)
    with seeded_noise(1):  # by chance, constants are so wide that no row has the longest length
        constants = run_release(tmp_path / "request.yaml")
    plans = plans_for(tmp_path, "add-remove", scaling={"from": constants}, **common)
    assert (plans[0].metric is not None) == (base is CORRELATED)
    labels = ("first step", "week 53", "corrected at every reading", "far out", "1 January")
    pairs = {label: PAIRS["add-remove"][label] for label in labels}
    found = shares(plans, tmp_path, pairs, base)
    assert 0.99 < max(found.values()) <= 1
    assert found["1 January"] == 0


def test_days_of_a_week_in_two_windows_are_in_one_step_each(tmp_path: Path) -> None:
    """ISO week 53 of 2026 has days of December and of January."""
    days = {day: (always(LONG, day), ABSENT) for day in ("2026-12-31", "2027-01-01", "2027-01-03")}
    december, january = (
        shares(plans_for(tmp_path, "add-remove", window=window), tmp_path, days) for window in WEEKS
    )
    assert [round(december[day], 2) for day in days] == [1, 0, 0]
    assert [round(january[day], 2) for day in days] == [0, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", PAIRS)
@pytest.mark.parametrize("steps", [(1, 2, 2, 3, 4, 5), (1, 1, 1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 5)])
def test_steps_that_are_drawn_again_are_within_the_stated_mu(
    steps: tuple[int, ...], neighbours: str, tmp_path: Path
) -> None:
    """A second version of one step reads the table again, and the row may be another one."""
    plans = plans_for(tmp_path, neighbours, steps=steps)
    other = ACROSS if neighbours == "replace-one" else None
    pairs: dict[str, tuple[Course, Course]] = {}
    for day in ("2026-12-01", "2026-12-07", "2026-12-14", "2026-12-28"):
        lines = [dated(LONG if k % 2 else SHORT, day) for k in range(len(steps))]
        courses = ([dated(LONG, day)] * len(steps), lines)
        others = [None if other is None else dated(other, day)] * len(steps)
        pairs |= {f"{day} {k}": (course, others) for k, course in enumerate(courses)}
    found = shares(plans, tmp_path, pairs)
    assert 0.99 < max(found.values()) <= 1


def test_row_that_moves_to_another_step_costs_more(tmp_path: Path) -> None:
    """At most sqrt2 for one move; the documentation says so, and what follows from it."""
    plans = plans_for(tmp_path, "add-remove")
    days = ("2026-12-01", "2026-12-07", "2026-12-14", "2026-12-21", "2026-12-28")
    moved = {
        "at the end": ([dated(LONG, days[0])] * 4 + [dated(LONG, days[4])], ABSENT),
        "at every reading": ([dated(LONG, day) for day in days], ABSENT),
    }
    found = shares(plans, tmp_path, moved)
    assert 1.35 < found["at the end"] <= math.sqrt(2)
    weights = np.array([1.0, 1.25, 1.390625, 1.48828125, 1.563049])  # sums of c_k^2
    assert found["at every reading"] == pytest.approx(math.sqrt((1 / weights).sum()), rel=0.01)


def test_replaced_row_that_moves_is_within_the_mu_of_the_sums(tmp_path: Path) -> None:
    """But the numbers of rows of all steps are public, and differ."""
    plans = plans_for(tmp_path, "replace-one")
    pair = always(LONG, "2026-12-01"), always(LONG, "2026-12-28")
    history = replay_series(plans, tables(pair[0]), tmp_path).history
    runs = [replay_series(plans, tables(course), tmp_path, history) for course in pair]
    assert squared_distance(*runs) == math.inf
    share = math.sqrt(squared_distance(*(Replayed(run.draws) for run in runs)))
    assert 0.5 < share / plans[0].guarantee.mu <= 1


# --- Planted flaws ------------------------------------------------------------------------------

SOME: dict[str, dict[str, tuple[Course, Course]]] = {
    "add-remove": {label: PAIRS["add-remove"][label] for label in ("first step", "week 53")},
    "replace-one": {label: PAIRS["replace-one"][label] for label in ("orthogonal",)},
}
# What is to be weighed: the sums of all steps so far, oldest first.
Sums = Sequence[Any]


def some_shares(
    folder: Path, neighbours: str = "add-remove", steps: Sequence[int] = (1, 2, 3, 4, 5)
) -> list[float]:
    plans = plans_for(folder, neighbours, steps=steps)
    lengths = {
        label: (first[:1] * len(steps), second[:1] * len(steps))
        for label, (first, second) in SOME[neighbours].items()
    }
    return list(shares(plans, folder, lengths).values())


@pytest.mark.parametrize("neighbours", SOME)
def test_unflawed_steps_pass_the_checks_of_flaws(neighbours: str, tmp_path: Path) -> None:
    assert all(0.99 < share <= 1 for share in some_shares(tmp_path, neighbours))
    assert 0.8 < max(some_shares(tmp_path, neighbours, (1, 2, 2, 3, 4, 5))) <= 1
    assert noise_is_fresh()
    assert encodes_exactly()


ENCODE, SQUARED_NORM = PrefixSums.encode, PrefixSums.squared_norm


def encode_transposed(series: PrefixSums, sums: Sums) -> Any:
    """The weights of a column in the place of those of a row."""
    column = series.weights[: len(sums), len(sums) - 1]
    return sum(int(w) * np.asarray(x).astype(object) for w, x in zip(column, sums, strict=True))


def encode_backwards(series: PrefixSums, sums: Sums) -> Any:
    """The newest step has the weight of the oldest."""
    return ENCODE(series, sums[::-1])


def encode_prefixes(series: PrefixSums, sums: Sums) -> Any:
    """The sum of a step has all rows before its end, so a row is in several steps."""
    objects = [np.asarray(each).astype(object) for each in sums]
    return ENCODE(series, list(itertools.accumulate(objects)))


def encode_in_64_bits(series: PrefixSums, sums: Sums) -> Any:
    row = series.weights[len(sums) - 1]
    return sum(w * np.asarray(x).astype(np.int64) for w, x in zip(row, sums, strict=False))


@pytest.mark.parametrize("neighbours", SOME)
@pytest.mark.parametrize("flaw", [encode_backwards, encode_prefixes])
def test_row_with_too_much_weight_is_detected(
    flaw: Any, neighbours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrefixSums, "encode", flaw)
    assert max(some_shares(tmp_path, neighbours)) > 1.1


def test_transposed_weights_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the first step have not the weight that the guarantee states, and nothing decodes."""
    monkeypatch.setattr(PrefixSums, "encode", encode_transposed)
    first, last = some_shares(tmp_path)
    assert first < 0.9 < last
    series, sums = PrefixSums(5), [np.array(7)] * 5
    decoded = series.decode([series.encode(sums[: t + 1]) for t in range(5)])
    assert decoded[-1] != pytest.approx(7.0, rel=0.1)


def test_norm_of_rows_in_place_of_columns_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There would be too much noise."""
    monkeypatch.setattr(
        PrefixSums,
        "squared_norm",
        lambda series, draws=None: int((series.weights**2).sum(axis=1).max()),
    )
    assert max(some_shares(tmp_path)) < 0.9


def test_noise_scaled_by_the_spread_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spread is of what is decoded, and the norm of a row's weights is another number."""
    monkeypatch.setattr(
        PrefixSums,
        "squared_norm",
        lambda series, draws=None: int((UNIT**2 * series.spread(series.steps)) ** 2),
    )
    assert max(some_shares(tmp_path)) > 1.1


def test_count_without_a_charge_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_count(parameters: PublicParameters, *rest: Any) -> float:
        return squared_sensitivity(replace(parameters, publishes_noisy_count=False), *rest)

    monkeypatch.setattr("gramercy.mechanisms.gaussian.squared_sensitivity", without_count)
    assert max(some_shares(tmp_path)) == pytest.approx(math.sqrt(17 / 16), rel=2e-3)


@pytest.mark.parametrize("steps", [(1, 1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 5)])
def test_second_draw_without_a_charge_is_detected(
    steps: Sequence[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrefixSums, "squared_norm", lambda series, draws=None: SQUARED_NORM(series))
    assert max(some_shares(tmp_path, steps=steps)) > 1.2


def test_noise_that_is_drawn_once_for_all_steps_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    draw = Gaussian._draw

    def kept(mechanism: Gaussian) -> Any:
        if not drawn:
            drawn.append(draw(mechanism))
        return drawn[0]

    monkeypatch.setattr(Gaussian, "_draw", kept)
    assert not noise_is_fresh()
    drawn.clear()
    assert max(some_shares(tmp_path)) == math.inf  # the sampler is asked at the first step alone


def noise_is_fresh() -> bool:
    """Whether no two steps of a table without rows publish the same numbers."""
    public = PublicParameters(3, 400, Neighbours.ADD_REMOVE, True, series=PrefixSums(5))
    spec = Gaussian.spec.model_validate({"name": "gaussian", "epsilon": 4.0, "delta": 1e-6})
    mechanism = Gaussian.from_spec(spec, public)
    nothing = np.zeros((3, 3), dtype=object)
    found = [mechanism.perturb(nothing, 0) for _ in range(5)]
    distinct = {(tuple(each.gram.ravel().tolist()), each.rows) for each in found}
    return len(distinct) == len(found)


def test_seed_that_is_used_again_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step begins with the same random bits, as in copies of one process."""
    perturb = Gaussian.perturb

    def seeded(mechanism: Gaussian, *exact: Any) -> Any:
        numbers = np.random.default_rng(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("gramercy.mechanisms.sampling.sampler.os.urandom", numbers.bytes)
            return perturb(mechanism, *exact)

    monkeypatch.setattr(Gaussian, "perturb", seeded)
    assert not noise_is_fresh()


def encodes_exactly() -> bool:
    """Whether sums of 74 bits and their decoding are those of whole numbers of any length."""
    series = PrefixSums(52)
    sums = [np.array([(1 << 61) - k, -(1 << 60) + k, k], np.int64) for k in range(52)]
    for t in (1, 26, 52):
        row = series.weights[t - 1].tolist()
        expected = [
            sum(w * int(each[k]) for w, each in zip(row, sums[:t], strict=False)) for k in range(3)
        ]
        if series.encode(sums[:t]).tolist() != expected:
            return False
    return expected[0].bit_length() >= 74


def test_sums_in_64_bits_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrefixSums, "encode", encode_in_64_bits)
    assert not encodes_exactly()
