"""The pipeline on two tables with the same noise: the sampler is replaced, or replays a tape."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.archive.seal.signing import create_signing_key
from gramercy.common.home import Home
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.laplace import Laplace
from gramercy.mechanisms.matrix_laplace import MatrixLaplace
from gramercy.mechanisms.mechanism import COUNT_WEIGHT, NoisyGram, RowWise
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.wishart import Wishart
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.drawing import draw_into
from gramercy.pipeline.publish.private_table import accumulate
from tests.support.factories import as_flow_step, run_release, without_salts, write_request

Array = np.ndarray[Any, Any]
Request = tuple[str, tuple[float, ...], int]  # the sampler's function, its parameters, and the size
SOURCES = ("rounded_gaussian", "rounded_laplace", "discrete_gaussian", "gaussian", "gamma")


@contextmanager
def patched_sampler(answer: Callable[[str, tuple[float, ...], int], Array]) -> Iterator[None]:
    """Answer every request for noise with `answer(function, parameters, size)`."""
    with pytest.MonkeyPatch.context() as patch:
        for name in SOURCES:
            patch.setattr(
                sampler, name, lambda *arguments, _n=name: answer(_n, arguments[:-1], arguments[-1])
            )
        yield


@dataclass
class Tape:
    """Answers equal requests with equal pseudo-random numbers, and records the requests.

    The numbers are never zero, so that noise scaled by the data, or drawn elsewhere, is noticed.
    """

    requests: list[Request]

    def __call__(self, name: str, parameters: tuple[float, ...], size: int) -> Array:
        rng = np.random.default_rng(len(self.requests))
        self.requests.append((name, parameters, size))
        if name == "gaussian":
            return rng.normal(size=size)
        if name == "gamma":
            return rng.gamma(parameters[0], size=size)
        return np.rint(3 * parameters[0] * rng.normal(size=size)).astype(np.int64)


@dataclass(frozen=True)
class RecordedRun:
    """One run of the pipeline with the tape instead of the sampler.

    Parameters
    ----------
    requests
        The noise that was requested.
    published
        The published values in units of the lattice, with the tape's noise.
    rows
        The public or noisy row count; of groups, an array.
    """

    requests: list[Request]
    published: Array
    rows: float | Array


class _Rows:
    """Collects published rows instead of writing them."""

    def __init__(self, *_: Any) -> None:
        self.parts: list[Array] = []
        self.rows = 0

    def __enter__(self) -> _Rows:
        return self

    def __exit__(self, *_: object) -> None: ...

    def write(self, cells: Array) -> None:
        self.parts.append(cells)
        self.rows += cells.shape[1]


def record_run(plan: Plan, folder: Path) -> RecordedRun:
    """Read the table and draw a release with the pipeline's own steps, without writing files."""
    tape, writer, written_files = Tape([]), _Rows(), []
    with pytest.MonkeyPatch.context() as patch, patched_sampler(tape):
        # These follow from public facts alone, so they are computed once for all tables.
        patch.setattr("gramercy.pipeline.publish.drawing.calibrate", lambda spec: plan.calibration)
        patch.setattr("gramercy.pipeline.publish.drawing.RowWriter", lambda path, columns: writer)
        patch.setattr(
            "gramercy.pipeline.publish.drawing.read_rows",
            lambda path, columns, rows: iter(writer.parts),
        )
        patch.setattr(
            "gramercy.pipeline.publish.drawing.write_matrices",
            lambda *written: written_files.append(written[1:]),
        )
        draw_into(folder, plan, as_flow_step(accumulate)(plan), "r1")
    [(manifest, matrix, folds, _, groups, *_)] = [(*each, (), (), ()) for each in written_files]
    if groups:
        return _run_of_groups(plan, manifest, groups, tape.requests)
    if folds:
        sizes = [part.value for part in manifest.fold_rows]
        sums = [fold * rows for fold, rows in zip(folds, sizes, strict=True)]
        return RecordedRun(
            tape.requests, np.array(sums) * plan.mechanism.lattice.divisor, sum(sizes)
        )
    mechanism, rows = plan.mechanism, manifest.rows.value
    if plan.contract.neighbours == "replace-one":
        # The public count, regardless of the divisor of the matrix.
        rows = float(plan.contract.rows)
    if isinstance(mechanism, RowWise):
        return RecordedRun(
            tape.requests, np.concatenate(writer.parts, axis=1) / mechanism.step, rows
        )
    if isinstance(mechanism, Output):
        return RecordedRun(tape.requests, matrix / mechanism.step, rows)
    return RecordedRun(tape.requests, matrix * rows * mechanism.lattice.divisor, rows)


def _run_of_groups(
    plan: Plan, manifest: Any, groups: Sequence[Any], requests: list[Request]
) -> RecordedRun:
    """The sums of every part, and their noisy numbers of rows."""
    matrices = [matrix for group in groups for matrix in group.folds or [group.raw]]
    facts = [part for group in manifest.groups for part in group.fold_rows or [group.rows]]
    sums = [matrix * part.value for matrix, part in zip(matrices, facts, strict=True)]
    observed = np.array([part.observed for part in facts])
    return RecordedRun(requests, np.array(sums) * plan.mechanism.lattice.divisor, observed)


def claimed_share(plan: Plan, folder: Path, first: str, second: str) -> float:
    """The distance of two tables before the noise, as a share of the claim.

    Infinite if they request different noise. `first` and `second` are texts of CSV files.
    """
    runs = []
    for text in (first, second):
        Path(plan.contract.source).write_text(text)
        runs.append(record_run(plan, folder))
    first_run, second_run = runs
    if (
        first_run.requests != second_run.requests
        or first_run.published.shape != second_run.published.shape
    ):
        return math.inf
    mechanism = plan.mechanism
    row_difference = 0.0
    if mechanism.parameters.publishes_noisy_count:
        row_difference = float(np.linalg.norm(np.subtract(first_run.rows, second_run.rows)))
    return _share(mechanism, first_run.published - second_run.published, row_difference)


def _share(mechanism: Any, change: Array, row_difference: float) -> float:
    """The change divided by the largest one that the claim allows, in the mechanism's norm."""
    claim, weighted = mechanism.guarantee, abs(COUNT_WEIGHT * row_difference) / mechanism.scale
    norm = _NORMS[mechanism.name](mechanism, change)
    if isinstance(mechanism, Laplace):
        return (norm + weighted) / claim.pure
    if isinstance(mechanism, MatrixLaplace):
        return (norm + 0.1 * abs(row_difference) / mechanism.scale / 2) / claim.pure
    if isinstance(mechanism, Wishart):
        return norm
    return math.hypot(norm, weighted) / (claim.pure if claim.pure < math.inf else claim.mu)


def _frobenius(mechanism: Any, change: Array) -> float:
    return float(np.linalg.norm(change)) / (mechanism.scale * mechanism.lattice.squared_radius)


def _triangle(mechanism: Any, change: Array) -> Array:
    unit = mechanism.scale * mechanism.lattice.squared_radius
    return np.asarray(change[np.triu_indices(mechanism.parameters.p)] / unit)


def _reports(mechanism: Any, change: Array) -> float:
    i, j = np.triu_indices(mechanism.parameters.p)
    weight = np.where((i == j) | mechanism.iid, 1.0, math.sqrt(2))[:, None]
    return float(np.linalg.norm(change * weight)) / (
        mechanism.scale * mechanism.lattice.squared_radius
    )


def _rows(mechanism: Any, change: Array) -> float:
    return float(np.linalg.norm(change)) * mechanism.step / mechanism.scale


def _nuclear(mechanism: Any, change: Array) -> float:
    values = np.linalg.eigvalsh(change)
    return float(np.abs(values).sum()) / (2 * mechanism.scale * mechanism.lattice.squared_radius)


def _larger_trace(mechanism: Any, change: Array) -> float:
    values = np.linalg.eigvalsh(change) / mechanism.lattice.squared_radius
    return max(float(values[values > 0].sum()), -float(values[values < 0].sum()))


_NORMS: dict[str, Callable[[Any, Array], float]] = {
    "gaussian": _frobenius,
    "gaussian-iid": lambda mechanism, change: float(np.linalg.norm(_triangle(mechanism, change))),
    "laplace": lambda mechanism, change: float(np.abs(_triangle(mechanism, change)).sum()),
    "k-norm": _frobenius,
    "matrix-laplace": _nuclear,
    "wishart": _larger_trace,
    "rows": _rows,
    "integer-rows": _rows,
    "local": _reports,
    "output": _rows,
}


def published_files(request: Path) -> dict[str, bytes]:
    """Publish a release; return all its files by name."""
    root = Home.default().archive / "toy" / run_release(request)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def published_with_frozen_matrix(
    folder: Path, tables: Sequence[str], **facts: Any
) -> list[dict[str, bytes]]:
    """Publish tables with one fixed noisy matrix; return the published files of each."""
    frozen = np.diag(np.full(3, 10**8)) + 10**5
    published = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gaussian, "perturb", lambda *_: NoisyGram(frozen, None))
        without_salts(patch)
        create_signing_key(folder / "keys")  # one key, so that equal bytes have equal signatures
        for i, text in enumerate(tables):
            run_folder = folder / str(i)
            run_folder.mkdir()
            (run_folder / "table.csv").write_text(text)
            shutil.copytree(folder / "keys", run_folder / "home" / "keys")
            patch.setenv("GRAMERCY_HOME", str(run_folder / "home"))
            published.append(published_files(write_request(run_folder, **facts)))
    return published
