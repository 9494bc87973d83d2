"""What a variant changes, over all releases and by kind of table."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.ablation.cells import Result, Scores
from benchmarks.arrays import Array

_TINY = 1e-5  # smaller errors are equally good


@dataclass(frozen=True)
class Effect:
    """A variant against today's rule; of means, standard deviations and correlations.

    Parameters
    ----------
    releases, changed
        All releases, and those that are not exactly today's.
    errors, doubt, widths
        Geometric mean ratios of errors, the standard errors of their logarithms, and geometric
        mean ratios of the widths of intervals.
    coverage
        Mean change of coverage.
    green, false, missed
        Changes of the numbers of green verdicts, of false ones, and of fine releases not green.
    worst
        The kind whose errors grow most, and its geometric mean ratio.
    """

    releases: int
    changed: int
    errors: tuple[float, ...]
    doubt: tuple[float, ...]
    widths: tuple[float, ...]
    coverage: tuple[float, ...]
    green: int
    false: int
    missed: int
    worst: tuple[str, float]

    @classmethod
    def of(cls, results: Sequence[Result]) -> Effect:
        """The effect over the cells of a variant."""
        releases = sum(each.releases for each in results)
        pairs = [pair for each in results for pair in each.changed]
        logs = {
            of: np.array([_ratios(getattr(a, of), getattr(b, of)) for a, b in pairs]).reshape(-1, 3)
            for of in ("errors", "widths")
        }
        change = np.array([np.subtract(b.coverage, a.coverage) for a, b in pairs]).reshape(-1, 3)
        verdicts = np.array(
            [np.subtract(_verdict(b), _verdict(a)) for a, b in pairs], dtype=int
        ).reshape(-1, 3)
        green, false, missed = map(int, verdicts.sum(axis=0))
        return cls(
            releases,
            len(pairs),
            _triple(np.exp(logs["errors"].sum(axis=0) / releases)),
            _triple(np.sqrt((logs["errors"] ** 2).sum(axis=0)) / releases),
            _triple(np.exp(logs["widths"].sum(axis=0) / releases)),
            _triple(np.nansum(change, axis=0) / releases),
            green,
            false,
            missed,
            max(_by_kind(results), key=lambda each: each[1]),
        )


def _verdict(scores: Scores) -> tuple[int, int, int]:
    return int(scores.green), int(scores.false), int(scores.fine and not scores.green)


def _ratios(today: Sequence[float], variant: Sequence[float]) -> list[float]:
    """Logarithms of ratios; zero where either is unknown."""
    logs = [math.log(max(b, _TINY) / max(a, _TINY)) for a, b in zip(today, variant, strict=True)]
    return [0.0 if math.isnan(each) else each for each in logs]


def _triple(values: Array) -> tuple[float, ...]:
    return tuple(map(float, values))


def _by_kind(results: Iterable[Result]) -> list[tuple[str, float]]:
    """The geometric mean ratio of all errors, by kind of table."""
    logs, releases = defaultdict[str, float](float), defaultdict[str, int](int)
    for each in results:
        releases[each.cell.kind] += each.releases
        logs[each.cell.kind] += sum(
            float(np.mean(_ratios(a.errors, b.errors))) for a, b in each.changed
        )
    return [(kind, math.exp(logs[kind] / count)) for kind, count in releases.items() if count]
