"""The adaptive draws of one release, replayed on many tables with one published history.

Later draws depend on what earlier ones published. So two tables are compared at a fixed history:
on each table, the noise of every histogram is chosen so that the same counts are published. What
remains to be compared is the exact input of every draw, and the noise that it requested.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
    """

    exact: Array
    requests: list[Request]

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
        Everything else that the history determines: constants, radius, bins.
    history
        The published counts of every histogram draw.
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
        Counts to publish in each draw of histograms; where it ends, the noise of a tape.
    """
    Path(plan.contract.source).write_bytes(table)
    replayed = Replayed()
    with _recorded(replayed, history), pytest.MonkeyPatch.context() as patch:

        def written(_: Path, manifest: ReleaseManifest, *results: Any) -> None:
            constants = manifest.columns, manifest.normalisation, manifest.scaling
            listed = (x for each in results if isinstance(each, list | tuple) for x in each)
            histograms = (each for each in listed if isinstance(each, Histogram))
            replayed.published += [*constants, *map(_plain, histograms)]

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
        total += float((((one.exact - two.exact) / one.scales) ** 2).sum())
    return total


def _plain(histogram: Histogram) -> Any:
    """A histogram in a form that can be compared."""
    arrays = histogram.lower, histogram.upper, histogram.count
    return histogram.column, histogram.level, histogram.sd, *(each.tobytes() for each in arrays)


@contextmanager
def _recorded(replayed: Replayed, history: History) -> Iterator[None]:
    """Record every draw, and make the counts of histograms equal to a history."""
    tape, perturb_counts, perturb_gram = Tape([]), HistogramNoise.perturb, Gaussian.perturb
    published: list[Array] = []

    def counts_of_history(noise: HistogramNoise, counts: Sequence[Array]) -> Any:
        exact, turn = np.concatenate(counts), len(published)
        fits = turn < len(history) and history[turn].shape == exact.shape  # flaws move bins
        answer = history[turn] - exact if fits else None
        requests: list[Request] = []

        def sample(name: str, parameters: tuple[float, ...], size: int) -> Array:
            drawn = tape(name, parameters, size)
            requests.append(tape.requests[-1])
            return drawn if answer is None else answer

        with patched_sampler(sample):
            noisy = perturb_counts(noise, counts)
        published.append(np.concatenate(noisy))
        replayed.draws.append(Draw(exact, requests))
        return noisy

    def recorded_gram(mechanism: Gaussian, gram: Array, rows: int) -> Any:
        p, before = len(gram), len(tape.requests)
        noisy = perturb_gram(mechanism, gram, rows)
        parts = [gram[np.triu_indices(p, 1)], np.diag(gram)]
        parts += [] if noisy.rows is None else [np.array([rows])]
        replayed.draws.append(Draw(np.concatenate(parts), tape.requests[before:]))
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
        patch.setattr(HistogramNoise, "perturb", counts_of_history)
        patch.setattr(Gaussian, "perturb", recorded_gram)
        patch.setattr(sampler, "random_keys", prefix_stable("keys"))
        patch.setattr(sampler, "uniform_integers", prefix_stable("folds"))
        yield
    replayed.history = published
