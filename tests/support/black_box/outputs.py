"""Neighbours, and many outputs of a mechanism for each.

An audit needs many outputs, and a call of `perturb` takes a tenth of a millisecond. So the sampler
is asked for all numbers at once, and the arithmetic that follows is done for all outputs together.
To make sure that the mechanism itself is audited, `batched_outputs` gives the first numbers of
every batch to the mechanism's own method, and checks that the results are equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.k_norm import KNorm
from gramercy.mechanisms.laplace import Laplace
from gramercy.mechanisms.local import Local
from gramercy.mechanisms.marginals import Marginals
from gramercy.mechanisms.matrix_laplace import MatrixLaplace
from gramercy.mechanisms.mechanism import COUNT_WEIGHT, Mechanism, RowWise, sensitivity_bounds
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rows import IntegerRows
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.wishart import Wishart
from gramercy.schemas.request import Unit
from gramercy.tables.sums.row_transform import integer_rows, normalise
from tests.support.black_box.replay import SOURCES, Array, Request, patched_sampler


@dataclass(frozen=True)
class Pair:
    """A mechanism's input for two neighbours: a Gram matrix, a row or a solution, and row counts.

    For `Marginals`, the counts of two bins of every histogram of every draw.

    Parameters
    ----------
    first, second
        In the mechanism's own units, without the common rows, which cancel.
    rows
        Row counts.
    """

    first: Array
    second: Array
    rows: tuple[int, int] = (1000, 1000)


@dataclass(frozen=True)
class Outputs:
    """Outputs, shape (draws, ...), and noisy row counts if the mechanism publishes them."""

    values: Array
    rows: Array | None = None


def integers(mechanism: Mechanism, *rows: Sequence[float]) -> Array:
    """Integer rows as tables produce them, shape (p, rows)."""
    unit = normalise(np.array(rows, dtype=float).T, Unit())
    return integer_rows(unit, mechanism.lattice).astype(np.int64)


def worst_pair(mechanism: Mechanism, angle: float = math.pi / 2) -> Pair:
    """The neighbours that are farthest apart; a tight claim is attained there.

    Parameters
    ----------
    mechanism
        A mechanism of the registry.
    angle
        Angle between the two rows under replace-one.
    """
    p = mechanism.parameters.p
    first = np.eye(p)[0]
    if isinstance(mechanism, Marginals):
        return _worst_counts(mechanism)
    if isinstance(mechanism, Output):
        # Neighbouring solutions never differ by the charged sensitivity: audit the noise.
        distance = mechanism.constants()["sensitivity"] + 2 * mechanism.tolerance
        return Pair(np.eye(p), np.eye(p) + distance * np.outer(first, first))
    if isinstance(mechanism, RowWise) and not isinstance(mechanism, Local):
        return _worst_rows(mechanism)
    if p == 1:
        x, y = integers(mechanism, [1.0], [0.0]).T
    elif isinstance(mechanism, Laplace):
        # Eigenvectors of [[1, 1/2], [1/2, -1]] for a replaced row; equal entries for add-remove.
        half = math.atan2(1, 2) / 2
        x, y = integers(
            mechanism,
            [math.cos(half), math.sin(half), *[0.0] * (p - 2)],
            [-math.sin(half), math.cos(half), *[0.0] * (p - 2)],
        ).T
        if mechanism.parameters.neighbours == "add-remove":
            x = integers(mechanism, np.ones(p))[:, 0]
    else:
        rotated = [math.cos(angle), math.sin(angle), *[0.0] * (p - 2)]
        x, y = integers(mechanism, first, rotated).T
    if isinstance(mechanism, Local):
        return Pair(x, y)
    if mechanism.parameters.neighbours == "replace-one":
        return Pair(np.outer(x, x), np.outer(y, y))
    return Pair(np.zeros((p, p), np.int64), np.outer(x, x), (999, 1000))


def _worst_rows(mechanism: RowWise) -> Pair:
    first = np.eye(mechanism.parameters.p)[0]
    if mechanism.parameters.sensitivity_bounds is None:
        binary = isinstance(mechanism, IntegerRows)  # without bounds, zeros and ones
        x = np.ones(first.size, dtype=np.int64) if binary else integers(mechanism, first)[:, 0]
        return Pair(x, 0 * x if binary else -x)
    bounds = sensitivity_bounds(mechanism.parameters, mechanism.lattice)
    per_cell = mechanism.parameters.privacy_unit == "cell"
    distance = math.isqrt(bounds.squared_cell if per_cell else bounds.squared_row)
    return Pair(0 * first.astype(np.int64), (distance * first).astype(np.int64))


def _worst_counts(mechanism: Marginals) -> Pair:
    """A row that changes its bin in every histogram of every draw, or is absent."""
    histograms = sum(each.histograms for each in mechanism.noise.draws)
    here, there = np.tile([1, 0], histograms), np.tile([0, 1], histograms)
    return Pair(here, there if mechanism.parameters.neighbours == "replace-one" else 0 * here)


def single_outputs(mechanism: Any, table: Array, rows: int, draws: int) -> Outputs:
    """Outputs of the mechanism's own method, one call each."""
    if isinstance(mechanism, Marginals):
        return Outputs(np.array([_noisy_counts(mechanism, table) for _ in range(draws)]))
    if isinstance(mechanism, RowWise):
        drawn = [mechanism.randomize(table[:, None])[:, 0] for _ in range(draws)]
        return Outputs(np.array(drawn))
    if isinstance(mechanism, Output):
        return Outputs(np.array([mechanism.perturb(table) for _ in range(draws)]))
    noisy = [mechanism.perturb(table, rows) for _ in range(draws)]
    counts = None if noisy[0].rows is None else np.array([each.rows for each in noisy])
    return Outputs(np.array([each.gram for each in noisy]), counts)


def _noisy_counts(mechanism: Marginals, table: Array) -> Array:
    """Noisy counts of every draw, of histograms with two bins each."""
    remaining = iter(table.reshape(-1, 2))
    drawn = [
        each.perturb([next(remaining) for _ in range(each.histograms)])
        for each in mechanism.noise.draws
    ]
    return np.concatenate([np.concatenate(histograms) for histograms in drawn])


def batched_outputs(
    mechanism: Any, table: Array, rows: int, draws: int, *, compared: int
) -> Outputs:
    """Many outputs at once; the first `compared` are checked against the mechanism's own."""
    if isinstance(mechanism, RowWise):  # accepts any number of rows
        return Outputs(mechanism.randomize(np.repeat(table[:, None], draws, axis=1)).T)
    requests: list[Request] = []
    active = []  # sampler functions that are running: their inner requests are not recorded
    original = {name: getattr(sampler, name) for name in SOURCES}

    def recorded(name: str, parameters: tuple[float, ...], size: int) -> Array:
        if not active:
            requests.append((name, parameters, size))
        active.append(name)
        drawn = np.asarray(original[name](*parameters, size))
        active.pop()
        return drawn

    with patched_sampler(recorded):
        single_outputs(mechanism, table, rows, 1)
    numbers = [
        original[name](*parameters, draws * size).reshape(draws, size)
        for name, parameters, size in requests
    ]
    outputs = _all_outputs(mechanism, numbers, table, rows)
    for i in range(min(compared, draws)):
        remaining = iter([each[i] for each in numbers])
        with patched_sampler(lambda name, parameters, size, remaining=remaining: next(remaining)):
            single = single_outputs(mechanism, table, rows, 1)
        # A floating-point product may be rounded the other way.
        assert np.abs(single.values[0] - outputs.values[i]).max() <= (
            mechanism.arithmetic != "exact"
        )
        assert (single.rows is None) == (outputs.rows is None)
        assert single.rows is None or outputs.rows is None or single.rows[0] == outputs.rows[i]
    return outputs


def _all_outputs(mechanism: Any, numbers: list[Array], table: Array, rows: int) -> Outputs:
    """The outputs of a mechanism for many draws of the numbers that it requests."""
    p, squared_radius = mechanism.parameters.p, mechanism.lattice.squared_radius
    if isinstance(mechanism, Marginals):
        return Outputs(table + np.concatenate(numbers, axis=1))
    if isinstance(mechanism, Output):
        if mechanism.as_published:
            return Outputs(table + mechanism.scale * _wishart(numbers, p))
        steps = np.rint(table / mechanism.step) + _symmetric(numbers[0], numbers[1])
        return Outputs(steps * mechanism.step)
    counts = None
    if isinstance(mechanism, Gaussian | Laplace):
        noise = _symmetric(numbers[0], numbers[1])
        counts = numbers[2][:, 0] if mechanism.parameters.publishes_noisy_count else None
    elif isinstance(mechanism, KNorm):
        direction, length = numbers
        svec = direction * (length * mechanism.scale / np.linalg.norm(direction, axis=1)[:, None])
        entries = svec[:, p : p * (p + 1) // 2] / math.sqrt(2)
        noise = np.rint(_symmetric(entries, svec[:, :p]) * squared_radius).astype(np.int64)
        counts = (
            np.rint(svec[:, -1] / COUNT_WEIGHT)
            if mechanism.parameters.publishes_noisy_count
            else None
        )
    elif isinstance(mechanism, MatrixLaplace):
        difference = _wishart(numbers[: p + 1], p) - _wishart(numbers[p + 1 : 2 * p + 2], p)
        noise = np.rint(difference * (mechanism.scale * squared_radius)).astype(np.int64)
        counts = numbers[-1][:, 0] if mechanism.parameters.publishes_noisy_count else None
    else:
        assert isinstance(mechanism, Wishart)
        mean = 0 if mechanism.keeps_mean else mechanism.dof * np.eye(p)
        noise = np.rint((_wishart(numbers, p) - mean) * (mechanism.scale * squared_radius)).astype(
            np.int64
        )
    return Outputs(table + noise, None if counts is None else rows + counts.astype(np.int64))


def _symmetric(upper: Array, diagonal: Array) -> Array:
    draws, p = diagonal.shape
    matrices = np.zeros((draws, p, p), dtype=diagonal.dtype)
    i, j = np.triu_indices(p, 1)
    matrices[:, i, j] = matrices[:, j, i] = upper
    matrices[:, range(p), range(p)] = diagonal
    return matrices


def _wishart(numbers: list[Array], p: int) -> Array:
    factor = np.zeros((len(numbers[0]), p, p))
    i, j = np.tril_indices(p, -1)
    factor[:, i, j] = numbers[0]
    for k in range(p):
        factor[:, k, k] = np.sqrt(2 * numbers[k + 1][:, 0])
    return factor @ factor.transpose(0, 2, 1)
