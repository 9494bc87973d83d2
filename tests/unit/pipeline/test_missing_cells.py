"""The matrix of missing cells: decided by published counts, one charge, and the same checks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import (
    CARD,
    FURTHER,
    ReleaseBundle,
    read_release,
    release_card,
    release_descriptor,
)
from gramercy.archive.bundles.number_files import (
    GROUP_FILES,
    GroupMatrices,
    write_groups,
    write_matrix,
)
from gramercy.archive.bundles.package import write_descriptor
from gramercy.archive.seal.bundle import seal
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.publish.drawing import release_manifest
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.normalisation import Clip
from tests.support.factories import from_copy, read_plan, run_release, write_request
from tests.support.problems import raises

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
ROWS, PERSONS = 12_000, 3_000
COLUMNS: dict[str, Any] = {
    name: {"lower": -10.0, "upper": 10.0} for name in ("a", "b", "c", "whole")
}
P, HOLES = 5, ("a", "b", "c")
WARD = {"ward": {"levels": ["A", "B"]}}
BY_PERSON = {"privacy_unit": "person", "persons": PERSONS}
MECHANISM = {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6}
FLOATING = MECHANISM | {"arithmetic": "floating-point"}
BUDGET = {"epsilon": 80.0, "delta": 1e-5}


def table() -> pd.DataFrame:
    """Two columns are missing together, where another one is high."""
    rng = np.random.default_rng(5)
    cells = rng.normal(size=(ROWS, 4)) + rng.normal(size=(ROWS, 1))
    cells[np.ix_(rng.random(ROWS) + (cells[:, 3] > 1) > 1.2, [0, 1])] = np.nan
    cells[rng.random(ROWS) < 0.1, 2] = np.nan
    frame = pd.DataFrame(cells, columns=list(COLUMNS))
    frame["ward"] = rng.choice(["A", "B", "C"], ROWS)
    frame["person"] = [f"p{k % PERSONS}" for k in range(ROWS)]
    return frame


def missing_request(
    folder: Path, mechanism: dict[str, Any] | None = None, full: bool = False, **changes: Any
) -> Path:
    """A request with private scaling for the table above; `request` in `changes` adds keys."""
    if not (folder / "table.csv").exists():
        (table().fillna(1.0) if full else table()).to_csv(folder / "table.csv", index=False)
    keys = {"mechanism": mechanism or MECHANISM, "scaling": "private", "estimates": []}
    keys |= changes.pop("request", {})
    facts = {"rows": ROWS, "columns": COLUMNS, "budget": BUDGET, "intercept": True} | changes
    return write_request(folder, request=keys, **facts)


def published(folder: Path, **changes: Any) -> tuple[Path, ReleaseBundle]:
    name = run_release(missing_request(folder, **changes))
    place = Context.default().archive.release("toy", name)
    return place, read_release(place)


def verify(place: Path) -> tuple[str, ...]:
    archive = Context.default().archive
    return verify_release(archive, "toy", place.parent.name, None).checks


def further_rows(bundle: ReleaseBundle, cells: pd.DataFrame, persons: Array | None = None) -> Array:
    """Rows with the indicators of their missing cells, by the plain formula; (rows, columns)."""
    spec, radius = bundle.manifest, bundle.manifest.radius
    assert spec.scaling is not None
    assert spec.scaling.missing_cut is not None
    assert radius is not None
    cut = spec.scaling.missing_cut
    rows = [np.ones(len(cells))]
    for facts in spec.columns:
        assert not isinstance(facts, LevelsFacts)
        clamped = cells[facts.name].clip(facts.lower, facts.upper).to_numpy()
        rows.append(np.nan_to_num((clamped - facts.centre) / facts.scale))
    x = np.array(rows).T
    if spec.metric_radius is not None:
        assert bundle.whitening is not None
        x, radius = x @ bundle.whitening.metric, spec.metric_radius
    x *= np.minimum(1.0, radius / np.linalg.norm(x, axis=1))[:, None] / radius
    m = cells[list(HOLES)].isna().to_numpy().astype(np.float64)
    if persons is not None:
        m *= math.sqrt(PERSONS / ROWS)
        squares = np.bincount(persons, (x**2).sum(axis=1))
        x *= np.minimum(1.0, 1 / np.sqrt(squares))[persons, None]
    m *= np.sqrt(cut / np.maximum((m**2).sum(axis=1), cut))[:, None]
    y = np.concatenate([math.sqrt(cut) * x, m], axis=1)
    if persons is not None:
        squares = np.bincount(persons, (y**2).sum(axis=1))
        y *= np.sqrt(2 * cut / np.maximum(squares, 2 * cut))[persons, None]
    return y


UNITS: dict[str, dict[str, Any]] = {
    "rows": {},
    "add-remove": {"neighbours": "add-remove"},
    "folds": {"request": {"folds": 3}},
    "laplace": {"mechanism": MECHANISM | {"name": "laplace"}},
    "wishart": {"mechanism": FLOATING | {"name": "wishart"}},
    "persons": BY_PERSON,
}


@pytest.mark.parametrize("kind", list(UNITS))
def test_evidence_says_which_cells_are_missing_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Without the noise of counts and of further matrices."""
    place, _ = published(tmp_path, **UNITS[kind])
    assert any("lattice" in each for each in verify(place))
    monkeypatch.setattr(
        "gramercy.mechanisms.sampling.sampler.rounded_gaussian",
        lambda scale, size: np.zeros(size, np.int64),
    )
    keys = {"version": "v2"} | UNITS[kind].get("request", {})
    _, bundle = published(tmp_path, **UNITS[kind] | {"request": keys})
    facts, missing = bundle.manifest, bundle.evidence.missing
    assert missing is not None
    assert [bundle.manifest.names[k] for k in missing.columns] == list(HOLES)
    persons = np.arange(ROWS) % PERSONS if kind == "persons" else None
    y = further_rows(bundle, table(), persons)
    expected = y.T @ y / facts.rows.value
    found = bundle.further["missing"]
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.trace(expected))
    absent = table()[list(HOLES)].isna().to_numpy().astype(float)
    if kind != "persons":
        shares = absent.T @ absent / ROWS
        assert shares[0, 1] > 0.15 > 3 * shares[0, 2]
        np.testing.assert_allclose(missing.together, shares, atol=0.01)
        # A column is high where another one is missing.
        scale, centre = facts.columns[3].scale, facts.columns[3].centre  # type: ignore[union-attr]
        mean = centre + scale * missing.products[4, 0] / missing.products[0, 0]
        own = table()
        assert own["whole"][own["a"].isna()].mean() == pytest.approx(mean, rel=0.2)
        assert mean > own["whole"].mean() + 0.5


def test_one_charge_whether_cells_are_missing_or_not(tmp_path: Path) -> None:
    plan = read_plan(missing_request(tmp_path))
    assert plan.calibration.missing is None
    place, bundle = published(tmp_path)
    facts, calibration = bundle.manifest, calibrate(bundle.manifest)
    assert calibration.missing is not None
    assert calibration.lost is not None
    assert calibration.added is not None
    (charge,) = Context.default().ledger.charges("toy")
    assert charge.guarantee.mu == plan.guarantee.mu == facts.guarantee.mu
    matrices = [calibration.mechanism, calibration.missing]
    mus = [each.guarantee.mu for each in matrices]
    planned = plan.mechanism.guarantee.mu
    assert planned * (1 - 1e-9) < np.hypot(*mus) <= planned * (1 + 1e-15)
    assert mus[1] == pytest.approx(planned * math.sqrt(0.05))
    others = [calibration.added.mu, calibration.lost.guarantee.mu]
    assert plan.guarantee.mu >= np.hypot.reduce([*mus, *others]) * (1 - 1e-15)
    assert facts.calibration.constants["scale_missing"] == calibration.missing.scale
    assert f"{FURTHER['missing']}.parquet" in (place / CARD).read_text()


@pytest.mark.parametrize("name", ["wishart", "k-norm", "matrix-laplace"])
def test_other_mechanisms_spend_no_more_than_planned(tmp_path: Path, name: str) -> None:
    plan = read_plan(missing_request(tmp_path, mechanism=FLOATING | {"name": name}))
    assert plan.spec.scaling is not None
    update = {"present": (0.8, 0.8, 0.9, 1.0), "cut": 1.0, "missing_cut": 2.0}
    spec = plan.spec.model_copy(
        update={
            "scaling": plan.spec.scaling.model_copy(update=update),
            "normalisation": Clip(radius=3.0),
        }
    )
    found = calibrate(spec)
    assert found.missing is not None
    assert found.guarantee == plan.guarantee
    own, planned = found.mechanism.guarantee, plan.mechanism.guarantee
    assert own.delta0 <= planned.delta0
    assert math.hypot(own.mu, found.missing.guarantee.mu) <= planned.mu * (1 + 1e-15)
    assert own.mu > 0.95 * planned.mu


def test_noise_is_that_of_the_stated_scale(tmp_path: Path) -> None:
    """On the diagonal and elsewhere."""
    rng = np.random.default_rng(3)
    names = [f"c{k}" for k in range(12)]
    cells = rng.uniform(-1, 1, size=(ROWS, 12))
    cells[rng.random((ROWS, 12)) < 0.2] = np.nan
    frame = pd.DataFrame(cells, columns=names)
    frame.to_csv(tmp_path / "table.csv", index=False)
    columns = {name: {"lower": -1.0, "upper": 1.0} for name in names}
    _, bundle = published(tmp_path, columns=columns)
    missing, facts = bundle.evidence.missing, bundle.manifest
    assert missing is not None
    assert facts.missing is not None
    assert facts.scaling is not None
    cut = facts.scaling.missing_cut
    assert cut is not None
    absent = np.isnan(cells).astype(float)
    absent *= np.sqrt(cut / np.maximum(absent.sum(axis=1), cut))[:, None]
    noise = missing.together - absent.T @ absent / ROWS
    assert np.sqrt((np.diag(noise) ** 2).mean()) == pytest.approx(
        math.sqrt(2) * missing.sd, rel=0.7
    )
    above = noise[np.triu_indices(12, 1)]
    assert np.sqrt((above**2).mean()) == pytest.approx(missing.sd, rel=0.35)
    scaled = np.nan_to_num(cells) / [each.scale for each in facts.columns]  # type: ignore[union-attr]
    assert bundle.evidence.radius is not None
    lengths = np.sqrt(1 + (scaled**2).sum(axis=1))
    scaled *= np.minimum(1.0, bundle.evidence.radius / lengths)[:, None]
    other = missing.products[1:] - scaled.T @ absent / ROWS
    assert np.sqrt((other**2).mean()) == pytest.approx(missing.products_sd, rel=0.35)


FEW: dict[str, dict[str, Any]] = {
    "no missing cells": {"full": True},
    "one column": {"columns": {name: COLUMNS[name] for name in ("a", "whole")}},
    "no intercept": {"intercept": False},
    "histograms alone": {"mechanism": MECHANISM | {"name": "marginals"}},
}


@pytest.mark.parametrize("kind", list(FEW))
def test_no_other_release_has_missing_cells(tmp_path: Path, kind: str) -> None:
    place, bundle = published(tmp_path, **FEW[kind])
    assert bundle.evidence.missing is None
    assert "missing" not in bundle.further
    assert bundle.manifest.missing is None
    assert not (place / f"{FURTHER['missing']}.npy").exists()
    verify(place)


def test_later_release_with_the_same_constants_has_its_own(tmp_path: Path) -> None:
    """The counts of the earlier release say in which columns cells are missing."""
    _, first = published(tmp_path)
    keys = {"scaling": {"from": first.manifest.release}, "version": "v2"}
    place, scaled = published(tmp_path, request=keys)
    missing = scaled.evidence.missing
    assert missing is not None
    y = further_rows(scaled, table())
    expected = (y.T @ y)[P:, P:] / ROWS
    assert np.abs(missing.together - expected).max() < 8 * missing.sd
    verify(place)


@pytest.mark.parametrize("changes", [{}, BY_PERSON], ids=["rows", "persons"])
def test_every_group_has_its_own(tmp_path: Path, changes: dict[str, Any]) -> None:
    keys = {"by": "ward"}
    place, bundle = published(tmp_path, columns=COLUMNS | WARD, request=keys, **changes)
    verify(place)
    facts, groups = bundle.manifest, bundle.evidence.groups
    total = np.zeros((P + len(HOLES), P + len(HOLES)))
    for k, (name, evidence) in enumerate(groups):
        missing, rows = evidence.missing, facts.groups[k].rows.value
        assert missing is not None
        total += bundle.groups[k].further["missing"] * rows
        if not changes:
            own = table()[(table()["ward"] == ("C" if k == 2 else name)).to_numpy()]
            y = further_rows(bundle, own)
            expected = (y.T @ y)[P:, P:] / rows
            assert np.abs(missing.together - expected).max() < 8 * missing.sd
    whole = bundle.evidence.missing
    assert whole is not None
    mean = total / facts.rows.value
    np.testing.assert_allclose(mean, bundle.further["missing"], rtol=1e-9, atol=1e-12)
    own_missing = groups[0][1].missing
    assert own_missing is not None
    assert whole.sd * facts.rows.value == pytest.approx(
        math.sqrt(3) * own_missing.sd * facts.groups[0].rows.value
    )
    if changes:
        y = further_rows(bundle, table(), np.arange(ROWS) % PERSONS)
        expected = (y.T @ y)[P:, P:] / facts.rows.value
        assert np.abs(whole.together - expected).max() < 8 * whole.sd


def _write_and_seal(place: Path, facts: ReleaseManifest, missing: Array | None = None) -> None:
    for path in place.iterdir():
        path.chmod(0o644)
    if missing is not None:
        write_matrix(place, FURTHER["missing"], missing, facts.further_names("missing"))
    (place / CARD).write_text(release_card(facts), encoding="utf-8", newline="\n")
    write_descriptor(place, release_descriptor(place, facts))
    (place / "SHA256SUMS").unlink()
    seal(place)


def forged(facts: ReleaseManifest, histograms: Any, **scaling: Any) -> ReleaseManifest:
    """A manifest with other facts of its scaling, in which everything else follows from them."""
    assert facts.scaling is not None
    changed = facts.model_copy(update={"scaling": facts.scaling.model_copy(update=scaling)})
    return release_manifest(
        changed,
        release=facts.release,
        published=facts.published,
        row_counts=[facts.rows.observed],
        versions=facts.software,
        histograms=histograms,
    )


FLAWS = (
    "off the lattice",
    "too large",
    "another cut",
    "another cut everywhere",
    "no matrix",
    "other columns everywhere",
    "another share of the budget",
    "another scale",
    "another law",
    "another indicator",
    "another lattice",
)


@pytest.mark.parametrize("flaw", FLAWS)
def test_planted_flaws_are_found(flaw: str) -> None:
    """Even if files, card and seal agree with each other."""
    place, bundle = from_copy(published)
    facts, matrix = bundle.manifest, bundle.further["missing"]
    assert facts.scaling is not None
    assert facts.scaling.missing_cut is not None
    assert facts.missing is not None
    mechanism = calibrate(facts).missing
    assert isinstance(mechanism, Gaussian)
    cut, stated, changed = facts.scaling.missing_cut, facts.missing, facts
    unit = 2 * cut / mechanism.lattice.divisor / facts.rows.value
    identity, missing = np.eye(len(matrix)), None
    if flaw == "off the lattice":
        missing = matrix + 0.4 * unit * identity
    elif flaw == "too large":
        size = np.ceil((2 * cut + 70 * stated.noise.sd_diagonal) / unit)
        missing = matrix + size * unit * identity
    elif flaw == "another cut":
        scaling = facts.scaling.model_copy(update={"missing_cut": 2 * cut})
        changed = facts.model_copy(update={"scaling": scaling})
    elif flaw == "another cut everywhere":
        changed = forged(facts, bundle.histograms, missing_cut=2 * cut)
        missing = 2 * matrix
    elif flaw == "no matrix":
        changed = forged(facts, bundle.histograms, missing_cut=None)
        for path in place.glob(f"{FURTHER['missing']}.*"):
            path.unlink()
    elif flaw == "other columns everywhere":
        present = facts.scaling.present or ()
        changed = forged(facts, bundle.histograms, present=(1.0, *present[1:]))
        missing = np.delete(np.delete(matrix, P, axis=0), P, axis=1)
    elif flaw == "another share of the budget":
        changed = forged(facts, bundle.histograms, lost=1.0001 * facts.scaling.lost)
    elif flaw == "another scale":
        constants = facts.calibration.constants | {"scale_missing": mechanism.scale / 2}
        calibration = facts.calibration.model_copy(update={"constants": constants})
        changed = facts.model_copy(update={"calibration": calibration})
    else:
        update: dict[str, Any] = {
            "another law": {"noise": stated.noise.divided_by(2.0)},
            "another indicator": {"indicator": stated.indicator / 2},
            "another lattice": {
                "lattice": stated.lattice.model_copy(update={"bits": stated.lattice.bits + 1})
            },
        }[flaw]
        changed = facts.model_copy(update={"missing": stated.model_copy(update=update)})
    _write_and_seal(place, changed, missing)
    with raises(families.CONTRADICTION):
        verify(place)


def test_forged_groups_are_found() -> None:
    place, bundle = from_copy(published, columns=COLUMNS | WARD, request={"by": "ward"})
    facts, groups, mechanism = bundle.manifest, bundle.groups, calibrate(bundle.manifest).missing
    assert mechanism is not None
    unit = facts.further_rows["missing"].norm / mechanism.lattice.divisor
    shifted = float(10 * mechanism.lattice.divisor * facts.rows.value)  # from a group to another
    for amounts in ((1e6, 0.0), (0.5, -0.5), (shifted, -shifted)):
        changed = list(groups)
        for k, amount in enumerate(amounts):
            own, rows = groups[k], facts.groups[k].rows.value
            changed_matrix = own.further["missing"] + amount * unit / rows * np.eye(P + len(HOLES))
            further = {**own.further, "missing": changed_matrix}
            changed[k] = GroupMatrices(own.level, own.raw, own.denoised, own.folds, further)
        for path in place.iterdir():
            path.chmod(0o644)
        write_groups(place, facts, changed)
        _write_and_seal(place, facts)
        with raises(families.CONTRADICTION):
            verify(place)


def test_groups_without_missing_cells_are_not_read() -> None:
    place, bundle = from_copy(published, columns=COLUMNS | WARD, request={"by": "ward"})
    for path in place.iterdir():
        path.chmod(0o644)
    (place / GROUP_FILES["missing"]).write_bytes((place / GROUP_FILES["lost"]).read_bytes())
    _write_and_seal(place, bundle.manifest)
    with raises(families.CONTENT):
        read_release(place)


@pytest.mark.parametrize("absent", ["missing_cut", "missing"])
def test_incomplete_facts_are_refused(absent: str) -> None:
    facts = from_copy(published)[1].manifest.model_dump()
    if absent == "missing_cut":
        facts["scaling"]["missing_cut"] = None
    else:
        del facts["missing"]
    with raises(families.INCOMPLETE_FACTS):
        ReleaseManifest.model_validate(facts)


def test_names_of_indicators_are_those_of_no_column(tmp_path: Path) -> None:
    columns = {name: COLUMNS["a"] for name in ("a", "b", "(missing) a")}
    table().rename(columns={"c": "(missing) a"}).to_csv(tmp_path / "table.csv", index=False)
    place, bundle = published(tmp_path, columns=columns)
    names = bundle.manifest.further_names("missing")
    assert len(set(names)) == len(names) == 7
    verify(place)
