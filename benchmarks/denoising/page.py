"""The results page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np

from benchmarks.cells import Benchmark, read_results
from benchmarks.denoising import cells
from benchmarks.denoising.cells import EPSILONS, MECHANISMS, ROWS, SPECTRA, Result, loss
from benchmarks.pages import table, write_page

_INTRODUCTION = (
    "For statisticians: how close the denoised second moment comes to the best estimate with the "
    "same eigenvectors. That estimate, the oracle, knows the truth S: its eigenvalues are "
    "u_k^T S u_k for the eigenvectors u_k of the noisy matrix, made increasing and projected in "
    "the same way. Tables are the ratio of two mean Frobenius errors, denoised to oracle; in "
    f"brackets, projected to oracle. S is of {ROWS:,} Gaussian rows in a random basis whose "
    "variances are equal (flat), k^(-1/2) (slow), 1/k (decaying) or k^(-2) (fast), have five equal "
    "directions with half of the variance (spiked), or are equal in ten directions and zero in the "
    "others (low rank). delta = 1e-06; replace-one neighbours. Written by "
    "`python -m benchmarks denoising` from `results.jsonl`. Noise is seeded, so nothing here is a "
    "release."
)


def write(out: Path) -> None:
    """Write `results.md` from `results.jsonl` in the same folder."""
    results = list(read_results(out / "results.jsonl", Result).values())
    write_page(out / "results.md", _lines(results))


def _lines(results: list[Result]) -> Iterator[str]:
    yield "# How close denoising comes to the optimum\n"
    yield _INTRODUCTION + "\n"
    yield from _summary(results)
    order = sorted(results, key=_place)
    for (p, radius), block in groupby(order, key=lambda r: (r.cell.p, r.cell.radius)):
        rows = f"clipped at {radius:g} times their root mean square length" if radius else "of unit"
        yield f"## {p} columns, rows {rows}{'' if radius else ' length'}\n"
        yield from _table(list(block))


def _place(result: Result) -> tuple[int, float, int, float]:
    cell = result.cell
    return cell.p, cell.radius, MECHANISMS.index(cell.mechanism), cell.epsilon


def _summary(results: list[Result]) -> Iterator[str]:
    body = []
    for p, radius in sorted({(result.cell.p, result.cell.radius) for result in results}):
        some = [r for r in results if (r.cell.p, r.cell.radius) == (p, radius)]
        losses = np.array([loss(result) for result in some])
        seconds = np.median([result.seconds for result in some])
        body.append(
            [
                str(p),
                "clipped" if radius else "unit",
                str(losses.size),
                f"{100 * np.mean(losses):.1f}%",
                f"{100 * np.quantile(losses, 0.9):.1f}%",
                f"{100 * np.max(losses):.1f}%",
                f"{seconds:.1f}",
            ]
        )
    head = (
        "columns",
        "rows",
        "cells",
        "mean loss",
        "90% of cells within",
        "largest loss",
        "seconds",
    )
    yield "## Loss against the oracle\n"
    yield "Median processor seconds of one denoising with one BLAS thread.\n"
    yield from table(head, body)
    yield (
        "The trace of unit rows is public; that of clipped rows is not. Where the noise on the "
        "trace exceeds it, its error is most of the loss: the oracle knows the trace.\n"
    )


def _table(block: list[Result]) -> Iterator[str]:
    held = {(r.cell.mechanism, r.cell.epsilon, r.cell.spectrum): r for r in block}
    body = []
    for mechanism in MECHANISMS:
        for epsilon in EPSILONS:
            found = [held.get((mechanism, epsilon, spectrum)) for spectrum in SPECTRA]
            if any(found):
                body.append([mechanism, f"{epsilon:g}", *map(_entry, found)])
    yield from table(("mechanism", "epsilon", *SPECTRA), body)


def _entry(result: Result | None) -> str:
    if result is None:
        return ""
    return f"{1 + loss(result):.3f} ({result.projected / result.best:.2f})"


BENCHMARK = Benchmark(
    name="denoising",
    quick="measure a few cells with one release",
    result=cells.Result,
    missing=cells.missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.mechanism} {cell.p} {cell.spectrum} {cell.epsilon:g}",
    write=write,
)
