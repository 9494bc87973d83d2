"""Draw the noise of a release that has been charged, and write its files."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.matrices import GroupMatrices
from gramercy.archive.bundles.release_bundle import (
    published_columns,
    rows_file,
    software_versions,
    write_release,
)
from gramercy.archive.bundles.rows_file import RowWriter, read_rows, rows_per_batch
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.estimators.solvers.certified import solve_within
from gramercy.mechanisms.histograms import Marginals
from gramercy.mechanisms.mechanism import Additive, RowWise
from gramercy.mechanisms.output_perturbation import Output
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.public_parameters import published_offset, row_normalisation
from gramercy.pipeline.progress import rows_bar
from gramercy.pipeline.publish.private_table import (
    PrivateCounts,
    PrivateSums,
    count_cells,
    count_lengths,
    sum_rows,
)
from gramercy.pipeline.publish.release_manifest import release_manifest
from gramercy.pipeline.publish.report_sum import ReportSum
from gramercy.scaling.chain import ConstantsChain
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.tables.batches import MalformedLines, blocks
from gramercy.tables.formats.source import open_source, verify_unchanged
from gramercy.tables.sums.row_transform import Repairs
from gramercy.tables.sums.streaming import Accumulated, integer_batches

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
        unit = manifest.normalisation.unit_rows
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


@dataclass(frozen=True)
class NoisySums:
    """The noisy sums over all parts of a table, which may be published.

    Parameters
    ----------
    sums
        Noisy sums of x x^T over the rows of each part; shape (groups, folds, p, p).
    part_rows
        Noisy numbers of rows, shape (groups, folds), or public sizes of folds.
    fold_rows
        Numbers of rows of all groups, shape (folds,): public sizes, or sums of noisy numbers.
    """

    sums: Array
    part_rows: Array
    fold_rows: Array

    def matrix(self, manifest: ReleaseManifest) -> Array:
        """The second moment of all rows."""
        total: Array = self.sums.sum(axis=(0, 1)) / manifest.rows.value
        return total

    def folds(self, manifest: ReleaseManifest) -> list[Array]:
        """The second moments of the folds, if there are any."""
        of_folds = self.sums.sum(axis=0)
        return [
            matrix / rows.value for matrix, rows in zip(of_folds, manifest.fold_rows, strict=False)
        ]

    def groups(self, manifest: ReleaseManifest) -> list[GroupMatrices]:
        """The second moments of the groups, if there are any."""
        groups = []
        for facts, sums in zip(manifest.groups, self.sums, strict=False):
            raw = sums.sum(axis=0) / facts.rows.value
            folds = [x / rows.value for x, rows in zip(sums, facts.fold_rows, strict=False)]
            denoised = denoised_group(manifest, facts.rows.value, raw)
            groups.append(GroupMatrices(facts.level, raw, denoised, tuple(folds)))
        return groups


def draw_noise(spec: ReleaseSpec, mechanism: Additive, sums: Accumulated) -> NoisySums:
    """Draw independent noise for every part, once.

    Parameters
    ----------
    spec, mechanism
        The planned release and its noise.
    sums
        The exact sums over the parts. Private.
    """
    if len(sums.part_sums) != spec.parts:
        raise wordings.sums_not_as_planned()
    drawn = [mechanism.perturb(require_gram(part.gram), part.rows) for part in sums.part_sums]
    matrices = [each.gram.astype(np.float64) / mechanism.lattice.divisor for each in drawn]
    parts = (spec.groups_count, spec.folds)
    exact = _numbers([part.rows for part in sums.part_sums]).reshape(parts)
    noisy = exact
    if spec.neighbours == "add-remove" or spec.by is not None:
        mean = mechanism.law.mean * mechanism.parameters.p
        noisy = _numbers(
            [
                float(np.trace(matrix)) - mean if each.rows is None else each.rows
                for matrix, each in zip(matrices, drawn, strict=True)
            ]
        ).reshape(parts)
    # A fold is drawn independently of the data: if the number of rows is public, so is its size.
    fold_rows = (exact if spec.neighbours == "replace-one" else noisy).sum(axis=0)
    return NoisySums(np.array(matrices).reshape(*parts, *matrices[0].shape), noisy, fold_rows)


def _numbers(values: Sequence[float]) -> Array:
    return np.array(values, np.float64)


def require_gram(gram: NDArray[Any] | None) -> NDArray[Any]:
    """The Gram matrix of a sum, which exists unless rows are unscaled."""
    if gram is None:
        raise wordings.sums_not_as_planned()
    return gram


def denoised_group(manifest: ReleaseManifest, rows: float, raw: Array) -> Array:
    """The denoised matrix of a group; shape (p, p).

    Parameters
    ----------
    manifest
        The release.
    rows, raw
        The group's noisy number of rows, and its matrix as released.
    """
    law, unit = manifest.group_noise(rows), manifest.normalisation.unit_rows
    bound = manifest.trace_bound
    matrix: Array = denoise(raw, law, bound, rows, unit=unit)
    return matrix


def estimate_constants(plan: Plan, data: PrivateCounts) -> tuple[Plan, list[Histogram]]:
    """Draw the noise of all histograms of a release that has been charged.

    Parameters
    ----------
    plan
        The planned release, whose constants are not known.
    data
        Exact counts over the bins of the first stage. Private.

    Returns
    -------
    Plan
        The plan with the estimated constants and radius.
    list of Histogram
        What to publish: the histograms of all columns for each stage, and those of row lengths.

    Raises
    ------
    TableError
        If the table has changed since its first pass; everything that was charged stays spent.
    """
    noise = plan.calibration.constants_noise
    if noise is None:
        raise wordings.sums_not_as_planned()
    chain, published = ConstantsChain.start(plan.spec), list[Histogram]()
    counts = data.counts
    for stage, law in enumerate(noise.stages):
        if stage > 0:
            counts = count_cells(plan, chain.grids, data.state, data.kept)
        noisy = law.perturb(counts.counts)
        published += chain.histograms(noisy, law.sd)
        chain = chain.after(noisy, law.sd)
    lengths = count_lengths(replace(plan, spec=chain.scaled), data.state, data.kept)
    (noisy_lengths,) = noise.lengths.perturb(lengths.counts)
    published.append(chain.length_histogram(noisy_lengths, noise.lengths.sd))
    spec = chain.clipped(noisy_lengths, noise.lengths.sd, plan.calibration.noise_of_sum(plan.spec))
    return replace(plan, spec=spec), published
