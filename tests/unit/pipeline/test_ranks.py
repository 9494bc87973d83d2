"""Columns of normal scores by the release's own histograms: functions of one cell of their row."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import gramercy
from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.common.home import Home
from gramercy.estimators.pooling.agreement import check_agreement
from gramercy.estimators.table_comparison import comparable_measurements
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import scaled_contract
from gramercy.pipeline.publish.internal_record import read_record
from gramercy.pipeline.verify.recomputation import release_checks
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.derived import Rank, transform_of
from gramercy.schemas.facts import ColumnFacts
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import open_source
from tests.support.cumulative import QUARTERLY, publish_steps, visits
from tests.support.factories import contract_facts, home_at, read_plan, run_release, write_request
from tests.support.problems import raises

Array = np.ndarray[Any, np.dtype[np.float64]]

ROWS = 4000
COLUMNS: dict[str, Any] = {
    "income": {"from": "earned", "transform": "rank", "lower": 0.0, "upper": 1e8},
    "free": {"from": "earned", "transform": "rank"},
    "spent": {"from": "paid", "transform": "rank", "lower": 0.0, "upper": 1e8},
    "share": {"from": "part", "transform": "rank", "lower": 0.0, "upper": 1.0},
    "opinion": {"from": "answer", "transform": "rank", "lower": 1.0, "upper": 5.0},
    "sex": {"levels": ["F", "M"]},
    "y": {"lower": -10.0, "upper": 10.0},
}
RANKS = {"income": "earned", "free": "earned", "spent": "paid", "share": "part"}
RANKS |= {"opinion": "answer"}
LOUD = {"name": "gaussian", "epsilon": 20.0, "delta": 1e-6}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(2, ROWS))
    z = 0.6 * x + 0.8 * z
    frame = pd.DataFrame(
        {
            "earned": np.exp(9 + 1.5 * x),
            "paid": np.where(rng.random(ROWS) < 0.5, 0.0, np.exp(8 + 1.5 * z)),
            "part": rng.beta(0.5, 0.5, ROWS),
            "answer": np.clip(np.rint(3 + z), 1, 5),
            "sex": rng.choice(["F", "M"], ROWS),
            "y": 0.5 * x + rng.normal(size=ROWS),
            "who": [f"p{k // 2}" for k in range(ROWS)],
        }
    )
    frame.loc[:30, "earned"] = np.nan
    return frame


def asked(folder: Path, **keys: Any) -> Path:
    """A request for the table in a folder."""
    if not (folder / "table.csv").exists():
        table().to_csv(folder / "table.csv", index=False)
    keys = {"mechanism": LOUD, "scaling": "private"} | keys
    facts: dict[str, Any] = {"rows": ROWS, "columns": COLUMNS, "intercept": True}
    facts |= {"budget": {"epsilon": 500.0, "delta": 1e-5}} | keys.pop("facts", {})
    return write_request(folder, **facts, request=keys)


def published(request: Path) -> ReleaseBundle:
    """The release that a request publishes, verified."""
    release, archive = run_release(request), Context.default().archive
    verify_release(archive, "toy", release, None)
    return read_release(archive.release("toy", release))


def mid_ranks(cells: pd.Series) -> Array:
    """Normal scores by the exact ranks of all cells."""
    return np.asarray(ndtri((cells.rank() - 0.5) / cells.count()))


def facts_of(bundle: ReleaseBundle) -> dict[str, ColumnFacts]:
    return {x.name: x for x in bundle.manifest.columns if isinstance(x, ColumnFacts)}


def function_of(column: ColumnFacts) -> Rank:
    assert column.derived is not None
    function = column.derived.function
    assert isinstance(function, Rank)
    return function


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReleaseBundle]:
    """A folder with the table and a home, and the release that is published there."""
    path = tmp_path_factory.mktemp("ranks")
    with home_at(path / "home"):
        return path, published(asked(path))


@pytest.fixture
def folder(made: tuple[Path, ReleaseBundle], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAMERCY_HOME", str(made[0] / "home"))
    return made[0]


@pytest.fixture
def bundle(made: tuple[Path, ReleaseBundle]) -> ReleaseBundle:
    return made[1]


@pytest.mark.parametrize("name", RANKS)
def test_scores_are_nearly_those_of_the_exact_ranks(bundle: ReleaseBundle, name: str) -> None:
    cells, column = table()[RANKS[name]], facts_of(bundle)[name]
    exact, scores = mid_ranks(cells), function_of(column).apply(cells.to_numpy())
    np.testing.assert_array_equal(np.isnan(scores), np.isnan(cells))
    assert np.sqrt(np.nanmean((scores - exact) ** 2)) < 0.2
    assert abs(column.centre - np.nanmean(exact)) < 0.12
    assert 0.9 < column.scale / np.nanstd(exact) < 1.1
    assert (column.lower, column.upper) == function_of(column).limits((-np.inf, np.inf))


@pytest.mark.slow
def test_numbers_of_a_release_are_those_of_scores(folder: Path, bundle: ReleaseBundle) -> None:
    frame = table()
    release = gramercy.open(Home.default().archive).latest("toy")
    found = release.quantiles((0.25, 0.5, 0.75))
    for line in found[found["column"].isin(RANKS)].itertuples():
        assert line.in_units_of == RANKS[line.column]
        cells = frame[line.in_units_of].dropna()
        assert (cells < 0.8 * line.back_lower).mean() <= line.probability
        assert (cells <= 1.25 * line.back_upper + 1e-6).mean() >= line.probability
    columns = release.describe().columns
    exact = pd.DataFrame({name: mid_ranks(frame[of]) for name, of in RANKS.items()})
    off = columns.loc[list(RANKS), ["mean", "deviation"]].to_numpy()
    np.testing.assert_allclose(off[:, 0], exact.mean(), atol=0.15)
    np.testing.assert_allclose(off[:, 1], exact.std(), atol=0.15)
    correlations = exact.assign(y=frame["y"]).corr()
    names = list(correlations)
    published_ones = release.correlation.loc[names, names]
    np.testing.assert_allclose(published_ones, correlations, atol=0.06)


def test_predictions_take_the_columns_that_are_ranked(folder: Path, bundle: ReleaseBundle) -> None:
    frame = table()
    fitted = (
        gramercy.open(Home.default().archive).latest("toy").regression("y ~ rank(earned) + sex")
    )
    scores = function_of(facts_of(bundle)["income"]).apply(frame["earned"].to_numpy())
    predicted = fitted.predict(frame)
    np.testing.assert_array_equal(predicted.isna(), np.isnan(scores))
    men = frame["sex"].eq("M") & frame["earned"].notna()
    line = np.polyfit(scores[men], predicted[men], 1)
    np.testing.assert_allclose(np.polyval(line, scores[men]), predicted[men], atol=1e-9)
    assert 0.3 < line[0] < 0.7


def test_no_cell_is_out_of_bounds(folder: Path, bundle: ReleaseBundle) -> None:
    record = read_record(Context.default().home, "toy", bundle.manifest.release)
    assert {record["clamped_cells"][name] for name in RANKS} == {0}
    assert record["filled_cells"]["income"] == 31


@pytest.mark.slow
def test_a_later_release_has_the_scores_of_the_first(folder: Path, bundle: ReleaseBundle) -> None:
    release = bundle.manifest.release
    later = published(asked(folder, version="v2", scaling={"from": release}))
    for name, column in facts_of(later).items():
        assert column.derived == facts_of(bundle)[name].derived
    assert later.manifest.declared_bounds == bundle.manifest.declared_bounds


@pytest.mark.slow
def test_the_steps_of_a_series_have_the_scores_of_an_earlier_quarter(tmp_path: Path) -> None:
    frame = visits(4000)
    frame.loc[::2, "visited"] -= datetime.timedelta(92)
    frame.to_csv(tmp_path / "table.csv", index=False)
    ranked = {"from": "c0", "transform": "rank", "lower": -9.0, "upper": 9.0}
    columns = {"rank": ranked, "c1": {"lower": -9.0, "upper": 9.0}}
    budget = {"epsilon": 20.0, "delta": 1e-6, "per": "quarter"}
    terms = QUARTERLY | {"columns": columns, "budget": budget, "rows": 2000}
    marginals = {"name": "marginals", "epsilon": 10.0, "delta": 1e-7}
    keys = {"version": "2025-Q4", "mechanism": marginals, "scaling": "private"}
    first = run_release(write_request(tmp_path, request=keys, **terms))
    mechanism = {"name": "gaussian", "epsilon": 10.0, "delta": 1e-7}
    again = {"scaling": {"from": first}, "mechanism": mechanism, "normalisation": "clip"}
    archive = Context.default().archive
    published = [
        read_release(archive.release("toy", each))
        for each in (first, *publish_steps(tmp_path, terms, again))
    ]
    assert len({facts_of(each)["rank"].derived for each in published}) == 1
    assert function_of(facts_of(published[0])["rank"]).knots
    for each in published:
        verify_release(archive, "toy", each.manifest.release, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "keys"),
    {
        "groups": {"by": "sex"},
        "folds": {"folds": 2},
        "one stage": {"scaling": {"kind": "private", "stages": 1}},
        "persons": {"facts": {"privacy_unit": "who", "persons": ROWS // 2}},
        "marginals": {"mechanism": LOUD | {"name": "marginals"}},
        "little budget": {"mechanism": LOUD | {"epsilon": 0.7}},
    }.items(),
)
def test_every_kind_of_release_is_verified_and_read(
    tmp_path: Path, kind: str, keys: dict[str, Any]
) -> None:
    bundle = published(asked(tmp_path, **keys))
    assert all(function_of(facts_of(bundle)[name]).knots for name in RANKS)
    release = gramercy.open(Home.default().archive).latest("toy")
    assert release.quantiles()["value"].notna().all()
    if bundle.manifest.publication.has_matrix:
        release.describe()
        assert len(release.synthesize(20)) == 20


@pytest.mark.slow
def test_ranks_of_nearly_equal_cells_are_published(tmp_path: Path) -> None:
    frame = table()
    frame.loc[: ROWS - 20, "paid"] = 0.0
    frame.loc[: ROWS - 5, "part"] = 0.5
    frame.to_csv(tmp_path / "table.csv", index=False)
    bundle = published(asked(tmp_path))
    assert not bundle.manifest.scaling or not bundle.manifest.scaling.signs
    assert function_of(facts_of(bundle)["spent"]).apply(np.zeros(1)) < 0.1
    gramercy.open(Home.default().archive).latest("toy").describe()


@pytest.mark.slow
def test_forged_knots_are_refused(folder: Path, bundle: ReleaseBundle) -> None:
    """They would be scores of other shares than the histograms have."""
    place = Context.default().archive.release("toy", bundle.manifest.release)
    checks = release_checks(bundle.manifest)
    (check,) = (each for words, each in checks.items() if words.startswith("constants"))
    check(place, bundle)
    at = bundle.manifest.names.index("income") - 1
    column = bundle.manifest.columns[at]
    assert isinstance(column, ColumnFacts)
    assert column.derived is not None
    function = function_of(column)
    for forged in (
        replace(function, knots=(*function.knots[:-1], function.knots[-1] + 1)),
        replace(function, scores=(function.scores[0] - 1e-6, *function.scores[1:])),
        Rank(),
    ):
        derived = column.derived.model_copy(update={"transform": forged.text})
        columns = list(bundle.manifest.columns)
        columns[at] = column.model_copy(update={"derived": derived})
        manifest = bundle.manifest.model_copy(update={"columns": tuple(columns)})
        with raises(families.CONTRADICTION):
            check(place, replace(bundle, manifest=manifest))


@pytest.mark.slow
def test_scores_of_different_histograms_are_not_compared(
    folder: Path, bundle: ReleaseBundle
) -> None:
    other = published(asked(folder, version="v3"))
    assert facts_of(other)["income"].derived != facts_of(bundle)["income"].derived
    evidences = [bundle.evidence, other.evidence]
    with raises(families.POOL):
        check_agreement(["one", "other"], evidences)
    names = bundle.manifest.names[1:]
    for found in comparable_measurements(evidences):
        means = dict(zip(names, found.estimate[: len(names)], strict=True))
        assert np.isnan(means["income"])
        assert np.isfinite(means["y"])


def test_a_histogram_is_needed(tmp_path: Path) -> None:
    columns = {name: COLUMNS[name] for name in ("income", "y")}
    facts = {"columns": columns}
    with raises(families.SCALING, columns=("income",)):
        read_plan(asked(tmp_path, scaling="declared", facts=facts))
    with raises(families.SCALING, count=300):
        read_plan(asked(tmp_path, facts=facts | {"rows": 300}, mechanism=LOUD | {"epsilon": 0.1}))
    ranked = {"from": "earned", "transform": "rank knots 0 1 scores -1 1"}
    with raises(families.COLUMNS):
        Contract.model_validate(contract_facts() | {"columns": {"income": ranked}})


HOSTILE = ["", "inf", "-inf", "nan", "-0.0", "1e308", "-1e308", "5e-324", "text", "-9", "0", "1,5"]


def test_no_cell_changes_a_score_of_another_row(folder: Path, bundle: ReleaseBundle) -> None:
    rng, path = np.random.default_rng(1), folder / "fuzzed.csv"
    plan = read_plan(asked(folder))
    contract = scaled_contract(plan.matrix_contract, bundle.manifest)
    contract = contract.model_copy(update={"source": str(path)})

    def scores() -> Array:
        read = cell_batches(open_source(str(path)), contract.codings, MalformedLines())
        return np.concatenate(list(read), axis=1)

    lines = table().head(60).astype(str).to_csv(index=False).splitlines()
    path.write_text("\n".join(lines) + "\n")
    before, facts = scores(), facts_of(bundle)
    for _ in range(20):
        changed = int(rng.integers(1, len(lines)))
        cells = ",".join(f'"{each}"' for each in rng.choice(HOSTILE, 7))
        path.write_text("\n".join([*lines[:changed], cells, *lines[changed + 1 :]]) + "\n")
        after, others = scores(), np.arange(60) != changed - 1
        np.testing.assert_array_equal(after[:, others], before[:, others])
        for name, own in zip(contract.names, after, strict=True):
            if name in RANKS:
                finite = own[np.isfinite(own)]
                assert (finite >= facts[name].lower).all()
                assert (finite <= facts[name].upper).all()


@pytest.mark.parametrize("seed", range(20))
def test_a_rank_is_what_its_text_says_and_increases(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-12, 12, 30)
    knots, scores = np.unique(rng.normal(size=30) * sizes), np.sort(rng.normal(size=30))
    function = Rank(tuple(knots.tolist()), tuple(scores[: len(knots)].tolist()))
    assert transform_of(function.text) == function
    x = np.sort(np.concatenate([rng.normal(size=200) * 10.0 ** rng.uniform(-12, 12, 200), knots]))
    found = function.apply(x)
    assert (np.diff(found) >= 0).all()
    np.testing.assert_array_equal(function.apply(knots), scores[: len(knots)])
    np.testing.assert_array_equal(function.back(function.apply(knots)), knots)
    assert np.isnan(function.apply(np.array([np.nan]))).all()
