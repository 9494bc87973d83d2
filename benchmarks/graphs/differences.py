"""Pairs of releases whose graphs are equal, or differ in few edges or in many.

The first release has n rows; the second has as many, or a quarter of them, by turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

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
_RADIUS = 1.5  # times the root of the number of columns; a few rows in a hundred are clipped
_LENGTHS_SD = 10.0  # of the noise of the histogram of row lengths


def measured(source: str, n: int, p: int, epsilon: float, rng: Rng) -> Iterator[tuple[str, Scores]]:
    """Yield the scores of found differences by the law of the rows, and of the D-trace loss."""
    kind, change = source.split(":")
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
    upper = np.triu_indices(p, 1)
    truth = (np.abs(graphs[0] - graphs[1]) > 1e-9)[upper]
    result = []
    for matrix in (estimate.edges, estimate.matrices["precision_difference"]):
        assert matrix is not None
        found = matrix[1:, 1:][upper] != 0
        right = float((found & truth).sum())
        f1 = 2 * right / max(float(found.sum() + truth.sum()), 1.0)
        result.append((f1, float((found & ~truth).sum()) / max(float(found.sum()), 1.0)))
    return result


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
