"""Parts of a report: marginals with sensible digits, and analyses of every kind of column."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_estimate, read_release
from gramercy.common.notation import significant
from gramercy.pipeline.context import Context
from gramercy.reports import marginal_tables
from gramercy.reports.marginal_tables import MarginalLine, MarginalTable, marginal_table
from gramercy.reports.reader_notes import verdict_note
from gramercy.reports.release_report import marginals_page, release_page
from gramercy.schemas.evidence import ROW_LENGTHS, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from tests.support.factories import MECHANISM, run_pipeline, run_release, write_request
from tests.support.histogram_tables import ROWS, histogram, marginals_request
from tests.support.pages import check_ids


def published(request: Path) -> ReleaseBundle:
    release = run_release(request)
    return read_release(Context.default().archive.release("toy", release))


@pytest.fixture
def bundle(tmp_path: Path) -> ReleaseBundle:
    return published(marginals_request(tmp_path))


def with_marginals(
    bundle: ReleaseBundle, histograms: list[Histogram], columns: tuple[Any, ...]
) -> ReleaseBundle:
    """The release with these marginals instead of its own."""
    scaling = bundle.manifest.scaling
    assert scaling is not None
    present = scaling.model_copy(
        update={"present": (0.9,) * len(columns), "bounds": (None,) * len(columns)}
    )
    facts = bundle.manifest.model_copy(update={"columns": columns, "scaling": present})
    lengths = replace(histograms[0], stage=histograms[0].stage + 1, column=ROW_LENGTHS)
    return replace(bundle, manifest=facts, histograms=(*histograms, lengths))


def table_of(bundle: ReleaseBundle) -> MarginalTable:
    table = marginal_table(bundle)
    assert table is not None
    return table


def number(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.slow
def test_release_of_declared_constants_has_no_marginals(tmp_path: Path) -> None:
    assert marginal_table(published(write_request(tmp_path))) is None


@pytest.mark.slow
def test_every_column_has_a_line(bundle: ReleaseBundle) -> None:
    table = table_of(bundle)
    assert [line.column for line in table.lines] == ["weight", "income", "ward"]
    assert table.columns == 3
    assert table.sd == bundle.marginals[0].sd
    weight, income, ward = table.lines
    assert [each.levels is None for each in table.lines] == [True, True, False]
    assert ward.levels is not None
    assert [each.partition(":")[0] for each in ward.levels] == ["A", "B"]
    assert number(weight.quantiles[2].value) == pytest.approx(70, abs=6)
    assert number(income.quantiles[2].value) == pytest.approx(np.exp(8), rel=0.4)
    assert number(income.missing.partition(" ")[0]) == pytest.approx(10, abs=5)
    for each in (*weight.quantiles, *income.quantiles):
        assert number(each.lower) <= number(each.value) <= number(each.upper)
    assert all(str(line.bars).count("<rect") >= 2 for line in table.lines)


def numeric_line(
    bundle: ReleaseBundle, cells: np.ndarray[Any, Any], edges: np.ndarray[Any, Any], sd: float
) -> MarginalLine:
    """The line of a column with these cells, whose scale is their standard deviation."""
    scale = float(np.nanstd(cells)) or 1.0
    centre = float(np.nanmean(cells))
    column = ColumnFacts(
        name="x", lower=centre - 10 * scale, upper=centre + 10 * scale, centre=centre, scale=scale
    )
    each = histogram(cells, edges, sd, np.random.default_rng(5))
    (line,) = table_of(with_marginals(bundle, [each], (column,))).lines
    return line


@pytest.mark.slow
def test_digits_follow_the_interval(bundle: ReleaseBundle) -> None:
    rng = np.random.default_rng(1)
    cells = rng.normal(1013.3, 0.05, ROWS)
    line = numeric_line(bundle, cells, np.linspace(1013.0, 1013.6, 65), 5.0)
    median = line.quantiles[2]
    assert re.fullmatch(r"1013\.\d{3,4}", median.value)
    assert number(median.value) == pytest.approx(1013.3, abs=0.01)
    line = numeric_line(bundle, 1e9 * rng.normal(size=ROWS), np.linspace(-4e9, 4e9, 65), 5.0)
    assert "10⁹" in line.quantiles[0].value
    zeros = np.where(rng.random(ROWS) < 0.9, 0.0, 1.0)
    line = numeric_line(bundle, zeros, np.array([-2.0, -1e-9, 1e-9, 0.9, 1.1, 3.0]), 5.0)
    assert number(line.quantiles[1].value) == 0.0
    assert len(line.quantiles[1].value) <= 6


@pytest.mark.slow
def test_intervals_end_at_the_bounds_of_the_column(bundle: ReleaseBundle) -> None:
    """Noise in far bins leaves the ends of an interval open; cells are clamped at the bounds."""
    rng = np.random.default_rng(2)
    octaves = 4 * 2.0 ** np.arange(1, 40)
    edges = np.concatenate([-octaves[::-1], np.linspace(-4, 4, 33), octaves])
    line = numeric_line(bundle, rng.normal(size=ROWS), edges, 60.0)
    first, *_, last = line.quantiles
    assert number(first.lower) >= -10.5
    assert number(last.upper) <= 10.5


@pytest.mark.slow
def test_hidden_columns_are_drawn_without_failure(bundle: ReleaseBundle) -> None:
    """Nothing but noise, no value at all, and no level at all."""
    edges = np.linspace(-1, 1, 9)
    for cells in (np.full(ROWS, np.nan), np.zeros(0), np.zeros(ROWS)):
        line = numeric_line(bundle, np.append(cells, [0.0]), edges, 300.0)
        assert len(line.quantiles) == 5
    nothing = np.full(1, np.nan)
    empty = Histogram(3, "ward", nothing, nothing, (None,), np.array([7]), 2.0)
    facts = LevelsFacts(name="ward", levels=())
    (line,) = table_of(with_marginals(bundle, [empty], (facts,))).lines
    assert line.levels == []


@pytest.mark.slow
def test_wide_releases_show_their_first_columns(
    bundle: ReleaseBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marginal_tables, "_MOST_COLUMNS", 2)
    monkeypatch.setattr(marginal_tables, "_MOST_LEVELS", 1)
    table = table_of(bundle)
    assert (len(table.lines), table.columns) == (2, 3)
    last = bundle.marginals[-1]
    shown = with_marginals(bundle, [last], bundle.manifest.columns[-1:])
    (line,) = table_of(shown).lines
    assert line.levels is not None
    assert (len(line.levels), line.more_levels) == (1, 1)


@pytest.mark.slow
def test_names_are_escaped(tmp_path: Path) -> None:
    columns = {"weight": {"lower": 0.0, "upper": 200.0}, "ward": {"levels": ["<script>", "B"]}}
    request = marginals_request(tmp_path, columns=columns, title="<i>toy</i>")
    page = marginals_page(published(request))
    assert "&lt;script&gt;: " in page
    assert "<script>" not in page
    assert "<i>" not in page


@pytest.mark.slow
def test_page_of_a_matrix_states_every_share_once(tmp_path: Path) -> None:
    """Its table of columns has the shares of levels, by the more accurate of two measurements."""
    keys = {"mechanism": MECHANISM | {"epsilon": 4.0}, "scaling": "private"}
    page = release_page(published(marginals_request(tmp_path, keys)), [])
    parts = dict(each.split("</h2>", 1) for each in page.split("<h2>")[1:])
    order = [[*parts].index(each) for each in ("Columns", "Marginals", "The matrix")]
    assert order == sorted(order)
    columns, marginals = parts["Columns"], parts["Marginals"]
    for level in ("A", "B"):
        assert f"<tr><td>{level}</td>" in columns
        assert f"{level}: " not in marginals


def test_first_tiles_have_the_accuracy_and_the_columns_of_the_table(tmp_path: Path) -> None:
    """Not the noise on an entry, which is far smaller than the error of a correlation."""
    keys = {"mechanism": MECHANISM | {"epsilon": 4.0}, "scaling": "private"}
    bundle = published(marginals_request(tmp_path, keys))
    verdict, page = verdict_note(bundle), release_page(bundle, [])
    assert verdict is not None
    accuracy, columns, *_ = re.findall("<li><b>(.*?)</b><span>(.*?)</span></li>", page)
    assert accuracy[0] == f"± {significant(verdict.facts['typical'], 2)}"
    assert significant(verdict.facts["largest"], 2) in accuracy[1]
    assert columns[0] == f"{len(bundle.manifest.columns)} columns"
    assert len(bundle.manifest.names) > len(bundle.manifest.columns)  # levels are not columns
    heads = re.findall('<div class="note .*?"><b>(.*?)(?: <span|</b>)', page)
    assert heads[0] == verdict.head


NUMBERS = {name: {"lower": -3.0, "upper": 3.0} for name in ("x", "y")}
LEVELS = {name: {"levels": ["a", "b", "c"]} for name in ("k", "m")}
FIRST: dict[str, Any] = {
    "numbers": {"name": "regression", "formula": "y ~ x"},
    "levels": {"name": "tables"},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "levels"])
def test_report_has_every_analysis_of_columns_of_one_kind(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {name: rng.normal(size=5000) for name in NUMBERS}
        | {name: rng.choice(["a", "b", "c"], 5000) for name in LEVELS}
    )
    table.to_csv(tmp_path / "table.csv", index=False)
    estimates = [FIRST[kind], {"name": "moments"}, {"name": "synthetic", "rows": 10}]
    request = write_request(
        tmp_path,
        columns=NUMBERS if kind == "numbers" else LEVELS,
        rows=5000,
        intercept=True,
        budget={"epsilon": 10.0, "delta": 1e-5},
        request={
            "mechanism": {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6},
            "normalisation": {"kind": "clip", "radius": 3.0},
            "estimates": estimates,
        },
    )
    folder = run_pipeline(request)
    made = [read_estimate(each) for each in sorted((folder / "estimates").iterdir())]
    page = release_page(read_release(folder / "release"), made)
    check_ids(page)
    assert all(each.manifest.estimate in page for each in made)
    assert len(made) == 3
