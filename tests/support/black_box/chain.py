"""The adaptive draws of one release, replayed on many tables with one published history.

Later draws depend on what earlier ones published. So two tables are compared at a fixed history:
on each table, the noise of every draw is chosen so that the same numbers are published. What
remains to be compared is the exact input of every draw, and the noise that it requested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.archive.bundles.bundle_kinds import Whitening
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.histograms import HistogramNoise
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.drawing import draw_into
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.manifest import ReleaseManifest
from tests.support.black_box.replay import Array, Request, Tape, patched_sampler
from tests.support.factories import as_flow_step

History = Sequence[Array]


@dataclass(frozen=True)
class Draw:
    """The exact input of a draw, and the noise that it requested of the sampler.

    Parameters
    ----------
    exact
        Everything that noise was added to, in the order of the requests.
    requests
        The requests; those of all parts together have the size of `exact`.
    gram
        The exact sum over rows, if it is one.
    """

    exact: Array
    requests: list[Request]
    gram: Array | None = None

    @property
    def scales(self) -> Array:
        """The standard deviation of the noise of every entry of `exact`."""
        parts = [np.full(size, parameters[0]) for _, parameters, size in self.requests]
        return np.concatenate(parts)


@dataclass
class Replayed:
    """A release drawn from one table at a given history.

    Parameters
    ----------
    draws
        All draws in their order.
    published
        Everything else that the history determines: constants, radii, bins, the metric.
    history
        What every draw published.
    """

    draws: list[Draw] = field(default_factory=list)
    published: list[Any] = field(default_factory=list)
    history: list[Array] = field(default_factory=list)


def replay_chain(plan: Plan, table: bytes, folder: Path, history: History = ()) -> Replayed:
    """Draw a release that estimates its constants, with the pipeline's own steps.

    Parameters
    ----------
    plan
        The plan; its table is overwritten.
    table
        Content of the table.
    folder
        An empty folder.
    history
        What to publish in each draw; where it ends, the noise of a tape.
    """
    Path(plan.contract.source).write_bytes(table)
    replayed = Replayed()
    with recorded(replayed, history), pytest.MonkeyPatch.context() as patch:

        def written(_: Path, manifest: ReleaseManifest, *results: Any) -> None:
            constants = manifest.columns, manifest.normalisation, manifest.scaling
            listed = (x for each in results if isinstance(each, list | tuple) for x in each)
            histograms = (each for each in listed if isinstance(each, Histogram))
            metrics = (each.metric.tolist() for each in results if isinstance(each, Whitening))
            replayed.published += [*constants, *map(_plain, histograms), *metrics]

        patch.setattr("gramercy.pipeline.publish.drawing.write_matrices", written)
        patch.setattr("gramercy.pipeline.publish.drawing.write_release", written)
        draw_into(folder, plan, as_flow_step(accumulate)(plan), "r1")
    return replayed


def squared_distance(first: Replayed, second: Replayed) -> float:
    """The squared mu that two tables use up: the distances of all draws in units of the noise.

    Infinite if the noise, or anything else that must follow from the history, differs.
    """
    if first.published != second.published or len(first.draws) != len(second.draws):
        return math.inf
    total = 0.0
    for one, two in zip(first.draws, second.draws, strict=True):
        if one.requests != two.requests or one.exact.shape != two.exact.shape:
            return math.inf
        if sum(size for *_, size in one.requests) != one.exact.size:
            return math.inf  # something has no noise of its own
        total += float((((one.exact - two.exact) / one.scales) ** 2).sum())
    return total


def _plain(histogram: Histogram) -> Any:
    """A histogram in a form that can be compared."""
    arrays = histogram.lower, histogram.upper, histogram.count
    return histogram.column, histogram.level, histogram.sd, *(each.tobytes() for each in arrays)


def rows_moved(first: Replayed, second: Replayed) -> int:
    """In how many rows, at least, any two sums over the rows of two tables differ."""
    changes = (
        (one.gram - two.gram).astype(np.float64)
        for one, two in zip(first.draws, second.draws, strict=True)
        if one.gram is not None and two.gram is not None
    )
    return max((int(np.linalg.matrix_rank(each, tol=1e-3)) for each in changes), default=0)


@contextmanager
def recorded(replayed: Replayed, history: History) -> Iterator[None]:
    """Record every draw, and make what it publishes equal to a history."""
    tape, perturb_counts, perturb_gram = Tape([]), HistogramNoise.perturb, Gaussian.perturb

    def drawn(draw: Callable[[], Any], exact: Array, gram: Array | None = None) -> Any:
        """The result of a draw of which the exact input is given in the order of its requests."""
        turn, requests = len(replayed.draws), list[Request]()
        fits = turn < len(history) and history[turn].shape == exact.shape  # flaws move bins
        noise = history[turn] - exact if fits else None

        def sample(name: str, parameters: tuple[float, ...], size: int) -> Array:
            start = sum(each for *_, each in requests)
            from_tape = tape(name, parameters, size)
            requests.append(tape.requests[-1])
            return from_tape if noise is None else noise[start : start + size]

        with patched_sampler(sample):
            result = draw()
        replayed.draws.append(Draw(exact, requests, gram))
        return result

    def recorded_counts(noise: HistogramNoise, counts: Sequence[Array]) -> Any:
        noisy = drawn(lambda: perturb_counts(noise, counts), np.concatenate(counts))
        replayed.history.append(np.concatenate(noisy))
        return noisy

    def recorded_gram(mechanism: Gaussian, gram: Array, rows: int) -> Any:
        count = [rows] if mechanism.parameters.publishes_noisy_count else []
        noisy = drawn(lambda: perturb_gram(mechanism, gram, rows), _entries(gram, count), gram)
        replayed.history.append(_entries(noisy.gram, [] if noisy.rows is None else [noisy.rows]))
        return noisy

    def prefix_stable(kind: str) -> Any:
        """Randomness of rows that is the same for the same positions, in every table."""
        calls = iter(range(1000))

        def draw(*arguments: int) -> Array:
            rng = np.random.default_rng([next(calls), len(kind)])
            if kind == "keys":
                return rng.integers(1 << 63, size=(arguments[0], 2)).astype(np.uint64).T
            return rng.integers(arguments[0], size=arguments[1])

        return draw

    with pytest.MonkeyPatch.context() as patch, patched_sampler(tape):
        patch.setattr(HistogramNoise, "perturb", recorded_counts)
        patch.setattr(Gaussian, "perturb", recorded_gram)
        patch.setattr(sampler, "random_keys", prefix_stable("keys"))
        patch.setattr(sampler, "uniform_integers", prefix_stable("folds"))
        yield


def _entries(gram: Array, count: Sequence[int]) -> Array:
    """A symmetric matrix and a count, in the order in which their noise is requested."""
    above = gram[np.triu_indices(len(gram), 1)]
    return np.concatenate([above, np.diag(gram), np.array(count, gram.dtype)])
