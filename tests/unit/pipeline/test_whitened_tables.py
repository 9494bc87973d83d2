"""Releases in the metric of a pilot matrix, of all kinds of tables, against the exact moments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release, release_descriptor
from gramercy.archive.bundles.number_files import write_matrix
from gramercy.archive.bundles.package import write_descriptor
from gramercy.archive.seal.bundle import seal
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.charging import publish
from gramercy.pipeline.publish.private_table import accumulate, copy_folder, copy_table
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.evidence import ROW_LENGTHS, TURNED_LENGTHS
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.noise import NoiseLaw
from tests.support.caveat_release import seeded_noise
from tests.support.factories import home_at, read_plan, write_request
from tests.support.problems import raises
from tests.support.source_tables import execute, new_url

Array = NDArray[np.float64]

ROWS, WIDTH = 4000, 6
NAMES = [f"c{j}" for j in range(WIDTH)]
COLUMNS: dict[str, Any] = {name: {"lower": -100.0, "upper": 100.0} for name in NAMES}
MECHANISM = {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6}
BUDGET = {"epsilon": 100.0, "delta": 1e-5}


def table(seed: int = 1) -> pd.DataFrame:
    """Correlated columns in units and about places of their own; levels, persons and days."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(0.9 ** np.abs(np.subtract.outer(range(WIDTH), range(WIDTH))))
    cells = rng.normal(size=(ROWS, WIDTH)) @ root.T
    frame = pd.DataFrame(3 + 2 * cells, columns=NAMES)
    frame["ward"] = rng.choice(["A", "B", "C"], size=ROWS, p=[0.5, 0.3, 0.2])
    frame["kind"] = np.where(cells[:, 0] > 0, "high", "low")
    frame["who"] = [f"p{k % 1500}" for k in range(ROWS)]
    frame["seen"] = np.where(rng.random(ROWS) < 0.5, "2026-10-05", "2026-11-05")
    return frame


def release(folder: Path, frame: pd.DataFrame | None, **changes: Any) -> str:
    """Publish with private constants and seeded noise; `request` in `changes` has further keys."""
    if frame is not None:
        frame.to_csv(folder / "table.csv", index=False)
    request = {"mechanism": MECHANISM, "scaling": "private", "estimates": []}
    request |= changes.pop("request", {})
    facts = {"rows": ROWS, "columns": COLUMNS, "budget": BUDGET, "intercept": True} | changes
    place, context = write_request(folder, request=request, **facts), Context.default()
    with seeded_noise(3):
        plan = read_plan(place)
        with copy_folder(context.home, plan.contract) as private:
            plan = plan if private is None else copy_table(plan, private)
            return publish(context, plan, accumulate(plan))


def published(name: str) -> ReleaseBundle:
    return read_release(Context.default().archive.release("toy", name))


def verified(name: str) -> tuple[str, ...]:
    context = Context.default()
    result = verify_release(context.archive, "toy", name, context.existing_ledger)
    assert not result.unchecked
    return result.checks


def clipped_rows(bundle: ReleaseBundle, frame: pd.DataFrame, persons: bool) -> Array:
    """The rows of the released matrix, by its published constants; shape (n, q)."""
    facts, whitening = bundle.manifest, bundle.whitening
    assert facts.scaling is not None
    assert facts.scaling.metric_radius is not None
    assert whitening is not None
    parts = [np.ones(len(frame))]
    for column in facts.columns:
        own = frame[column.name]
        if isinstance(column, LevelsFacts):
            parts += [(own == level).to_numpy(float) for level in column.levels]
        else:
            inside = np.clip(own.to_numpy(float), column.lower, column.upper)
            parts.append(np.nan_to_num((inside - column.centre) / column.scale))
    scaled, radius = np.column_stack(parts), facts.scaling.metric_radius
    lengths = np.linalg.norm(scaled @ whitening.metric, axis=1)
    weights = np.minimum(1, radius / lengths)
    if persons:
        squares = pd.Series((weights * lengths / radius) ** 2)
        together = squares.groupby(frame["who"]).transform("sum").to_numpy()
        weights /= np.sqrt(np.maximum(together, 1))
    unit = facts.radius
    assert unit is not None
    rows: Array = scaled * weights[:, None] / unit
    return rows


def score(bundle: ReleaseBundle, matrix: Array, exact: Array, law: NoiseLaw) -> float:
    """Root mean square of the noise in the metric, in its standard deviations."""
    noise = bundle.in_metric(matrix - exact)
    above = np.triu_indices(len(noise))
    return float(np.sqrt(np.mean((noise / law.deviations(len(noise)))[above] ** 2)))


LEVELS = {"kind": {"levels": ["high", "low"]}}
PERSONS = {"privacy_unit": "who", "persons": 1500}
BY_WARD: dict[str, Any] = {"columns": COLUMNS | {"ward": {"levels": ["A", "B"]}}}
KINDS: dict[str, dict[str, Any]] = {
    "rows": {},
    "add-remove": {"neighbours": "add-remove"},
    "levels": {"columns": COLUMNS | LEVELS},
    "folds": {"request": {"folds": 4}},
    "groups": BY_WARD | {"request": {"by": "ward"}},
    "add-remove, groups, folds": BY_WARD
    | {"neighbours": "add-remove", "request": {"by": "ward", "folds": 2}},
    "persons": PERSONS,
    "persons, groups": BY_WARD | PERSONS | {"request": {"by": "ward"}},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_spherical_in_the_metric(tmp_path: Path, kind: str) -> None:
    frame, keys = table(), KINDS[kind]
    name = release(tmp_path, frame, **keys)
    bundle = published(name)
    facts, evidence = bundle.manifest, bundle.evidence
    rows = clipped_rows(bundle, frame, "persons" in keys)
    assert 0.5 < score(bundle, evidence.raw, rows.T @ rows / facts.rows.value, facts.noise) < 1.6
    groups = {key: frame["ward"] == key for key in "AB"}
    groups["(other)"] = frame["ward"] == "C"
    for (group, own), each in zip(evidence.groups, facts.groups, strict=True):
        part, law = rows[groups[group]], facts.group_noise(each.rows.value)
        assert 0.5 < score(bundle, own.raw, part.T @ part / own.rows, law) < 1.6
    if evidence.folds:
        k = len(evidence.folds)
        moments = [each.moment * each.rows for each in evidence.folds]
        assert np.allclose(np.sum(moments, axis=0), evidence.raw * facts.rows.value, atol=1e-9)
        spread = np.var([bundle.in_metric(each.moment) for each in evidence.folds], axis=0, ddof=1)
        above = np.triu_indices(len(spread))
        sampled = bundle.in_metric(rows.T @ rows / facts.rows.value)
        of_rows = rows @ np.linalg.inv(bundle.root).T  # type: ignore[arg-type]
        of_noise = k * facts.noise.deviations(len(spread)) ** 2
        of_sampling = k / ROWS * ((of_rows**2).T @ of_rows**2 / ROWS - sampled**2)
        ratio = np.mean((spread / (of_noise + of_sampling))[above])
        assert 0.25 < ratio < 2.5  # of about 45 independent squares
    assert any(each.startswith("agreement") for each in verified(name))


def missing_everywhere(frame: pd.DataFrame, rng: np.random.Generator) -> None:
    frame[NAMES] = frame[NAMES].mask(rng.random((ROWS, WIDTH)) < 0.15)


def missing_together(frame: pd.DataFrame, rng: np.random.Generator) -> None:
    frame.loc[rng.random(ROWS) < 0.25, NAMES[2:5]] = np.nan


def missing_where_another_is_high(frame: pd.DataFrame, rng: np.random.Generator) -> None:
    high = 1 / (1 + np.exp(2.5 - 0.6 * frame["c0"]))
    for column in NAMES[2:5]:
        frame.loc[rng.random(ROWS) < high, column] = np.nan


@pytest.mark.slow
@pytest.mark.parametrize(
    "remove", [missing_everywhere, missing_together, missing_where_another_is_high]
)
def test_missing_cells_are_corrected_in_scaled_columns(tmp_path: Path, remove: Any) -> None:
    frame = table(2)
    remove(frame, np.random.default_rng(4))
    name = release(tmp_path, frame, request={"mechanism": MECHANISM | {"epsilon": 8.0}})
    bundle = published(name)
    rows, evidence, missing = clipped_rows(bundle, frame, False), bundle.evidence, bundle.manifest
    exact = rows.T @ rows / ROWS
    assert 0.5 < score(bundle, evidence.raw, exact, missing.noise) < 1.6
    of_missing = evidence.missing
    assert of_missing is not None
    holes = [j - 1 for j in of_missing.columns]
    absent = frame[NAMES].isna().to_numpy(float)[:, holes]
    together = absent.T @ absent / ROWS
    assert np.abs(of_missing.together - together).max() < 5 * of_missing.sd
    assert evidence.radius is not None
    products = evidence.radius * rows.T @ absent / ROWS
    noise = (of_missing.products - products) / of_missing.products_sd
    assert 0.5 < np.sqrt(np.mean(noise**2)) < 1.5
    verified(name)


def at_source(folder: Path, source: str, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Write the table in another form; the keys with which it is read."""
    frame = table()
    if source == "parquet":
        frame.to_parquet(folder / "table.parquet")
        return {"source": str(folder / "table.parquet")}
    url = new_url("sqlite", folder)
    names = ", ".join(NAMES)
    marks = ", ".join(f":{name}" for name in NAMES)
    insert = f"INSERT INTO visits VALUES ({marks})"
    rows = frame[NAMES].to_dict("records")
    execute(url, f"CREATE TABLE visits ({names})", insert, rows=rows)  # type: ignore[arg-type]
    patch.setenv("CLINIC_DB", url)
    return {"source": {"url": "env:CLINIC_DB", "table": "visits"}}


@pytest.mark.slow
@pytest.mark.parametrize("source", ["parquet", "sqlite"])
def test_all_sources_have_the_same_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    first = published(release(tmp_path, table()))
    keys = at_source(tmp_path, source, monkeypatch)
    same(first, published(release(tmp_path, None, request={"version": "v2"}, **keys)))


@pytest.mark.slow
def test_period_of_a_table_has_the_same_release(tmp_path: Path) -> None:
    frame = table()
    period = {"period": {"column": "seen"}, "budget": BUDGET | {"per": "month"}}
    keys = {"neighbours": "add-remove", "rows": ROWS // 2}
    request = {"version": "{period}", "period": "2026-11"}
    first = published(release(tmp_path, frame, request=request, **keys, **period))
    with home_at(tmp_path / "other"):
        part = frame[frame["seen"] == "2026-11-05"]
        same(first, published(release(tmp_path, part, **keys)))


def same(first: ReleaseBundle, second: ReleaseBundle) -> None:
    assert first.whitening is not None
    assert second.whitening is not None
    assert np.array_equal(first.whitening.drawn, second.whitening.drawn)  # type: ignore[arg-type]
    assert np.array_equal(first.whitening.metric, second.whitening.metric)
    assert np.array_equal(first.raw, second.raw)
    assert all(np.array_equal(x, second.further[name]) for name, x in first.further.items())


@pytest.mark.slow
@pytest.mark.parametrize("keys", [{}, PERSONS], ids=["rows", "persons"])
def test_cluster_has_the_same_release(tmp_path: Path, keys: Mapping[str, Any]) -> None:
    import dask  # takes long, in every worker
    from distributed import LocalCluster

    memory = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
    # Constants of another release: the row of a person that histograms count is drawn at random.
    scaling = {"from": release(tmp_path, table(), **keys)}
    alone = release(tmp_path, None, request={"version": "v2", "scaling": scaling}, **keys)
    with (
        dask.config.set(memory),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
    ):
        engine = {"kind": "dask", "scheduler": cluster.scheduler_address}
        request = {"version": "v3", "scaling": scaling, "engine": engine}
        together = release(tmp_path, None, request=request, **keys)
    same(published(alone), published(together))


@pytest.mark.slow
def test_later_releases_are_drawn_in_the_same_metric(tmp_path: Path) -> None:
    first = published(release(tmp_path, table()))
    frame = table(7)
    keys = {"version": "v2", "scaling": {"from": first.manifest.release}}
    name = release(tmp_path, frame, request=keys)
    later = published(name)
    rows = clipped_rows(later, frame, False)
    assert 0.5 < score(later, later.raw, rows.T @ rows / ROWS, later.manifest.noise) < 1.6
    assert first.whitening is not None
    assert later.whitening is not None
    assert np.array_equal(first.whitening.metric, later.whitening.metric)
    assert later.whitening.pilot is None
    assert np.array_equal(first.root, later.root)  # type: ignore[arg-type]
    assert [each.column for each in later.histograms] == [ROW_LENGTHS, TURNED_LENGTHS]
    of_first, of_later = first.manifest.scaling, later.manifest.scaling
    assert of_first is not None
    assert of_later is not None
    assert (of_later.metric_radius, of_later.pilot) == (of_first.metric_radius, 0.0)
    # The pilot's share is saved.
    assert later.manifest.noise.sd_off_diagonal < 0.95 * first.manifest.noise.sd_off_diagonal
    assert later.manifest.guarantee.mu == pytest.approx(first.manifest.guarantee.mu, rel=1e-6)
    assert any("v1-r1" in each for each in verified(name))


@pytest.mark.slow
def test_another_metric_than_that_of_the_first_release_is_found(tmp_path: Path) -> None:
    first = release(tmp_path, table())
    name = release(tmp_path, None, request={"version": "v2", "scaling": {"from": first}})
    place, bundle = Context.default().archive.release("toy", name), published(name)
    assert bundle.whitening is not None
    changed = bundle.whitening.metric.copy()
    changed[0, 0] *= 2
    for path in place.glob("metric.*"):
        path.unlink()
    for path in place.iterdir():
        path.chmod(0o644)
    write_matrix(place, "metric", changed, bundle.manifest.names)
    write_descriptor(place, release_descriptor(place, bundle.manifest))
    seal(place)
    with raises(families.CONTRADICTION):
        verified(name)


@pytest.mark.slow
def test_releases_of_one_stage_are_followed_by_such_releases(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"scaling": {"kind": "private", "stages": 1}}
    first = release(tmp_path, table(), request=keys)
    name = release(tmp_path, None, request={"version": "v2", "scaling": {"from": first}})
    assert published(first).whitening is None
    assert published(name).whitening is None
    verified(name)


@pytest.mark.slow
def test_after_histograms_alone_a_release_has_its_own_pilot(tmp_path: Path) -> None:
    first = release(tmp_path, table(), request={"mechanism": MECHANISM | {"name": "marginals"}})
    name = release(tmp_path, None, request={"version": "v2", "scaling": {"from": first}})
    bundle = published(name)
    rows = clipped_rows(bundle, table(), False)
    assert bundle.whitening is not None
    assert bundle.whitening.pilot is not None
    assert 0.5 < score(bundle, bundle.raw, rows.T @ rows / ROWS, bundle.manifest.noise) < 1.6
    verified(name)
