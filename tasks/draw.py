"""The draw: exact sums, or the rows themselves, and fresh noise become the files of a release."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.release import published_columns, rows_file, software, write_release
from archive.rows import RowWriter, read_rows
from estimators.certified import solve_within
from estimators.denoise import denoise, project
from mechanisms.additive import Additive
from mechanisms.output import Output
from mechanisms.rowwise import RowWise
from schemas.errors import StepFailed
from schemas.manifest import ReleaseManifest
from tables.accumulate import Accumulated, integer_batches
from tables.blocks import blocks
from tables.read import Malformed, open_source
from tables.repair import Repairs
from tasks.gather import Gathered
from tasks.manifest import release_manifest
from tasks.plan import Plan, in_force
from tasks.progress import rows_bar
from tasks.setting import normalised, shift

Array = NDArray[np.float64]

_CELLS = 1 << 20  # of published rows at once


def draw_into(folder: Path, plan: Plan, sums: Accumulated, release: str) -> None:
    """Draw the noise of a release whose charge is on record, and write it into an empty folder.

    Parameters
    ----------
    folder
        Staged, not yet visible.
    plan
        What was asked for, and its mechanism.
    sums
        The exact Gram matrix and number of rows. Private; only noisy forms of them are written.
    release
        Its id.
    """
    mechanism, noisy = plan.mechanism, float(sums.rows)
    manifest = _manifest(plan, release, noisy)
    if isinstance(mechanism, RowWise):
        matrix = _rows_into(folder, plan, mechanism, manifest, sums.rows) / manifest.rows.value
    elif sums.gram is None:
        raise StepFailed(f"{mechanism.name}: needs sums that were not made.")
    elif isinstance(mechanism, Additive):
        drawn = mechanism.perturb(sums.gram, sums.rows)
        matrix = drawn.gram.astype(np.float64) / mechanism.lattice.divisor
        trace = float(np.trace(matrix)) - mechanism.law.mean * len(matrix)
        noisy = trace if drawn.rows is None else float(drawn.rows)
        manifest = _manifest(plan, release, noisy)
        matrix /= manifest.rows.value
    elif isinstance(mechanism, Output):
        truth = sums.gram.astype(np.float64) / (mechanism.lattice.ball * plan.contract.rows)
        exact = solve_within(truth, mechanism.penalty, mechanism.tolerance)
        matrix = mechanism.perturb(exact)
    else:
        raise StepFailed(f"{mechanism.name}: nothing knows how to draw it.")
    write_matrices(folder, manifest, matrix)


def average_into(folder: Path, plan: Plan, gathered: Gathered, release: str) -> None:
    """Write the average of reports, which are noisy already; nothing is drawn."""
    rows = float(gathered.rows)
    manifest = _manifest(plan, release, rows, gathered.sources)
    write_matrices(folder, manifest, gathered.total / rows)


def write_matrices(folder: Path, manifest: ReleaseManifest, matrix: Array) -> None:
    """Write a released matrix with its repaired forms, card and description."""
    law = manifest.noise
    unbiased = matrix - law.mean * np.eye(len(matrix)) if law.mean else matrix
    projected = project(unbiased, manifest.trace)
    denoised = denoise(unbiased, law, manifest.trace) if law.invariant else None
    write_release(folder, manifest, matrix, projected, denoised)


def _manifest(
    plan: Plan, release: str, noisy: float, sources: Mapping[str, str] | None = None
) -> ReleaseManifest:
    return release_manifest(
        plan.asked,
        release=release,
        published=datetime.datetime.now(datetime.UTC).date().isoformat(),
        noisy=noisy,
        versions=software(),
        sources=sources,
    )


def _rows_into(
    folder: Path, plan: Plan, mechanism: RowWise, manifest: ReleaseManifest, rows: int
) -> Any:
    """Read the table once more, publish its rows with noise, and sum what follows from them."""
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
    if writer.rows != rows:
        raise StepFailed("draw: the table changed while it was read.")
    # From what is published, and from nothing else.
    return sum(mechanism.gram(noisy - moved) for noisy in read_rows(file, columns, rows))
