"""Every planted flaw is detected by one of the project's checks, and correct code by none."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramercy.application.drawing
import gramercy.application.publishing
import gramercy.tables.recipe
import gramercy.tables.streaming
from gramercy import mechanisms
from gramercy.application.accumulation import Collected
from gramercy.application.drawing import draw_into
from gramercy.application.planning import Plan
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import Additive, Noisy
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.wishart import Wishart
from gramercy.tables.repair import repair
from tests.support.black_box.audit import audit, audit_statistics, count_impossible, draws_differ
from tests.support.black_box.likelihood_ratios import log_likelihood_ratio
from tests.support.black_box.outputs import single_outputs, worst_pair
from tests.support.black_box.replay import claimed_share, published_with_frozen_matrix
from tests.support.conformance import CASES, PAIRS, calibrated
from tests.support.factories import at_scale, read_plan, write_request

ROWS, P = 12, 3
HEADER = ",".join(f"c{i}" for i in range(P)) + "\n"
BASE = [[round(x, 2) for x in row] for row in np.random.default_rng(3).normal(size=(ROWS - 1, P))]
# The row that changes, as a line of CSV, in place of the fifth; None where there is no such row.
CHANGES: dict[str, tuple[str, str]] = {
    "orthogonal": ("5,0,0", "0,5,0"),
    "antipodal": ("5,0,0", "-5,0,0"),
    "huge": ("1e308,-1e308,0", "0,5,0"),
    "far out": ("5,5,-5", "0,1e300,0"),
    "missing": (",5,5", "5,0,0"),
    "malformed": ('"open,1,2', "0,0,5"),
    "too wide": ("1,2,3,4", "0,0,5"),
    "smallest": ("5e-324,0,0", "0,5,0"),
}


def lines(changed: str | None) -> str:
    kept = [",".join(map(str, row)) for row in BASE]
    if changed is not None:
        kept.insert(4, changed)
    return HEADER + "\n".join(kept) + "\n"


def planned(folder: Path, name: str, neighbours: str, **normalisation: Any) -> Plan:
    case = CASES[name]
    mechanism = {"name": name, "epsilon": 1.0, "delta": case.delta(1e-6), **case.keys}
    request = {"mechanism": mechanism, "normalisation": case.normalisation, "estimates": []}
    return read_plan(
        write_request(folder, rows=ROWS, neighbours=neighbours, request=request | normalisation)
    )


def largest_share(plan: Plan, folder: Path, *changes: str) -> float:
    """The largest distance of neighbouring tables divided by the claim; above 1 is an alarm."""
    found = []
    for change in changes or CHANGES:
        one, other = CHANGES[change]
        pairs = [(lines(one), lines(other))]
        if plan.contract.neighbours == "add-remove":
            pairs = [(lines(one), lines(None))]
        found += [claimed_share(plan, folder, *pair) for pair in pairs]
    return max(found)


CLOSE = 1 + 1e-6  # rounding, in matrices that were divided and multiplied again


def audit_alarms(mechanism: Any, claim: Guarantee, draws: int) -> list[str]:
    """Alarms of the black-box audit, from single calls alone."""
    pair = worst_pair(mechanism)
    told = [
        log_likelihood_ratio(mechanism, pair, single_outputs(mechanism, given, rows, draws))
        for given, rows in zip((pair.one, pair.other), pair.rows, strict=True)
    ]
    return audit_statistics(*told).alarms(claim)


def impossible_outputs(mechanism: Any) -> int:
    """Count the outputs of one neighbour that are impossible for the other, in 100 draws each."""
    pair, slack = worst_pair(mechanism), mechanism.setting.p
    one, other = (
        single_outputs(mechanism, given, rows, 100).values
        for given, rows in zip((pair.one, pair.other), pair.rows, strict=True)
    )
    return count_impossible(one, pair.one, pair.other, slack) + count_impossible(
        other, pair.other, pair.one, slack
    )


@pytest.fixture(autouse=True)
def warm() -> None:
    """Compute what each process computes once, before checks are timed."""
    calibrated("gaussian", p=2).guarantee.delta(1.0)
    sampler.self_test()
    sampler.rounded_gaussian(1.0, 1 << 15)  # as many as the sampler has machine code for
    sampler.rounded_laplace(1.0, 1 << 15)


@pytest.fixture
def quick() -> Iterator[None]:
    """Each flaw in less than a second of computing, whatever else the machine does.

    Reduced, three: what else this process has threads for computes meanwhile.
    """
    start = time.process_time()
    yield
    assert time.process_time() - start < at_scale(3, 1)


# --- Correct code -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "neighbours"), PAIRS)
def test_correct_code_passes_every_check(name: str, neighbours: str, tmp_path: Path) -> None:
    how = {"normalisation": {"kind": "clip", "radius": 2.0}}
    plans = [planned(tmp_path, name, neighbours)]
    if CASES[name].normalisation == "unit" and name != "wishart":
        plans.append(planned(tmp_path, name, neighbours, **how))
    for plan in plans:
        assert 0.02 < largest_share(plan, tmp_path, *list(CHANGES)[:: at_scale(2, 1)]) <= CLOSE
    mechanism = calibrated(name, p=2, neighbours=neighbours)
    assert draws_differ(mechanism, worst_pair(mechanism))
    assert audit_alarms(mechanism, mechanism.guarantee, at_scale(300, 3000)) == []
    if isinstance(mechanism, Additive):
        assert impossible_outputs(mechanism) == 0


def test_correct_code_publishes_only_the_noisy_matrix(tmp_path: Path) -> None:
    one, other = published_with_frozen_matrix(
        tmp_path, [lines("5,0,0"), lines("1e9,,x")], rows=ROWS
    )
    assert one == other


# --- Noise ------------------------------------------------------------------------------------


def test_wrong_sensitivity_is_detected(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramercy.mechanisms.gaussian.squared_sensitivity", lambda setting: 1.0)
    plan = planned(tmp_path, "gaussian", "replace-one")
    assert largest_share(plan, tmp_path, "orthogonal") == pytest.approx(math.sqrt(2), rel=1e-2)


@dataclass(frozen=True)
class ScaledByTheData(Gaussian):
    """The noise scale depends on the table's own largest entry."""

    def perturb(self, gram: Any, rows: int) -> Noisy:
        most = float(np.abs(gram).max()) / self.lattice.ball / ROWS
        return replace(self, scale=self.scale * max(most, 0.1)).honest(gram, rows)

    def honest(self, gram: Any, rows: int) -> Noisy:
        return Gaussian.perturb(self, gram, rows)


@dataclass(frozen=True)
class Averaged(Gaussian):
    """Averages two draws: half the variance, under the same claim."""

    def _draw(self) -> Any:
        noise = super()._draw()[0] + super()._draw()[0]
        return noise // 2, None


@dataclass(frozen=True)
class CalledPure(Wishart):
    """Wang, Huai and Xu (2018), with their claim."""

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of_pure(1.0)


def test_data_dependent_scale_is_detected(tmp_path: Path, quick: None) -> None:
    plan = planned(tmp_path, "gaussian", "replace-one")
    mechanism = plan.mechanism
    flawed = replace(plan, mechanism=ScaledByTheData(mechanism.setting, mechanism.scale))
    assert largest_share(flawed, tmp_path, "orthogonal") == math.inf


def test_averaged_noise_is_detected(quick: None) -> None:
    honest = calibrated("gaussian", p=1, mu=2.0, epsilon=None)
    assert audit_alarms(Averaged(honest.setting, honest.scale), honest.guarantee, 2000) != []


def test_one_sided_noise_is_detected(quick: None) -> None:
    honest = calibrated("gaussian", p=1)

    @dataclass(frozen=True)
    class Folded(Gaussian):
        def _draw(self) -> Any:
            return np.abs(super()._draw()[0]), None

    assert impossible_outputs(Folded(honest.setting, honest.scale)) > 0


def test_fixed_seed_is_detected(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = calibrated("gaussian", p=2)

    @dataclass(frozen=True)
    class Seeded(Gaussian):
        def perturb(self, gram: Any, rows: int) -> Noisy:
            numbers = np.random.default_rng(0)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("gramercy.mechanisms.sampling.sampler.os.urandom", numbers.bytes)
                return super().perturb(gram, rows)

    flawed = Seeded(honest.setting, honest.scale)
    assert not draws_differ(flawed, worst_pair(flawed))
    assert audit_alarms(flawed, honest.guarantee, 300) != []


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_wishart_noise_claimed_as_pure_is_detected(neighbours: str, quick: None) -> None:
    noise = mechanisms.registry["wishart"].published(
        p=2, n=1000, neighbours=neighbours, epsilon=1.0, delta=0.0, mean="kept"
    )
    assert isinstance(noise, Wishart)
    flawed = CalledPure(noise.setting, noise.scale, noise.dof, noise.kept, noise.failure)
    assert impossible_outputs(flawed) > 0
    assert audit(flawed, worst_pair(flawed), 4000).alarms(flawed.guarantee) != []


# --- Tables -----------------------------------------------------------------------------------


def unguarded(rows: Any, lattice: Any) -> Any:
    """Integer rows without the check that they lie in the ball."""
    return np.rint(np.clip(np.nan_to_num(rows * lattice.cell), -1e9, 1e9))


def test_missing_clipping_is_detected(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, "gaussian", "replace-one")
    monkeypatch.setattr(gramercy.tables.recipe, "normalise", lambda scaled, how: scaled)
    # The lattice takes no row out of the ball, so that this alone does no harm ...
    assert largest_share(plan, tmp_path, "far out", "antipodal") <= CLOSE
    # ... and both together do.
    monkeypatch.setattr(gramercy.tables.recipe, "integer_rows", unguarded)
    assert largest_share(plan, tmp_path, "far out") > 1.5


def test_clipping_that_passes_nan_is_detected(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN length is not above the radius, and missing cells become 0 only afterwards."""

    def careless(cells: Any, columns: Any, repairs: Any, *, intercept: bool = False) -> Any:
        mended = repair(cells, columns, repairs, intercept=intercept)
        mended[np.isnan(cells)] = np.nan
        return mended

    def transparent(scaled: Any, how: Any) -> Any:
        length = np.sqrt((scaled**2).sum(axis=0))
        return np.where(length > 1, scaled / length, scaled)

    plan = planned(tmp_path, "gaussian", "replace-one")
    monkeypatch.setattr(gramercy.tables.recipe, "repair", careless)
    monkeypatch.setattr(gramercy.tables.recipe, "normalise", transparent)
    assert largest_share(plan, tmp_path, "missing") <= CLOSE  # caught by the lattice
    monkeypatch.setattr(gramercy.tables.recipe, "integer_rows", unguarded)
    assert largest_share(plan, tmp_path, "missing") > 1.2


def test_scaling_by_the_largest_row_is_detected(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row lies in the ball, but a long one moves all the others."""
    plan = planned(tmp_path, "gaussian", "replace-one")
    monkeypatch.setattr(
        gramercy.tables.recipe,
        "normalise",
        lambda scaled, how: scaled / np.sqrt((scaled**2).sum(axis=0)).max(),
    )
    CHANGES["long"] = ("5,5,5", "0,0,0")
    try:
        assert largest_share(plan, tmp_path, "long") > 1.2
    finally:
        del CHANGES["long"]


def test_dropping_bad_rows_is_detected(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remaining rows are divided by their own number."""
    plan = planned(tmp_path, "gaussian", "replace-one")
    real, means = (
        gramercy.tables.recipe.Recipe.integers,
        gramercy.application.drawing.release_manifest,
    )
    kept: list[int] = []

    def dropped(*given: Any) -> Any:
        q = real(*given)
        sound = q[:, np.abs(q).sum(axis=0) > 0]
        kept.append(sound.shape[1])
        return np.concatenate([sound, np.zeros((P, q.shape[1] - sound.shape[1]))], axis=1)

    def by_the_rest(*given: Any, **more: Any) -> Any:
        manifest = means(*given, **more)
        rows = manifest.rows.model_copy(update={"value": float(kept[-1])})
        return manifest.model_copy(update={"rows": rows})

    monkeypatch.setattr(gramercy.tables.recipe.Recipe, "integers", dropped)
    monkeypatch.setattr(gramercy.application.drawing, "release_manifest", by_the_rest)
    assert largest_share(plan, tmp_path, "malformed") > 1.0


# --- Rows, one by one -------------------------------------------------------------------------

Batches = Callable[..., Iterator[Any]]


def with_batches(flaw: Callable[[Batches], Batches], monkeypatch: pytest.MonkeyPatch) -> None:
    flawed = flaw(gramercy.tables.streaming.integer_batches)
    monkeypatch.setattr(gramercy.tables.streaming, "integer_batches", flawed)
    monkeypatch.setattr(gramercy.application.drawing, "integer_batches", flawed)


@pytest.mark.parametrize("name", ["rows", "local"])
def test_sorting_rows_by_content_is_detected(
    name: str, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed row takes another position, and all rows between move by one."""

    def flaw(real: Batches) -> Batches:
        def ordered(*given: Any, **more: Any) -> Iterator[Any]:
            for q in real(*given, **more):
                yield q[:, np.argsort(q[0], kind="stable")]

        return ordered

    plan = planned(tmp_path, name, "replace-one")
    assert largest_share(plan, tmp_path, "antipodal", "orthogonal") <= CLOSE
    with_batches(flaw, monkeypatch)
    assert largest_share(plan, tmp_path, "antipodal", "orthogonal") > 1.2


@pytest.mark.parametrize("name", ["rows", "local"])
@pytest.mark.parametrize("change", ["malformed", "too wide"])
def test_malformed_line_that_shifts_rows_is_detected(
    change: str, name: str, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is dropped from its position, and a zero row is appended at the end."""

    def flaw(real: Batches) -> Batches:
        def moved(*given: Any, **more: Any) -> Iterator[Any]:
            batches = list(real(*given, **more | {"in_place": False}))
            found = sum(q.shape[1] for q in batches)
            given[5].rows = 0
            yield from batches
            yield np.zeros((P, ROWS - found))

        return moved

    plan = planned(tmp_path, name, "replace-one")
    assert largest_share(plan, tmp_path, change) <= CLOSE
    with_batches(flaw, monkeypatch)
    assert largest_share(plan, tmp_path, change) > 1.2


# --- What is public ---------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["file", "title"])
def test_quality_report_with_true_values_is_detected(
    where: str, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The true largest entry is written into the bundle: in its own file, or in the card."""

    def reported(folder: Path, plan: Plan, collected: Collected, release: str) -> None:
        draw_into(folder, plan, collected, release)
        truth: Any = collected.sums.gram
        quality = f"largest entry of the true matrix: {float(truth.max()):g}\n"
        file = folder / ("quality.txt" if where == "file" else "CARD.md")
        file.write_text((file.read_text() if file.exists() else "") + quality)

    monkeypatch.setattr(gramercy.application.publishing, "draw_into", reported)
    one, other = published_with_frozen_matrix(tmp_path, [lines("5,0,0"), lines("0,5,0")], rows=ROWS)
    assert one != other
