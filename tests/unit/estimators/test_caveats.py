"""What a release says that no interval can: by column, and of the whole release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.caveats import Caveat, caveats, decisive, kinds_of, of_column
from gramercy.estimators.intervals import Intervals
from gramercy.estimators.summary_table import SummaryTable
from gramercy.estimators.uncertainty.entries import correlation, second_moment
from gramercy.estimators.uncertainty.table_entries import (
    table_covariance,
    table_deviations,
    table_means,
)
from gramercy.schemas.column import UNBOUNDED
from gramercy.schemas.evidence import Evidence, Fold
from tests.support.simulated_release import declared_columns, privately_scaled, released, units_of

Array = NDArray[np.float64]
ROWS = 20_000


def normal(columns: int = 4, seed: int = 1) -> Array:
    stream = np.random.default_rng(seed)
    shared = stream.normal(size=(ROWS, 1))
    return np.asarray(0.6 * shared + 0.8 * stream.normal(size=(ROWS, columns)))


def with_column(cells: Array) -> Array:
    return np.column_stack([cells, normal()])


def first(evidence: Evidence, kind: str) -> Caveat:
    (found,) = (each for each in of_column(caveats(evidence), "c0") if each.kind == kind)
    return found


@pytest.mark.slow
def test_plain_columns_have_no_caveats() -> None:
    for seed in range(5):
        found = caveats(privately_scaled(normal(seed=seed), [(-4.5, 4.5)] * 4, 8.0, seed))
        assert [each.kind for each in found] == ["hidden rows"]
        assert 0 < found[0].notice.facts["hidden"] < ROWS / 50


def test_column_of_few_other_cells_says_how_many_they_may_be() -> None:
    cells = np.zeros(ROWS)
    cells[:40] = 1e5
    evidence = privately_scaled(with_column(cells), [(0.0, 1e6), *[(-5.0, 5.0)] * 4], 1.0)
    facts = first(evidence, "sign").notice.facts
    assert evidence.signs == ("c0",)
    assert 40 <= facts["most"] < ROWS / 20
    assert (facts["value"], facts["cells"]) == (0.0, ROWS)
    assert "sign" not in kinds_of(caveats(evidence), "c1")


def test_constant_column_is_set_apart() -> None:
    evidence = privately_scaled(
        with_column(np.full(ROWS, 7.0)), [(0.0, 100.0), *[(-5.0, 5.0)] * 4], 1.0
    )
    kind = kinds_of(caveats(evidence), "c0")
    assert kind in {"sign", "constant"}
    (stated,) = of_column(caveats(evidence), "c0")
    assert 0 < stated.notice.facts["most"] < ROWS / 20


@pytest.mark.slow
def test_long_tail_says_how_large_its_deviation_may_be() -> None:
    stream = np.random.default_rng(4)
    cells = np.exp(2 * stream.normal(size=ROWS))
    evidence = privately_scaled(with_column(cells), [(0.0, 1e4), *[(-5.0, 5.0)] * 4], 1.0)
    facts = first(evidence, "tail").notice.facts
    assert facts["possible"] > 1.15 * facts["deviation"]
    hidden = first(evidence, "hidden cells").notice.facts
    assert hidden["deviation"] == pytest.approx(facts["deviation"])
    assert hidden["possible"] > cells.std()
    assert "tail" not in kinds_of(caveats(evidence), "c1")


def test_rare_binary_column_has_no_tail() -> None:
    """Its cells are within [0, 1]: none can lie farther out."""
    cells = (np.random.default_rng(2).random(ROWS) < 0.01).astype(float)
    evidence = privately_scaled(with_column(cells), [(0.0, 1.0), *[(-5.0, 5.0)] * 4], 8.0)
    assert "tail" not in kinds_of(caveats(evidence), "c0")


@pytest.mark.slow
def test_cells_that_noise_hides_are_counted_where_bounds_are_wide() -> None:
    narrow, wide = (privately_scaled(normal(), [(-x, x)] * 4, 8.0) for x in (5.0, 5000.0))
    assert not kinds_of(caveats(narrow), "c0")
    facts = first(wide, "hidden cells").notice.facts
    share = facts["cells"] / ROWS
    assert facts["possible"] == pytest.approx(np.hypot(1.0, np.sqrt(share) * 5000), rel=0.02)
    assert (facts["lower"], facts["upper"]) == (-5000.0, 5000.0)


def test_missing_cells_name_the_column_that_may_be_missing_with_them() -> None:
    """Unless it is published which cells are missing together."""
    table = normal()
    table[np.random.default_rng(0).random(ROWS) < 0.5, :2] = np.nan
    evidence = privately_scaled(table, [(-5.0, 5.0)] * 4, 8.0)
    assert kinds_of(caveats(evidence), "c0") == "missing"
    found = caveats(replace(evidence, missing=None))
    (stated,) = (each for each in of_column(found, "c0") if each.kind == "missing together")
    assert stated.notice.facts["partner"] == "c1"
    assert stated.notice.facts["share"] == pytest.approx(50, abs=2)
    assert not kinds_of(found, "c2")


def test_cells_that_are_missing_where_another_column_is_high() -> None:
    table = normal()
    table[table[:, 3] > 0.5, :2] = np.nan
    found = caveats(privately_scaled(table, [(-5.0, 5.0)] * 4, 8.0))
    for name in ("c0", "c1"):
        (stated,) = of_column(found, name)
        assert stated.kind == "not at random"
        assert stated.notice.facts["partner"] == "c3"
    assert not kinds_of(found, "c3")


@pytest.mark.parametrize("declared", [ROWS, int(1.1 * ROWS), int(0.9 * ROWS)])
def test_declared_number_that_counts_contradict(declared: int) -> None:
    evidence = privately_scaled(normal(), [(-5.0, 5.0)] * 4, 2.0, declared=declared)
    stated = [each for each in caveats(evidence) if each.kind == "count"]
    assert len(stated) == (declared != ROWS)
    for each in stated:
        assert each.column is None
        assert each.notice.facts["declared"] == declared
        assert abs(each.notice.facts["counted"] - ROWS) < 4 * each.notice.facts["sd"] < ROWS / 50


def test_noisy_number_of_rows_is_never_contradicted() -> None:
    evidence = privately_scaled(normal(), [(-5.0, 5.0)] * 4, 2.0, declared=int(1.1 * ROWS))
    found = caveats(replace(evidence, declared=None))
    assert "count" not in {each.kind for each in found}


def test_release_without_histograms_or_means() -> None:
    columns = declared_columns([(-5.0, 5.0)] * 4)
    assert caveats(released(normal(), columns, 9.0)) == ()
    assert caveats(released(normal(), columns, 9.0, intercept=False)) == ()


@pytest.mark.slow
def test_tables_of_estimates_name_the_kinds() -> None:
    table = normal()
    table[np.random.default_rng(0).random(ROWS) < 0.5, :2] = np.nan
    evidence = privately_scaled(table, [(-5.0, 5.0)] * 4, 8.0)
    kinds = [kinds_of(caveats(evidence), f"c{j}") for j in range(4)]
    for target in ("population", "table"):
        columns = SummaryTable(target=target).fit(evidence).tables["columns"]
        assert list(columns["caveat"]) == kinds
        assert set(columns["target"]) == {target}
        pairs = Intervals(target=target).fit(evidence).tables["clearest"]
        of = pairs.set_index(["row", "column"])["caveat"]
        assert (of["c0", "c1"], of["c2", "c3"]) == (kinds[0], "")
        assert set(pairs["target"]) == {target}


@pytest.mark.parametrize("folds", [1, 10])
@pytest.mark.parametrize("lost", [True, False])
def test_intervals_of_the_table_leave_out_sampling(folds: int, lost: bool) -> None:
    evidence = privately_scaled(normal(), [(-5.0, 5.0)] * 4, 2.0)
    if not lost:
        evidence = replace(evidence, lost=None)
    if folds > 1:
        stream, parts = np.random.default_rng(0), []
        for _ in range(folds):
            noise = stream.normal(scale=3e-3, size=evidence.raw.shape)
            parts.append(Fold(evidence.raw + noise + noise.T, ROWS / folds))
        evidence = replace(evidence, folds=tuple(parts))
    units = units_of(evidence)
    for entries in (
        table_means(evidence, units),
        table_deviations(evidence, units),
        table_covariance(evidence, units),
        correlation(evidence),
        correlation(evidence, "partial-correlation"),
        second_moment(evidence),
    ):
        own, wider = (entries.interval(0.95, target) for target in ("table", "population"))
        widths, wider_widths = own[1] - own[0], wider[1] - wider[0]
        sampled = entries.sampling_error > 0.1 * entries.noise_error
        assert sampled.any()
        assert (widths <= wider_widths + 1e-12).all()
        assert (widths < wider_widths)[sampled].all()
        assert (widths > 1.9 * entries.noise_error)[sampled].all()


@pytest.mark.parametrize(("code", "bounds"), [(99_999.0, (0.0, 1e5)), (-9.0, (-10.0, 10.0))])
def test_cells_far_from_all_others_may_be_a_code(code: float, bounds: tuple[float, float]) -> None:
    stream = np.random.default_rng(5)
    cells = np.clip(np.round(3 + stream.normal(size=ROWS)), 1, 5)
    cells[stream.random(ROWS) < 0.05] = code
    evidence = privately_scaled(with_column(cells), [bounds, *[(-5.0, 5.0)] * 4], 2.0)
    facts = first(evidence, "far cells").notice.facts
    assert facts["lower"] <= code <= facts["upper"]
    assert facts["cells"] == pytest.approx((cells == code).sum(), rel=0.2)


@pytest.mark.parametrize(("code", "share"), [(-666_666_666.0, 0.02), (9999.0, 0.05)])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_code_in_a_column_without_bounds_carries_its_variance(
    code: float, share: float, epsilon: float
) -> None:
    """Also where all of it is on the other side of the other cells."""
    stream = np.random.default_rng(8)
    cells = np.round(stream.integers(0, 96, ROWS)).astype(float)
    cells[stream.random(ROWS) < share] = code
    evidence = privately_scaled(
        with_column(cells), [(-UNBOUNDED, UNBOUNDED), *[(-5.0, 5.0)] * 4], epsilon
    )
    (found,) = decisive(evidence)
    assert (found.kind, found.column) == ("far cells", "c0")
    assert found.notice.facts["carries"]


@pytest.mark.parametrize(("share", "kinds"), [(0.1, []), (0.34, ["missing"])])
def test_many_missing_cells_are_named(share: float, kinds: list[str]) -> None:
    table = normal()
    table[np.random.default_rng(0).random(ROWS) < share, 0] = np.nan
    evidence = privately_scaled(table, [(-5.0, 5.0)] * 4, 8.0)
    found = decisive(evidence)
    assert [each.kind for each in found] == kinds
    assert all(each.notice.facts["share"] == pytest.approx(34, abs=2) for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two values", "mostly zero", "long tail"])
def test_tails_and_atoms_are_not_taken_for_codes(kind: str) -> None:
    stream = np.random.default_rng(6)
    sizes = np.exp(7 + stream.normal(size=ROWS))
    cells = {
        "two values": (stream.random(ROWS) < 0.1).astype(float),
        "mostly zero": np.where(stream.random(ROWS) < 0.9, 0.0, sizes),
        "long tail": sizes * np.exp(stream.normal(size=ROWS)),
    }[kind]
    top = 1.0 if kind == "two values" else 1e6
    for seed in range(3):
        evidence = privately_scaled(with_column(cells), [(0.0, top), *[(-5.0, 5.0)] * 4], 2.0, seed)
        assert "far cells" not in kinds_of(caveats(evidence), "c0")
