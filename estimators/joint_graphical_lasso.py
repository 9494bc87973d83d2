"""Graphs of several tables that share edges: the joint graphical lasso, and its penalties.

Danaher, Wang and Witten (2014); see `estimators.solvers.joint`. The matrices are correlations of
the groups of a release, or of several releases, each with a noise law of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import gammaln

from gramercy.estimators.about_means import about_means, conditional_columns, of_columns
from gramercy.estimators.estimator import Estimate, Estimator, partial_correlations
from gramercy.estimators.input_matrix import correlation_matrix
from gramercy.estimators.pooled_releases import ReleaseNames
from gramercy.estimators.pooling.agreement import tables
from gramercy.estimators.solvers.joint import JointSolution, Structure, joint_graphical_lasso
from gramercy.estimators.table_units import rows_lost
from gramercy.estimators.tuning.information import GraphDeviance, refit
from gramercy.estimators.tuning.parallel import parallel_map
from gramercy.estimators.tuning.penalty_rule import edge_mask
from gramercy.estimators.uncertainty.moment_errors import has_intercept
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence, ReleaseEvidence
from gramercy.schemas.facts import OTHER
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import Positive

Array = NDArray[np.float64]

_REPRODUCIBLE = 1e-13  # gap per column at which the estimates of two machines agree to 1e-6
_ON_PATH = 1e-6
_STEP = 1.15  # ratio of successive penalties of a grid
_PATIENCE = 4  # worse scores after the best one so far, at which a path ends
_SHARED: Mapping[Structure, tuple[float, ...]] = {
    "group": (0.0, 0.15, 0.3, 0.5),
    "fused": (0.0, 0.2, 0.5, 1.0),
}


class JointGraphicalLasso(Estimator):
    """``joint-graphical-lasso``: a graph for each of several tables, which share edges.

    Parameters
    ----------
    releases
        Names of the other releases, DATASET/RELEASE: a list, or a text with commas, in the order of
        their periods. Without, the tables are the groups of this release.
    structure
        ``group``: an edge of one table makes the same edge of the others more likely. ``fused``,
        for periods in their order: the same edge has similar weights in successive tables.
    penalty
        A positive number, or ``auto``. At 1 all graphs are empty.
    shared
        How much of the penalty is shared: from 0, where every table has a graph of its own, to 1;
        or ``auto``.

    Notes
    -----
    Its penalties for P of `estimators.solvers.joint` are, for K tables, penalty (1 - shared) and
    penalty shared sqrt(K), so that a pair with equal entries in all tables has the same threshold
    for every `shared`. If ``fused``, they are penalty and penalty shared.

    All tables have equal weights n_k, so one threshold. In 12 simulated cells of groups of unequal
    sizes (1,000 to 8,000 rows, epsilon 1, 30 columns), with penalties chosen as here, the mean F1
    of the edges was 0.86. It was 0.81 with the fourth roots of the effective sample sizes as
    weights, and lower with their square roots: the threshold of a small group was too large.

    What is ``auto`` has the smallest extended BIC (Chen and Chen 2008, gamma = 1/2): as `ebic` of
    `estimators.tuning.information`, summed over the tables, plus the logarithm of the number of
    families of graphs with as many pairs in any graph, each in as many graphs. Edges of a few pairs
    in many tables cost less than others, so this decides how much is shared.

    The penalties choose the graphs. Weights are those of the maximum likelihood estimate with this
    graph, since penalties would shrink them.

    Columns that are usable in all tables have edges; see `estimators.about_means`.
    """

    name: Literal["joint-graphical-lasso"] = "joint-graphical-lasso"
    releases: ReleaseNames = ()
    structure: Structure = "group"
    penalty: Literal["auto"] | Positive = "auto"
    shared: Literal["auto"] | Annotated[float, Field(ge=0, le=1)] = "auto"

    def check(self, spec: ReleaseSpec) -> None:
        if not self.releases and (spec.by is None or self.group is not None):
            raise wordings.groups_missing()

    @property
    def other_releases(self) -> tuple[str, ...]:
        return self.releases

    def check_together(self, releases: Sequence[tuple[str, ReleaseSpec]]) -> None:
        names = [name for name, _ in releases]
        if len(set(names)) < len(names):
            raise wordings.pool_too_small(", ".join(names))
        tables(releases, "disjoint")

    def evidence_of(self, releases: Sequence[ReleaseEvidence]) -> Evidence:
        if not self.releases:
            return releases[0].evidence
        return together({each.name: each.evidence for each in releases})

    def fit(self, evidence: Evidence) -> Estimate:
        """Tables only.

        ``edges``: a line for each edge of each table, with its partial correlation as ``weight``.
        ``tables``: the number of rows, the effective sample size and the number of edges of each
        table; one whose rows are within the noise is ``lost in noise`` and has no graph.
        ``columns``: the columns that may have edges. ``tuning``: the criterion, if it was used.

        Raises RequestError if there are fewer than two tables above the noise.
        """
        groups = {name: group for name, group in evidence.groups if name != OTHER}
        if not groups:
            raise wordings.groups_missing()
        used = {name: group for name, group in groups.items() if not rows_lost(group)}
        if len(used) < 2:
            raise families.ESTIMATE(
                "Fewer than two of {groups} groups are above the noise.",
                "Publish with more rows or a larger epsilon, or by a column of fewer levels.",
                groups=len(groups),
            )
        parts = _common_columns(list(used.values()))
        problem = _Tables.of(parts, self.structure)
        shared = _SHARED[self.structure] if self.shared == "auto" else (self.shared,)
        grid = problem.grid() if self.penalty == "auto" else np.array([self.penalty])
        results = {}
        if len(shared) * len(grid) > 1:
            of_shares = parallel_map(partial(problem.path, grid), list(shared))
            scored = pd.DataFrame([line for path in of_shares for line in path])
            results["tuning"] = scored
            best = scored.loc[scored["score"].idxmin()]
            chosen = float(best["shared"]), float(best["penalty"])
        else:
            chosen = float(shared[0]), float(grid[0])
        solution = problem.solve(*chosen, tol=_REPRODUCIBLE, conditions=True)
        names = parts[0].names or tuple(f"x{k}" for k in range(len(parts[0].raw)))
        edges = {
            name: partial_correlations(refit(matrix, edge_mask(T)))
            for name, matrix, T in zip(used, problem.S, solution.precisions, strict=True)
        }
        sizes = dict(zip(used, problem.rows, strict=True))
        results["edges"] = pd.concat([_edges(*each, names) for each in edges.items()])
        results["tables"] = pd.DataFrame(
            {
                "table": pd.Series(list(groups), dtype="str"),
                "status": ["used" if name in used else "lost in noise" for name in groups],
                "rows": [group.rows for group in groups.values()],
                "effective_rows": [sizes.get(name, np.nan) for name in groups],
                "edges": [np.count_nonzero(edges.get(name, 0)) // 2 for name in groups],
            }
        )
        results["columns"] = pd.DataFrame({"column": pd.Series(names, dtype="str")})
        tuning = {"penalty": chosen[1], "shared": chosen[0]}
        order = ("edges", "tables", "columns", "tuning")
        ordered = {key: results[key].reset_index(drop=True) for key in order if key in results}
        return Estimate("joint-graph", {}, tuning, ordered)


def together(evidence: Mapping[str, Evidence]) -> Evidence:
    """Evidence of several tables by name, as if they were the groups of the first one's release."""
    first = next(iter(evidence.values()))
    return Evidence(
        first.raw, first.repaired, first.law, first.rows, groups=tuple(evidence.items())
    )


def _common_columns(tables: Sequence[Evidence]) -> list[Evidence]:
    """Each table about its means, with the columns that are usable in all, in the first's order.

    Raises RequestError if there are none.
    """
    centred, usable = [], []
    for table in tables:
        is_whole = not has_intercept(table) or len(table.raw) == 1
        own = table if is_whole else about_means(table).evidence
        used = np.arange(len(own.raw)) if is_whole else conditional_columns(table)
        names = own.names or tuple(f"x{k}" for k in range(len(own.raw)))
        centred.append(own)
        usable.append({names[k]: int(k) for k in used})
    common = [name for name in usable[0] if all(name in own for own in usable)]
    if not common:
        raise families.ESTIMATE(
            "The tables have no column in common that is above the noise in each of them.",
            "Choose tables of the same columns.",
        )
    at = [np.array([own[name] for name in common], dtype=np.intp) for own in usable]
    return [of_columns(*each) for each in zip(centred, at, strict=True)]


class _Line(NamedTuple):
    """The criterion at one pair of penalties."""

    shared: float
    penalty: float
    score: float
    edges: int  # of all tables


class _Tables(NamedTuple):
    """The matrices of all tables, and how penalties are scored."""

    S: Array  # correlations, shape (K, p, p)
    deviances: list[GraphDeviance]
    structure: Structure

    @classmethod
    def of(cls, parts: Sequence[Evidence], structure: Structure) -> _Tables:
        S = np.stack([correlation_matrix(each)[0] for each in parts])
        return cls(S, [GraphDeviance(each) for each in parts], structure)

    @property
    def rows(self) -> Array:
        """Effective sample sizes, shape (K,)."""
        return np.maximum([each.rows for each in self.deviances], 1.0)

    def grid(self) -> Array:
        """Penalties from the largest entry down to the standard deviation of the noise."""
        largest = float((np.abs(self.S) * ~np.eye(self.S.shape[-1], dtype=bool)).max()) or 1.0
        smallest = 1 / math.sqrt(self.rows.max())
        smallest = min(smallest, largest / 2)
        return np.geomspace(largest, smallest, math.ceil(math.log(largest / smallest, _STEP)) + 1)

    def solve(
        self,
        shared: float,
        penalty: float,
        *,
        tol: float = _ON_PATH,
        conditions: bool = False,
        start: JointSolution | None = None,
    ) -> JointSolution:
        separate, together = penalty, penalty * shared
        if self.structure == "group":
            separate, together = penalty * (1 - shared), together * math.sqrt(len(self.S))
        return joint_graphical_lasso(
            self.S,
            np.ones(len(self.S)),
            separate,
            together,
            structure=self.structure,
            tol=tol,
            start=start,
            conditions=conditions,
        )

    def path(self, grid: Array, shared: float) -> list[_Line]:
        """The criterion along the grid, until it no longer decreases."""
        lines: list[_Line] = []
        solution = None
        for penalty in grid:
            solution = self.solve(shared, float(penalty), start=solution)
            graphs = (solution.precisions != 0) & ~np.eye(self.S.shape[-1], dtype=bool)
            score = self.criterion(graphs)
            lines.append(_Line(shared, float(penalty), score, int(graphs.sum()) // 2))
            scores = [line.score for line in lines]
            worse = sum(each > min(scores) for each in scores[scores.index(min(scores)) :])
            if worse >= _PATIENCE:
                break
        return lines

    def criterion(self, graphs: NDArray[np.bool_]) -> float:
        """The extended BIC of graphs, shape (K, p, p)."""
        of_each = zip(graphs, self.deviances, strict=True)
        deviance = sum(deviance(graph) for graph, deviance in of_each)
        edges = graphs.sum(axis=(1, 2)) / 2
        upper = np.triu_indices(graphs.shape[-1], 1)
        often = graphs[(slice(None), *upper)].sum(axis=0)
        often = often[often > 0]
        choices = _log_binomial(len(upper[0]), often.size)
        choices += _log_binomial(len(graphs), often).sum()
        return float(deviance + edges @ np.log(np.maximum(self.rows, 2.0)) + choices)


def _log_binomial(n: int, k: NDArray[np.int64] | int) -> Array:
    result: Array = gammaln(n + 1) - gammaln(np.add(k, 1)) - gammaln(n - np.asarray(k) + 1)
    return result


def _edges(table: str, weights: Array, names: Sequence[str]) -> pd.DataFrame:
    row, column = np.nonzero(np.triu(weights, 1))
    labels = np.array(names, dtype=object)
    return pd.DataFrame(
        {
            "table": pd.Series([table] * len(row), dtype="str"),
            "row": pd.Series(labels[row], dtype="str"),
            "column": pd.Series(labels[column], dtype="str"),
            "weight": weights[row, column],
        }
    )
