"""Cumulative releases in the analysts' interface: windows of steps, and the series over time."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramercy
from gramercy.api.catalogue import Catalogue
from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.archive.bundles.steps import window as decoded_window
from gramercy.archive.listing.contents import Contents
from gramercy.common.prefix_sums import PrefixSums
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.table_comparison import differences, measure, over_time
from gramercy.pipeline.catalogue.catalogue_pages import step_series, write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.pipeline.publish.charging import publish
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas import families
from gramercy.schemas.facts import OTHER, DatasetFacts
from gramercy.schemas.neighbours import Neighbours
from tests.support.cumulative import QUARTERLY, seed_noise, visits
from tests.support.factories import (
    MECHANISM,
    home_at,
    run_command,
    run_json,
    run_release,
    write_request,
    write_table,
)
from tests.support.problems import raises
from tests.support.steps import GROUPED, series_bundles
from tests.unit.pipeline.test_cumulative import (
    CLIP,
    catch_up,
    months,
    planned,
    written,
)

CELLS = ["c0", "c1", "c2"]
ROWS = 6000


@pytest.fixture(scope="module")
def quarter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An archive with the three months of a quarter, and a release of a table of its own."""
    folder = tmp_path_factory.mktemp("quarter")
    with home_at(folder / "home") as home, pytest.MonkeyPatch.context() as patch:
        seed_noise(patch)
        catch_up(written(folder, "2026-Q1-03", visits(ROWS), normalisation=CLIP))
        yield home / "archive"


@pytest.fixture(scope="module")
def catalogue(quarter: Path) -> Catalogue:
    return gramercy.open(quarter)


@pytest.mark.slow
def test_last_steps_are_like_a_release_of_their_rows(catalogue: Catalogue) -> None:
    table = visits(ROWS)
    step = months(table)
    series = catalogue.series("toy")
    third = series["2026-Q1-03"]
    assert third.cumulative is not None
    assert (third.cumulative.step, third.cumulative.steps) == (3, 3)
    windows = {third.step: [3], third.last(2): [2, 3], third.last(3): [1, 2, 3]}
    windows[series["2026-Q1-02"].step] = [2]
    for window, numbers in windows.items():
        rows = table[np.isin(step, numbers)]
        assert window.steps == tuple(f"2026-Q1-0{k}" for k in numbers)
        assert abs(window.rows - len(rows)) < 4 * window.rows_error
        means, errors = window.means, window.means.noise_error
        assert (np.abs(means - rows[CELLS].mean()) < 4 * errors).all()
        deviations = window.standard_deviations
        assert (np.abs(deviations - rows[CELLS].std()) < 4 * deviations.noise_error + 0.05).all()
        assert window.denoised.shape == window.second_moment.shape == (4, 4)
        lower, upper = window.correlation.interval(0.999, "table")
        pair, truth = ("c0", "c1"), rows["c0"].corr(rows["c1"])
        assert lower.loc[pair] <= truth <= upper.loc[pair]
    window = third.last(2)
    assert window is third.last(2)
    assert window.regression("c0 ~ c1 + c2").summary()
    assert window.estimate("graphical-lasso").precision_.shape == (4, 4)
    assert window.describe() is not None
    assert window.synthesize(5).attrs["release"] == window.id
    assert pickle.loads(pickle.dumps(window)).rows == window.rows
    assert third.id in repr(window) + window._repr_html_()
    # The sum over all steps so far is the release itself.
    np.testing.assert_array_equal(third.last(3).second_moment, third.second_moment)
    assert third.last(3).noise == third.noise


def test_noise_of_last_steps_is_that_of_their_weights(catalogue: Catalogue) -> None:
    sums, third = PrefixSums(3), catalogue.series("toy")["2026-Q1-03"]
    of_all = third.noise.sd_off_diagonal * third.manifest.rows.value
    for steps in (1, 2, 3):
        window = third.last(steps)
        ratio = window.noise.sd_off_diagonal * window.rows / of_all
        assert ratio == pytest.approx(sums.spread(3, steps) / sums.spread(3))
        assert window.rows_error / third.manifest.rows.sd == pytest.approx(ratio)


@pytest.mark.parametrize("steps", [0, -1, 4])
def test_there_are_as_many_steps_as_were_published(catalogue: Catalogue, steps: int) -> None:
    release = catalogue.series("toy")["2026-Q1-03"]
    with raises(families.PERIOD, release=release.id, published=3, steps=steps):
        release.last(steps)


def test_windows_with_common_steps_are_refused(catalogue: Catalogue) -> None:
    first, second, third = catalogue.series("toy").values()
    for one, other in ((second, third), (third.last(2), second.step), (third, first)):
        with raises(families.COMPARISON):
            one.compare(other)
    with raises(families.POOL, first=second.id, other=third.id):
        gramercy.pool([second, third], rows="disjoint")
    found = third.step.compare(second.step).table()
    assert found["p_value"].notna().all()
    assert found["standard_error"].gt(0).all()


@pytest.mark.slow
def test_last_steps_are_pooled_with_another_data_set(tmp_path: Path, catalogue: Catalogue) -> None:
    window = catalogue.series("toy")["2026-Q1-03"].last(2)
    request = {"normalisation": CLIP, "mechanism": {**MECHANISM, "epsilon": 2.0}}
    with home_at(tmp_path / "home") as home:
        write_table(tmp_path / "table.csv", rows=3000)
        terms = {"id": "other", "rows": 3000, "intercept": True, "neighbours": "add-remove"}
        budget = {"epsilon": 3.0, "delta": 1e-6}
        run_release(write_request(tmp_path, request=request, budget=budget, **terms))
        (other,) = gramercy.open(home / "archive").values()
        pool = gramercy.pool([window, other])
        assert pool.weights.index.tolist() == [window.id, other.id]
        ends = sorted((window.means["c1"], other.means["c1"]))
        assert ends[0] < pool.means["c1"] < ends[1]
        assert pool.rows == pytest.approx(window.rows + other.manifest.rows.value, rel=0.2)
    first = catalogue.series("toy")["2026-Q1-01"]
    with raises(families.POOL):
        gramercy.pool([window, first])
    with raises(families.COMPARISON):
        pool.compare(first)


@pytest.mark.slow
def test_command_compares_last_steps(
    quarter: Path, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    _, second, third = catalogue.series("toy").values()
    words = ("compare", second.id, third.id, "--archive", quarter)
    facts = run_json(*words, "--last", 1, capsys=capsys)
    found = third.step.compare(second.step)
    assert (facts["earlier"], facts["later"]) == (found.second, found.first)
    assert (facts["numbers"], len(facts["differing"])) == (
        len(found.table()),
        len(found.discoveries()),
    )
    for options in ((), ("--last", 2)):
        code, _, err = run_command(*words, *options, capsys=capsys)
        assert code != 0
        assert families.COMPARISON.code in err
    code, out, _ = run_command("show", third.id, "--archive", quarter, capsys=capsys)
    assert code == 0
    assert "step 3 of 3: rows from 2026-01-01 to 2026-03-31" in " ".join(out.split())


@pytest.mark.slow
def test_numbers_of_a_series_over_time(catalogue: Catalogue) -> None:
    series, labels = catalogue.series("toy"), [f"2026-Q1-0{k}" for k in (1, 2, 3)]
    assert list(series) == labels == series.table.index.tolist()
    assert series.table["release"].tolist() == [each.id for each in series.values()]
    assert series.missing == ()
    so_far, each = series.so_far(), series.each()
    for label in labels:
        for table, own in ((so_far, series[label]), (each, series[label].step)):
            line = table.query("step == @label and kind == 'mean' and column == 'c1'").iloc[0]
            assert line["estimate"] == own.means["c1"]
            assert line["lower"] == own.means.interval()[0]["c1"]
    changes = series.changes()
    assert changes["periods"].eq(3).all()
    assert changes["p_value"].between(0, 1).all()
    assert series.each(2)["step"].unique().tolist() == ["2026-Q1-02"]
    assert series.each(3)["estimate"].tolist() == (
        series.so_far().query("step == '2026-Q1-03'")["estimate"].tolist()
    )
    with raises(families.PERIOD, series="toy", published=3):
        series.each(4)
    with raises(families.UNKNOWN_NAME, step="2026-Q1-04"):
        series["2026-Q1-04"]
    assert catalogue.periods("toy")["2026-Q1"].id == series[labels[-1]].id
    assert catalogue.series("toy", "2026-Q1").keys() == series.keys()
    with raises(families.PERIOD, dataset="toy"):
        catalogue.series("toy", "2025-Q4")


@pytest.mark.slow
def test_a_release_without_steps(tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path))
    catalogue = gramercy.open(home / "archive")
    release = catalogue["toy/v1-r1"]
    assert release.cumulative is None
    with raises(families.PERIOD, release=release.id):
        release.last(1)
    with raises(families.PERIOD, dataset="toy"):
        catalogue.series("toy")


def test_missing_steps_and_releases_are_named(tmp_path: Path, quarter: Path) -> None:
    archive = tmp_path / "archive"
    shutil.copytree(quarter, archive)
    first, _, third = gramercy.open(quarter).series("toy").values()
    shutil.rmtree(archive / third.id)
    opened = gramercy.open(archive).series("toy")
    assert opened.missing == ("2026-Q1-03",)
    assert opened.table["release"].isna().tolist() == [False, False, True]
    assert "2026-Q1-03" in repr(opened)
    shutil.rmtree(archive / first.id)
    second = gramercy.open(archive).series("toy")["2026-Q1-02"]
    assert second.last(2).rows == second.manifest.rows.observed
    with raises(families.UNKNOWN_RELEASE, release=first.id):
        second.last(1)


@pytest.mark.slow
def test_a_step_is_not_compared_with_a_release_of_its_rows(tmp_path: Path) -> None:
    with home_at(tmp_path / "home") as home:
        catch_up(written(tmp_path, "2026-Q1-01", visits(), normalisation=CLIP))
        plain = {
            "version": "2026-Q1",
            "mechanism": {"name": "gaussian", "epsilon": 0.5, "delta": 1e-7},
        }
        run_release(write_request(tmp_path, request={**plain, "normalisation": CLIP}, **QUARTERLY))
        # The version of a step does not make it a release of the rows of that step.
        alike = {**plain, "version": "2026-Q1-01", "normalisation": CLIP}
        run_release(write_request(tmp_path, request=alike, **QUARTERLY))
        step, *others = gramercy.open(home / "archive").values()
        for whole in others:
            with raises(families.COMPARISON, dataset="toy"):
                step.compare(whole)
            with raises(families.COMPARISON, dataset="toy"):
                whole.compare(step.last(1))
            with raises(families.POOL, first=step.id, other=whole.id):
                gramercy.pool([step, whole])


@pytest.mark.slow
def test_a_series_has_all_its_steps_when_an_earlier_one_is_drawn_again(tmp_path: Path) -> None:
    """It is the newest release then, but not the last step; another series is another one."""
    table, context = visits(), Context.default()

    def step(version: str, **keys: Any) -> ReleaseBundle:
        *_, last = catch_up(written(tmp_path, version, table, normalisation=CLIP, **keys))
        return last

    first, third = step("2026-Q1-01"), step("2026-Q1-03")
    withdraw(context, "toy", first.manifest.release, "wrong file")
    again = planned(written(tmp_path, "2026-Q1-01", table, normalisation=CLIP))
    again = again.with_new_charge(first.manifest.release)
    publish(context, again, accumulate(again))
    write_site(context)
    catalogue = gramercy.open(context.archive.root)
    assert [*catalogue.series("toy")] == ["2026-Q1-01", "2026-Q1-02", "2026-Q1-03"]
    assert catalogue.periods("toy")["2026-Q1"].manifest.release == third.manifest.release
    page = step_series(context.archive, Contents(context.archive).list_all(), [])
    assert page is not None
    assert page.step.step == 3
    step("2026-Q1-02", mechanism={**MECHANISM, "epsilon": 0.5})
    assert [*gramercy.open(context.archive.root).series("toy")] == ["2026-Q1-01", "2026-Q1-02"]


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_windows_are_decoded_from_the_last_draw_of_a_step(
    tmp_path: Path, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch)
    table = visits(ROWS).assign(ward=lambda frame: np.where(frame.index % 3, "A", "B"))
    columns: dict[str, Any] = {name: {"lower": -5.0, "upper": 5.0} for name in CELLS}
    columns |= {"ward": {"levels": ["A", "B"]}} if grouped else {}
    keys = {"normalisation": CLIP, "contract": {"columns": columns}}
    keys |= {"by": "ward"} if grouped else {}
    step = months(table)
    with home_at(tmp_path / "home") as home:
        (first,) = catch_up(written(tmp_path, "2026-Q1-01", table, **keys))
        (second,) = catch_up(written(tmp_path, "2026-Q1-02", table, **keys))
        context, name = Context.default(), first.manifest.release
        withdraw(context, "toy", name, "wrong file")
        again = planned(written(tmp_path, "2026-Q1-01", table, **keys)).with_new_charge(name)
        redrawn = publish(context, again, accumulate(again))
        (third,) = catch_up(written(tmp_path, "2026-Q1-03", table, **keys))
        series = gramercy.open(home / "archive").series("toy")
        release = series["2026-Q1-03"]
        assert series["2026-Q1-01"].manifest.release == redrawn
        drawn = [read_release(context.archive.release("toy", redrawn)), second, third]
        encoded = [np.array(sum(part.rows for part in x.encoded), object) for x in drawn]
        rows = PrefixSums(3).decode(encoded)
        for last in (1, 2, 3):
            window = release.last(last)
            assert window.rows == pytest.approx(float(np.sum(rows[-last:])))
            own = table[step > 3 - last]
            assert (np.abs(window.means - own[CELLS].mean()) < 4 * window.means.noise_error).all()
            if grouped:
                exact = own["ward"].value_counts()
                for level, group in window.groups.items():
                    assert abs(group.rows - exact.get(level, 0)) < 4 * group.rows_error
        so_far = series.so_far().query("kind == 'mean' and column == 'c0'")["estimate"]
        each = series.each().query("kind == 'mean' and column == 'c0'")["estimate"]
        assert each.iloc[0] == so_far.iloc[0] == series["2026-Q1-01"].means["c0"]
        assert so_far.iloc[1] != series["2026-Q1-02"].means["c0"]  # as published before
        assert each.iloc[2] == release.step.means["c0"]
        with raises(families.COMPARISON):
            release.step.compare(series["2026-Q1-02"].step)
        page = step_series(context.archive, Contents(context.archive).list_all(), [])
        assert page is not None
        assert page.alone is not None
        of_page = page.alone.series.query("kind == 'mean' and column == 'c0'")["estimate"]
        assert of_page.tolist() == each.tolist()


@pytest.mark.slow
def test_windows_of_a_series_in_the_metric_of_a_pilot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch)
    stream, rows = np.random.default_rng(1), 40_000
    cells = stream.normal(size=(rows, 1)) + 0.3 * stream.normal(size=(rows, 3))
    table = visits(rows).assign(**dict(zip(CELLS, cells.T, strict=True)))
    budget = {"epsilon": 30.0, "delta": 1e-6, "per": "quarter"}
    terms = {"rows": rows, "budget": budget}
    mechanism = {"name": "gaussian", "epsilon": 10.0, "delta": 1e-7}
    with home_at(tmp_path / "home") as home:
        table.to_csv(tmp_path / "table.csv", index=False)
        plain = {"version": "2026-Q1", "mechanism": mechanism, "scaling": "private"}
        name = run_release(write_request(tmp_path, request=plain, **QUARTERLY | terms))
        keys = {"mechanism": mechanism, "scaling": {"from": name}, "contract": terms}
        *_, third = catch_up(written(tmp_path, "2026-Q1-03", table, **keys))
        assert third.manifest.is_whitened
        release = gramercy.open(home / "archive").series("toy")["2026-Q1-03"]
        own = table[months(table) == 3]
        window = release.step
        assert len(window.evidence.terms) == 1
        ratio = window.noise.sd_off_diagonal * window.rows / release.noise.sd_off_diagonal
        expected = PrefixSums(3).spread(3, 1) / PrefixSums(3).spread(3)
        assert ratio / release.manifest.rows.value == pytest.approx(expected)
        pair, truth = ("c0", "c1"), own["c0"].corr(own["c1"])
        assert window.correlation.loc[pair] == pytest.approx(truth, abs=0.01)
        found = window.regression("c0 ~ c1 + c2")
        assert found.params["c1"] == pytest.approx(0.48, abs=0.05)
        assert release.last(2).evidence.repaired.shape == (4, 4)


# With steps in memory.

STEPS, PER_STEP = 12, 1500
FACTS = DatasetFacts(id="toy", title="toy", curator="toy", version="v1", rows=STEPS * PER_STEP)


def steps_of(seed: int, **changes: Any) -> list[ReleaseBundle]:
    stream = np.random.default_rng(seed)
    covariance = [[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]]
    tables = [stream.multivariate_normal([0.5, -1, 0], covariance, PER_STEP) for _ in range(STEPS)]
    return series_bundles(tables, stream, STEPS, dataset=FACTS, **changes)


def window_of(bundles: list[ReleaseBundle], last: int, steps: int) -> ReleaseBundle:
    named = {f"w{k}": each for k, each in enumerate(bundles, 1)}
    return decoded_window(
        bundles[last - 1], last - steps, last, lambda each: named[each.release], denoise
    )


@pytest.mark.parametrize("neighbours", [*Neighbours])
def test_windows_of_public_and_private_sizes(neighbours: Neighbours) -> None:
    bundles = steps_of(1, neighbours=neighbours)
    facts = window_of(bundles, 12, 4).manifest
    if neighbours.count_is_public:
        assert (facts.rows.observed, facts.rows.sd) == (4 * PER_STEP, 0)
    else:
        assert 0 < facts.rows.sd < 0.05 * PER_STEP
        assert abs(facts.rows.observed - 4 * PER_STEP) < 4 * facts.rows.sd


def test_an_exchanged_step_is_refused() -> None:
    bundles, others = steps_of(1), steps_of(2)
    named = {f"w{k}": each for k, each in enumerate(bundles, 1)}
    last = bundles[-1]
    assert decoded_window(last, 0, 4, lambda each: named[each.release], denoise) is bundles[3]
    for exchanged in (bundles[4], others[3]):
        with raises(families.CONTRADICTION, release="toy/w12"):
            decoded_window(last, 0, 4, lambda _, wrong=exchanged: wrong, denoise)
    facts = last.manifest.cumulative
    assert facts is not None
    short = facts.model_copy(update={"earlier": facts.earlier[:2]})
    cut = replace(last, manifest=last.manifest.model_copy(update={"cumulative": short}))
    with raises(families.CONTRADICTION, release="toy/w12"):
        decoded_window(cut, 0, 4, lambda each: named[each.release], denoise)


def test_groups_of_last_steps() -> None:
    stream = np.random.default_rng(2)
    means = np.array([0.0, 1.0, 2.0])
    tables = [stream.normal(means[:, None, None], 1, (3, PER_STEP, 3)) for _ in range(STEPS)]
    rows = DatasetFacts(id="toy", title="toy", curator="toy", version="v1", rows=10**5)
    bundles = series_bundles(tables, stream, STEPS, dataset=rows, **GROUPED)
    found = window_of(bundles, 12, 4)
    assert [each.level for each in found.groups] == ["1", "2", OTHER]
    for k, mean in enumerate(means):
        own = found.of_group(k)
        assert abs(own.manifest.rows.observed - 4 * PER_STEP) < 4 * own.manifest.rows.sd
        measured = measure(own.evidence)
        np.testing.assert_allclose(measured.estimate[:3], mean, atol=0.2)
        assert own.steps is not None
        assert own.steps.group == found.groups[k].level
    # Noise of different groups is independent, and so are their rows.
    first, second = (found.of_group(k).evidence for k in (0, 1))
    assert differences(first, second)["p_value"].min() < 1e-6


@pytest.mark.slow
def test_intervals_of_windows_and_of_their_differences_cover() -> None:
    truth = np.array([0.5, -1, 0, 1, 1, 1, 0.5, 0.2, 0.3])
    covered, same, p_values = list[Any](), list[Any](), list[Any]()
    for seed in range(100, 140):
        bundles = steps_of(seed)
        evidences = [window_of(bundles, last, 3).evidence for last in (6, 9, 12)]
        for each in evidences:
            found = measure(each)
            covered.append((found.lower <= truth) & (truth <= found.upper))
        difference = differences(*evidences[:2])
        same.append((difference["lower"] <= 0) & (difference["upper"] >= 0))
        tables = {str(k): each for k, each in enumerate(evidences)}
        p_values.append(over_time(tables).changes["p_value"])
    assert 0.93 < np.mean(covered) < 0.98
    assert 0.92 < np.mean(same) < 0.99
    assert 0.01 < np.mean(np.array(p_values) < 0.05) < 0.08


def test_noise_of_neighbouring_windows_is_correlated() -> None:
    bundles = steps_of(3)
    first, second = (window_of(bundles, last, 1).evidence for last in (11, 12))
    found = differences(first, second)
    separate = np.hypot(measure(first).standard_error, measure(second).standard_error)
    ratio = found["standard_error"] / separate
    assert ratio.between(1.02, 1.3).all()
