"""Steps of a cumulative series in memory: their public facts, and numbers with seeded noise."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.archive.bundles.number_files import GroupMatrices
from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.publish.drawing import release_manifest
from gramercy.schemas.budget import Budget
from gramercy.schemas.facts import (
    BudgetFacts,
    ColumnFacts,
    CumulativeFacts,
    DatasetFacts,
    EarlierStep,
    LevelsFacts,
)
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.schemas.model import digest
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Clip
from tests.support.noisy_matrices import goe

Array = NDArray[np.float64]

RADIUS = 1.5
MONDAY = datetime.date(2026, 1, 5)


def step_spec(step: int = 2, steps: int = 4, **changes: Any) -> ReleaseSpec:
    """The facts of a step of a series of weeks, of a table of three columns."""
    starts = tuple(MONDAY + k * datetime.timedelta(days=7) for k in range(steps + 1))
    weights = PrefixSums(steps).weights[step - 1, :step]
    facts: dict[str, Any] = {
        "dataset": DatasetFacts(id="toy", title="toy", curator="toy", version="v1", rows=400),
        "columns": tuple(
            ColumnFacts(name=f"c{k}", lower=-5.0, upper=5.0, centre=0.0, scale=5.0)
            for k in range(3)
        ),
        "intercept": True,
        "neighbours": Neighbours.ADD_REMOVE,
        "privacy_unit": "row",
        "normalisation": Clip(radius=RADIUS),
        "mechanism": {"name": "gaussian", "epsilon": 2.0, "delta": 1e-6},
        "budget": BudgetFacts.of(Budget(epsilon=2.0, delta=1e-6)),
        "cumulative": CumulativeFacts(
            every="week",
            starts=starts,
            step=step,
            weights=tuple(weights.tolist()),
            draws=(1,) * step,
            earlier=tuple(
                EarlierStep(release=f"w{k}-r1", sha256=f"{k:064x}") for k in range(1, step)
            ),
        ),
    }
    return ReleaseSpec(**facts | changes)


GROUPED = {"by": LevelsFacts(name="ward", levels=(1.0, 2.0))}


def step_manifest(spec: ReleaseSpec, release: str = "w2-r1") -> ReleaseManifest:
    """A manifest with 300 rows, all in the first group if there are groups."""
    groups = [[300.0], [0.0], [0.0]][: spec.groups_count]
    return release_manifest(
        spec,
        release=release,
        published="2026-11-01",
        row_counts=[300.0],
        group_counts=groups if spec.by else (),
        versions={},
    )


def series_bundles(
    tables: Sequence[Array], rng: np.random.Generator, steps: int, **changes: Any
) -> list[ReleaseBundle]:
    """The first steps of a series, each with the sum over all rows so far.

    `tables`: cells of each step, or of its groups; shape (n, 3) or (groups, n, 3). Noise is of the
    size of the mechanism's, from a seeded generator. `changes`: of facts; see `step_spec`.
    """
    groups = [[_rows(each) for each in np.atleast_3d(table.T).T] for table in tables]
    sums = np.array([[rows.T @ rows for rows in step] for step in groups])
    counts = np.array([[float(len(rows)) for rows in step] for step in groups])
    series, bundles = PrefixSums(steps), list[ReleaseBundle]()
    noise, noise_of_count = _noise_of_step(step_spec(1, steps, **changes))
    encoded = [
        series.encode(sums[: k + 1]) / UNIT
        + np.array([goe(rng, sums.shape[-1], noise) for _ in groups[0]])
        for k in range(len(tables))
    ]
    encoded_counts = [
        series.encode(counts[: k + 1]) / UNIT + noise_of_count * rng.standard_normal(len(groups[0]))
        for k in range(len(tables))
    ]
    for step in range(1, len(tables) + 1):
        spec = step_spec(step, steps, **changes)
        earlier = [EarlierStep(release=f"w{k}", sha256=x.sha256) for k, x in enumerate(bundles, 1)]
        is_public = spec.neighbours.count_is_public
        exact = tuple(counts[:step].sum(axis=1).astype(int).tolist()) if is_public else ()
        facts = {"earlier": tuple(earlier), "rows": exact}
        assert spec.cumulative is not None
        spec = spec.model_copy(update={"cumulative": spec.cumulative.model_copy(update=facts)})
        matrices = UNIT * series.decode_so_far(encoded[:step])
        rows = UNIT * series.decode_so_far(encoded_counts[:step])
        manifest = release_manifest(
            spec,
            release=f"w{step}",
            published="2026-11-01",
            row_counts=[sum(exact) if is_public else rows.sum()],
            group_counts=rows[:, None].tolist() if spec.by else (),
            versions={},
        )
        bundles.append(_bundle(manifest, matrices, digest([step, len(tables), rows.tolist()])))
    return bundles


def _rows(cells: Array) -> Array:
    """Rows of `step_spec`, scaled and clipped, divided by the radius; shape (n, 4)."""
    scaled = np.column_stack([np.ones(len(cells)), np.clip(cells, -5.0, 5.0) / 5])
    return scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), RADIUS)


def _noise_of_step(spec: ReleaseSpec) -> tuple[float, float]:
    """Standard deviations of the noise of what a step publishes, off the diagonal and on a count.

    They are in units of a row, times the weights.
    """
    assert spec.cumulative is not None
    spread = UNIT * PrefixSums(spec.cumulative.steps).spread(spec.cumulative.summed)
    mechanism = calibrate(spec).mechanism
    assert isinstance(mechanism, Gaussian)
    of_count = mechanism.sd_count if spec.publishes_noisy_count else 0.0
    return mechanism.law.sd_off_diagonal / spread, of_count / spread


def _bundle(manifest: ReleaseManifest, sums: Array, sha256: str) -> ReleaseBundle:
    def denoised(matrix: Array, rows: float, law: NoiseLaw) -> Array:
        return denoise(matrix, law, manifest.trace_bound, rows, unit=False)

    raw, groups = sums.sum(axis=0) / manifest.rows.value, []
    for facts, of_group in zip(manifest.groups, sums, strict=False):
        own, rows = of_group / facts.rows.value, facts.rows.value
        repaired = denoised(own, rows, manifest.group_noise(rows))
        groups.append(GroupMatrices(facts.level, own, repaired))
    repaired = denoised(raw, manifest.rows.value, manifest.noise)
    return ReleaseBundle(manifest, raw, repaired, repaired, (), sha256, groups=tuple(groups))
