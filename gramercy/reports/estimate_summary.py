"""The summary of one estimate on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy import estimators
from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.reports.page_tables import TableExcerpt
from gramercy.schemas.column import INTERCEPT

Array = NDArray[np.float64]

_STABLE = 0.8  # share of the redraws in which a stable edge recurs


@dataclass(frozen=True)
class EstimateSummary:
    """The summary of one estimate.

    Parameters
    ----------
    id, name, tuning
        As in its manifest.
    settings
        The settings that differ from their defaults, for display.
    quantity
        Name of the quantity that the edges' weights are, such as a partial correlation.
    weights
        Weights of the edges, zero for other pairs, shape (p, p); None without a graph.
    edges
        Number of edges.
    strongest
        (row, column, weight, stability), strongest first.
    stability
        Share of redraws of the release in which each pair is an edge, shape (p, p); None if not
        computed.
    names
        The p columns, without the intercept.
    tables
        Its tables, secondary ones last.
    sampling_law
        What its intervals assume about the rows; None if it has no intervals.
    """

    id: str
    name: str
    settings: str
    tuning: Mapping[str, float]
    quantity: str
    weights: Array | None
    edges: int
    strongest: list[tuple[str, str, float, float | None]]
    stability: Array | None
    names: Sequence[str]
    tables: Sequence[TableExcerpt]
    sampling_law: str | None = None
    unlisted: int = 0

    @property
    def sparse(self) -> bool:
        """Whether the graph lacks some edges; only then is a figure of it useful."""
        p = len(self.names)
        return self.weights is not None and self.edges < p * (p - 1) // 2

    @property
    def stable_edges(self) -> int:
        """Number of edges that recur in at least 80 % of the redraws."""
        if self.stability is None or self.weights is None:
            return 0
        return int(np.triu((self.weights != 0) & (self.stability >= _STABLE), 1).sum())

    @property
    def new_edge_rate(self) -> float:
        """Average share of redraws in which a pair without an edge has one."""
        if self.stability is None or self.weights is None:
            return 0.0
        absent = np.triu(self.weights == 0, 1)
        return float(self.stability[absent].mean()) if absent.any() else 0.0

    @classmethod
    def of(
        cls,
        bundle: EstimateBundle,
        stability: Array | None = None,
        meaningless: NDArray[np.bool_] | None = None,
    ) -> EstimateSummary:
        """Summarise a sealed estimate.

        Parameters
        ----------
        bundle
            The estimate of p columns.
        stability, meaningless
            See `release_quality.edge_stability` and `release_quality.meaningless_pairs`.
        """
        facts, names = bundle.manifest, bundle.manifest.names
        weights, strongest, edges, unlisted = None, [], 0, 0
        if bundle.edges is not None:
            first = int(names[0] == INTERCEPT)
            names, weights = names[first:], bundle.edges[first:, first:]
            stability = None if stability is None else stability[first:, first:]
            edges = int(np.count_nonzero(np.triu(weights, 1)))
            listed = weights if meaningless is None else weights * ~meaningless[first:, first:]
            rows, cols = np.nonzero(np.triu(listed, 1))
            order = np.argsort(-np.abs(weights[rows, cols]), kind="stable")[:12]
            unlisted = edges - rows.size
            strongest = [
                (
                    names[rows[k]],
                    names[cols[k]],
                    float(weights[rows[k], cols[k]]),
                    None if stability is None else float(stability[rows[k], cols[k]]),
                )
                for k in order
            ]
        return cls(
            facts.estimate,
            str(facts.estimator["name"]),
            _settings(facts.estimator),
            facts.tuning,
            _QUANTITY.get(facts.kind, "weight"),
            weights,
            edges,
            strongest,
            stability,
            names,
            sorted(
                (
                    TableExcerpt.of(name, table)
                    for name, table in bundle.tables.items()
                    if len(table)
                ),
                key=lambda excerpt: excerpt.secondary,
            ),
            _sampling_law(bundle.tables.get("laws")),
            unlisted,
        )


def _sampling_law(laws: pd.DataFrame | None) -> str | None:
    """The law of the sampling errors, from the table that intervals are sealed with."""
    if laws is None:
        return None
    return next(
        (
            str(law)
            for error, law in zip(laws["error"], laws["law"], strict=True)
            if error == "sampling"
        ),
        None,
    )


def _settings(estimator: Mapping[str, Any]) -> str:
    """The settings that differ from their defaults, for display."""
    made = estimators.registry[estimator["name"]].model_validate(dict(estimator))
    changed = made.model_dump(exclude_defaults=True, exclude={"name"})
    return ", ".join(f"{key.replace('_', ' ')} {_text(v)}" for key, v in changed.items())


def _text(value: Any) -> str:
    """The value of a setting, for display."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " and ".join(map(str, value)) if isinstance(value, tuple) else str(value)


_QUANTITY = {
    "precision": "partial correlation",
    "covariance": "correlation",
}
