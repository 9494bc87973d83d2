"""The report says what its numbers mean: own units, missing cells, unit rows, groups of rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.estimators.uncertainty.table_entries import table_means
from gramercy.reports.column_summaries import own_columns, row_groups
from gramercy.reports.correlations import correlations
from gramercy.reports.reader_notes import meaning_notes
from gramercy.reports.release_report import release_page
from gramercy.schemas import families
from gramercy.schemas.facts import OTHER
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import ScalingFacts
from tests.support.caveat_release import seeded_noise
from tests.support.factories import run_release, write_request
from tests.support.pages import check_ids
from tests.unit.pipeline.test_groups import COLUMNS as GROUP_COLUMNS
from tests.unit.pipeline.test_groups import plan_of_groups

ROWS = 4000
COLUMNS = {
    "age": {"lower": 0.0, "upper": 100.0, "centre": 45.0, "scale": 15.0},
    "income": {"lower": 0.0, "upper": 1e5, "centre": 2.5e4, "scale": 1e4},
    "kind": {"levels": ["a", "b"]},
}


def table(seed: int = 3) -> pd.DataFrame:
    stream = np.random.default_rng(seed)
    z = stream.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=ROWS)
    kind = stream.choice(["a", "b"], size=ROWS, p=[0.7, 0.3])
    return pd.DataFrame({"age": 40 + 10 * z[:, 0], "income": 3e4 + 8e3 * z[:, 1], "kind": kind})


def release(folder: Path, home: Path, frame: pd.DataFrame, how: Any = None) -> ReleaseBundle:
    frame.to_csv(folder / "table.csv", index=False)
    request = {
        "mechanism": {"name": "gaussian", "epsilon": 200.0, "delta": 1e-6},
        "normalisation": how or {"kind": "clip", "radius": 6.0},
    }
    run_release(
        write_request(
            folder,
            rows=ROWS,
            columns=COLUMNS,
            intercept=True,
            budget={"epsilon": 900.0, "delta": 1e-5},
            request=request,
        )
    )
    return read_release(home / "archive/toy/v1-r1/release")


def with_present(bundle: ReleaseBundle, present: tuple[float, ...]) -> ReleaseBundle:
    """The release as if it had published these shares of present cells."""
    scaling = ScalingFacts(kind="private", bounds=(None,) * 3, present=present)
    manifest = bundle.manifest.model_copy(update={"scaling": scaling})
    return replace(bundle, manifest=manifest)


@pytest.mark.slow
def test_columns_are_in_their_own_units(tmp_path: Path, home: Path) -> None:
    frame = table()
    bundle = release(tmp_path, home, frame)
    own = own_columns(bundle)
    age, income, a, b = own.columns
    assert age.mean.estimate == pytest.approx(frame["age"].mean(), abs=0.2)
    assert a.deviation is None
    assert income.deviation.estimate == pytest.approx(frame["income"].std(), rel=0.01)
    assert a.mean.estimate + b.mean.estimate == pytest.approx(1, abs=0.01)
    assert [column.present for column in own.columns] == [None] * 4
    assert age.mean.error == pytest.approx(10 / ROWS**0.5, rel=0.2)
    assert own.weight[0] == pytest.approx(1, abs=0.01)
    exact = frame[["age", "income"]].corr().iloc[0, 1]
    released = correlations(bundle)
    assert released.centred
    assert not released.corrected
    assert released.matrix[0, 1] == pytest.approx(exact, abs=0.01)
    page = release_page(bundle, [])
    assert "for Gaussian rows" in page
    assert families.READING.code not in page


@pytest.mark.slow
def test_missing_cells_are_corrected_or_stated(tmp_path: Path, home: Path) -> None:
    frame = table()
    stream, exact = np.random.default_rng(0), table()[["age", "income"]].corr().iloc[0, 1]
    frame.loc[stream.uniform(size=ROWS) < 0.3, "age"] = np.nan
    bundle = release(tmp_path, home, frame)
    own, plain = own_columns(bundle), correlations(bundle)
    assert plain.matrix[0, 1] < exact - 0.05
    assert 0.01 < own.missing.median <= own.missing.largest < 0.2
    share = float(frame["age"].notna().mean())
    corrected = with_present(bundle, (share, 1.0, 1.0))
    found, own = correlations(corrected), own_columns(corrected)
    assert own.missing is None
    assert [column.present for column in own.columns] == [share, 1.0, None, None]
    assert own.columns[0].mean.estimate == pytest.approx(frame["age"].mean(), abs=0.3)
    assert found.corrected
    assert found.matrix[0, 1] == pytest.approx(exact, abs=0.03)
    page = release_page(corrected, [])
    assert "cells present" in page
    assert "nan" not in page.split("<h2>Columns</h2>")[1].split("</section>")[0]


@pytest.mark.slow
def test_lost_pairs_and_columns_are_unknown_never_one(tmp_path: Path, home: Path) -> None:
    bundle = release(tmp_path, home, table())
    sd = 0.4 * float(bundle.unbiased[1, 1])
    loud = NoiseLaw(family="gaussian-isotropic", sd_diagonal=2**0.5 * sd, sd_off_diagonal=sd)
    weight = bundle.raw.copy()
    weight[0, 0] = 9 * sd
    lost = replace(bundle, raw=weight, manifest=bundle.manifest.model_copy(update={"noise": loud}))
    found = correlations(lost)
    pairs = np.triu_indices(4, 1)
    assert np.isnan(found.matrix[pairs]).all()
    assert found.hidden[pairs].all()
    own = own_columns(lost)
    assert np.isnan(own.columns[0].deviation.estimate)
    assert own.missing is None
    assert "within the noise" in release_page(lost, [])


@pytest.mark.slow
def test_unit_rows_have_a_box_that_says_so(tmp_path: Path, home: Path) -> None:
    bundle = release(tmp_path, home, table(), how="unit")
    assert own_columns(bundle) is None
    (note,) = meaning_notes(bundle)
    assert note.code == families.READING.code
    page = release_page(bundle, [])
    assert page.index(note.code) < page.index("What is guaranteed")
    assert "<h2>Columns</h2>" not in page


@pytest.mark.slow
def test_report_shows_every_group_in_own_units(tmp_path: Path) -> None:
    """Ward B has a mean of 0.5 and a strong correlation; there is no row of another ward."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-0.4, 0.4, (2, 20_000))
    ward = np.repeat(["A", "B"], 10_000)
    frame = pd.DataFrame({"x": x, "y": np.where(ward == "B", x, y), "ward": ward})
    frame["x"] += np.where(ward == "B", 0.5, 0)
    keys = {
        "normalisation": {"kind": "clip", "radius": 1.6},
        "mechanism": {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6},
    }
    budget = {"epsilon": 10.0, "delta": 1e-5}
    columns = GROUP_COLUMNS | {"ward": {"levels": ["A", "B", "<C> & $D$"]}}
    plan_of_groups(tmp_path, frame, columns=columns, budget=budget, request=keys)
    name = run_release(tmp_path / "request.yaml")
    place = open_archive(Home.default().archive).release("toy", name)
    bundle = read_release(place)
    groups = row_groups(bundle)
    assert [group.name for group in groups] == ["A", "B", "<C> & $D$", OTHER]
    means = [group.columns["x"].mean.estimate for group in groups[:2]]
    assert means[1] - means[0] > 0.4
    assert abs(groups[0].rows[0] - 10_000) < 10 * groups[0].rows[1]
    assert all(group.picture for group in groups[:2])
    page = release_page(bundle, [])
    check_ids(page)
    assert page == release_page(bundle, [])
    assert page.count("<svg") >= 5
    assert "&lt;C&gt; &amp; $D$" in page
    assert "<C>" not in page


@pytest.mark.slow
def test_page_of_private_constants_has_the_numbers_of_all_interfaces(
    tmp_path: Path, home: Path
) -> None:
    stream = np.random.default_rng(8)
    frame = pd.DataFrame({"x": stream.normal(50, 10, 20_000)})
    frame["y"] = frame["x"] + stream.normal(0, 10, 20_000)
    frame["rare"] = np.where(np.arange(20_000) % 500 == 0, 3e4, 0.0)
    frame.to_csv(tmp_path / "table.csv", index=False)
    limits = {"x": 200.0, "y": 300.0, "rare": 1e6}
    with seeded_noise(3):
        run_release(
            write_request(
                tmp_path,
                rows=20_000,
                columns={name: {"lower": -high, "upper": high} for name, high in limits.items()},
                intercept=True,
                budget={"epsilon": 9.0, "delta": 1e-5},
                request={
                    "mechanism": {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6},
                    "scaling": "private",
                },
            )
        )
    bundle = read_release(home / "archive/toy/v1-r1/release")
    evidence, own, found = bundle.evidence, own_columns(bundle), correlations(bundle)
    assert own is not None
    entries = correlation(evidence)
    known = ~np.isnan(found.matrix)
    assert known[0, 1]
    np.testing.assert_array_equal(found.matrix[known], entries.estimate[known])
    lower, upper = entries.interval(0.95, "table")
    assert lower[0, 1] < frame["x"].corr(frame["y"]) < upper[0, 1]
    assert not found.hidden[0, 1]
    means = table_means(evidence, table_units(evidence))
    assert [each.mean.estimate for each in own.columns[:2]] == means.estimate[:2].tolist()
    for column in own.columns[:2]:
        low, high = column.mean.of_table
        assert low < frame[column.name].mean() < high
        assert column.mean.of_population[0] < low
    rare = own.columns[2]
    assert evidence.signs == ("rare",)
    assert np.isnan([rare.mean.estimate, rare.deviation.estimate]).all()
    (sign,) = (each for each in own.limits if each.column == "rare")
    assert 40 <= sign.notice.facts["most"] < 1000
    page = release_page(bundle, [])
    check_ids(page)
    assert f"At most {sign.notice.facts['most']} of 20000" in page
    assert "rare ≠ 0" in page
    assert "nan" not in page.split("<h2>Columns</h2>")[1].split("</section>")[0]
