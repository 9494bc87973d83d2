"""Numbers of one release that contradict each other are found, and those of intact ones agree."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
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
from gramercy.pipeline.publish.drawing import denoised_group, release_manifest, write_matrices
from gramercy.pipeline.verify.agreement import check_agreement
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from tests.support.factories import run_release, write_request
from tests.support.kinds_of_tables import KINDS, round_bounds
from tests.support.noisy_matrices import goe
from tests.support.private_release import numeric_columns, privately_scaled, scaled_as
from tests.support.problems import raises

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
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
    counts = [[each.rows.observed] for each in facts.groups]
    manifest = release_manifest(
        facts,
        release=facts.release,
        published=facts.published,
        row_counts=[facts.rows.observed],
        group_counts=counts,
        versions=facts.software,
        histograms=bundle.histograms,
    )
    groups = [
        replace(each, denoised=denoised_group(manifest, own.rows.value, each.raw))
        for each, own in zip(bundle.groups, manifest.groups, strict=True)
    ]
    further = [*bundle.further.values()]
    write_matrices(place, manifest, bundle.raw, (), bundle.histograms, groups, further)
    seal(place)


def test_intact_releases_of_all_kinds_agree() -> None:
    """Of hundreds of seeds none failed; here one of each kind, without the pipeline."""
    checked = 0
    for kind, own in KINDS.items():
        rng = np.random.default_rng(zlib.crc32(kind.encode()))
        cells = own.build(4000, rng)
        bounds = list(zip(*round_bounds(cells), strict=True))
        scaled = privately_scaled(cells, numeric_columns(bounds), 2.0, rng)
        if scaled is not None:
            first = scaled.bundle(rng)
            later = scaled_as(first, own.build(4000, rng), rng)
            for bundle in (first, later.bundle(rng)):
                check_agreement(Path("release"), bundle)
            checked += 1
    assert checked > 20


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
    """A further matrix of a table in which nothing is lost or missing, on its lattice."""
    facts = bundle.manifest
    mechanism = calibrate(facts).further[name]
    unit = facts.further_rows[name].norm / mechanism.lattice.divisor / facts.rows.value
    matrix = bundle.further[name]
    sd = facts.further_facts[name].noise.sd_off_diagonal / unit
    noise: Array = unit * np.rint(goe(np.random.default_rng(1), len(matrix), sd))
    return noise


def without_missing(bundle: ReleaseBundle) -> Array:
    """The matrix of missing cells without those of the first column."""
    facts, matrix, p = bundle.manifest, bundle.further["missing"].copy(), len(bundle.raw)
    noise = only_noise(bundle, "missing")
    matrix[p], matrix[:, p] = noise[p], noise[:, p]
    assert facts.missing is not None
    return matrix


FLAWS = ("zeros of lost", "half of lost", "more of lost", "zeros of missing", "half of missing",
         "noise of missing", "more of missing")  # fmt: skip


@pytest.mark.parametrize("changes", [{}, BY_PERSON], ids=["rows", "persons"])
@pytest.mark.parametrize("flaw", FLAWS)
def test_changed_further_matrices_are_found(
    tmp_path: Path, flaw: str, changes: dict[str, Any]
) -> None:
    """Although every entry is plausible in size, and on the lattice."""
    place, bundle = published(tmp_path, **changes)
    kind, _, name = flaw.split(" ")
    matrix, norm = bundle.further[name], bundle.manifest.further_rows[name].norm
    unit = norm / calibrate(bundle.manifest).further[name].lattice.divisor
    steps = np.rint(0.2 * norm * bundle.manifest.rows.value / unit)
    forged = {
        "zeros": lambda: 0 * matrix,
        "half": lambda: matrix / 2,
        "noise": lambda: only_noise(bundle, name),
        "more": lambda: matrix + steps * unit / bundle.manifest.rows.value * np.eye(len(matrix)),
    }[kind]()
    reseal(place, replace(bundle, further={**bundle.further, name: forged}))
    with raises(families.CONTRADICTION):
        verify(place)


def test_hidden_missing_cells_are_found(tmp_path: Path) -> None:
    place, bundle = published(tmp_path)
    reseal(place, replace(bundle, further={**bundle.further, "missing": without_missing(bundle)}))
    with raises(families.CONTRADICTION):
        verify(place)


def test_matrix_of_another_table_is_found(tmp_path: Path) -> None:
    """With a quarter of its moments."""
    place, bundle = published(tmp_path)
    reseal(place, replace(bundle, raw=bundle.raw / 4))
    with raises(families.CONTRADICTION):
        verify(place)


def test_resealed_release_is_verified_if_nothing_changes(tmp_path: Path) -> None:
    for keys in ({}, {"by": "ward"}):
        place, bundle = published(tmp_path, request=keys)
        reseal(place, bundle)
        verify(place)


@pytest.mark.parametrize("what", ["missing", "raw", "rows"])
def test_exchanged_groups_are_found(tmp_path: Path, what: str) -> None:
    """Although the groups still add up to the table."""
    place, bundle = published(tmp_path, request={"by": "ward"})
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
    reseal(place, replace(bundle, manifest=manifest, groups=tuple(groups)))
    with raises(families.CONTRADICTION):
        verify(place)
