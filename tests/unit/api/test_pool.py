"""Pools of opened releases: which can be pooled, their weights, matrices and estimates."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.api.release import Release
from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.schemas import families, wordings
from tests.support.factories import MECHANISM, run_release, write_request, write_table
from tests.support.problems import raises

CLIP = {"normalisation": {"kind": "clip", "radius": 4.0}}


def publish(folder: Path, name: str, seed: int = 7, **changes: Any) -> Release:
    """A release of 3000 rows, or another number."""
    place = folder / f"{changes.get('id', 'toy')}-{seed}"
    place.mkdir(exist_ok=True)
    write_table(place / "table.csv", rows=changes.get("rows", 3000), seed=seed)
    request = changes.pop("request", {})
    facts = {"rows": 3000, "intercept": True, "budget": {"epsilon": 1000.0, "delta": 1e-5}}
    run_release(write_request(place, request=CLIP | request, **facts | changes))
    return gramercy.open(Home.default().archive)[name]


def epsilon(value: float, **keys: Any) -> dict[str, Any]:
    return {"mechanism": MECHANISM | {"epsilon": value}} | keys


@pytest.fixture
def two(tmp_path: Path) -> list[Release]:
    """Two releases of one table; the second has less noise."""
    first = publish(tmp_path, "toy/v1-r1", request=epsilon(20.0))
    return [first, publish(tmp_path, "toy/v1-r2", request=epsilon(40.0))]


@pytest.mark.slow
def test_releases_of_one_table_are_weighted_by_their_noise(two: list[Release]) -> None:
    pool = gramercy.pool(two)
    noise = np.array([each.noise.sd_off_diagonal for each in two])
    np.testing.assert_allclose(pool.weights, noise**-2 / (noise**-2).sum())
    assert pool.weights.index.tolist() == [each.id for each in two]
    assert pool.noise.sd_off_diagonal == pytest.approx((noise**-2).sum() ** -0.5)
    assert pool.rows == pytest.approx(3000, rel=1e-12)
    for of_pool, of_release in (
        (pool.covariance, two[1].covariance),
        (pool.means, two[1].means),
        (pool.correlation, two[1].correlation),
    ):
        assert list(of_pool.index) == ["c0", "c1", "c2"]
        expected = of_release.noise_error * (pool.noise.sd_off_diagonal / noise[1])
        np.testing.assert_allclose(of_pool.noise_error, expected, rtol=0.1)
    assert pool.second_moment.shape == (4, 4)
    assert pool.partial_correlation.loc["c0", "c0"] == 1
    fitted = pool.estimate("ridge")
    assert fitted.n_samples_ == pytest.approx(3000, rel=1e-12)
    assert "toy/v1-r1 (" in repr(pool)
    assert "toy/v1-r2" in pool._repr_html_()
    again = pickle.loads(pickle.dumps(pool))
    np.testing.assert_array_equal(again.correlation, pool.correlation)


@pytest.mark.slow
def test_pools_that_count_noise_twice_are_refused(two: list[Release]) -> None:
    with raises(families.POOL):
        gramercy.pool(two[:1])
    with raises(families.POOL):
        gramercy.pool([two[0], two[0]])


@pytest.mark.slow
def test_tables_of_several_curators_are_taken_to_be_disjoint(tmp_path: Path) -> None:
    facts = {"c0": {"lower": -8.0, "upper": 8.0, "centre": 1.0, "scale": 2.0}}
    others = {f"c{j}": {"lower": -5.0, "upper": 5.0} for j in (1, 2)}
    releases = [
        publish(tmp_path, "toy/v1-r1", request=epsilon(50.0)),
        publish(tmp_path, "toy/v1-r2", request=epsilon(30.0)),
        publish(
            tmp_path,
            "other/v1-r1",
            8,
            id="other",
            columns=facts | others,
            request=epsilon(50.0),
        ),
    ]
    pool = gramercy.pool(releases)
    assert 4500 < pool.rows < 6001
    assert pool.weights.sum() == pytest.approx(1)
    assert pool.weights["other/v1-r1"] == pytest.approx(0.5, abs=0.2)
    assert (pool.means.standard_error < 0.85 * releases[0].means.standard_error).all()
    assert (pool.means.abs() < 5 * pool.means.standard_error).all()


@pytest.mark.slow
def test_versions_of_one_data_set_need_a_word_about_their_rows(
    two: list[Release], tmp_path: Path
) -> None:
    later = publish(tmp_path, "toy/v2-r1", request=epsilon(1.0, version="v2"))
    with raises(families.POOL, first="toy/v1-r1", other="toy/v2-r1"):
        gramercy.pool([two[0], later])
    same = gramercy.pool([two[0], later], rows="same")
    disjoint = gramercy.pool([two[0], later], rows="disjoint")
    assert same.rows == pytest.approx(3000, rel=1e-12)
    assert 3000 < disjoint.rows <= 6000 * (1 + 1e-12)


@pytest.mark.slow
def test_tables_of_other_sizes_and_protected_units_are_refused(
    two: list[Release], tmp_path: Path
) -> None:
    fewer = publish(tmp_path, "fewer/v1-r1", id="fewer", rows=2900)
    with raises(families.POOL, first="toy/v1-r1", number="rows"):
        gramercy.pool([two[0], fewer], rows="same")
    table = pd.read_csv(write_table(tmp_path / "table.csv", rows=3000))
    table.assign(who=np.arange(3000) // 2).to_csv(tmp_path / "table.csv", index=False)
    persons = {"privacy_unit": "who", "persons": 1500, "rows": 3000, "intercept": True}
    run_release(write_request(tmp_path, id="persons", request=CLIP, **persons))
    of_persons = gramercy.open(Home.default().archive)["persons/v1-r1"]
    with raises(families.POOL, other="persons/v1-r1"):
        gramercy.pool([two[0], of_persons])


@pytest.mark.slow
def test_withdrawn_releases_and_names_are_not_pooled(two: list[Release]) -> None:
    for given, kind in ((["toy/v1-r1"], "str"), ("toy/v1-r1", "str"), (5, "int")):
        with raises(families.POOL, given=kind):
            gramercy.pool(given)  # type: ignore[arg-type]
    with raises(families.POOL):
        gramercy.pool(two[0])  # type: ignore[arg-type]
    withdraw(Context.default(), "toy", "v1-r2", "wrong bounds")
    with pytest.warns(gramercy.WithdrawnRelease) as caught:
        again = gramercy.open(Home.default().archive)["toy/v1-r2"]
    expected = str(wordings.release_withdrawn("toy/v1-r2", "wrong bounds"))
    assert [(str(each.message), each.filename) for each in caught] == [(expected, __file__)]
    with raises(families.POOL, release="toy/v1-r2", reason="wrong bounds"):
        gramercy.pool([two[0], again])


@pytest.mark.slow
def test_releases_with_different_constants_are_compared(tmp_path: Path) -> None:
    first = publish(tmp_path, "toy/v1-r1", request=epsilon(200.0))
    place = tmp_path / "other"
    place.mkdir()
    columns = {name: {"lower": -9.0, "upper": 9.0} for name in ("c0", "c1", "c2")}
    shifted = pd.read_csv(write_table(place / "table.csv", rows=3000, seed=8))
    shifted["c1"] += 1.0
    shifted.to_csv(place / "table.csv", index=False)
    second = publish_of(place, "other/v1-r1", columns)
    compared = second.compare(first)
    found = compared.discoveries()
    assert found.iloc[0][["kind", "column"]].tolist() == ["mean", "c1"]
    assert found.iloc[0]["difference"] == pytest.approx(1.0, abs=0.3)
    assert "other/v1-r1 and toy/v1-r1" in repr(compared)
    with raises(families.POOL, given="str"):
        first.compare("other/v1-r1")  # type: ignore[arg-type]


def publish_of(place: Path, name: str, columns: dict[str, Any]) -> Release:
    """A release of the table in a folder, with bounds of its own."""
    facts = {"rows": 3000, "intercept": True, "budget": {"epsilon": 1000.0, "delta": 1e-5}}
    request = CLIP | epsilon(200.0)
    run_release(write_request(place, request=request, id="other", columns=columns, **facts))
    return gramercy.open(Home.default().archive)[name]
