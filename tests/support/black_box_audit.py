"""What finds a mechanism out: replay, a black-box audit, impossible outputs, a frozen matrix.

The audit sees outputs alone. Many of them are needed, and a call of `perturb` takes a tenth of a
millisecond, so the sampler is asked for all numbers at once, and the arithmetic that follows is
done for all outputs together. So that what is audited stays the mechanism, `outputs` gives the
first numbers of every batch to the mechanism's own method, and insists on the same answers.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv, k0e, k1e, ndtr, ndtri

from gramercy.application.accumulation import accumulate
from gramercy.application.calibration import guarantee_facts
from gramercy.application.drawing import draw_into
from gramercy.application.planning import Plan
from gramercy.archive.signing_keys import new_key
from gramercy.common.home import Home
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import COUNT_WEIGHT, Noisy
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.integer_rows import IntegerRows
from gramercy.mechanisms.k_norm import KNorm
from gramercy.mechanisms.laplace import Laplace
from gramercy.mechanisms.local import Local
from gramercy.mechanisms.matrix_laplace import MatrixLaplace
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rowwise import RowWise, reach
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.wishart import Wishart
from gramercy.schemas.request import Unit
from gramercy.tables.integers import integer_rows
from gramercy.tables.normalise import normalise
from tests.support.factories import alone, run_steps, scene

Array = np.ndarray[Any, Any]
Request = tuple[str, tuple[float, ...], int]
_SOURCES = ("rounded_gaussian", "rounded_laplace", "discrete_gaussian", "gaussian", "gamma")
FAR = 1e9  # a log-likelihood ratio that stands for an infinite one


# --- The sampler, watched -------------------------------------------------------------------------


@contextmanager
def sampled(answer: Callable[[str, tuple[float, ...], int], Array]) -> Iterator[None]:
    """Answer every request for noise: the sampler's function, its parameters, and how many."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _SOURCES:
            patch.setattr(sampler, name, lambda *asked, _n=name: answer(_n, asked[:-1], asked[-1]))
        yield


@dataclass
class Tape:
    """The same made-up numbers for whoever asks for the same noise; and what was asked.

    Never zero, so that noise which is scaled by the data, or drawn elsewhere, does not cancel.
    """

    requests: list[Request]

    def __call__(self, name: str, parameters: tuple[float, ...], size: int) -> Array:
        made = np.random.default_rng(len(self.requests))
        self.requests.append((name, parameters, size))
        if name == "gaussian":
            return made.normal(size=size)
        if name == "gamma":
            return made.gamma(parameters[0], size=size)
        return np.rint(3 * parameters[0] * made.normal(size=size)).astype(np.int64)


# --- Neighbours and outputs -----------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """What a mechanism is given for two neighbours: a Gram matrix and count, a row, a solution.

    Parameters
    ----------
    one, other
        In the mechanism's own units. Rows that both have are left out: they cancel.
    """

    one: Array
    other: Array
    rows: tuple[int, int] = (1000, 1000)


@dataclass(frozen=True)
class Outputs:
    """Outputs, shape (draws, ...), and noisy numbers of rows, where there are any."""

    values: Array
    rows: Array | None = None


def integers(mechanism: Mechanism, *rows: Sequence[float]) -> Array:
    """Integer rows as tables make them, shape (p, rows)."""
    unit = normalise(np.array(rows, dtype=float).T, Unit())
    return integer_rows(unit, mechanism.lattice).astype(np.int64)


def worst_pair(mechanism: Mechanism, angle: float = math.pi / 2) -> Pair:
    """Neighbours as far apart as they come: where the claim is attained, if it is anywhere.

    Parameters
    ----------
    mechanism
        Any of the registry.
    angle
        Between the rows, where one replaces another.
    """
    p = mechanism.setting.p
    first = np.eye(p)[0]
    if isinstance(mechanism, Output):
        # No two tables move the solution as far as is allowed for: the noise is audited instead.
        far = mechanism.plan()["sensitivity"] + 2 * mechanism.tolerance
        return Pair(np.eye(p), np.eye(p) + far * np.outer(first, first))
    if isinstance(mechanism, RowWise) and not isinstance(mechanism, Local):
        if mechanism.setting.reach is None:
            binary = isinstance(mechanism, IntegerRows)  # without bounds, zeros and ones
            x = np.ones(p, dtype=np.int64) if binary else integers(mechanism, first)[:, 0]
            return Pair(x, 0 * x if binary else -x)
        most = reach(mechanism.setting, mechanism.lattice)
        far = math.isqrt(most.cell if mechanism.setting.unit == "cell" else most.row)
        return Pair(0 * first.astype(np.int64), (far * first).astype(np.int64))
    if p == 1:
        x, y = integers(mechanism, [1.0], [0.0]).T
    elif isinstance(mechanism, Laplace):
        # Of [[1, 1/2], [1/2, -1]] for a row replaced; all entries alike for one present or absent.
        half = math.atan2(1, 2) / 2
        x, y = integers(
            mechanism,
            [math.cos(half), math.sin(half), *[0.0] * (p - 2)],
            [-math.sin(half), math.cos(half), *[0.0] * (p - 2)],
        ).T
        if mechanism.setting.neighbours == "add-remove":
            x = integers(mechanism, np.ones(p))[:, 0]
    else:
        turned = [math.cos(angle), math.sin(angle), *[0.0] * (p - 2)]
        x, y = integers(mechanism, first, turned).T
    if isinstance(mechanism, Local):
        return Pair(x, y)
    if mechanism.setting.neighbours == "replace-one":
        return Pair(np.outer(x, x), np.outer(y, y))
    return Pair(np.zeros((p, p), np.int64), np.outer(x, x), (999, 1000))


def called(mechanism: Any, given: Array, rows: int, draws: int) -> Outputs:
    """Outputs of the mechanism's own method, one call after another."""
    if isinstance(mechanism, RowWise):
        found = [mechanism.randomize(given[:, None])[:, 0] for _ in range(draws)]
        return Outputs(np.array(found))
    if isinstance(mechanism, Output):
        return Outputs(np.array([mechanism.perturb(given) for _ in range(draws)]))
    noisy = [mechanism.perturb(given, rows) for _ in range(draws)]
    counts = None if noisy[0].rows is None else np.array([each.rows for each in noisy])
    return Outputs(np.array([each.gram for each in noisy]), counts)


def outputs(mechanism: Any, given: Array, rows: int, draws: int, *, compared: int) -> Outputs:
    """As many outputs, together; the first `compared` of them are the mechanism's own."""
    if isinstance(mechanism, RowWise):  # takes any number of rows as it is
        return Outputs(mechanism.randomize(np.repeat(given[:, None], draws, axis=1)).T)
    asked: list[Request] = []
    within = []  # functions of the sampler that are at work: what they ask each other is theirs
    real = {name: getattr(sampler, name) for name in _SOURCES}

    def recorded(name: str, parameters: tuple[float, ...], size: int) -> Array:
        if not within:
            asked.append((name, parameters, size))
        within.append(name)
        drawn = np.asarray(real[name](*parameters, size))
        within.pop()
        return drawn

    with sampled(recorded):
        called(mechanism, given, rows, 1)
    numbers = [
        real[name](*parameters, draws * size).reshape(draws, size)
        for name, parameters, size in asked
    ]
    found = _together(mechanism, numbers, given, rows)
    for i in range(min(compared, draws)):
        left = iter([each[i] for each in numbers])
        with sampled(lambda name, parameters, size, left=left: next(left)):
            own = called(mechanism, given, rows, 1)
        # A floating-point product may fall on the other side of a half.
        assert np.abs(own.values[0] - found.values[i]).max() <= (mechanism.arithmetic != "exact")
        assert (own.rows is None) == (found.rows is None)
        assert own.rows is None or found.rows is None or own.rows[0] == found.rows[i]
    return found


def _together(mechanism: Any, numbers: list[Array], given: Array, rows: int) -> Outputs:
    """What the mechanisms make of many draws of the numbers that they ask for."""
    p, ball = mechanism.setting.p, mechanism.lattice.ball
    if isinstance(mechanism, Output):
        if mechanism.as_published:
            return Outputs(given + mechanism.scale * _wishart(numbers, p))
        whole = np.rint(given / mechanism.step) + _symmetric(numbers[0], numbers[1])
        return Outputs(whole * mechanism.step)
    counts = None
    if isinstance(mechanism, Gaussian | Laplace):
        noise = _symmetric(numbers[0], numbers[1])
        counts = numbers[2][:, 0] if mechanism.setting.counted else None
    elif isinstance(mechanism, KNorm):
        direction, length = numbers
        svec = direction * (length * mechanism.scale / np.linalg.norm(direction, axis=1)[:, None])
        entries = svec[:, p : p * (p + 1) // 2] / math.sqrt(2)
        noise = np.rint(_symmetric(entries, svec[:, :p]) * ball).astype(np.int64)
        counts = np.rint(svec[:, -1] / COUNT_WEIGHT) if mechanism.setting.counted else None
    elif isinstance(mechanism, MatrixLaplace):
        between = _wishart(numbers[: p + 1], p) - _wishart(numbers[p + 1 : 2 * p + 2], p)
        noise = np.rint(between * (mechanism.scale * ball)).astype(np.int64)
        counts = numbers[-1][:, 0] if mechanism.setting.counted else None
    else:
        assert isinstance(mechanism, Wishart)
        mean = 0 if mechanism.kept else mechanism.dof * np.eye(p)
        noise = np.rint((_wishart(numbers, p) - mean) * (mechanism.scale * ball)).astype(np.int64)
    return Outputs(given + noise, None if counts is None else rows + counts.astype(np.int64))


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


# --- What tells neighbours apart ------------------------------------------------------------------


def evidence(mechanism: Any, pair: Pair, seen: Outputs) -> Array:
    """How much more an output speaks for `other`: its log-likelihood ratio, or nearly so."""
    for known, tells in _TELLS.items():
        if isinstance(mechanism, known):
            return tells(mechanism, pair, seen)
    raise AssertionError(f"nothing tells outputs of {mechanism.name} apart")


def _away(mechanism: Any, pair: Pair, seen: Outputs) -> list[Array]:
    return [(seen.values - each) / mechanism.lattice.ball for each in (pair.one, pair.other)]


def _counts(pair: Pair, seen: Outputs) -> list[Array]:
    return [np.zeros(1) if seen.rows is None else seen.rows - rows for rows in pair.rows]


def _by_projection(mechanism: Any, pair: Pair, seen: Outputs) -> Array:
    """On what lies between, whitened."""
    away = _away(mechanism, pair, seen)[0]
    # Noise of half the variance on the off-diagonal entries weighs each of two halves fully.
    off = 1.0 if mechanism.law.family == "gaussian-isotropic" else 0.5
    weight = (pair.other - pair.one) * np.where(np.eye(len(pair.one)) == 1, 1.0, off)
    found = (away * weight).sum(axis=(1, 2)) / mechanism.lattice.ball
    between = pair.rows[1] - pair.rows[0]
    return np.asarray(found + COUNT_WEIGHT**2 * between * _counts(pair, seen)[0])


def _by_sums(mechanism: Any, pair: Pair, seen: Outputs) -> Array:
    i, j = np.triu_indices(mechanism.setting.p)
    matrices = [np.abs(away[:, i, j]).sum(axis=1) for away in _away(mechanism, pair, seen)]
    counts = [COUNT_WEIGHT * np.abs(count) for count in _counts(pair, seen)]
    return np.asarray(matrices[0] - matrices[1] + counts[0] - counts[1])


def _by_lengths(mechanism: Any, pair: Pair, seen: Outputs) -> Array:
    squares = [(away**2).sum(axis=(1, 2)) for away in _away(mechanism, pair, seen)]
    counts = [(COUNT_WEIGHT * count) ** 2 for count in _counts(pair, seen)]
    return np.asarray(np.sqrt(squares[0] + counts[0]) - np.sqrt(squares[1] + counts[1]))


def _by_densities(mechanism: Any, pair: Pair, seen: Outputs) -> Array:
    densities = [log_density(away / mechanism.scale) for away in _away(mechanism, pair, seen)]
    counts = [0.1 * np.abs(count) / (2 * mechanism.scale) for count in _counts(pair, seen)]
    return np.asarray(densities[1] - densities[0] + counts[0] - counts[1])


def _by_rows(mechanism: Any, pair: Pair, seen: Outputs) -> Array:
    return np.asarray(seen.values @ (pair.other - pair.one).astype(float))


def _by_reports(mechanism: Any, pair: Pair, seen: Outputs) -> Array:
    i, j = np.triu_indices(mechanism.setting.p)
    between = (pair.other[i] * pair.other[j] - pair.one[i] * pair.one[j]).astype(float)
    weight = np.where((i == j) | mechanism.iid, 1.0, 2.0)
    return np.asarray(seen.values @ (between * weight))


def _by_determinants(mechanism: Any, pair: Pair, seen: Outputs) -> Array:
    """(m - p - 1)/2 times the log-ratio of determinants; one that is not positive says it all."""
    p = mechanism.setting.p
    mean = 0.0 if mechanism.kept else mechanism.dof * mechanism.scale
    shape = max((mechanism.dof - p - 1) / 2, 1.0)  # constant where it is 0: then any will do
    logs = []
    for away in _away(mechanism, pair, seen):
        values = eigenvalues(away + mean * np.eye(p))
        possible = values[:, 0] > 0
        log = np.log(np.where(possible[:, None], values, 1.0)).sum(axis=1)
        logs.append(np.where(possible, log, -FAR))
    return np.asarray(shape * (logs[1] - logs[0]))


def eigenvalues(matrices: Array) -> Array:
    """Ascending, shape (..., p); for two columns without LAPACK, which takes ten times longer."""
    if matrices.shape[-1] != 2:
        return np.asarray(np.linalg.eigvalsh(matrices))
    middle = (matrices[..., 0, 0] + matrices[..., 1, 1]) / 2
    half = np.hypot((matrices[..., 0, 0] - matrices[..., 1, 1]) / 2, matrices[..., 0, 1])
    return np.stack([middle - half, middle + half], axis=-1)


def log_density(noise: Array, nodes: int = 8) -> Array:
    """Of matrix Laplace noise in units of s, shape (draws, p, p), up to a constant.

    Exact for two columns. Symmetric 2 x 2 matrices are points (a, u) of three-dimensional space,
    eigenvalues a +- |u|, and W, W - Z >= 0 says a_W >= max(|u_W|, a_Z + |u_W - u_Z|), so that what
    is left of the module's integral over W is one over the plane,

        f(Z) ~ int exp(a_Z - 2 max(|u|, a_Z + |u - u_Z|)) du,

    and in elliptic coordinates with foci 0 and u_Z, d = |u_Z|, one of Bessel functions:

        f(Z) ~ int_0^pi exp(-|d cos v - a_Z|) (d^2 K_0(d) sin^2 v + d K_1(d)) dv.

    For one column exact as well; for more the nuclear norm, which is what it tends to.
    Eight nodes are plenty for a statistic, which need not be the best.
    """
    values = eigenvalues(noise)
    if noise.shape[-1] != 2:
        return -np.abs(values).sum(axis=-1) / 2
    low, high = values[..., 0], values[..., 1]
    middle, half = np.abs(low + high) / 2, np.maximum((high - low) / 2, 1e-9)
    cut = np.arccos(np.minimum(middle / half, 1.0))
    beyond = np.maximum(middle - half, 0.0)
    first, second = half * half * k0e(half), half * k1e(half)
    total = np.zeros(middle.shape)
    rule = np.polynomial.legendre.leggauss(nodes)
    for start, end in ((np.zeros_like(cut), cut), (cut, np.full_like(cut, math.pi))):
        for node, weight in zip(*rule, strict=True):
            v = start + (end - start) / 2 * (1 + node)
            decay = np.exp(beyond - np.abs(half * np.cos(v) - middle))
            total += weight * (end - start) * decay * (first * np.sin(v) ** 2 + second)
    return np.log(total) - half - beyond


_TELLS: dict[type[Mechanism], Callable[[Any, Pair, Outputs], Array]] = {
    Gaussian: _by_projection,
    Output: _by_projection,
    Laplace: _by_sums,
    KNorm: _by_lengths,
    MatrixLaplace: _by_densities,
    Wishart: _by_determinants,
    Local: _by_reports,
    RowWise: _by_rows,
}


# --- The audit ------------------------------------------------------------------------------------

EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0)
DOUBT = 0.01


@dataclass(frozen=True)
class Audit:
    """What outputs prove, all of it together with the confidence that was asked for.

    Parameters
    ----------
    mu, epsilon
        Lower bounds: of Gaussian differential privacy, and of a pure epsilon.
    delta
        Lower bounds at `EPSILONS`.
    events
        Of the attackers behind them: at most so many false alarms, at least so many found.
    """

    mu: float
    epsilon: float
    delta: dict[float, float]
    events: list[tuple[float, float]]

    def alarms(self, claim: Guarantee) -> list[str]:
        """Where a claim is disproved."""
        found = []
        if self.mu > claim.mu and claim.delta0 == 0:
            found.append(f"mu {self.mu:.4f} > {claim.mu:.4f}")
        if self.epsilon > claim.pure:
            found.append(f"epsilon {self.epsilon:.4f} > {claim.pure:.4f}")
        found += [
            f"delta({e:g}) {least:.3g} > {claim.delta(e):.3g}"
            for e, least in self.delta.items()
            if least > claim.delta(e)
        ]
        found += [
            f"{caught:.4f} found at {alarms:.4f} false alarms"
            for alarms, caught in self.events
            if caught > ndtr(ndtri(alarms) + claim.mu) + claim.delta0
        ]
        return found


def audited(null: Array, other: Array, confidence: float = 1 - 1e-6) -> Audit:
    """Lower bounds from a statistic of outputs of `one` and of `other`.

    Thresholds are chosen on a fifth of the outputs; the others count what lies beyond them, and
    Clopper and Pearson's bounds are taken of that, each with its share of what may go wrong. The
    choice doubts what it sees: of some 200 thresholds the one that looks best is else too often
    one in a tail that luck had left empty.
    """
    hold = len(null) // 5
    levels = np.concatenate([np.geomspace(0.5 / hold, 0.02, 60), np.linspace(0.02, 0.98, 97)])
    levels = np.concatenate([levels, 1 - levels[:60]])
    pooled = np.concatenate([null[:hold], other[:hold]])
    thresholds = np.unique(np.quantile(pooled, levels, method="closest_observation"))
    risk = (1 - confidence) / (2 * (2 + len(EPSILONS)))
    seen = [_beyond(each[:hold], thresholds) for each in (null, other)]
    size = len(null) - hold
    likely = _bounds(seen[0], seen[1], hold, DOUBT)
    guess = _bounds(likely[0] * size, likely[1] * size, size, risk)
    chosen = [int(_mu(*guess).argmax()), int(_epsilon(*guess).argmax())]
    chosen += [int(_delta(*guess, e).argmax()) for e in EPSILONS]
    left = [_beyond(each[hold:], thresholds[chosen]) for each in (null, other)]
    alarms, caught = _bounds(left[0], left[1], size, risk)
    deltas = {e: float(_delta(alarms[i], caught[i], e)) for i, e in enumerate(EPSILONS, start=2)}
    return Audit(
        float(_mu(alarms[0], caught[0])),
        float(_epsilon(alarms[1], caught[1])),
        deltas,
        list(zip(alarms.tolist(), caught.tolist(), strict=True)),
    )


def audit(mechanism: Any, pair: Pair, draws: int, *, compared: int = 5) -> Audit:
    """Audit a mechanism of the registry, on `draws` outputs of either neighbour."""
    one, other = (
        evidence(mechanism, pair, outputs(mechanism, given, rows, draws, compared=compared))
        for given, rows in zip((pair.one, pair.other), pair.rows, strict=True)
    )
    return audited(one, other)


def _beyond(statistic: Array, thresholds: Array) -> Array:
    return len(statistic) - np.searchsorted(np.sort(statistic), thresholds, side="left")


def _bounds(alarms: Array, caught: Array, size: int, risk: float) -> tuple[Array, Array]:
    """Of the probability of a false alarm from above, of finding a row from below."""
    most = np.where(
        alarms < size, betaincinv(alarms + 1, np.maximum(size - alarms, 1), 1 - risk), 1
    )
    least = np.where(caught > 0, betaincinv(np.maximum(caught, 1), size - caught + 1, risk), 0)
    return most, least


def _mu(alarms: Array, caught: Array) -> Array:
    return np.asarray(ndtri(np.clip(caught, 0, 1)) - ndtri(alarms))


def _epsilon(alarms: Array, caught: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        forth, back = np.log(caught / alarms), np.log((1 - alarms) / (1 - caught))
    return np.asarray(np.maximum(forth, back))


def _delta(alarms: Array, caught: Array, epsilon: float) -> Array:
    grows = math.exp(epsilon)
    return np.asarray(np.maximum(caught - grows * alarms, 1 - alarms - grows * (1 - caught)))


# --- Impossible outputs ---------------------------------------------------------------------------


def impossible(one: Array, own: Array, neighbours: Array, slack: float = 0.0) -> int:
    """How many of the outputs of one table its neighbour cannot have, if noise is never negative.

    Parameters
    ----------
    one
        Outputs, shape (draws, p, p).
    own, neighbours
        What they stand for, and what the neighbour's would.
    slack
        What rounding may do to an eigenvalue.

    Returns
    -------
    int
        0 unless all noise seen is positive semidefinite, as it never is with a full support.
    """
    if (np.linalg.eigvalsh(one - own)[:, 0] < -slack).any():
        return 0
    return int((np.linalg.eigvalsh(one - neighbours)[:, 0] < -slack).sum())


# --- Record and replay ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """One run of the pipeline with the tape in place of the sampler.

    Parameters
    ----------
    requests
        The noise that was asked for.
    published
        What is published, in units of the lattice, with the noise of the tape.
    rows
        The public or noisy number of rows.
    """

    requests: list[Request]
    published: Array
    rows: float


_facts = lru_cache(maxsize=64)(guarantee_facts)


class _Rows:
    """Takes published rows, and writes nothing."""

    def __init__(self, *_: Any) -> None:
        self.parts: list[Array] = []
        self.rows = 0

    def __enter__(self) -> _Rows:
        return self

    def __exit__(self, *_: object) -> None: ...

    def write(self, cells: Array) -> None:
        self.parts.append(cells)
        self.rows += cells.shape[1]


def played(plan: Plan, folder: Path) -> Seen:
    """Read the table and draw a release of it, by the pipeline's own steps up to the writing."""
    tape, writer, taken = Tape([]), _Rows(), []
    with pytest.MonkeyPatch.context() as patch, sampled(tape):
        # What follows from public facts alone need not be worked out for every table.
        patch.setattr("gramercy.application.calibration.calibrate", lambda asked: plan.mechanism)
        patch.setattr("gramercy.application.calibration.guarantee_facts", _facts)
        patch.setattr("gramercy.application.drawing.RowWriter", lambda path, columns: writer)
        patch.setattr(
            "gramercy.application.drawing.read_rows", lambda path, columns, rows: iter(writer.parts)
        )
        patch.setattr(
            "gramercy.application.drawing.write_matrices",
            lambda *written: taken.append(written[1:]),
        )
        draw_into(folder, plan, alone(accumulate)(plan), "r1")
    [(manifest, matrix, folds)] = taken
    if folds:
        sizes = [part.value for part in manifest.fold_rows]
        sums = [fold * rows for fold, rows in zip(folds, sizes, strict=True)]
        return Seen(tape.requests, np.array(sums) * plan.mechanism.lattice.divisor, sum(sizes))
    mechanism, rows = plan.mechanism, manifest.rows.value
    if plan.contract.neighbours == "replace-one":
        rows = float(plan.contract.rows)  # the public number, whatever the matrix was divided by
    if isinstance(mechanism, RowWise):
        return Seen(tape.requests, np.concatenate(writer.parts, axis=1) / mechanism.step, rows)
    if isinstance(mechanism, Output):
        return Seen(tape.requests, matrix / mechanism.step, rows)
    return Seen(tape.requests, matrix * rows * mechanism.lattice.divisor, rows)


def replayed(plan: Plan, folder: Path, one: str, other: str) -> float:
    """How far two tables are apart before the noise, as a share of what is claimed.

    Infinite where they ask for different noise. `one` and `other` are texts of CSV files.
    """
    runs = []
    for text in (one, other):
        Path(plan.contract.source).write_text(text)
        runs.append(played(plan, folder))
    left, right = runs
    if left.requests != right.requests or left.published.shape != right.published.shape:
        return math.inf
    mechanism = plan.mechanism
    counted = left.rows - right.rows if mechanism.setting.counted else 0.0
    return _share(mechanism, left.published - right.published, counted)


def _share(mechanism: Any, change: Array, counted: float) -> float:
    """The change over the largest that the claim allows for, by the norm of each mechanism."""
    claim, weighted = mechanism.guarantee, abs(COUNT_WEIGHT * counted) / mechanism.scale
    size = _NORMS[mechanism.name](mechanism, change)
    if isinstance(mechanism, Laplace):
        return (size + weighted) / claim.pure
    if isinstance(mechanism, MatrixLaplace):
        return (size + 0.1 * abs(counted) / mechanism.scale / 2) / claim.pure
    if isinstance(mechanism, Wishart):
        return size
    return math.hypot(size, weighted) / (claim.pure if claim.pure < math.inf else claim.mu)


def _frobenius(mechanism: Any, change: Array) -> float:
    return float(np.linalg.norm(change)) / (mechanism.scale * mechanism.lattice.ball)


def _triangle(mechanism: Any, change: Array) -> Array:
    unit = mechanism.scale * mechanism.lattice.ball
    return np.asarray(change[np.triu_indices(mechanism.setting.p)] / unit)


def _reports(mechanism: Any, change: Array) -> float:
    i, j = np.triu_indices(mechanism.setting.p)
    weight = np.where((i == j) | mechanism.iid, 1.0, math.sqrt(2))[:, None]
    return float(np.linalg.norm(change * weight)) / (mechanism.scale * mechanism.lattice.ball)


def _rows(mechanism: Any, change: Array) -> float:
    return float(np.linalg.norm(change)) * mechanism.step / mechanism.scale


def _nuclear(mechanism: Any, change: Array) -> float:
    values = np.linalg.eigvalsh(change)
    return float(np.abs(values).sum()) / (2 * mechanism.scale * mechanism.lattice.ball)


def _one_gone_one_come(mechanism: Any, change: Array) -> float:
    values = np.linalg.eigvalsh(change) / mechanism.lattice.ball
    return max(float(values[values > 0].sum()), -float(values[values < 0].sum()))


_NORMS: dict[str, Callable[[Any, Array], float]] = {
    "gaussian": _frobenius,
    "gaussian-iid": lambda mechanism, change: float(np.linalg.norm(_triangle(mechanism, change))),
    "laplace": lambda mechanism, change: float(np.abs(_triangle(mechanism, change)).sum()),
    "k-norm": _frobenius,
    "matrix-laplace": _nuclear,
    "wishart": _one_gone_one_come,
    "rows": _rows,
    "integer-rows": _rows,
    "local": _reports,
    "output": _rows,
}


# --- Freshness, and the frozen matrix -------------------------------------------------------------


def fresh(mechanism: Any, pair: Pair) -> bool:
    """Whether two runs of draws on the same data differ, and the draws of each, in every number.

    Whole numbers are often the same twice, and never ten times.
    """
    one, other = (called(mechanism, pair.one, pair.rows[0], 10).values for _ in range(2))
    return not ((one == other).all(axis=0).any() or (one[1:] == one[0]).all(axis=0).any())


def public(request: Path) -> dict[str, bytes]:
    """All files of a release, by name."""
    root = Home.default().archive / "toy" / run_steps(request)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def frozen(folder: Path, tables: Sequence[str], **facts: Any) -> list[dict[str, bytes]]:
    """What is public of releases of different tables whose noisy matrix is the same."""
    same = np.diag(np.full(3, 10**8)) + 10**5
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gaussian, "perturb", lambda *_: Noisy(same, None))
        new_key(folder / "keys")  # one curator, whose signature is the same for the same bytes
        for i, text in enumerate(tables):
            place = folder / str(i)
            place.mkdir()
            (place / "table.csv").write_text(text)
            shutil.copytree(folder / "keys", place / "home" / "keys")
            patch.setenv("GRAMERCY_HOME", str(place / "home"))
            seen.append(public(scene(place, **facts)))
    return seen
