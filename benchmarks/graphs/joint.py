"""Groups that share edges, or none, and periods that drift: each graph alone, and all jointly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs import releases, scores
from benchmarks.graphs.scores import Edges, Scores, Target
from benchmarks.graphs.truths import KINDS, Truth, of_precision, precision
from gramercy.estimators.equal_terms import together
from gramercy.estimators.estimator import Estimate
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.joint_graphical_lasso import JointGraphicalLasso
from gramercy.estimators.solvers.joint import joint_graphical_lasso
from gramercy.estimators.tuning.penalty_rule import edge_mask
from gramercy.schemas.evidence import Evidence

COLUMNS, EPSILON, GROUPS, ROWS = 30, 1.0, (4, 8), (2000, 5000)
OWN = 0.1  # share of the edges of a group that no other group has
DRIFT = 0.07  # share of the edges of a period that the next one has elsewhere
SHARED, APART, DRIFTING = ("edges in common", "nothing in common", "drift")
SOURCES = {
    f"{kind}, {shared}": (kind, shared) for shared in (SHARED, APART, DRIFTING) for kind in KINDS
}
METHODS = {
    "single-auto": "each alone, auto",
    "single-ebic": "each alone, ebic",
    "single-best": "each alone, best penalty",
    "joint": "joint",
    "joint-best": "joint, best penalties",
}
FUSED = METHODS | {"fused": "joint, fused"}  # of periods that drift
_CORRELATION = GraphicalLasso(scale="correlation")
_SHARES, _PENALTIES = (0.0, 0.15, 0.3, 0.5, 0.8), np.geomspace(0.5, 0.06, 15)


def truths_of(source: str, groups: int, rng: Rng) -> list[Truth]:
    """Graphs of the groups: a common one with some of its edges moved, or unrelated ones.

    Of periods, each has the graph of the one before with a few edges moved.
    """
    kind, shared = SOURCES[source]
    common = precision(kind, COLUMNS, rng)
    if shared == SHARED:
        return [of_precision(_moved(common, OWN, rng)) for _ in range(groups)]
    if shared == DRIFTING:
        periods = [common]
        while len(periods) < groups:
            periods.append(_moved(periods[-1], DRIFT, rng))
        return [of_precision(each) for each in periods]
    orders = [rng.permutation(COLUMNS) for _ in range(groups)]
    return [of_precision(precision(kind, COLUMNS, rng)[np.ix_(each, each)]) for each in orders]


def _moved(common: Array, share: float, rng: Rng) -> Array:
    """The same weights, some of them at other pairs, and the same smallest eigenvalue."""
    own = np.triu(common, 1) * (np.abs(common) > scores.NO_EDGE)
    edges, free = np.argwhere(own), np.argwhere(np.triu(own == 0, 1))
    count = round(share * len(edges))
    old = edges[rng.choice(len(edges), count, replace=False)]
    new = free[rng.choice(len(free), count, replace=False)]
    own[tuple(new.T)], own[tuple(old.T)] = own[tuple(old.T)], 0.0
    own += own.T
    smallest = np.linalg.eigvalsh(common)[0] - np.linalg.eigvalsh(own)[0]
    moved: Array = own + smallest * np.eye(COLUMNS)
    return moved


def measured(source: str, n: int, groups: int, rng: Rng) -> Iterator[tuple[str, Scores]]:
    """Yield the mean F1 over the groups of every method."""
    truths = truths_of(source, groups, rng)
    evidence = [releases.isotropic(each.rows(n, rng), EPSILON, rng) for each in truths]
    targets = [Target(each.moment, each.edges, True) for each in truths]
    for name, estimator in (
        ("single-auto", GraphicalLasso()),
        ("single-ebic", GraphicalLasso(penalty="ebic")),
    ):
        fitted = [estimator.fit(each).matrix for each in evidence]
        yield name, _mean(np.stack([edge_mask(T) for T in fitted]), targets)
    tables = together({f"{k}": each for k, each in enumerate(evidence)})
    jointly = {"joint": JointGraphicalLasso()}
    if SOURCES[source][1] == DRIFTING:
        jointly["fused"] = JointGraphicalLasso(structure="fused")
    for name, both in jointly.items():
        yield name, _mean(_graphs(both.fit(tables), groups), targets)
    paths = [list(_path(evidence, share)) for share in _SHARES]
    for name, candidates in (("single-best", paths[:1]), ("joint-best", paths)):
        found = [_mean(graphs, targets) for path in candidates for graphs in path]
        yield name, max(found, key=lambda each: each.f1 or 0.0)


def _mean(graphs: Edges, targets: list[Target]) -> Scores:
    each = [scores.f1(*pair) for pair in zip(graphs, targets, strict=True)]
    false = [scores.false(*pair) for pair in zip(graphs, targets, strict=True)]
    return Scores(f1=float(np.mean(each)), false=float(np.mean(false)))


def _graphs(estimate: Estimate, groups: int) -> Edges:
    graphs = np.zeros((groups, COLUMNS, COLUMNS), dtype=bool)
    edges = estimate.tables["edges"]
    at = [edges[key].str.removeprefix("x").astype(int) for key in ("table", "row", "column")]
    graphs[at[0], at[1], at[2]] = graphs[at[0], at[2], at[1]] = True
    return graphs


def _path(evidence: list[Evidence], share: float) -> Iterator[Edges]:
    """The graphs at every penalty; see `JointGraphicalLasso`."""
    S = np.stack([_CORRELATION.matrix(each) for each in evidence])
    start = None
    for penalty in _PENALTIES:
        separate, shared = penalty * (1 - share), penalty * share * len(S) ** 0.5
        start = joint_graphical_lasso(S, separate, shared, start=start, conditions=False)
        yield np.stack([edge_mask(T) for T in start.precisions])
