"""Sealed pools: which releases they take, what they state, and how they are verified."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import gramercy
from gramercy.archive.bundles.bundle_kinds import EstimateBundle
from gramercy.archive.seal.bundle import seal
from gramercy.estimators import registry
from gramercy.estimators.pooled_releases import PooledReleases
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate, make_report, withdraw
from gramercy.pipeline.verify.verification import VerificationResult, verify_release
from gramercy.schemas import families
from tests.support.caveat_release import caveat_request, caveat_table, publish_caveats, seeded_noise
from tests.support.factories import MECHANISM, edit_json, read_plan, run_release, write_request
from tests.support.problems import raises

CLIP = {"normalisation": {"kind": "clip", "radius": 2.0}}


def publish(folder: Path, epsilon: float = 20.0, request: Any = None, **changes: Any) -> str:
    """Publish a release of 40 rows; returns its name."""
    return f"toy/{run_release(write(folder, epsilon, request, **changes))}"


def write(folder: Path, epsilon: float = 20.0, request: Any = None, **changes: Any) -> Path:
    asked = {"mechanism": MECHANISM | {"epsilon": epsilon}} | CLIP | (request or {})
    facts = {"intercept": True, "budget": {"epsilon": 500.0, "delta": 1e-5}}
    return write_request(folder, request=asked, **(facts | changes))


def estimate(*others: str, **settings: Any) -> EstimateBundle:
    """The pool of toy/v1-r1 and others."""
    made = PooledReleases(releases=others, **settings)
    return make_estimate(Context.default(), "toy", "v1-r1", made)


def verify() -> VerificationResult:
    return verify_release(Context.default().archive, "toy", "v1-r1", None)


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """Two releases of one table; the second has less noise."""
    return [publish(tmp_path), publish(tmp_path, 40.0)]


@pytest.mark.slow
def test_a_sealed_pool_has_the_numbers_of_gramercy_pool(two: list[str]) -> None:
    sealed = estimate("toy/v1-r2")
    archive = Context.default().archive
    catalogue = gramercy.open(archive.root)
    releases = [catalogue[name] for name in two]
    pool = gramercy.pool(releases)
    table = sealed.tables["releases"]
    assert table["release"].tolist() == two
    np.testing.assert_allclose(table["weight"], pool.weights, rtol=1e-9)
    np.testing.assert_allclose(sealed.matrices["second_moment"], pool.second_moment, atol=1e-12)
    np.testing.assert_allclose(sealed.matrices["denoised"], pool.evidence.repaired, atol=1e-12)
    errors = sealed.matrices["noise_error"]
    np.testing.assert_allclose(errors, pool.second_moment.noise_error, rtol=1e-9)
    assert (errors < releases[1].second_moment.noise_error.to_numpy()).all()
    assert sealed.manifest.kind == "pooled"
    assert sealed.manifest.sources == {"toy/v1-r2": releases[1].sha256}
    assert sealed.manifest.tuning["noise"] < table["noise"].min()
    means = sealed.tables["columns"].set_index("column")["mean"]
    np.testing.assert_allclose(means, pool.means, rtol=1e-9)
    frames = releases[0].estimates[sealed.manifest.estimate]
    assert list(frames["denoised"].columns) == releases[0].names
    page = make_report(Context.default(), "toy", "v1-r1", [sealed.manifest.estimate]).page
    assert "pool: 2 releases together" in page
    assert "toy/v1-r2" in page
    write_site(Context.default())
    assert sealed.manifest.estimate in (archive.root / "toy/v1-r1/index.html").read_text()
    result = verify()
    words = f"estimate {sealed.manifest.estimate}: recomputed from this release and toy/v1-r2"
    assert words in result.checks
    assert not result.unchecked


@pytest.mark.slow
def test_a_pool_is_in_the_units_of_its_own_release(tmp_path: Path) -> None:
    """Also if another release has other constants and a much larger weight."""
    publish(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    columns = {f"c{j}": {"lower": -9.0, "upper": 9.0, "centre": 1.0, "scale": 3.0} for j in (2, 1)}
    columns |= {"c0": {"lower": -5.0, "upper": 5.0}}
    run_release(write(other, 200.0, id="other", columns=columns))
    sealed = estimate("other/v1-r1", rows="same")
    catalogue = gramercy.open(Context.default().archive.root)
    own, pool = catalogue["toy/v1-r1"], gramercy.pool([*catalogue.values()], rows="same")
    assert sealed.tables["releases"]["weight"].max() > 0.8
    assert pool.names != own.names
    entries = sealed.matrices["second_moment"]
    means = zip(own.evidence.columns[1:], entries[0, 1:] / entries[0, 0], strict=True)
    in_own_units = [c.centre + c.scale * mean for c, mean in means]
    np.testing.assert_allclose(in_own_units, pool.means[own.names[1:]], atol=1e-9)


@pytest.mark.slow
def test_a_pool_says_what_its_releases_say_of_their_columns(tmp_path: Path) -> None:
    """On objects, in the sealed estimate, and in the report."""
    publish_caveats(tmp_path)
    mechanism = {"name": "gaussian", "epsilon": 5.0, "delta": 1e-6}
    path = caveat_request(tmp_path)
    again = yaml.safe_load(path.read_text()) | {"mechanism": mechanism, "estimates": []}
    path.write_text(yaml.safe_dump(again))
    with seeded_noise(6):
        run_release(path)
    catalogue = gramercy.open(Context.default().archive.root)
    releases = [catalogue["toy/v1-r1"], catalogue["toy/v1-r2"]]
    pool = gramercy.pool(releases)
    kinds = pool.warnings.kinds
    assert "sign" in kinds["rare"]
    assert "not at random" in kinds["first"]
    assert "fine" not in kinds
    (of_release,) = (each for each in pool.warnings.of("rare") if each.kind == "sign")
    assert of_release.release in {each.id for each in releases}
    assert of_release.release in str(of_release)
    assert [each.kind for each in pool.warnings if each.column is None] == ["hidden rows"]
    described = pool.describe().columns
    assert described["caveat"].to_dict() == {name: kinds.get(name, "") for name in described.index}
    assert np.isnan(pool.standard_deviations["rare"])
    assert (pool.means.listed()["caveat"] == pool.means.caveats).all()
    truth = caveat_table()[["fine", "first", "second"]]
    for found, value in (
        (pool.means, truth.mean()),
        (pool.standard_deviations, truth.std(ddof=0)),
    ):
        lower, upper = (each[truth.columns] for each in found.interval(0.99, "table"))
        assert ((lower <= value) & (value <= upper)).all()

    sealed = estimate("toy/v1-r2")
    lines = sealed.tables["columns"].set_index("column")["caveat"]
    assert lines.to_dict() == described["caveat"].to_dict()
    assert set(sealed.tables["caveats"]["kind"]) == {each.kind for each in pool.warnings}
    page = make_report(Context.default(), "toy", "v1-r1", [sealed.manifest.estimate]).page
    assert kinds["rare"] in page


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], Any], Any]] = {
    "no sources": (lambda facts: facts["dp"]["sources"].clear(), families.REPLACED),
    "digest": (
        lambda facts: facts["dp"]["sources"].update({"toy/v1-r2": "0" * 64}),
        families.REPLACED,
    ),
    "more sources": (
        lambda facts: facts["dp"]["sources"].update({"toy/v1-r3": "0" * 64}),
        families.CONTRADICTION,
    ),
}
# Facts of an estimate that are compared even where its numbers cannot be recomputed.
NOT_RECOMPUTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "sources": FORGERIES["more sources"][0],
    "dataset": lambda facts: facts["dp"]["dataset"].update(title="Another"),
    "release": lambda facts: facts["dp"].update(release="v9-r1"),
    "title": lambda facts: facts.update(title="Another"),
}


@pytest.mark.slow
def test_verification_names_another_release_that_was_replaced_or_is_missing(
    two: list[str],
) -> None:
    archive, name = Context.default().archive, estimate("toy/v1-r2").manifest.estimate
    place, other = archive.estimate("toy", "v1-r1", name), archive.release("toy", "v1-r2")
    description = (place / "datapackage.json").read_text()
    for forge, problem in FORGERIES.values():
        edit_json(place / "datapackage.json", forge)
        reseal(place)
        with raises(problem):
            verify()
        (place / "datapackage.json").write_text(description)
        reseal(place)
    assert not verify().unchecked
    shutil.move(other, other.parent / "moved")
    result = verify()
    assert f"estimate {name}: names this release" in result.checks
    (notice,) = result.unchecked
    assert notice.code == families.NOT_CHECKED.code
    assert notice.facts == {"estimate": name, "release": "toy/v1-r2"}
    for key, forge in NOT_RECOMPUTED.items():
        edit_json(place / "datapackage.json", forge)
        reseal(place)
        with raises(families.CONTRADICTION) as refused:
            verify()
        assert refused.value.facts["key"] == key
        (place / "datapackage.json").write_text(description)


def reseal(place: Path) -> None:
    for path in place.iterdir():
        path.chmod(0o644)
    seal(place)


@pytest.mark.slow
def test_unknown_withdrawn_and_unsuitable_releases_are_refused(
    two: list[str], tmp_path: Path
) -> None:
    archive = Context.default().archive
    with raises(families.UNKNOWN_RELEASE, release="toy/v1-r3", known=("toy/v1-r2", "toy/v1-r1")):
        estimate("toy/v1-r3")
    with raises(families.POOL):
        estimate("toy/v1-r1")
    with raises(families.POOL):
        estimate("toy/v1-r2", "toy/v1-r2")
    marginals: dict[str, Any] = {"mechanism": MECHANISM | {"name": "marginals"}}
    marginals |= {"scaling": "private", "normalisation": "clip"}
    counts = tmp_path / "counts"
    counts.mkdir()
    run_release(write(counts, request=marginals, id="counts"))
    with raises(families.ESTIMATES, release="counts/v1-r1"):
        estimate("counts/v1-r1")
    sealed = estimate("toy/v1-r2").manifest.estimate
    withdraw(Context.default(), "toy", "v1-r2", "A mistake.")
    with raises(families.POOL, release="toy/v1-r2", reason="A mistake."):
        estimate("toy/v1-r2", level=0.9)
    assert estimate("toy/v1-r2").manifest.estimate == sealed
    assert archive.estimates("toy", "v1-r1") == [sealed]
    (notice,) = verify().unchecked
    assert notice.code == families.NOT_CHECKED.code
    assert notice.facts == {"estimate": sealed, "release": "toy/v1-r2"}


@pytest.mark.slow
def test_pools_are_checked_before_a_charge(tmp_path: Path) -> None:
    publish(tmp_path)

    def plan(*releases: str, same: bool = False, **changes: Any) -> object:
        asked = {"name": "pool", "releases": list(releases), "rows": "same" if same else None}
        keys = {key: changes.pop(key) for key in ("version", "mechanism") if key in changes}
        request = {"version": "v1", "estimates": [asked]} | keys
        return read_plan(write(tmp_path, 30.0, request, **changes))

    with raises(families.UNKNOWN_RELEASE, release="toy/v1-r2", known=("toy/v1-r1",)) as refused:
        plan("toy/v1-r2")
    assert str(refused.value.sentence).startswith("estimates.0: ")
    with raises(families.POOL, first="toy/v2", other="toy/v1-r1"):
        plan("toy/v1-r1", version="v2")
    fewer = {"c0": {"lower": -5.0, "upper": 5.0}}
    with raises(families.POOL, columns=("c1", "c2")):
        plan("toy/v1-r1", id="other", columns=fewer)
    with raises(families.POOL, number="rows"):
        plan("toy/v1-r1", same=True, id="other", rows=41)
    with raises(families.POOL):
        plan("toy/v1-r1", "toy/v1-r1")
    rows = {"name": "rows", "epsilon": 30.0, "delta": 1e-6}
    with raises(families.POOL, release="toy/v2"):
        plan("toy/v1-r1", same=True, version="v2", mechanism=rows)
    noisy = publish(tmp_path, request={"mechanism": rows})
    with raises(families.POOL, release=noisy):
        plan(noisy)
    plan("toy/v1-r1")


@pytest.mark.slow
def test_published_request_is_answered_although_its_pool_was_withdrawn(tmp_path: Path) -> None:
    first = publish(tmp_path)
    asked = {"estimates": [{"name": "pool", "releases": [first]}]}
    second = publish(tmp_path, 30.0, asked)
    withdraw(Context.default(), *first.split("/"), "A mistake.")
    assert publish(tmp_path, 30.0, asked) == second
    with raises(families.POOL, release=first):  # that would be charged
        publish(tmp_path, 31.0, asked)


@pytest.mark.slow
def test_the_difference_of_two_releases_is_sealed_and_verified(two: list[str]) -> None:
    made = registry["difference"].model_validate({"name": "difference", "other": two[1]})
    sealed = make_estimate(Context.default(), "toy", "v1-r1", made)
    opened = gramercy.open(Context.default().archive.root)
    found = opened[two[0]].graph_difference(opened[two[1]]).table()
    stated = sealed.tables["differences"].drop(columns="law")
    assert stated.to_numpy().tolist() == found.to_numpy().tolist()
    assert list(sealed.manifest.sources) == [two[1]]
    assert not verify().unchecked
    same = registry["difference"].model_validate({"name": "difference", "other": two[0]})
    with raises(families.COMPARISON, name=two[0]):
        make_estimate(Context.default(), "toy", "v1-r1", same)
    with raises(families.COMPARISON, name=two[0]):
        opened[two[0]].graph_difference(opened[two[0]])
