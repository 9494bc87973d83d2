"""Draw the noise of a release, and write its files."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.groups_file import GroupMatrices
from gramercy.archive.bundles.release_bundle import (
    published_columns,
    rows_file,
    software_versions,
    write_release,
)
from gramercy.archive.bundles.rows_file import RowWriter, read_rows, rows_per_batch
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.estimators.solvers.certified import solve_within
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.marginals import Marginals
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rowwise import RowWise
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.public_parameters import published_offset, row_normalisation
from gramercy.pipeline.progress import rows_bar
from gramercy.pipeline.publish.accumulation import PrivateCounts, PrivateSums, sum_rows
from gramercy.pipeline.publish.constants_estimation import estimate_constants
from gramercy.pipeline.publish.noisy_sums import draw_noise, require_gram
from gramercy.pipeline.publish.release_manifest import release_manifest
from gramercy.pipeline.publish.report_sum import ReportSum
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.normalisation import Unit
from gramercy.tables.batches import MalformedLines, blocks
from gramercy.tables.formats.source import open_source, verify_unchanged
from gramercy.tables.sums.row_transform import Repairs
from gramercy.tables.sums.streaming import integer_batches

Array = NDArray[np.float64]


def draw_into(
    folder: Path, plan: Plan, data: PrivateSums | PrivateCounts, release: str
) -> PrivateSums | PrivateCounts:
    """Draw the noise of a release that has been charged, and write it into an empty folder.

    Parameters
    ----------
    folder
        A folder in the staging area.
    plan
        The planned release and its mechanism.
    data
        The exact Gram matrix and number of rows, or exact counts for histograms. Private; only
        noisy forms of them are written.
    release
        Id of the release.

    Returns
    -------
    PrivateSums or PrivateCounts
        What was summed last, for the steward's internal record. Private.
    """
    histograms: list[Histogram] = []
    if isinstance(data, PrivateCounts):
        with closing(data.kept):
            plan, histograms = estimate_constants(plan, data)
            if isinstance(plan.mechanism, Marginals):
                manifest = _manifest(plan, release, histograms=histograms)
                write_release(folder, manifest, [], histograms)
                return data
            sums = sum_rows(plan, data.state, data.kept)
        data = PrivateSums(sums, data.fingerprint, data.state)
    mechanism, sums = plan.mechanism, data.sums
    folds, groups = list[Array](), list[GroupMatrices]()
    if isinstance(mechanism, Additive):
        noisy = draw_noise(plan.spec, mechanism, sums)
        manifest = _manifest(plan, release, noisy.fold_rows.tolist(), noisy.part_rows.tolist())
        matrix = noisy.matrix(manifest)
        folds, groups = noisy.folds(manifest), noisy.groups(manifest)
    elif isinstance(mechanism, RowWise):
        manifest = _manifest(plan, release)
        matrix = _publish_rows(folder, plan, mechanism, manifest, data) / manifest.rows.value
    elif isinstance(mechanism, Output):
        manifest = _manifest(plan, release)
        truth = require_gram(sums.gram) / (mechanism.lattice.squared_radius * plan.contract.count)
        matrix = mechanism.perturb(solve_within(truth, mechanism.penalty, mechanism.tolerance))
    else:
        raise families.INTERNAL(
            "Noise of '{mechanism}' cannot be drawn.",
            "This is a defect of Gramercy: please report it.",
            mechanism=mechanism.name,
        )
    write_matrices(folder, manifest, matrix, folds, histograms, groups)
    return data


def average_into(folder: Path, plan: Plan, reports: ReportSum, release: str) -> None:
    """Write the average of reports. They are already noisy, so no noise is drawn."""
    manifest = _manifest(plan, release, sources=reports.sources)
    write_matrices(folder, manifest, reports.total / manifest.rows.value)


def write_matrices(
    folder: Path,
    manifest: ReleaseManifest,
    matrix: Array,
    folds: Sequence[Array] = (),
    histograms: Sequence[Histogram] = (),
    groups: Sequence[GroupMatrices] = (),
) -> None:
    """Write a released matrix with its repaired forms, folds, groups, card and description."""
    law, denoised = manifest.noise, list[Array]()
    unbiased = matrix - law.mean * np.eye(len(matrix)) if law.mean else matrix
    projected = project(unbiased, manifest.trace_bound)
    if law.has_noise:
        bound, rows = manifest.trace_bound, manifest.rows.value
        unit = isinstance(manifest.normalisation, Unit)
        denoised.append(denoise(unbiased, law, bound, rows, unit=unit))
    matrices = [matrix, projected, *denoised, *folds]
    write_release(folder, manifest, matrices, histograms, groups)


def _manifest(
    plan: Plan,
    release: str,
    row_counts: Sequence[float] = (),
    group_counts: Sequence[Sequence[float]] = (),
    sources: Mapping[str, str] | None = None,
    histograms: Sequence[Histogram] = (),
) -> ReleaseManifest:
    """The manifest of a release published today; see `release_manifest`."""
    return release_manifest(
        plan.spec,
        release=release,
        published=datetime.datetime.now(datetime.UTC).date().isoformat(),
        row_counts=row_counts,
        group_counts=group_counts,
        versions=software_versions(),
        sources=sources,
        histograms=histograms,
    )


def _publish_rows(
    folder: Path,
    plan: Plan,
    mechanism: RowWise,
    manifest: ReleaseManifest,
    data: PrivateSums,
) -> Any:
    """Read the table again, publish its rows with noise, and return their noisy Gram matrix."""
    verify_unchanged(data.state, plan.contract.source)
    rows = data.sums.rows
    contract = plan.scaled_contract
    normalisation, lattice = row_normalisation(plan.spec), mechanism.lattice
    repairs, malformed = Repairs.zeros(len(contract.columns)), MalformedLines()
    batches = integer_batches(
        open_source(contract.source),
        contract,
        normalisation,
        lattice,
        repairs,
        malformed,
        keep_malformed=True,
    )
    file, columns = folder / str(rows_file(manifest)), published_columns(manifest)
    offset = np.zeros(1) if manifest.kind == "reports" else published_offset(plan.spec)
    with rows_bar("drawing", plan.contract.rows) as on_rows, RowWriter(file, columns) as writer:
        for q in blocks(batches, rows_per_batch(columns)):
            drawn = mechanism.randomize(q.astype(np.int64)) * np.float64(mechanism.step)
            writer.write(drawn + offset)
            on_rows(q.shape[1])
    verify_unchanged(data.state, plan.contract.source)
    if writer.rows != rows:
        raise wordings.table_changed()
    # Computed from the published rows alone, so that it is post-processing.
    return sum(mechanism.gram(noisy - offset) for noisy in read_rows(file, columns, rows))
