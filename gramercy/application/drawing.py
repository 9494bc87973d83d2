"""The draw: exact sums, or the rows themselves, and fresh noise become the files of a release."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.application.accumulation import Collected
from gramercy.application.gathering import Gathered
from gramercy.application.planning import Plan, in_force
from gramercy.application.progress import rows_bar
from gramercy.application.public_parameters import normalised, shift
from gramercy.application.release_manifest import release_manifest
from gramercy.archive.release_bundle import published_columns, rows_file, software, write_release
from gramercy.archive.rows_file import RowWriter, read_rows
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.estimators.solvers.certified import solve_within
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rowwise import RowWise
from gramercy.schemas.errors import StepFailed
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.tables.blocks import blocks
from gramercy.tables.csv_reader import Malformed
from gramercy.tables.persons import changed
from gramercy.tables.repair import Repairs
from gramercy.tables.source import open_source
from gramercy.tables.streaming import Accumulated, integer_batches
from gramercy.tables.unchanged import hold_to

Array = NDArray[np.float64]

_CELLS = 1 << 20  # of published rows at once


def draw_into(folder: Path, plan: Plan, collected: Collected, release: str) -> None:
    """Draw the noise of a release whose charge is on record, and write it into an empty folder.

    Parameters
    ----------
    folder
        Staged, not yet visible.
    plan
        What was asked for, and its mechanism.
    collected
        The exact Gram matrix and number of rows. Private; only noisy forms of them are written.
    release
        Its id.
    """
    mechanism, sums = plan.mechanism, collected.sums
    folds: list[Array] = []
    if isinstance(mechanism, Additive):
        manifest, matrix, folds = _noisy_sum(plan, mechanism, sums, release)
    elif isinstance(mechanism, RowWise):
        manifest = _manifest(plan, release)
        matrix = _rows_into(folder, plan, mechanism, manifest, collected) / manifest.rows.value
    elif isinstance(mechanism, Output):
        manifest = _manifest(plan, release)
        truth = _known(sums.gram) / (mechanism.lattice.ball * plan.contract.count)
        matrix = mechanism.perturb(solve_within(truth, mechanism.penalty, mechanism.tolerance))
    else:
        raise StepFailed(f"{mechanism.name}: nothing knows how to draw it.")
    write_matrices(folder, manifest, matrix, folds)


def _noisy_sum(
    plan: Plan, mechanism: Additive, sums: Accumulated, release: str
) -> tuple[ReleaseManifest, Array, list[Array]]:
    """The noisy second moment, divided by what is public of the number of rows or noisy itself.

    Of folds, which every one has noise of its own, what they make together, and each of them.
    """
    if len(sums.parts) != plan.request.folds:
        raise StepFailed("draw: the sums are not those of the folds that were asked for.")
    drawn = [mechanism.perturb(_known(part.gram), part.rows) for part in sums.parts]
    matrices = [each.gram.astype(np.float64) / mechanism.lattice.divisor for each in drawn]
    if plan.contract.neighbours == "replace-one":
        seen = [float(part.rows) for part in sums.parts]
    else:
        mean = mechanism.law.mean * mechanism.setting.p
        seen = [
            float(np.trace(matrix)) - mean if each.rows is None else float(each.rows)
            for matrix, each in zip(matrices, drawn, strict=True)
        ]
    manifest = _manifest(plan, release, seen)
    folds = [
        matrix / part.value for matrix, part in zip(matrices, manifest.fold_rows, strict=False)
    ]
    return manifest, sum(matrices[1:], matrices[0]) / manifest.rows.value, folds


def _known(gram: NDArray[Any] | None) -> NDArray[Any]:
    if gram is None:
        raise StepFailed("draw: the sums that it needs were not made.")
    return gram


def average_into(folder: Path, plan: Plan, gathered: Gathered, release: str) -> None:
    """Write the average of reports, which are noisy already; nothing is drawn."""
    manifest = _manifest(plan, release, sources=gathered.sources)
    write_matrices(folder, manifest, gathered.total / manifest.rows.value)


def write_matrices(
    folder: Path, manifest: ReleaseManifest, matrix: Array, folds: Sequence[Array] = ()
) -> None:
    """Write a released matrix with its repaired forms and folds, card and description."""
    law = manifest.noise
    unbiased = matrix - law.mean * np.eye(len(matrix)) if law.mean else matrix
    projected = project(unbiased, manifest.trace)
    mended = law.shrinkable
    denoised = denoise(unbiased, law, manifest.trace, manifest.rows.value) if mended else None
    write_release(folder, manifest, matrix, projected, denoised, folds)


def _manifest(
    plan: Plan,
    release: str,
    seen: Sequence[float] = (),
    sources: Mapping[str, str] | None = None,
) -> ReleaseManifest:
    """See `release_manifest`; `seen` are the numbers of rows of folds, or noisy ones."""
    return release_manifest(
        plan.asked,
        release=release,
        published=datetime.datetime.now(datetime.UTC).date().isoformat(),
        seen=seen,
        versions=software(),
        sources=sources,
    )


def _rows_into(
    folder: Path,
    plan: Plan,
    mechanism: RowWise,
    manifest: ReleaseManifest,
    collected: Collected,
) -> Any:
    """Read the table once more, publish its rows with noise, and sum what follows from them."""
    hold_to(collected.state, plan.contract.source)
    rows = collected.sums.rows
    contract = in_force(plan.contract, plan.request)
    how, lattice = normalised(plan.asked), mechanism.lattice
    repairs, malformed = Repairs.none(len(contract.columns)), Malformed()
    batches = integer_batches(
        open_source(contract.source), contract, how, lattice, repairs, malformed, in_place=True
    )
    file, columns = folder / str(rows_file(manifest)), published_columns(manifest)
    at_once = max(1, _CELLS // len(columns))
    moved = np.zeros(1) if manifest.kind == "reports" else shift(plan.asked)
    with rows_bar("drawing", plan.contract.rows) as on_rows, RowWriter(file, columns) as writer:
        for q in blocks(batches, at_once):
            drawn = mechanism.randomize(q.astype(np.int64)) * np.float64(mechanism.step)
            writer.write(drawn + moved)
            on_rows(q.shape[1])
    hold_to(collected.state, plan.contract.source)
    if writer.rows != rows:
        raise changed()
    # From what is published, and from nothing else.
    return sum(mechanism.gram(noisy - moved) for noisy in read_rows(file, columns, rows))
