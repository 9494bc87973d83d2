"""Numbers of one release that contradict each other are found, and those of intact ones agree."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.archive.seal.bundle import seal
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.publish.drawing import release_manifest, write_matrices
from gramercy.pipeline.verify.agreement import check_agreement
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from tests.support.factories import home_at, run_release, write_request
from tests.support.kinds_of_tables import KINDS, round_bounds
from tests.support.noisy_matrices import goe
from tests.support.private_release import numeric_columns, privately_scaled, scaled_as
from tests.support.problems import raises

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
Rng = np.random.Generator
ROWS, PERSONS = 12_000, 3_000
COLUMNS: dict[str, Any] = {
    "income": {"lower": 0.0, "upper": 1e6},
    "weight": {"lower": -1e4, "upper": 1e4},
    "first": {"lower": -50.0, "upper": 50.0},
    "second": {"lower": -50.0, "upper": 50.0},
    "ward": {"levels": ["A", "B", "C"]},
}
REQUEST: dict[str, Any] = {
    "mechanism": {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6},
    "scaling": "private",
    "estimates": [],
}
BY_PERSON = {"privacy_unit": "person", "persons": PERSONS}


def table() -> pd.DataFrame:
    """In ward B tails are longer and more cells are missing; a tenth of the rows is elsewhere."""
    rng = np.random.default_rng(8)
    ward = rng.choice(["A", "B", "C", "D"], size=ROWS, p=[0.25, 0.35, 0.3, 0.1])
    tails = np.where(ward == "B", 3.0, 1.0)
    common = rng.standard_t(2.5, size=ROWS) * tails
    missing = rng.random(ROWS) < np.where(ward == "B", 0.4, 0.1)
    return pd.DataFrame(
        {
            "income": np.exp(4 + 0.5 * common.clip(-8, 8) + rng.normal(size=ROWS)),
            "weight": 5 * common + rng.normal(size=ROWS),
            "first": np.where(missing, np.nan, rng.normal(size=ROWS) + common.clip(-3, 3)),
            "second": np.where(missing, np.nan, rng.normal(size=ROWS)),
            "ward": ward,
            "person": [f"p{k % PERSONS}" for k in range(ROWS)],
        }
    )


def published(folder: Path, **changes: Any) -> tuple[Path, ReleaseBundle]:
    table().to_csv(folder / "table.csv", index=False)
    keys = REQUEST | changes.pop("request", {})
    facts = {"rows": ROWS, "columns": COLUMNS, "intercept": True}
    budget = {"epsilon": 80.0, "delta": 1e-5}
    name = run_release(write_request(folder, request=keys, budget=budget, **facts | changes))
    place = Context.default().archive.release("toy", name)
    return place, read_release(place)


def verify(place: Path) -> tuple[str, ...]:
    archive = Context.default().archive
    return verify_release(archive, "toy", place.parent.name, None).checks


def reseal(place: Path, bundle: ReleaseBundle) -> None:
    """Write and seal a changed release in which everything else follows from the change."""
    for path in place.iterdir():
        path.chmod(0o644)
        path.unlink()
    facts = bundle.manifest
    manifest = release_manifest(
        facts,
        release=facts.release,
        published=facts.published,
        row_counts=[facts.rows.observed],
        versions=facts.software,
        histograms=bundle.histograms,
    )
    further, whitening = [*bundle.further.values()], bundle.whitening
    write_matrices(place, manifest, bundle.drawn, (), bundle.histograms, (), further, whitening)
    seal(place)


def simulated(
    build: Callable[[int, Rng], Array], rows: int, epsilon: float, rng: Rng, *, whitened: bool
) -> ReleaseBundle | None:
    """An intact release without the pipeline; None if the noise is too large."""
    cells = build(rows, rng)
    columns = numeric_columns(list(zip(*round_bounds(cells), strict=True)))
    scaled = privately_scaled(cells, columns, epsilon, rng, whitened=whitened)
    return None if scaled is None else scaled.bundle(rng)


def test_intact_releases_of_all_kinds_agree() -> None:
    """Of 900 such releases none failed; here one of each kind."""
    checked = 0
    for kind, own in KINDS.items():
        rng = np.random.default_rng(zlib.crc32(kind.encode()))
        first = simulated(own.build, 4000, 2.0, rng, whitened=False)
        if first is not None:
            later = scaled_as(first, own.build(4000, rng), rng)
            for bundle in (first, later.bundle(rng)):
                check_agreement(Path("release"), bundle)
            checked += 1
    assert checked > 20


def series(rows: int, rng: Rng) -> Array:
    """Columns of which neighbours have the correlation .9."""
    return rng.normal(size=(rows, 8)) @ np.linalg.cholesky(
        0.9 ** np.abs(np.subtract.outer(range(8), range(8)))
    )


def heavy_series(rows: int, rng: Rng) -> Array:
    return series(rows, rng) / np.sqrt(rng.chisquare(3, size=(rows, 1)) / 3)


def near_copies(rows: int, rng: Rng) -> Array:
    cells = series(rows, rng)
    cells[:, 3] = cells[:, 2] + 0.01 * rng.normal(size=rows)
    cells[:, 5] = cells[:, 4]
    return cells


CORRELATED = {each.__name__: each for each in (series, heavy_series, near_copies)}


def test_intact_releases_in_a_metric_agree() -> None:
    """Of 500 such releases none failed; here one of each kind."""
    builds = {kind: own.build for kind, own in KINDS.items()} | CORRELATED
    whitened = 0
    for kind, build in builds.items():
        rng = np.random.default_rng(zlib.crc32(kind.encode()))
        bundle = simulated(build, 6000, 4.0, rng, whitened=True)
        if bundle is not None:
            check_agreement(Path("release"), bundle)
            whitened += bundle.root is not None
    assert whitened > 20


@pytest.fixture(scope="module", params=list(CORRELATED))
def turned(request: pytest.FixtureRequest) -> ReleaseBundle:
    """A release that was drawn in the metric of its pilot matrix."""
    build, rng = CORRELATED[request.param], np.random.default_rng(2)
    bundle = simulated(build, 12_000, 4.0, rng, whitened=True)
    assert bundle is not None
    assert bundle.root is not None
    return bundle


@pytest.mark.parametrize("factor", [0.0, 0.6, 1.6])
@pytest.mark.parametrize("what", ["pilot", "drawn"])
def test_scaled_matrices_of_a_metric_are_found(
    turned: ReleaseBundle, what: str, factor: float
) -> None:
    assert turned.whitening is not None
    forged = {what: factor * getattr(turned.whitening, what)}
    find(replace(turned, whitening=replace(turned.whitening, **forged)))


def test_noise_in_place_of_a_pilot_is_found(turned: ReleaseBundle) -> None:
    pilot = calibrate(turned.manifest).pilot
    assert pilot is not None
    assert turned.whitening is not None
    noise = goe(np.random.default_rng(1), len(turned.raw), pilot.noise_of_sum(1))
    find(replace(turned, whitening=replace(turned.whitening, pilot=noise)))


def test_zeros_of_what_a_metric_clips_are_found(turned: ReleaseBundle) -> None:
    find(replace(turned, further={**turned.further, "lost": 0 * turned.further["lost"]}))


@pytest.mark.parametrize("which", [-1, -2])
@pytest.mark.parametrize("moved", [2, -2])
def test_moved_lengths_are_found(turned: ReleaseBundle, which: int, moved: int) -> None:
    """Of rows in the metric and of scaled rows: as if all were longer, or shorter."""
    histograms = list(turned.histograms)
    counts = histograms[which].count
    others = np.zeros(abs(moved), np.int64)
    counts = (
        np.concatenate([others, counts[:-moved]])
        if moved > 0
        else np.concatenate([counts[-moved:], others])
    )
    histograms[which] = replace(histograms[which], count=counts)
    find(replace(turned, histograms=tuple(histograms)))


UNITS: Mapping[str, Any] = {
    "rows": {},
    "add-remove": {"neighbours": "add-remove"},
    "folds": {"request": {"folds": 3}},
    "groups": {"request": {"by": "ward"}},
    "groups and folds": {"request": {"by": "ward", "folds": 2}},
    "persons": BY_PERSON,
    "groups of persons": BY_PERSON | {"request": {"by": "ward"}},
    "no intercept": {"intercept": False},
    "laplace": {"request": {"mechanism": REQUEST["mechanism"] | {"name": "laplace"}}},
    "iid": {"request": {"mechanism": REQUEST["mechanism"] | {"name": "gaussian-iid"}}},
}


@pytest.mark.parametrize("kind", list(UNITS))
def test_intact_releases_agree(tmp_path: Path, kind: str) -> None:
    place, _ = published(tmp_path, **UNITS[kind])
    assert any("agree within their noise" in each for each in verify(place))


def test_malformed_lines_agree(tmp_path: Path) -> None:
    """A fifth of the lines; with groups they stay as rows of missing cells."""
    kept = table().drop(columns="person")
    kept.iloc[: ROWS * 4 // 5].to_csv(tmp_path / "table.csv", index=False)
    with (tmp_path / "table.csv").open("a") as stream:
        stream.write("1,2,3,4,A,6,7\n" * (ROWS // 5))
    for number, keys in enumerate(({}, {"by": "ward"}, {"folds": 2})):
        request = REQUEST | {"version": f"v{number}"} | keys
        budget = {"epsilon": 80.0, "delta": 1e-5}
        facts = {"rows": ROWS, "columns": COLUMNS, "intercept": True, "budget": budget}
        name = run_release(write_request(tmp_path, request=request, **facts))
        verify(Context.default().archive.release("toy", name))


def only_noise(bundle: ReleaseBundle, name: str) -> Array:
    """A further matrix of a table in which nothing is lost or missing."""
    sd = bundle.manifest.further_facts[name].noise.sd_off_diagonal
    return goe(np.random.default_rng(1), len(bundle.further[name]), sd)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ReleaseBundle]:
    """Intact releases, whose numbers are then changed."""
    bundles = dict[str, ReleaseBundle]()
    for kind in ("rows", "persons", "groups"):
        folder = tmp_path_factory.mktemp(kind)
        with home_at(folder / "home"):
            bundles[kind] = published(folder, **UNITS[kind])[1]
    return bundles


def find(bundle: ReleaseBundle) -> None:
    with raises(families.CONTRADICTION):
        check_agreement(Path("release"), bundle)


FLAWS = ("zeros of lost", "more of lost", "zeros of missing", "noise of missing", "more of missing")


@pytest.mark.parametrize("unit", ["rows", "persons"])
@pytest.mark.parametrize("flaw", FLAWS)
def test_changed_further_matrices_are_found(
    releases: Mapping[str, ReleaseBundle], flaw: str, unit: str
) -> None:
    """Although every entry is plausible in size."""
    bundle, (kind, _, name) = releases[unit], flaw.split(" ")
    matrix, norm = bundle.further[name], bundle.manifest.further_rows[name].norm
    forged = {
        "zeros": lambda: 0 * matrix,
        "noise": lambda: only_noise(bundle, name),
        "more": lambda: matrix + 0.2 * norm * np.eye(len(matrix)),
    }[kind]()
    find(replace(bundle, further={**bundle.further, name: forged}))


def test_hidden_missing_cells_are_found(releases: Mapping[str, ReleaseBundle]) -> None:
    bundle = releases["rows"]
    matrix, p = bundle.further["missing"].copy(), len(bundle.raw)
    noise = only_noise(bundle, "missing")
    matrix[p], matrix[:, p] = noise[p], noise[:, p]
    find(replace(bundle, further={**bundle.further, "missing": matrix}))


def test_matrix_of_another_table_is_found(releases: Mapping[str, ReleaseBundle]) -> None:
    """With a quarter of its moments."""
    bundle = releases["rows"]
    assert bundle.whitening is not None
    quarter = replace(bundle.whitening, drawn=bundle.drawn / 4)
    find(replace(bundle, raw=bundle.raw / 4, whitening=quarter))


@pytest.mark.parametrize("what", ["missing", "raw", "rows"])
def test_exchanged_groups_are_found(releases: Mapping[str, ReleaseBundle], what: str) -> None:
    """Although the groups still add up to the table."""
    bundle = releases["groups"]
    facts, groups, stated = bundle.manifest, list(bundle.groups), list(bundle.manifest.groups)
    rows = [each.rows.value for each in stated]
    for k, other in ((0, 1), (1, 0)):
        own, of_other, ratio = bundle.groups[k], bundle.groups[other], rows[other] / rows[k]
        if what == "rows":  # the sums stay
            further = {name: matrix / ratio for name, matrix in own.further.items()}
            groups[k] = replace(own, raw=own.raw / ratio, further=further)
            stated[k] = stated[k].model_copy(update={"rows": facts.groups[other].rows})
        elif what == "raw":
            groups[k] = replace(own, raw=of_other.raw * ratio)
        else:
            further = {**own.further, what: of_other.further[what] * ratio}
            groups[k] = replace(own, further=further)
    manifest = facts.model_copy(update={"groups": tuple(stated)})
    find(replace(bundle, manifest=manifest, groups=tuple(groups)))


def test_verification_compares_published_numbers(tmp_path: Path) -> None:
    """Here nothing else contradicts the zeros."""
    place, bundle = published(tmp_path)
    reseal(place, bundle)
    verify(place)
    reseal(place, replace(bundle, further={**bundle.further, "lost": 0 * bundle.further["lost"]}))
    with raises(families.CONTRADICTION):
        verify(place)
