"""Every planted flaw is detected by a check, and no check rejects the correct code."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy import mechanisms
from gramercy.common.lattice import Lattice
from gramercy.common.metric import Metric
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.mechanism import Additive, NoisyGram
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.wishart import Wishart
from gramercy.pipeline.plan.calibration import Calibration
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish import charging, drawing
from gramercy.pipeline.publish.private_table import PrivateCounts, PrivateSums
from gramercy.schemas.column import Column
from gramercy.schemas.normalisation import Clip
from gramercy.tables.sums import row_transform, streaming
from tests.support.black_box.audit import audit, audit_statistics, draws_differ, impossible_outputs
from tests.support.black_box.likelihood_ratios import log_likelihood_ratio
from tests.support.black_box.outputs import single_outputs, worst_pair
from tests.support.black_box.replay import claimed_share, published_with_frozen_matrix
from tests.support.conformance import CASES, PAIRS, calibrated
from tests.support.factories import at_scale, read_plan, write_request

ROWS, P = 12, 3
HEADER = ",".join(f"c{i}" for i in range(P)) + "\n"
BASE = [[round(x, 2) for x in row] for row in np.random.default_rng(3).normal(size=(ROWS - 1, P))]
# The changed row, as a line of CSV in the fifth position; None for a row that is absent.
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


def csv_text(changed: str | None) -> str:
    rows = [",".join(map(str, row)) for row in BASE]
    if changed is not None:
        rows.insert(4, changed)
    return HEADER + "\n".join(rows) + "\n"


def plan_for(folder: Path, name: str, neighbours: str, **normalisation: Any) -> Plan:
    case = CASES[name]
    mechanism = {"name": name, "epsilon": 1.0, "delta": case.delta(1e-6), **case.keys}
    request = {"mechanism": mechanism, "normalisation": case.normalisation, "estimates": []}
    return read_plan(
        write_request(folder, rows=ROWS, neighbours=neighbours, request=request | normalisation)
    )


def largest_share(plan: Plan, folder: Path, *changes: str) -> float:
    """The largest distance of neighbouring tables divided by the claim; above 1 is an alarm."""
    shares = []
    for change in changes or CHANGES:
        first, second = CHANGES[change]
        pairs = [(csv_text(first), csv_text(second))]
        if plan.contract.neighbours == "add-remove":
            pairs = [(csv_text(first), csv_text(None))]
        shares += [claimed_share(plan, folder, *pair) for pair in pairs]
    return max(shares)


CLOSE = 1 + 1e-6  # allows for rounding of matrices that are divided and multiplied again


def audit_alarms(mechanism: Any, claim: Guarantee, draws: int) -> list[str]:
    """Alarms of the black-box audit for outputs of single calls."""
    pair = worst_pair(mechanism)
    statistics = [
        log_likelihood_ratio(mechanism, pair, single_outputs(mechanism, table, rows, draws))
        for table, rows in zip((pair.first, pair.second), pair.rows, strict=True)
    ]
    return audit_statistics(*statistics).alarms(claim)


@pytest.fixture(autouse=True)
def caches() -> None:
    """Fill the caches of the process before checks are timed."""
    calibrated("gaussian", p=2).guarantee.delta(1.0)
    sampler.self_test()
    sampler.rounded_gaussian(1.0, 1 << 15)  # from this size on the sampler is compiled
    sampler.rounded_laplace(1.0, 1 << 15)


@pytest.fixture(autouse=True)
def _steps_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flaws are planted there; a test before may have loaded the compiled code that replaces it."""
    monkeypatch.setattr("gramercy.tables.sums.row_transform.is_loaded", lambda _: False)


@pytest.fixture
def quick() -> Iterator[None]:
    """Each flaw is detected in less than a second of computing time (three at reduced scale)."""
    start = time.process_time()
    yield
    assert time.process_time() - start < at_scale(3, 1)


# --- Correct code -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "neighbours"), PAIRS)
def test_correct_code_passes_every_check(name: str, neighbours: str, tmp_path: Path) -> None:
    clip = {"normalisation": {"kind": "clip", "radius": 2.0}}
    plans = [plan_for(tmp_path, name, neighbours)]
    if CASES[name].normalisation == "unit" and name != "wishart":
        plans.append(plan_for(tmp_path, name, neighbours, **clip))
    for plan in plans:
        assert 0.02 < largest_share(plan, tmp_path, *list(CHANGES)[:: at_scale(2, 1)]) <= CLOSE
    mechanism = calibrated(name, p=2, neighbours=neighbours)
    assert draws_differ(mechanism, worst_pair(mechanism))
    assert audit_alarms(mechanism, mechanism.guarantee, at_scale(300, 3000)) == []
    if isinstance(mechanism, Additive):
        assert impossible_outputs(mechanism, worst_pair(mechanism)) == 0


def test_correct_code_publishes_only_the_noisy_matrix(tmp_path: Path) -> None:
    first, second = published_with_frozen_matrix(
        tmp_path, [csv_text("5,0,0"), csv_text("1e9,,x")], rows=ROWS
    )
    assert first == second


# --- Noise ------------------------------------------------------------------------------------


def test_wrong_sensitivity_is_detected(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramercy.mechanisms.gaussian.squared_sensitivity", lambda *_: 1.0)
    plan = plan_for(tmp_path, "gaussian", "replace-one")
    assert largest_share(plan, tmp_path, "orthogonal") == pytest.approx(math.sqrt(2), rel=1e-2)


@dataclass(frozen=True)
class ScaledByTheData(Gaussian):
    """The noise scale depends on the table's own largest entry."""

    def perturb(self, gram: Any, rows: int) -> NoisyGram:
        largest = float(np.abs(gram).max()) / self.lattice.squared_radius / ROWS
        return replace(self, scale=self.scale * max(largest, 0.1)).honest(gram, rows)

    def honest(self, gram: Any, rows: int) -> NoisyGram:
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
        return Guarantee.from_pure(1.0)


def test_data_dependent_scale_is_detected(tmp_path: Path, quick: None) -> None:
    plan = plan_for(tmp_path, "gaussian", "replace-one")
    mechanism = plan.mechanism
    flawed = replace(
        plan, calibration=Calibration(ScaledByTheData(mechanism.parameters, mechanism.scale))
    )
    assert largest_share(flawed, tmp_path, "orthogonal") == math.inf


def test_averaged_noise_is_detected(quick: None) -> None:
    honest = calibrated("gaussian", p=1, mu=2.0, epsilon=None)
    assert audit_alarms(Averaged(honest.parameters, honest.scale), honest.guarantee, 2000) != []


def test_one_sided_noise_is_detected(quick: None) -> None:
    honest = calibrated("gaussian", p=1)

    @dataclass(frozen=True)
    class Folded(Gaussian):
        def _draw(self) -> Any:
            return np.abs(super()._draw()[0]), None

    flawed = Folded(honest.parameters, honest.scale)
    assert impossible_outputs(flawed, worst_pair(flawed)) > 0


def test_fixed_seed_is_detected(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = calibrated("gaussian", p=2)

    @dataclass(frozen=True)
    class Seeded(Gaussian):
        def perturb(self, gram: Any, rows: int) -> NoisyGram:
            numbers = np.random.default_rng(0)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("gramercy.mechanisms.sampling.sampler.os.urandom", numbers.bytes)
                return super().perturb(gram, rows)

    flawed = Seeded(honest.parameters, honest.scale)
    assert not draws_differ(flawed, worst_pair(flawed))
    assert audit_alarms(flawed, honest.guarantee, 300) != []


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_wishart_noise_claimed_as_pure_is_detected(neighbours: str, quick: None) -> None:
    noise = mechanisms.registry["wishart"].published(
        p=2, n=1000, neighbours=neighbours, epsilon=1.0, delta=0.0, mean="kept"
    )
    assert isinstance(noise, Wishart)
    flawed = CalledPure(
        noise.parameters, noise.scale, noise.dof, noise.keeps_mean, noise.target_delta0
    )
    assert impossible_outputs(flawed, worst_pair(flawed)) > 0
    assert audit(flawed, worst_pair(flawed), 4000).alarms(flawed.guarantee) != []


# --- Tables -----------------------------------------------------------------------------------


def unbounded_integers(rows: Any, lattice: Any) -> Any:
    """Integer rows without the check that they are inside the ball."""
    return np.rint(np.clip(np.nan_to_num(rows * lattice.unit_length), -1e9, 1e9))


def test_missing_clipping_is_detected(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for(tmp_path, "gaussian", "replace-one")
    monkeypatch.setattr(row_transform, "normalise", lambda scaled, *_: scaled)
    # The lattice keeps rows inside the ball, so this flaw alone is harmless ...
    assert largest_share(plan, tmp_path, "far out", "antipodal") <= CLOSE
    # ... but not without the lattice.
    monkeypatch.setattr(row_transform, "integer_rows", unbounded_integers)
    assert largest_share(plan, tmp_path, "far out") > 1.5


def test_clipping_that_passes_nan_is_detected(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN length is not above the radius, and missing cells become 0 only afterwards."""

    original = row_transform.repair

    def repair_except_nan(
        cells: Any, columns: Any, repairs: Any, *, intercept: bool, constants: Any
    ) -> Any:
        repaired = original(cells, columns, repairs, intercept=intercept, constants=constants)
        repaired[np.isnan(cells)] = np.nan
        return repaired

    def clip_ignoring_nan(scaled: Any, *_: Any) -> Any:
        length = np.sqrt((scaled**2).sum(axis=0))
        return np.where(length > 1, scaled / length, scaled)

    plan = plan_for(tmp_path, "gaussian", "replace-one")
    monkeypatch.setattr(row_transform, "repair", repair_except_nan)
    monkeypatch.setattr(row_transform, "normalise", clip_ignoring_nan)
    assert largest_share(plan, tmp_path, "missing") <= CLOSE  # caught by the lattice
    monkeypatch.setattr(row_transform, "integer_rows", unbounded_integers)
    assert largest_share(plan, tmp_path, "missing") > 1.2


def test_scaling_by_the_largest_row_is_detected(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row is inside the ball, but a long row changes all the others."""
    plan = plan_for(tmp_path, "gaussian", "replace-one")
    monkeypatch.setattr(
        row_transform,
        "normalise",
        lambda scaled, *_: scaled / np.sqrt((scaled**2).sum(axis=0)).max(),
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
    plan = plan_for(tmp_path, "gaussian", "replace-one")
    integers, release_manifest = (row_transform.RowTransform.integers, drawing.release_manifest)
    valid_counts: list[int] = []

    def without_zero_rows(*arguments: Any) -> Any:
        q = integers(*arguments)
        valid = q[:, np.abs(q).sum(axis=0) > 0]
        valid_counts.append(valid.shape[1])
        return np.concatenate([valid, np.zeros((P, q.shape[1] - valid.shape[1]))], axis=1)

    def divided_by_valid_rows(*arguments: Any, **options: Any) -> Any:
        manifest = release_manifest(*arguments, **options)
        rows = manifest.rows.model_copy(update={"value": float(valid_counts[-1])})
        return manifest.model_copy(update={"rows": rows})

    monkeypatch.setattr(row_transform.RowTransform, "integers", without_zero_rows)
    monkeypatch.setattr(drawing, "release_manifest", divided_by_valid_rows)
    assert largest_share(plan, tmp_path, "malformed") > 1.0


def tied_cells(transform: row_transform.RowTransform, rows: int) -> Any:
    """Rows of which an integer changes between neighbouring doubles; shape (P, 2 rows)."""

    def integers(cells: Any) -> Any:
        return transform.integers(cells[:, None], row_transform.Repairs.zeros(P))[:, 0]

    found = []
    for row in np.random.default_rng(4).normal(size=(rows, P)):
        low, high = row.copy(), row.copy()
        high[0] += 1e-3
        while (middle := (low[0] + high[0]) / 2) not in (low[0], high[0]):
            between = np.array([middle, *row[1:]])
            same = (integers(between) == integers(low)).all()
            low, high = (between, high) if same else (low, between)
        found += [low, high]
    return np.array(found).T


def test_float_product_in_a_metric_is_detected(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row alone is multiplied in another order than a batch, as BLAS does.

    So the integers of a row would depend on which other rows are read with it.
    """
    matrix = np.array([[3.0, 2.7, 2.1], [2.7, 3.1, 2.3], [2.1, 2.3, 2.9]]) / 7
    lattice, clip = Lattice(P, 14), Clip(radius=100.0)
    columns = (Column(lower=-5.0, upper=5.0, centre=0.0, scale=1.0),) * P

    def depends_on_the_batch() -> bool:
        metric = Metric.near(matrix)
        transform = row_transform.RowTransform(columns, False, clip, lattice, None, metric)
        cells = tied_cells(transform, 20)
        repairs = row_transform.Repairs.zeros(P)
        alone = [transform.integers(cells[:, k : k + 1], repairs) for k in range(cells.shape[1])]
        return bool((np.hstack(alone) != transform.integers(cells, repairs)).any())

    def float_product(metric: Metric, scaled: Any) -> Any:
        order = [0, 1, 2] if scaled.shape[1] > 1 else [2, 1, 0]
        return sum(metric.matrix[:, j : j + 1] * scaled[j] for j in order)

    assert not depends_on_the_batch()
    monkeypatch.setattr(Metric, "rows", float_product)
    assert depends_on_the_batch()


# --- Published rows ---------------------------------------------------------------------------

Reader = Callable[..., Iterator[Any]]


def patch_batches(flaw: Callable[[Reader], Reader], monkeypatch: pytest.MonkeyPatch) -> None:
    flawed = flaw(streaming.integer_batches)
    monkeypatch.setattr(streaming, "integer_batches", flawed)
    monkeypatch.setattr(drawing, "integer_batches", flawed)


@pytest.mark.parametrize("name", ["rows", "local"])
def test_sorting_rows_by_content_is_detected(
    name: str, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed row takes another position, and the rows in between move by one."""

    def flaw(batches: Reader) -> Reader:
        def sorted_rows(*arguments: Any, **options: Any) -> Iterator[Any]:
            for q in batches(*arguments, **options):
                yield q[:, np.argsort(q[0], kind="stable")]

        return sorted_rows

    plan = plan_for(tmp_path, name, "replace-one")
    assert largest_share(plan, tmp_path, "antipodal", "orthogonal") <= CLOSE
    patch_batches(flaw, monkeypatch)
    assert largest_share(plan, tmp_path, "antipodal", "orthogonal") > 1.2


@pytest.mark.parametrize("name", ["rows", "local"])
@pytest.mark.parametrize("change", ["malformed", "too wide"])
def test_malformed_line_that_shifts_rows_is_detected(
    change: str, name: str, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is dropped from its position, and a zero row is appended at the end."""

    def flaw(batches: Reader) -> Reader:
        def shifted(*arguments: Any, **options: Any) -> Iterator[Any]:
            all_batches = list(batches(*arguments, **options | {"keep_malformed": False}))
            row_count = sum(q.shape[1] for q in all_batches)
            arguments[5].rows = 0
            yield from all_batches
            yield np.zeros((P, ROWS - row_count))

        return shifted

    plan = plan_for(tmp_path, name, "replace-one")
    assert largest_share(plan, tmp_path, change) <= CLOSE
    patch_batches(flaw, monkeypatch)
    assert largest_share(plan, tmp_path, change) > 1.2


# --- Published files --------------------------------------------------------------------------


@pytest.mark.parametrize("leaking_file", ["quality.txt", "CARD.md"])
def test_quality_report_with_true_values_is_detected(
    leaking_file: str, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The true largest entry is written into the bundle: in its own file, or in the card."""

    def draw_with_quality(
        folder: Path, plan: Plan, private_sums: PrivateSums, release: str
    ) -> PrivateSums | PrivateCounts:
        drawn = drawing.draw_into(folder, plan, private_sums, release)
        true_gram: Any = private_sums.sums.gram
        leak = f"largest entry of the true matrix: {float(true_gram.max()):g}\n"
        file = folder / leaking_file
        file.write_text((file.read_text() if file.exists() else "") + leak)
        return drawn

    monkeypatch.setattr(charging, "draw_into", draw_with_quality)
    first, second = published_with_frozen_matrix(
        tmp_path, [csv_text("5,0,0"), csv_text("0,5,0")], rows=ROWS
    )
    assert first != second
