"""Folds: disjoint parts of the rows, each with noise of its own, at the price of one release."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gramercy.application.accumulation import accumulate
from gramercy.application.calibration import all_rows, rows_facts
from gramercy.application.estimating import make_estimate
from gramercy.application.planning import Plan
from gramercy.application.verification import verify_release
from gramercy.archive.bundle import seal
from gramercy.archive.matrices import write_matrix
from gramercy.archive.package import write_descriptor
from gramercy.archive.release_bundle import ReleaseBundle, read_release, release_descriptor, stems
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.ridge import Ridge
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import BundleError, RequestError
from tests.acceptance.test_03_planted_flaws import CHANGES, CLOSE, ROWS, lines
from tests.support.black_box_audit import played
from tests.support.factories import InTurn, alone, edit_json, plan_of, run_steps, scene, table

BOTH = ("replace-one", "add-remove")


def planned(folder: Path, neighbours: str, name: str = "gaussian", **facts: Any) -> Plan:
    mechanism = {"name": name, "epsilon": 1.0, "delta": 1e-6}
    request = {"mechanism": mechanism, "folds": 3, "estimates": []} | facts.pop("request", {})
    return plan_of(scene(folder, rows=ROWS, neighbours=neighbours, request=request, **facts))


def in_order(parts: list[int]) -> Any:
    """What assigns rows at random, made to say these."""
    left: Iterator[int] = iter(parts)
    return lambda count, size: np.array([next(left) for _ in range(size)])


def moved(plan: Plan, folder: Path, pairs: list[tuple[str, list[int]]]) -> list[float]:
    """How far the matrix of each fold moves before the noise, as a share of the claim."""
    seen = []
    for text, parts in pairs:
        Path(plan.contract.source).write_text(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sampler, "parts", in_order(parts))
            seen.append(played(plan, folder))
    one, other = seen
    assert one.requests == other.requests
    change = np.linalg.norm(one.published - other.published, axis=(1, 2))
    mechanism: Any = plan.mechanism
    shares = change / (mechanism.scale * mechanism.lattice.ball) / mechanism.guarantee.mu
    return [float(share) for share in shares]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", ["gaussian", "gaussian-iid"])
def test_one_row_moves_one_fold(tmp_path: Path, name: str, neighbours: str, change: str) -> None:
    """And no further than the claim says of a release without folds."""
    plan = planned(tmp_path, neighbours, name)
    one, other = CHANGES[change]
    parts = [k * k % 3 for k in range(ROWS)]
    pair = [(lines(one), parts), (lines(other), parts)]
    if neighbours == "add-remove":  # the changed row is the fifth
        pair[1] = (lines(None), parts[:4] + parts[5:])
    shares = moved(plan, tmp_path, pair)
    assert sum(share > 0 for share in shares) <= 1
    assert max(shares) <= CLOSE
    assert change != "orthogonal" or max(shares) > 0.7


def test_places_are_no_folds_where_rows_come_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flaw that random parts are there for: a row that goes moves all that follow."""
    plan = planned(tmp_path, "add-remove")
    monkeypatch.setattr("gramercy.application.accumulation._assign", lambda plan: InTurn(3))
    shares = moved(plan, tmp_path, [(lines("5,0,0"), []), (lines(None), [])])
    assert sum(share > 0 for share in shares) == 3


@pytest.mark.parametrize("neighbours", BOTH)
def test_rows_are_assigned_one_by_one(tmp_path: Path, neighbours: str) -> None:
    """By the sampler; a broken line is assigned like any other."""
    plan = planned(tmp_path, neighbours)
    Path(plan.contract.source).write_text(lines('"open,1,2'))
    asked = []

    def second(count: int, size: int) -> Any:
        asked.append((count, size))
        return np.ones(size, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "parts", second)
        sums = alone(accumulate)(plan).sums
    assert {n for n, _ in asked} == {3}
    assert sum(size for _, size in asked) == ROWS
    assert [part.rows for part in sums.parts] == [0, ROWS, 0]
    assert sums.malformed == 1


def test_parts_are_all_alike() -> None:
    """A false alarm in 1e8 runs; and pairs of neighbours are as likely as any."""

    def looks_alike() -> bool:
        drawn = sampler.parts(7, 140_000)
        pairs = np.bincount(7 * drawn[::2] + drawn[1::2], minlength=49)
        assert drawn.min() == 0
        assert drawn.max() == 6
        return float(stats.chisquare(pairs).pvalue) > 1e-4

    assert looks_alike() or looks_alike()
    assert sampler.parts(1, 5).tolist() == [0] * 5
    with pytest.raises(ValueError, match="count"):
        sampler.parts(0, 5)


def released(folder: Path, **facts: Any) -> tuple[Path, ReleaseBundle]:
    asked = {"mechanism": {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}, "folds": 4}
    name = run_steps(scene(folder, request=asked | facts.pop("request", {}), **facts))
    place = Archive(Home.default().archive).release("toy", name)
    return place, read_release(place)


@pytest.mark.parametrize("normalisation", ["unit", {"kind": "clip", "radius": 2.0}])
@pytest.mark.parametrize("neighbours", BOTH)
def test_a_release_in_folds(tmp_path: Path, neighbours: str, normalisation: Any) -> None:
    table(tmp_path / "table.csv", rows=41)
    place, bundle = released(
        tmp_path, neighbours=neighbours, rows=41, request={"normalisation": normalisation}
    )
    facts = bundle.manifest
    assert len(bundle.folds) == len(bundle.evidence.folds) == 4
    assert sum(part.seen for part in facts.fold_rows) == pytest.approx(facts.rows.seen)
    if neighbours == "replace-one":
        assert {part.status for part in facts.fold_rows} == {"public"}
        assert sum(part.seen for part in facts.fold_rows) == 41
    together = sum(fold.moment * fold.rows for fold in bundle.evidence.folds) / facts.rows.value
    np.testing.assert_allclose(together, bundle.raw, rtol=1e-12)
    assert facts.guarantee.epsilon == pytest.approx(1.0)
    assert "parallel composition" in facts.card["folds"]
    checked = verify_release(Archive(Home.default().archive), "toy", place.parent.name, None)
    assert not checked.unchecked


def test_every_fold_has_the_noise_of_one_release(tmp_path: Path) -> None:
    """Rows with nothing in them: all that is published is noise. Right, and not by 30 %."""
    p = 60
    header = ",".join(f"c{i}" for i in range(p))
    (tmp_path / "table.csv").write_text(header + "\n" + ("," * (p - 1) + "\n") * 40)
    columns = {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(p)}
    _, bundle = released(tmp_path, columns=columns)
    single = plan_of(tmp_path / "request.yaml").mechanism.law
    above = np.triu_indices(p, 1)
    folds = np.array([fold.moment[above] * fold.rows for fold in bundle.evidence.folds])
    ratios = folds.std(axis=1) / single.sd_off_diagonal
    assert np.abs(ratios - 1).max() < 6 / math.sqrt(2 * folds.shape[1])
    assert np.abs(np.corrcoef(folds)[np.triu_indices(4, 1)]).max() < 6 / math.sqrt(folds.shape[1])
    spread = bundle.raw[above].std() / bundle.manifest.noise.sd_off_diagonal
    assert abs(spread - 1) < 6 / math.sqrt(2 * folds.shape[1])
    assert bundle.manifest.noise.sd_off_diagonal == pytest.approx(2 * single.sd_off_diagonal / 40)


def test_cross_validation_by_analysts(tmp_path: Path) -> None:
    """From the release alone, sealed beside it, and verified."""
    place, _ = released(tmp_path)
    archive, name = Archive(Home.default().archive), place.parent.name
    for each in (
        Ridge(penalty="cross-validation"),
        GraphicalLasso(penalty="cross-validation", refit=True),
    ):
        made = make_estimate(archive, "toy", name, each)
        assert made.manifest.tuning["penalty"] in made.tables["tuning"]["penalty"].to_numpy()
    found = verify_release(archive, "toy", name, None)
    assert len([check for check in found.checks if check.startswith("estimate")]) == 2


def test_few_rows_are_counted_without_bias(tmp_path: Path) -> None:
    """Most folds see fewer rows than none; all of them together see what there is."""
    plan = planned(tmp_path, "add-remove", request={"folds": 10})
    mechanism = plan.mechanism
    seen = np.random.default_rng(1).normal(1.0, 30.0, size=(4000, 10))
    totals = [all_rows(rows_facts(plan.asked, mechanism, list(each))).seen for each in seen]
    assert abs(np.mean(totals) - 10) < 6 * 30 * math.sqrt(10 / 4000)
    with pytest.raises(ValueError, match="every fold"):
        rows_facts(plan.asked, mechanism, [1.0])


def resealed(place: Path) -> None:
    for path in place.iterdir():
        path.chmod(0o644)
    (place / "SHA256SUMS").unlink()
    seal(place)


def refusal(place: Path) -> str:
    with pytest.raises(BundleError) as refused:
        verify_release(Archive(Home.default().archive), "toy", place.parent.name, None)
    return str(refused.value)


@pytest.mark.parametrize(("by", "words"), [((10, 0), "folds make"), ((1e6, -1e6), "this large")])
def test_forged_folds_are_found(tmp_path: Path, by: tuple[float, float], words: str) -> None:
    """Also such that they make the same together."""
    place, bundle = released(tmp_path)
    for path in place.iterdir():
        path.chmod(0o644)
    for k, more in enumerate(by):
        forged = bundle.folds[k] + more / bundle.manifest.fold_rows[k].value * np.eye(3)
        write_matrix(place, stems(bundle.manifest)[k - 4], forged, bundle.manifest.names)
    write_descriptor(place, release_descriptor(place, bundle.manifest))
    resealed(place)
    assert words in refusal(place)


@pytest.mark.parametrize("folds", [1, 2, 5, 19, 500])
def test_another_number_of_folds_is_found(tmp_path: Path, folds: int) -> None:
    place, _ = released(tmp_path, neighbours="add-remove")
    edit_json(place / "datapackage.json", lambda facts: facts["dp"].update(folds=folds))
    resealed(place)
    assert refusal(place)


@pytest.mark.parametrize("kept", [1, 3])
def test_folds_that_were_left_out_are_found(tmp_path: Path, kept: int) -> None:
    place, _ = released(tmp_path, neighbours="add-remove")

    def cut(facts: Any) -> None:
        facts["dp"]["fold_rows"] = facts["dp"]["fold_rows"][:kept]

    edit_json(place / "datapackage.json", cut)
    resealed(place)
    assert refusal(place)


@pytest.mark.parametrize("sizes", [(11, 10, 10, 10), (41, 1, -1, 0), (10.5, 10.5, 10, 10), (41,)])
def test_sizes_of_folds_are_those_of_all_rows(tmp_path: Path, sizes: tuple[float, ...]) -> None:
    """They are random, and public where the number of rows is."""
    table(tmp_path / "table.csv", rows=41)
    place, _ = released(tmp_path, rows=41)
    found = [
        {"value": max(1.0, size), "seen": float(size), "status": "public", "sd": 0.0}
        for size in sizes
    ]
    edit_json(place / "datapackage.json", lambda facts: facts["dp"].update(fold_rows=found))
    resealed(place)
    assert refusal(place)


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        ({"name": "ridge", "penalty": "cross-validation"}, "estimates.0.*without folds"),
        ({"name": "discriminant"}, "estimates.0.*no column of levels"),
    ],
)
def test_what_cannot_be_estimated_is_refused_before_it_is_paid_for(
    tmp_path: Path, estimate: Any, words: str
) -> None:
    with pytest.raises(RequestError, match=words):
        planned(tmp_path, "replace-one", request={"folds": 1, "estimates": [estimate]})


def test_another_number_of_folds_is_another_request(tmp_path: Path) -> None:
    plans = [planned(tmp_path, "replace-one", request={"folds": folds}) for folds in (1, 2, 3)]
    assert len({plan.key for plan in plans}) == 3
    assert plans[0].guarantee == plans[2].guarantee
    assert plans[2].law.sd_diagonal == pytest.approx(math.sqrt(3) * plans[0].law.sd_diagonal)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"mechanism": {"name": "laplace", "epsilon": 1.0}}, "'laplace' is not published in folds"),
        ({"mechanism": {"name": "rows", "epsilon": 1.0, "delta": 1e-6}}, "not published in folds"),
        ({"folds": ROWS + 1}, "fewer rows than folds"),
        ({"folds": 0}, "folds"),
        ({"folds": "3"}, "folds"),
    ],
)
def test_what_cannot_be_had_in_folds(tmp_path: Path, asked: Any, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        planned(tmp_path, "replace-one", request={"folds": 3} | asked)
