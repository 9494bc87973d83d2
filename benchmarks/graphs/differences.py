"""Pairs of releases whose graphs are equal, or differ in few edges or in many.

The first release has n rows; the second has as many, or a quarter of them, by turns. Of four
groups of n rows, three have the same graph, and all pairs are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs import releases
from benchmarks.graphs.scores import Scores
from benchmarks.utility.matrices import goe
from gramercy.estimators.equal_terms import together
from gramercy.estimators.graph_difference import Difference
from gramercy.estimators.noise.denoise import denoise
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts

KINDS = ("ar1", "hub", "random")
CHANGES = {
    "none": "Equal graphs: the share of pairs in which any difference is found",
    "few": "Of p columns, p / 10 edges, at least two, are taken away, and as many are added",
    "many": "The columns of the second graph are permuted",
}
TAILS = {
    "normal": "normal rows",
    "t": "rows of a t distribution with five degrees of freedom",
    "columns": "columns of powers 1.5 of normal ones",
}
COLUMNS, ROWS, DRAWS = (10, 30, 60), (2000, 50_000), 4
GROUPS = "groups"  # in the place of a change
_RADIUS = 1.5  # times the root of the number of columns; a few rows in a hundred are clipped
_LENGTHS_SD = 10.0  # of the noise of the histogram of row lengths


def measured(source: str, n: int, p: int, epsilon: float, rng: Rng) -> Iterator[tuple[str, Scores]]:
    """Yield the scores of found differences by the law of the rows, and of the D-trace loss."""
    kind, change = source.split(":")
    if change == GROUPS:
        found = np.mean([_of_groups(kind, n, p, epsilon, rng) for _ in range(DRAWS)], axis=0)
        yield "pairs", Scores(f1=found[0], false=found[1])
        yield "equal-pairs", Scores(false=found[2])
        return
    for tails in TAILS:
        found = [
            _scores(kind, change, tails, (n, n // (1, 4)[k % 2]), p, epsilon, rng)
            for k in range(DRAWS)
        ]
        for name, own in zip(("difference", "precision"), zip(*found, strict=True), strict=True):
            f1, false = np.mean(own, axis=0)
            yield f"{name}-{tails}", Scores(f1=None if change == "none" else f1, false=false)


def _scores(
    kind: str, change: str, tails: str, rows: tuple[int, int], p: int, epsilon: float, rng: Rng
) -> list[tuple[float, float]]:
    graphs = _graphs(kind, change, p, rng)
    pair = [
        _released(_rows(graph, n, tails, rng), epsilon, rng)
        for graph, n in zip(graphs, rows, strict=True)
    ]
    both = together(dict(zip("AB", pair, strict=True)))
    estimate = Difference(between=("A", "B")).fit(both)
    sparse = estimate.matrices["precision_difference"]
    return [_compared(matrix, graphs) for matrix in (estimate.edges, sparse)]


def _compared(found: Array | None, graphs: Sequence[Array]) -> tuple[float, float]:
    """F1 and the share of false differences."""
    assert found is not None
    upper = np.triu_indices(len(graphs[0]), 1)
    truth, own = (np.abs(graphs[0] - graphs[1]) > 1e-9)[upper], found[1:, 1:][upper] != 0
    right = float((own & truth).sum())
    f1 = 2 * right / max(float(own.sum() + truth.sum()), 1.0)
    return f1, float((own & ~truth).sum()) / max(float(own.sum()), 1.0)


def _of_groups(kind: str, n: int, p: int, epsilon: float, rng: Rng) -> tuple[float, float, float]:
    """Mean F1 of the pairs that differ, and of all and of equal pairs the false share."""
    common, other = _graphs(kind, "few", p, rng)
    graphs = dict(zip("ABCD", (common, common, common, other), strict=True))
    evidence = together(
        {
            name: _released(_rows(graph, n, "normal", rng), epsilon, rng)
            for name, graph in graphs.items()
        }
    )
    scores = {
        pair: _compared(
            Difference(between=pair).fit(evidence).edges, [graphs[name] for name in pair]
        )
        for pair in combinations(graphs, 2)
    }
    f1 = np.mean([own for pair, (own, _) in scores.items() if "D" in pair])
    equal = np.mean([false for pair, (_, false) in scores.items() if "D" not in pair])
    return float(f1), float(np.mean([false for _, false in scores.values()])), float(equal)


def _graphs(kind: str, change: str, p: int, rng: Rng) -> tuple[Array, Array]:
    """Two precision matrices of equal diagonals."""
    first = _links(kind, p, rng)
    second = first.copy()
    if change == "few":
        for links, value in ((first != 0, 0.0), (first == 0, 0.4)):
            pairs = np.argwhere(np.triu(links, 1))
            for i, j in rng.permutation(pairs)[: max(2, p // 10)]:
                second[i, j] = second[j, i] = value * rng.choice([-1, 1])
    if change == "many":
        order = rng.permutation(p)
        second = first[np.ix_(order, order)]
    least = min(np.linalg.eigvalsh(each)[0] for each in (first, second))
    identity = (0.2 - least) * np.eye(p)
    return first + identity, second + identity


def _links(kind: str, p: int, rng: Rng) -> Array:
    links = np.zeros((p, p))
    if kind == "ar1":
        links[np.arange(p - 1), np.arange(1, p)] = -0.4
    elif kind == "hub":
        for hub in range(0, p, 10):
            links[hub, hub + 1 : hub + 10] = 0.3
    else:
        some = np.triu(rng.random((p, p)) < 3 / p, 1)
        links = some * rng.uniform(0.3, 0.6, (p, p)) * rng.choice([-1, 1], (p, p))
    both: Array = links + links.T
    return both


def _rows(precision: Array, n: int, tails: str, rng: Rng) -> Array:
    covariance = np.linalg.inv(precision)
    root = np.sqrt(np.diag(covariance))
    rows = (
        rng.standard_normal((n, len(root)))
        @ np.linalg.cholesky(covariance / np.outer(root, root)).T
    )
    if tails == "t":
        rows *= math.sqrt(3 / 5) / np.sqrt(rng.chisquare(5, n) / 5)[:, None]
    elif tails == "columns":
        rows = np.sign(rows) * np.abs(rows) ** 1.5 / 1.5
    result: Array = rows
    return result


def _released(table: Array, epsilon: float, rng: Rng) -> Evidence:
    """A release with an intercept, public constants and clipped rows."""
    n, p = table.shape
    rows = np.column_stack([np.ones(n), table])
    radius, lengths = _RADIUS * math.sqrt(p + 1), np.linalg.norm(rows, axis=1)
    rows *= (np.minimum(1.0, radius / lengths) / radius)[:, None]
    s = releases.scale("gaussian", p + 1, epsilon) / n
    raw = rows.T @ rows / n + goe(rng, p + 1, s)
    law = releases.gaussian_law(s)
    edges = np.linspace(0.0, radius, 21)
    exact = np.histogram(np.minimum(lengths, radius), np.append(edges, np.inf))[0]
    count = exact + np.round(rng.normal(0.0, _LENGTHS_SD, exact.size)).astype(np.int64)
    columns = [
        ColumnFacts(name=f"c{j}", lower=-20.0, upper=20.0, centre=0.0, scale=1.0) for j in range(p)
    ]
    return Evidence(
        raw,
        denoise(raw, law, unit=False),
        law,
        float(n),
        names=("(intercept)", *(each.name for each in columns)),
        columns=(None, *columns),
        unit=False,
        radius=radius,
        histograms=(Histogram.of_lengths(2, "(row lengths)", edges, count, _LENGTHS_SD),),
    )
