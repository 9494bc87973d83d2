"""The matrix of lost moments: one charge, and the same checks as of the matrix itself."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import gramercy
from gramercy.archive.bundles.bundle_kinds import (
    CARD,
    FURTHER,
    ReleaseBundle,
    read_release,
    release_card,
    release_descriptor,
)
from gramercy.archive.bundles.number_files import GroupMatrices, write_groups, write_matrix
from gramercy.archive.bundles.package import write_descriptor
from gramercy.archive.seal.bundle import seal
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.publish.drawing import release_manifest
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.schemas.normalisation import Clip
from tests.support.caveat_release import seeded_noise
from tests.support.factories import from_copy, read_plan, run_release, write_request
from tests.support.problems import raises

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
ROWS, PERSONS = 12_000, 3_000
COLUMNS: dict[str, Any] = {
    "weight": {"lower": -1e4, "upper": 1e4},
    "income": {"lower": 0.0, "upper": 1e6},
    "age": {"lower": -100.0, "upper": 100.0},
}
WARD = {"ward": {"levels": ["A", "B"]}}
BY_PERSON = {"privacy_unit": "person", "persons": PERSONS}
MECHANISM = {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6}
BUDGET = {"epsilon": 80.0, "delta": 1e-5}


def table() -> pd.DataFrame:
    """Two columns whose tails go together."""
    rng = np.random.default_rng(5)
    common = rng.standard_t(2.5, size=ROWS)
    return pd.DataFrame(
        {
            "weight": 20 * common + 10 * rng.normal(size=ROWS),
            "income": np.exp(6 + 0.4 * common.clip(-4, 4) + 0.6 * rng.normal(size=ROWS)),
            "age": 50 + 10 * rng.normal(size=ROWS),
            "ward": rng.choice(["A", "B", "C"], ROWS),
            "person": [f"p{k % PERSONS}" for k in range(ROWS)],
        }
    )


def lost_request(folder: Path, mechanism: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A request with private scaling for the table above; `request` in `changes` adds keys."""
    if not (folder / "table.csv").exists():
        table().to_csv(folder / "table.csv", index=False)
    keys = {"mechanism": mechanism or MECHANISM, "scaling": "private", "estimates": []}
    keys |= changes.pop("request", {})
    facts = {"rows": ROWS, "columns": COLUMNS, "budget": BUDGET, "intercept": True} | changes
    return write_request(folder, request=keys, **facts)


def published(folder: Path, **changes: Any) -> tuple[Path, ReleaseBundle]:
    name = run_release(lost_request(folder, **changes))
    place = Context.default().archive.release("toy", name)
    return place, read_release(place)


def published_from(folder: Path, **changes: Any) -> tuple[Path, ReleaseBundle]:
    """The same with the constants of an earlier release of histograms alone."""
    unit = {key: changes[key] for key in changes if key not in ("request", "mechanism")}
    name = run_release(lost_request(folder, MECHANISM | {"name": "marginals"}, **unit))
    keys = changes.pop("request", {}) | {"scaling": {"from": name}, "version": "v2"}
    return published(folder, request=keys, **changes)


def verify(place: Path) -> tuple[str, ...]:
    archive = Context.default().archive
    return verify_release(archive, "toy", place.parent.name, None).checks


def scaled_rows(spec: ReleaseSpec, cells: pd.DataFrame) -> Array:
    """The rows with the constants of a release, shape (rows, columns)."""
    rows = [np.ones(ROWS)]
    for facts in spec.columns:
        assert not isinstance(facts, LevelsFacts)
        clamped = cells[facts.name].clip(facts.lower, facts.upper).to_numpy()
        rows.append((clamped - facts.centre) / facts.scale)
    return np.array(rows).T


def lost_moments(rows: Array, bundle: ReleaseBundle, persons: Array | None = None) -> Array:
    """What clipping takes away from rows, by the plain formula: a sum over rows."""
    spec = bundle.manifest
    assert isinstance(spec.normalisation, Clip)
    assert spec.scaling is not None
    assert spec.scaling.cut is not None
    radius, cut = spec.normalisation.length, spec.scaling.cut
    measured, longest = rows, radius
    if spec.scaling.metric_radius is not None:
        assert bundle.whitening is not None
        measured, longest = rows @ bundle.whitening.metric, spec.scaling.metric_radius
    factors = np.minimum(1.0, longest / np.linalg.norm(measured, axis=1))
    lost = rows.copy()
    lost[:, 0] = radius / 2
    largest = cut * radius**2
    if persons is not None:
        lost[:, 0] /= math.sqrt(ROWS / PERSONS)
        length = np.sqrt(np.bincount(persons, ((measured * factors[:, None]) ** 2).sum(axis=1)))
        factors *= np.minimum(1.0, longest / length)[persons]
    lost *= np.sqrt(1 - factors**2)[:, None]
    squares = (lost**2).sum(axis=1)
    lost *= np.minimum(1.0, np.sqrt(largest / np.maximum(squares, 1e-300)))[:, None]
    if persons is not None:
        squares = np.bincount(persons, (lost**2).sum(axis=1))
        lost *= np.minimum(1.0, np.sqrt(largest / np.maximum(squares, 1e-300)))[persons, None]
    total: Array = lost.T @ lost
    return total


UNITS: dict[str, dict[str, Any]] = {
    "rows": {},
    "add-remove": {"neighbours": "add-remove"},
    "folds": {"request": {"folds": 3}},
    "laplace": {"mechanism": MECHANISM | {"name": "laplace"}},
    "persons": BY_PERSON,
    "constants of another release": {},
    "persons, constants of another release": BY_PERSON,
}


@pytest.mark.parametrize("kind", list(UNITS))
def test_evidence_has_what_the_rows_lose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Without the noise of counts and of the matrix of lost moments."""
    monkeypatch.setattr(
        "gramercy.mechanisms.sampling.sampler.rounded_gaussian",
        lambda scale, size: np.zeros(size, np.int64),
    )
    publish = published_from if "another" in kind else published
    place, bundle = publish(tmp_path, **UNITS[kind])
    facts, lost = bundle.manifest, bundle.evidence.lost
    assert lost is not None
    assert facts.scaling is not None
    assert lost.cut == facts.scaling.cut
    persons = np.arange(ROWS) % PERSONS if "persons" in kind else None
    expected = lost_moments(scaled_rows(facts, table()), bundle, persons) / facts.rows.value
    assert np.trace(expected) > 0.001
    np.testing.assert_allclose(lost.matrix, expected, atol=2e-2 * np.trace(expected))
    assert any("lattice" in each for each in verify(place))


@pytest.mark.parametrize("declared", [PERSONS, round(1.2 * PERSONS)], ids=["right", "too many"])
def test_moments_are_of_rows_where_persons_are_clipped(tmp_path: Path, declared: int) -> None:
    """Also where the contract states too many persons, which the counts contradict."""
    changes: dict[str, Any] = BY_PERSON | {"persons": declared}
    with seeded_noise(5):
        _, bundle = published(tmp_path, mechanism=MECHANISM | {"epsilon": 40.0}, **changes)
    evidence = bundle.evidence
    units = table_units(evidence)
    assert units is not None
    means, deviations = table_means(evidence, units), table_deviations(evidence, units)
    age = units.names.index("age")
    assert means.estimate[age] == pytest.approx(50, abs=1)
    assert deviations.estimate[age] == pytest.approx(10, rel=0.1)
    lower, upper = deviations.interval(0.95, "table")
    assert lower[age] - 0.1 < table()["age"].std() < upper[age] + 0.1  # keys are drawn


def test_column_of_levels_and_no_intercept(tmp_path: Path) -> None:
    place, bundle = published(tmp_path, columns=COLUMNS | WARD, intercept=False)
    lost = bundle.evidence.lost
    assert lost is not None
    assert lost.intercept == 0
    assert lost.matrix.shape == (5, 5)
    verify(place)


def test_one_charge_of_one_mu(tmp_path: Path) -> None:
    plan = read_plan(lost_request(tmp_path))
    calibration, scaling = plan.calibration, plan.spec.scaling
    assert calibration.added is not None
    assert calibration.pilot is not None
    assert calibration.lost is not None
    assert scaling is not None
    assert scaling.lost == pytest.approx(
        0.06 * (1 - sum(scaling.stages) - scaling.lengths), rel=1e-12
    )
    drawn = [plan.mechanism, calibration.pilot, calibration.lost]
    mus = [calibration.added.mu, *[each.guarantee.mu for each in drawn]]
    assert np.hypot.reduce(mus) == pytest.approx(plan.guarantee.mu, rel=1e-12)
    assert plan.guarantee.mu >= np.hypot.reduce(mus) * (1 - 1e-15)
    own = plan.guarantee.mu * math.sqrt(scaling.lost)
    assert own * (1 - 1e-9) < calibration.lost.guarantee.mu <= own * (1 + 1e-12)
    assert calibration.constants()["scale_lost"] == calibration.lost.scale
    place, bundle = published(tmp_path)
    (charge,) = Context.default().ledger.charges("toy")
    assert charge.guarantee.mu == plan.guarantee.mu == bundle.manifest.guarantee.mu
    assert bundle.manifest.calibration.constants["scale_lost"] == calibration.lost.scale
    assert f"{FURTHER['lost']}.parquet" in (place / CARD).read_text()


def test_noise_is_that_of_the_stated_scale(tmp_path: Path) -> None:
    """On the diagonal and elsewhere."""
    rng = np.random.default_rng(3)
    names = [f"c{k}" for k in range(12)]
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(ROWS, 12)), columns=names)
    frame.to_csv(tmp_path / "table.csv", index=False)
    columns = {name: {"lower": -1.0, "upper": 1.0} for name in names}
    _, bundle = published(tmp_path, columns=columns)
    lost, facts = bundle.evidence.lost, bundle.manifest
    assert lost is not None
    assert facts.lost is not None
    noise = lost.matrix - lost_moments(scaled_rows(facts, frame), bundle) / ROWS
    assert np.sqrt((np.diag(noise) ** 2).mean()) == pytest.approx(math.sqrt(2) * lost.sd, rel=0.9)
    above = noise[np.triu_indices(13, 1)]
    assert np.sqrt((above**2).mean()) == pytest.approx(lost.sd, rel=0.4)
    assert facts.lost.noise.sd_diagonal == pytest.approx(
        math.sqrt(2) * facts.lost.noise.sd_off_diagonal
    )


def test_one_charge_with_the_constants_of_another_release(tmp_path: Path) -> None:
    """Lengths, pilot and lost moments are paid from the same mu."""
    name = run_release(lost_request(tmp_path, MECHANISM | {"name": "marginals"}))
    keys: dict[str, Any] = {"request": {"scaling": {"from": name}, "version": "v2"}}
    plan = read_plan(lost_request(tmp_path, **keys))
    calibration, scaling = plan.calibration, plan.spec.scaling
    assert calibration.added is not None
    assert calibration.lost is not None
    assert scaling is not None
    assert (scaling.stages, calibration.added.stages) == ((), ())
    assert scaling.lost == pytest.approx(0.06 * (1 - scaling.lengths), rel=1e-12)
    assert calibration.pilot is not None
    drawn = [plan.mechanism, calibration.pilot, calibration.lost]
    mus = [calibration.added.mu, *(each.guarantee.mu for each in drawn)]
    assert np.hypot.reduce(mus) == pytest.approx(plan.guarantee.mu, rel=1e-12)
    assert plan.guarantee.mu >= np.hypot.reduce(mus) * (1 - 1e-15)
    place, bundle = published(tmp_path, **keys)
    charge = Context.default().ledger.charges("toy")[-1]
    assert charge.guarantee.mu == plan.guarantee.mu == bundle.manifest.guarantee.mu
    lengths, _ = bundle.histograms
    assert lengths.sd == calibration.added.lengths.sd
    assert lengths.count.sum() == pytest.approx(ROWS, abs=6 * lengths.sd * lengths.count.size)
    verify(place)
    assert not bundle.marginals


@pytest.mark.parametrize("name", ["gaussian", "gaussian-iid"])
def test_radius_of_a_matrix_with_about_the_same_noise_is_kept(tmp_path: Path, name: str) -> None:
    """So that releases of a series can be compared."""
    mechanism = MECHANISM | {"name": name}
    _, first = published(tmp_path, mechanism=mechanism)
    keys = {"scaling": {"from": first.manifest.release}, "version": "v2"}
    place, second = published(tmp_path, mechanism=mechanism, request=keys)
    assert second.manifest.normalisation == first.manifest.normalisation
    assert second.manifest.columns == first.manifest.columns
    verify(place)


def test_no_other_release_has_lost_moments(tmp_path: Path) -> None:
    """Histograms alone, and noise whose pure guarantee would be lost."""
    _, marginals = published(tmp_path, mechanism=MECHANISM | {"name": "marginals"})
    assert not marginals.further
    assert marginals.manifest.lost is None
    keys = {"scaling": {"from": marginals.manifest.release}, "version": "v2"}
    place, scaled = published(tmp_path, mechanism={"name": "laplace", "epsilon": 8}, request=keys)
    assert scaled.evidence.lost is None
    assert scaled.manifest.guarantee.pure_epsilon is not None
    assert not (place / f"{FURTHER['lost']}.npy").exists()
    verify(place)


@pytest.mark.parametrize("changes", [{}, BY_PERSON], ids=["rows", "persons"])
def test_every_group_has_its_own(tmp_path: Path, changes: dict[str, Any]) -> None:
    keys = {"by": "ward"}
    place, bundle = published(tmp_path, columns=COLUMNS | WARD, request=keys, **changes)
    verify(place)
    facts, groups = bundle.manifest, bundle.evidence.groups
    persons = np.arange(ROWS) % PERSONS
    total = np.zeros((4, 4))
    for k, (name, evidence) in enumerate(groups):
        lost = evidence.lost
        assert lost is not None
        rows = facts.groups[k].rows.value
        total += lost.matrix * rows
        if not changes:
            own = (table()["ward"] == ("C" if k == 2 else name)).to_numpy()
            expected = lost_moments(scaled_rows(facts, table())[own], bundle) / rows
            assert np.abs(lost.matrix - expected).max() < 8 * lost.sd
    whole = bundle.evidence.lost
    assert whole is not None
    np.testing.assert_allclose(total / facts.rows.value, whole.matrix, rtol=1e-9, atol=1e-12)
    assert whole.sd * facts.rows.value == pytest.approx(
        math.sqrt(3) * groups[0][1].lost.sd * facts.groups[0].rows.value  # type: ignore[union-attr]
    )
    if changes:
        expected = lost_moments(scaled_rows(facts, table()), bundle, persons) / facts.rows.value
        assert np.abs(whole.matrix - expected).max() < 8 * whole.sd


def _write_and_seal(place: Path, facts: ReleaseManifest, lost: Array | None = None) -> None:
    for path in place.iterdir():
        path.chmod(0o644)
    if lost is not None:
        write_matrix(place, FURTHER["lost"], lost, facts.names)
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
    "another scale",
    "another law",
    "another intercept",
    "another lattice",
    "another radius",
    "other shares",
)


@pytest.mark.parametrize("publish", [published, published_from])
@pytest.mark.parametrize("flaw", FLAWS)
def test_planted_flaws_are_found(flaw: str, publish: Any) -> None:
    """Even if files, card and seal agree with each other."""
    place, bundle = from_copy(publish)
    facts, moments = bundle.manifest, bundle.further["lost"]
    assert facts.scaling is not None
    assert facts.scaling.cut is not None
    assert facts.lost is not None
    mechanism = calibrate(facts).lost
    assert isinstance(mechanism, Gaussian)
    unit = facts.scaling.cut / mechanism.lattice.divisor / facts.rows.value
    stated, changed = facts.lost, facts
    lost: Array | None = None
    if flaw == "off the lattice":
        lost = moments + 0.4 * unit * np.eye(4)
    elif flaw == "too large":
        size = np.ceil((facts.scaling.cut + 70 * stated.noise.sd_diagonal) / unit)
        lost = moments + size * unit * np.eye(4)
    elif flaw == "another cut":
        scaling = facts.scaling.model_copy(update={"cut": 2 * facts.scaling.cut})
        changed = facts.model_copy(update={"scaling": scaling})
    elif flaw == "another cut everywhere":
        changed = forged(facts, bundle.histograms, cut=2 * facts.scaling.cut)
        lost = 2 * moments
    elif flaw == "other shares":
        changed = forged(facts, bundle.histograms, lost=facts.scaling.lost / 2)
    elif flaw == "another scale":
        constants = facts.calibration.constants | {"scale_lost": mechanism.scale / 2}
        calibration = facts.calibration.model_copy(update={"constants": constants})
        changed = facts.model_copy(update={"calibration": calibration})
    elif flaw == "another law":
        update: dict[str, Any] = {"noise": stated.noise.divided_by(2.0)}
        changed = facts.model_copy(update={"lost": stated.model_copy(update=update)})
    elif flaw == "another intercept":
        update = {"intercept": stated.intercept / 2}
        changed = facts.model_copy(update={"lost": stated.model_copy(update=update)})
    elif flaw == "another lattice":
        lattice = stated.lattice.model_copy(update={"bits": stated.lattice.bits + 1})
        changed = facts.model_copy(update={"lost": stated.model_copy(update={"lattice": lattice})})
    else:
        radius = 2 * facts.normalisation.length  # type: ignore[union-attr]
        changed = facts.model_copy(update={"normalisation": Clip(radius=radius)})
    _write_and_seal(place, changed, lost)
    with raises(families.CONTRADICTION):
        verify(place)


def test_forged_groups_are_found() -> None:
    place, bundle = from_copy(published, columns=COLUMNS | WARD, request={"by": "ward"})
    groups, mechanism = bundle.groups, calibrate(bundle.manifest).lost
    assert mechanism is not None
    assert bundle.manifest.scaling is not None
    assert bundle.manifest.scaling.cut is not None
    unit = bundle.manifest.scaling.cut / mechanism.lattice.divisor
    for amounts in ((1000.0, 0.0), (0.5, -0.5)):
        changed = list(groups)
        for k, amount in enumerate(amounts):
            own = groups[k]
            rows = bundle.manifest.groups[k].rows.value
            moved = {"lost": own.further["lost"] + amount * unit / rows * np.eye(4)}
            changed[k] = GroupMatrices(own.level, own.raw, own.denoised, own.folds, moved)
        for path in place.iterdir():
            path.chmod(0o644)
        write_groups(place, bundle.manifest, changed)
        _write_and_seal(place, bundle.manifest)
        with raises(families.CONTRADICTION):
            verify(place)


def test_groups_without_lost_moments_are_not_read() -> None:
    place, bundle = from_copy(published, columns=COLUMNS | WARD, request={"by": "ward"})
    for path in place.iterdir():
        path.chmod(0o644)
    none = [GroupMatrices(each.level, each.raw, each.denoised) for each in bundle.groups]
    write_groups(place, bundle.manifest, none)
    _write_and_seal(place, bundle.manifest)
    with raises(families.CONTENT):
        read_release(place)


@pytest.mark.parametrize("missing", ["cut", "lost", "share"])
def test_incomplete_facts_are_refused(missing: str) -> None:
    facts = from_copy(published)[1].manifest.model_dump()
    if missing == "cut":
        facts["scaling"]["cut"] = None
    elif missing == "share":
        facts["scaling"]["lost"] = 0.0
    else:
        del facts["lost"]
    with raises(families.INCOMPLETE_FACTS):
        ReleaseManifest.model_validate(facts)


def test_missing_file_is_found() -> None:
    place, bundle = from_copy(published)
    for path in place.iterdir():
        path.chmod(0o644)
    (place / f"{FURTHER['lost']}.npy").unlink()
    (place / "SHA256SUMS").unlink()
    seal(place)
    with raises(families.CONTENT):
        read_release(place)
    assert bundle.further["lost"] is not None


@pytest.mark.parametrize("kind", ["rows", "persons"])
def test_the_mean_weight_is_of_a_row(kind: str) -> None:
    """Of persons too, who have four rows each."""
    place, _ = from_copy(published, **UNITS[kind])
    described = gramercy.open(place.parents[2])["toy/v1-r1"].describe()
    assert described.mean_weight == pytest.approx(0.95, abs=0.1)
