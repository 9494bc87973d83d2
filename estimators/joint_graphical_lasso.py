"""Graphs of several tables that share edges: the joint graphical lasso, and its penalties.

Danaher, Wang and Witten (2014); see `estimators.solvers.joint`. The matrices are correlations of
the groups of a release, or of several releases, each with a noise law of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import gammaln

from gramercy.estimators.about_means import about_means, conditional_columns, of_columns
from gramercy.estimators.components import names_of_columns
from gramercy.estimators.equal_terms import check_columns, comparable_columns, of_releases
from gramercy.estimators.estimator import Estimate, Estimator, partial_correlations
from gramercy.estimators.input_matrix import correlation_matrix
from gramercy.estimators.pooled_releases import ReleaseNames
from gramercy.estimators.series_steps import check_disjoint, same_rows, same_series
from gramercy.estimators.solvers.joint import JointSolution, Structure, joint_graphical_lasso
from gramercy.estimators.table_units import rows_lost
from gramercy.estimators.tuning.information import GraphDeviance, effective_sample_size, refit
from gramercy.estimators.tuning.parallel import parallel_map
from gramercy.estimators.tuning.penalty_rule import edge_mask
from gramercy.estimators.uncertainty.moment_errors import has_intercept
from gramercy.estimators.uncertainty.partial_correlations import leave_out_references, levels_of
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence, ReleaseEvidence
from gramercy.schemas.facts import OTHER
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import Positive

Array = NDArray[np.float64]

_REPRODUCIBLE = 1e-13  # gap per column at which the estimates of two machines agree to 1e-6
_ON_PATH = 1e-6
_STEP = 1.15  # ratio of successive penalties of a grid
_MOST_BY_CHANCE = 0.5  # about the largest correlation of independent columns in a table in use
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

    All tables have equal weights, so one threshold. In 12 simulated cells of groups of unequal
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

    The largest of m correlations of independent columns is about sqrt(2 log(2 m) / n), with n the
    effective sample size of the table. Tables where this is above 1/2 are left out. In simulations
    with three groups of 4,000 rows and hardly any noise (15 columns), a fourth group had an F1 of
    0.3 with 5 rows, 0.5 with 11, 0.8 with 50 and 0.93 with 100, and that of 5 rows lowered the F1
    of the others from 0.99 to 0.95.
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
        check_disjoint(*((name, [facts]) for name, facts in releases))
        check_columns([facts.names for _, facts in releases])
        for (first, one), (second, other) in combinations(releases, 2):
            if same_rows(one, other) or same_series(one, other):
                raise families.COMPARISON(
                    "'{first}' and '{second}' are of the same rows, or have some in common.",
                    "Graphs that share edges are those of tables of different rows: name one of "
                    "the two.",
                    first=first,
                    second=second,
                )

    def evidence_of(self, releases: Sequence[ReleaseEvidence]) -> Evidence:
        return of_releases(releases)

    def fit(self, evidence: Evidence) -> Estimate:
        """Tables only.

        ``edges``: a line for each edge of each table, with its partial correlation as ``weight``.
        ``tables``: the number of rows, the effective sample size and the number of edges of each
        table. One whose rows are within the noise is ``lost in noise``, and one where chance alone
        makes large entries has ``too few rows``: both have no graph.
        ``columns``: the columns that may have edges. ``tuning``: the criterion, if it was used.

        Raises RequestError if fewer than two tables are used, or they cannot be compared.
        """
        groups = {name: group for name, group in evidence.groups if name != OTHER}
        if not groups:
            raise wordings.groups_missing()
        status = {name: _status(group) for name, group in groups.items()}
        used = [name for name in groups if status[name] == "used"]
        if len(used) < 2:
            raise families.ESTIMATE(
                "Fewer than two of {groups} groups have enough rows above the noise.",
                "Publish with more rows or a larger epsilon, or by a column of fewer levels.",
                groups=len(groups),
            )
        parts = _in_common([groups[name] for name in used])
        S = np.stack([correlation_matrix(each)[0] for each in parts])
        problem = _Tables(S, [GraphDeviance(each) for each in parts], self.structure)
        shared = _SHARED[self.structure] if self.shared == "auto" else (self.shared,)
        grid = problem.grid() if self.penalty == "auto" else np.array([self.penalty])
        scored = None
        chosen = float(shared[0]), float(grid[0])
        if len(shared) * len(grid) > 1:
            paths = parallel_map(partial(problem.path, grid), list(shared))
            scored = pd.concat(paths, ignore_index=True)
            best = scored.loc[scored["score"].idxmin()]
            chosen = float(best["shared"]), float(best["penalty"])
        solution = problem.solve(*chosen, tol=_REPRODUCIBLE)
        names = names_of_columns(parts[0])
        edges = {
            name: partial_correlations(refit(matrix, edge_mask(T)))
            for name, matrix, T in zip(used, problem.S, solution.precisions, strict=True)
        }
        sizes = dict(zip(used, problem.rows, strict=True))
        of_tables = [_edges(*each, names) for each in edges.items()]
        results = {
            "edges": pd.concat(of_tables, ignore_index=True),
            "tables": pd.DataFrame(
                {
                    "table": pd.Series(list(groups), dtype="str"),
                    "status": list(status.values()),
                    "rows": [group.rows for group in groups.values()],
                    "effective_rows": [sizes.get(name, np.nan) for name in groups],
                    "edges": [np.count_nonzero(edges.get(name, 0)) // 2 for name in groups],
                }
            ),
            "columns": pd.DataFrame({"column": pd.Series(names, dtype="str")}),
        }
        if scored is not None:
            results["tuning"] = scored
        return Estimate("joint-graph", {}, {"penalty": chosen[1], "shared": chosen[0]}, results)


def _status(table: Evidence) -> str:
    """Whether a table is used; see `JointGraphicalLasso`."""
    if rows_lost(table):
        return "lost in noise"
    alone = of_columns(_about_means(table), conditional_columns(table))
    pairs = max(len(alone.raw) * (len(alone.raw) - 1), 2)
    least_rows = 2 * math.log(pairs) / _MOST_BY_CHANCE**2
    return "used" if effective_sample_size(alone) >= least_rows else "too few rows"


def _about_means(table: Evidence) -> Evidence:
    is_whole = not has_intercept(table) or len(table.raw) == 1
    return table if is_whole else about_means(table).evidence


def _in_common(tables: Sequence[Evidence]) -> list[Evidence]:
    """Each table about its means, in the columns that are usable in all.

    Raises RequestError if there are none, or the tables cannot be compared.
    """
    among = comparable_columns(tables)
    leave_out_references(among, levels_of(tables[0].columns[-len(among) :]))
    if not among.any():
        raise families.ESTIMATE(
            "The tables have no column in common that is above the noise in each of them.",
            "Choose tables of the same columns.",
        )
    return [of_columns(_about_means(each), np.flatnonzero(among)) for each in tables]


class _Tables(NamedTuple):
    """The matrices of all tables, and how penalties are scored."""

    S: Array  # correlations, shape (K, p, p)
    deviances: list[GraphDeviance]
    structure: Structure

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

    def solve(self, shared: float, penalty: float, **settings: Any) -> JointSolution:
        separate, across = penalty, penalty * shared
        if self.structure == "group":
            separate, across = penalty * (1 - shared), across * math.sqrt(len(self.S))
        return joint_graphical_lasso(self.S, separate, across, structure=self.structure, **settings)

    def path(self, grid: Array, shared: float) -> pd.DataFrame:
        """The criterion along the grid, until it no longer decreases."""
        scores, edges, solution = list[float](), list[int](), None
        for penalty in grid.tolist():
            solution = self.solve(shared, penalty, tol=_ON_PATH, conditions=False, start=solution)
            graphs = np.stack([edge_mask(T) for T in solution.precisions])
            scores.append(self.criterion(graphs))
            edges.append(int(graphs.sum()) // 2)
            if sum(each > min(scores) for each in scores[scores.index(min(scores)) :]) >= _PATIENCE:
                break
        penalties = grid[: len(scores)]
        return pd.DataFrame(
            {"shared": shared, "penalty": penalties, "score": scores, "edges": edges}
        )

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
    edges = {"row": labels[row], "column": labels[column], "weight": weights[row, column]}
    return pd.DataFrame({"table": table} | edges).astype(
        dict.fromkeys(("table", "row", "column"), "str")
    )


def weights_of(edges: pd.DataFrame, table: str, names: Sequence[str]) -> Array:
    """The weights of one table's edges, as in the table ``edges``; symmetric, shape (p, p)."""
    weights = np.zeros((len(names), len(names)))
    own, at = edges[edges["table"] == table], pd.Index(names)
    pairs = at.get_indexer(own["row"]), at.get_indexer(own["column"])
    weights[pairs] = weights[pairs[::-1]] = own["weight"]
    return weights
