"""All draws of a release with private constants together are as private as its one mu states."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.common.metric import Metric
from gramercy.mechanisms.histograms import ConstantsNoise, HistogramNoise
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.plan.calibration import Calibration
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish import drawing
from gramercy.scaling.chain import ConstantsChain
from gramercy.scaling.whitening import Turning
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.normalisation import Clip
from gramercy.schemas.request_parts import ScalingFacts
from gramercy.tables.counts.binning import Binning
from tests.support.black_box.chain import Replayed, replay_chain, rows_moved, squared_distance
from tests.support.black_box.replay import Tape, patched_sampler
from tests.support.conformance import BOTH
from tests.support.factories import FULL, at_scale, crossed, read_plan, run_release, write_request

Row = tuple[float | None, float | None, float | None, str | None]

N = 40
COLUMNS = {
    "bounded": {"lower": -5.0, "upper": 5.0},
    "unbounded": {},
    "positive": {"lower": 0.0, "upper": 1e4},
    "kind": {"levels": ["a", "b", "c"]},
}
RANKS = {
    "bounded": COLUMNS["bounded"],
    "place": {"from": "unbounded", "transform": "rank"},
    "rank": {"from": "positive", "transform": "rank", "lower": 0.0, "upper": 1e4},
    "kind": COLUMNS["kind"],
}
_RNG = np.random.default_rng(34)
BASE: list[Row] = [
    (float(x), float(y), float(z), str(k))
    for x, y, z, k in zip(
        _RNG.normal(size=N),
        1013 + _RNG.normal(size=N),
        _RNG.lognormal(mean=3, size=N),
        _RNG.choice(["a", "b", "c"], size=N),
        strict=True,
    )
]
# Between which sums differ most.
SOME = ("ordinary", "missing", "at the bounds", "long", "long elsewhere")
FARTHEST = {*SOME, "absent", "many rows", "far out", "far out elsewhere"}
HOSTILE: dict[str, Row] = {
    "ordinary": BASE[0],
    "missing": (None, None, None, None),
    "nan": (math.nan, math.nan, math.nan, "none of them"),
    "infinite": (math.inf, -math.inf, math.inf, "a"),
    "huge": (1e308, -1e308, 1e308, "b"),
    "tiny": (5e-324, -5e-324, 5e-324, "c"),
    "zero": (0.0, 0.0, 0.0, "a"),
    "minus zero": (-0.0, -0.0, -0.0, "a"),
    "at the bounds": (-5.0, 2.0**40, 0.0, "b"),
    "at the other bounds": (5.0, -(2.0**40), 1e4, "c"),
    "far out": (4.99, 1e9, 9999.0, "c"),
    "far out elsewhere": (-4.99, -1e9, 5000.0, None),
    "one missing": (None, 1013.0, 20.0, "a"),
    # Nearly orthogonal, in other bins of every column, and longer than any radius.
    "long": (4.99, 1013.2, 18.0, "a"),
    "long elsewhere": (0.3, 1e9, 25.0, "b"),
}


def parquet(rows: Sequence[Row], persons: Sequence[str] = ()) -> bytes:
    columns: dict[str, Any] = {
        name: pa.array([row[i] for row in rows], pa.string() if name == "kind" else pa.float64())
        for i, name in enumerate(COLUMNS)
    }
    if persons:
        columns["person"] = pa.array(persons)
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def tables(neighbours: str, *, persons: bool = False) -> dict[str, bytes]:
    """Neighbouring tables: they differ in the last row, or in the rows of the last person."""
    common: list[Row] = list(BASE)
    names = [f"p{i // 3}" for i in range(N)]  # three rows for each person

    def table(rows: Sequence[Row]) -> bytes:
        owners = [*names, *["last"] * len(rows)] if persons else ()
        return parquet([*common, *rows], owners)

    changed = {label: table([row]) for label, row in HOSTILE.items()}
    if persons:
        rows = list(HOSTILE.values())
        changed |= {
            "many rows": table(rows * 5),
            "two rows": table([HOSTILE["at the bounds"], HOSTILE["at the other bounds"]]),
        }
    if neighbours == "add-remove" or persons:
        changed["absent"] = table([])
    return changed


def plan_for(
    folder: Path,
    neighbours: str,
    *,
    persons: bool = False,
    folds: int = 1,
    by: str | None = None,
    scaling: dict[str, Any] | None = None,
    columns: Mapping[str, Any] = COLUMNS,
    **mechanism: Any,
) -> Plan:
    facts: dict[str, Any] = {"rows": N + 1, "intercept": True, "neighbours": neighbours}
    if persons:
        facts |= {"privacy_unit": "person", "persons": N // 3 + 2}
    return read_plan(
        write_request(
            folder,
            source="table.parquet",
            columns=dict(columns),
            budget={"epsilon": 1000.0, "delta": 1e-8},
            request={
                "scaling": scaling or {"kind": "private", "share": 0.4},
                "mechanism": {"name": "gaussian", "epsilon": 900.0, "delta": 1e-9} | mechanism,
                "estimates": [],
                "folds": folds,
                "by": by,
            },
            **facts,
        )
    )


def released_constants(folder: Path, neighbours: str, **changes: Any) -> dict[str, Any]:
    """The scaling of a later release, which takes its constants from one of the base table."""
    plan = plan_for(folder, neighbours, **{"name": "marginals"} | changes)
    owners = changes.get("persons", False)
    Path(plan.contract.source).write_bytes(tables(neighbours, persons=owners)["ordinary"])
    rng = np.random.default_rng(34)
    with pytest.MonkeyPatch.context() as patch, patched_sampler(Tape([])):
        patch.setattr(
            sampler, "random_keys", lambda n: rng.integers(1 << 63, size=(2, n)).astype(np.uint64)
        )
        return {"from": run_release(folder / "request.yaml")}


def pairs(neighbours: str, labels: Mapping[str, Any]) -> list[tuple[str, str]]:
    if neighbours == "add-remove":
        return [(label, "absent") for label in labels if label != "absent"]
    return list(itertools.combinations(labels, 2))


def largest_share(
    plan: Plan, folder: Path, changed: Mapping[str, bytes], *, histories: int = 1
) -> float:
    """The largest mu that two neighbours use up, as a share of the charged mu."""
    runs: dict[str, Replayed] = {}
    largest = 0.0
    for label in list(changed)[:histories]:
        history = replay_chain(plan, changed[label], folder).history
        runs = {each: replay_chain(plan, table, folder, history) for each, table in changed.items()}
        expected = [h.tolist() for h in history]
        if any([h.tolist() for h in run.history] != expected for run in runs.values()):
            return math.inf  # a draw does not fit the history: its bins depend on the table
        for one, two in pairs(plan.contract.neighbours, changed):
            largest = max(largest, squared_distance(runs[one], runs[two]))
            if not plan.contract.persons and rows_moved(runs[one], runs[two]) > 2:
                return math.inf  # another row than the changed one
    return math.sqrt(largest) / plan.guarantee.mu


@pytest.fixture(params=[1.2, None], ids=["in the metric", "stopped"])
def decision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float | None:
    """Rows are clipped in the metric of the pilot, or not, regardless of what it shows."""
    root: float | None = request.param
    monkeypatch.setattr(
        Turning,
        "radius",
        lambda turning, *_: None if root is None else root * math.sqrt(len(turning.metric)),
    )
    return root


CASES = (
    "rows",
    "persons",
    "folds",
    "groups",
    "groups of persons",
    "groups, folds",
    "marginals",
    "constants of another release",
    "persons, constants of another release",
    "metric of another release",
    "persons, metric of another release",
    "one stage",
    "ranks",
    "ranks of persons",
    "ranks, groups",
    "ranks, metric of another release",
)


@pytest.mark.parametrize(("case", "neighbours"), crossed(CASES, BOTH))
def test_all_draws_together_are_within_the_charged_mu(
    case: str, neighbours: str, tmp_path: Path
) -> None:
    """Hostile neighbours at equal published history: the charge is nearly attained.

    The noise is small, so that the constants fit the table, and some rows are far longer than the
    radius: then what they lose by clipping moves as far as it may. A row cannot have missing cells
    and be as long in all others, so a matrix of missing cells is nearly attained.
    """
    persons, folds = "persons" in case, 3 if "folds" in case else 1
    by = "kind" if "groups" in case else None
    mechanism = {"name": "marginals"} if case == "marginals" else {}
    scaling = {"kind": "private", "share": 0.4, "stages": 1} if case == "one stage" else None
    columns = RANKS if "ranks" in case else COLUMNS
    if "another release" in case:
        source = "marginals" if "constants" in case else "gaussian"
        scaling = released_constants(
            tmp_path, neighbours, persons=persons, name=source, columns=columns
        )
    plan = plan_for(
        tmp_path,
        neighbours,
        persons=persons,
        folds=folds,
        by=by,
        scaling=scaling,
        columns=columns,
        **mechanism,
    )
    changed = tables(neighbours, persons=persons)
    assert neighbours == "add-remove" or len(pairs(neighbours, changed)) >= 30
    if not FULL and "ranks" not in case and case not in {"rows", "persons"}:
        changed = {label: table for label, table in changed.items() if label in FARTHEST}
    without_pilot = case in ("marginals", "one stage") or "metric of" in case
    assert (plan.calibration.pilot is None) == without_pilot
    assert (plan.released is None) == ("metric of" not in case)
    share = largest_share(plan, tmp_path, changed, histories=at_scale(1, 5))
    assert 0.97 < share <= 1.0


@pytest.mark.parametrize(
    ("case", "neighbours"),
    crossed(["rows", "persons", "folds", "groups", "groups of persons"], BOTH),
)
def test_both_decisions_spend_the_charged_mu(
    case: str, neighbours: str, decision: float | None, tmp_path: Path
) -> None:
    """The pilot and the lengths in its metric are paid for, whether the metric is kept or not."""
    persons, folds, by = "persons" in case, 3 if case == "folds" else 1, None
    if "groups" in case:
        by = "kind"
    plan = plan_for(tmp_path, neighbours, persons=persons, folds=folds, by=by)
    changed = {
        label: table
        for label, table in tables(neighbours, persons=persons).items()
        if label in FARTHEST
    }
    assert 0.95 < largest_share(plan, tmp_path, changed) <= 1.0
    run = replay_chain(plan, changed["ordinary"], tmp_path)
    (scaling,) = (each for each in run.published if isinstance(each, ScalingFacts))
    assert (scaling.metric_radius is None) == (decision is None)


# --- Planted flaws ----------------------------------------------------------------------------


def some_share(folder: Path, neighbours: str = "replace-one") -> float:
    changed, plan = tables(neighbours), plan_for(folder, neighbours)
    labels = [*SOME, *({"absent"} & changed.keys())]
    return largest_share(plan, folder, {label: changed[label] for label in labels})


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The exact counts of the last draw, for flaws that use them."""
    seen: list[Any] = []
    perturb = HistogramNoise.perturb

    def spying(noise: HistogramNoise, counts: Sequence[Any]) -> Any:
        seen[:] = counts
        return perturb(noise, counts)

    monkeypatch.setattr(HistogramNoise, "perturb", spying)
    return seen


def test_unflawed_draws_pass_the_checks_of_flaws(tmp_path: Path, exact: list[Any]) -> None:
    assert 0.9 < some_share(tmp_path) <= 1.0


def test_noise_scaled_by_exact_counts_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perturb = HistogramNoise.perturb

    def scaled(noise: HistogramNoise, counts: Sequence[Any]) -> Any:
        largest = max(float(each.max()) for each in counts)
        return perturb(replace(noise, scale=noise.scale * largest / N), counts)

    monkeypatch.setattr(HistogramNoise, "perturb", scaled)
    assert some_share(tmp_path) == math.inf


def test_radius_from_exact_lengths_is_detected(
    tmp_path: Path, exact: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The radius is the mean length of the rows of the table."""
    clipped = ConstantsChain.clipped

    def by_exact_lengths(chain: ConstantsChain, lengths: Any, sd: float, noise: float) -> Any:
        (counts,) = exact
        mean = float(counts @ np.arange(1, counts.size + 1)) / counts.sum()
        spec = clipped(chain, lengths, sd, noise)
        return spec.model_copy(update={"normalisation": Clip(radius=mean)})

    monkeypatch.setattr(ConstantsChain, "clipped", by_exact_lengths)
    assert some_share(tmp_path) == math.inf


def test_bins_from_exact_counts_are_detected(
    tmp_path: Path, exact: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The constants, and so the bins of the next stage, follow from counts without noise."""
    after = ConstantsChain.after
    monkeypatch.setattr(
        ConstantsChain, "after", lambda chain, counts, sd: after(chain, list(exact), sd / 1000)
    )
    assert some_share(tmp_path) == math.inf


def test_overlapping_histograms_are_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cell is in two bins of its column, as if two grids had not been merged.

    Under replace-one, the check of the public number of rows refuses the table.
    """
    split = Binning.split

    def twice(binning: Binning, counts: Any) -> Any:
        return [each + np.roll(each, each.size // 2) for each in split(binning, counts)]

    monkeypatch.setattr(Binning, "split", twice)
    assert 1.1 < some_share(tmp_path, "add-remove") < math.inf


def test_draws_that_each_spend_the_whole_mu_are_detected(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, "replace-one", epsilon=100.0)
    noise = plan.calibration.constants_noise
    assert noise is not None
    mu = plan.guarantee.mu
    each_full = ConstantsNoise.with_mu(
        len(COLUMNS), Neighbours.REPLACE_ONE, [mu] * len(noise.stages), mu
    )
    flawed = replace(plan.calibration, added=each_full)
    changed = tables("replace-one")
    share = largest_share(
        replace(plan, calibration=flawed), tmp_path, {label: changed[label] for label in SOME}
    )
    assert 0.9 < share <= 1.0  # of what the flawed noise states itself ...
    assert share * flawed.guarantee.mu > 1.4 * mu  # ... which is more than was planned


# --- Planted flaws of the stages in a metric ----------------------------------------------------


@pytest.fixture
def exact_pilot(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The first sum over rows of a release, without noise, for flaws that use it."""
    seen: list[Any] = []
    total = drawing.sum_for_pilot

    def spying(plan: Plan, lattice: Any, *arguments: Any) -> Any:
        result = total(plan, lattice, *arguments)
        seen[:] = [result.gram.astype(np.float64) / lattice.divisor]
        return result

    monkeypatch.setattr(drawing, "sum_for_pilot", spying)
    return seen


def whitening(total: Any) -> Any:
    """A metric of an exact sum."""
    values, vectors = np.linalg.eigh(total / np.trace(total))
    inverse = (vectors / np.sqrt(values + 1e-3)) @ vectors.T
    return (inverse + inverse.T) / 2


def test_metric_of_the_exact_sum_is_detected(
    tmp_path: Path, exact_pilot: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Turning, "metric", property(lambda _: whitening(exact_pilot[0])))
    assert some_share(tmp_path) == math.inf


def test_other_metric_than_the_published_one_is_detected(
    tmp_path: Path, exact_pilot: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundle has the metric of the noisy sum; rows are measured in that of the exact one."""
    near = Metric.near

    class Leaking(Metric):
        @property
        def units(self) -> Any:
            return near(whitening(exact_pilot[0])).units

    monkeypatch.setattr(Metric, "near", lambda matrix: Leaking(near(matrix).matrix))
    monkeypatch.setattr(Turning, "radius", lambda *_: 3.0)
    assert some_share(tmp_path) == math.inf


@pytest.mark.parametrize("flaw", ["radius", "yes or no"])
def test_decision_by_exact_lengths_is_detected(
    flaw: str, tmp_path: Path, exact: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is paid for it: the lengths in the metric are published with noise, and not used."""

    def by_exact_lengths(turning: Turning, *_: Any) -> float | None:
        (counts,) = exact
        if flaw == "radius":
            return float(np.flatnonzero(counts)[-1] + 1)
        return 3.0 if counts[9:].sum() % 2 else None

    monkeypatch.setattr(Turning, "radius", by_exact_lengths)
    assert some_share(tmp_path) == math.inf


def far_out() -> dict[str, bytes]:
    """Neighbours that attain the charge under add-remove."""
    changed = tables("add-remove")
    return {label: changed[label] for label in ("far out", "far out elsewhere", "absent")}


def test_pilot_that_is_not_charged_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarantee = Calibration.guarantee.fget  # type: ignore[attr-defined]
    plan, some = plan_for(tmp_path, "add-remove"), far_out()
    assert 0.99 < largest_share(plan, tmp_path, some) <= 1.0
    without = property(lambda each: guarantee(replace(each, pilot=None)))
    monkeypatch.setattr(Calibration, "guarantee", without)
    assert largest_share(plan, tmp_path, some) > 1.003


def test_pilot_of_rows_outside_of_the_ball_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are clipped at the radius, but not divided by it."""
    total = drawing.sum_for_pilot

    def undivided(plan: Plan, *arguments: Any) -> Any:
        result = total(plan, *arguments)
        return replace(result, gram=result.gram * 2)

    monkeypatch.setattr(drawing, "sum_for_pilot", undivided)
    assert largest_share(plan_for(tmp_path, "add-remove"), tmp_path, far_out()) > 1.02
