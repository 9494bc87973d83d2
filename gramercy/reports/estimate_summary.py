"""What a page says of one estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy import estimators
from gramercy.archive.estimate_bundle import EstimateBundle
from gramercy.reports.page_tables import Listing
from gramercy.schemas.column import INTERCEPT

Array = NDArray[np.float64]

_MOSTLY = 0.8  # of the draws: an edge that comes back


@dataclass(frozen=True)
class Shown:
    """What the page says of one estimate.

    Parameters
    ----------
    id, name, settings, tuning
        Of the estimate; `settings` in words, where they are not the usual ones.
    quantity
        What its edges weigh.
    weights
        Of the edges, zero where there is none, shape (p, p); None of an estimate without a graph.
    edges
        How many there are.
    strongest
        (row, column, weight), strongest first.
    again
        Share of the draws of this release anew in which every pair is an edge, shape (p, p); None
        where that was not tried.
    names
        The p columns: all but the intercept.
    tables
        Its tables, those that are looked at in passing last.
    """

    id: str
    name: str
    settings: str
    tuning: Mapping[str, float]
    quantity: str
    weights: Array | None
    edges: int
    strongest: list[tuple[str, str, float, float | None]]
    again: Array | None
    names: Sequence[str]
    tables: Sequence[Listing]

    @property
    def sparse(self) -> bool:
        """Whether it is a graph that lacks an edge, so that it is worth drawing."""
        p = len(self.names)
        return self.weights is not None and self.edges < p * (p - 1) // 2

    @property
    def kept(self) -> int:
        """How many edges come back in at least four draws of five."""
        if self.again is None or self.weights is None:
            return 0
        return int(np.triu((self.weights != 0) & (self.again >= _MOSTLY), 1).sum())

    @property
    def others(self) -> float:
        """The share of draws in which a pair that is no edge becomes one, on average."""
        if self.again is None or self.weights is None:
            return 0.0
        absent = np.triu(self.weights == 0, 1)
        return float(self.again[absent].mean()) if absent.any() else 0.0

    @classmethod
    def of(cls, bundle: EstimateBundle, again: Array | None = None) -> Shown:
        """From a sealed estimate, and how often its edges come back: see `second_look`."""
        facts, names = bundle.manifest, bundle.manifest.names
        weights, strongest, edges = None, [], 0
        if bundle.edges is not None:
            # The constant goes with everything: given it, the rest is about the means.
            first = int(names[0] == INTERCEPT)
            names, weights = names[first:], bundle.edges[first:, first:]
            again = None if again is None else again[first:, first:]
            rows, cols = np.nonzero(np.triu(weights, 1))
            order = np.argsort(-np.abs(weights[rows, cols]), kind="stable")[:12]
            edges = rows.size
            strongest = [
                (
                    names[rows[k]],
                    names[cols[k]],
                    float(weights[rows[k], cols[k]]),
                    None if again is None else float(again[rows[k], cols[k]]),
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
            again,
            names,
            sorted(
                (Listing.of(name, table) for name, table in bundle.tables.items() if len(table)),
                key=lambda each: each.aside,
            ),
        )


def _settings(estimator: Mapping[str, Any]) -> str:
    """Settings that are not the usual ones, in words."""
    usual = estimators.registry[estimator["name"]](name=estimator["name"]).model_dump()
    unusual = {key: value for key, value in estimator.items() if value != usual.get(key)}
    said = {True: "yes", False: "no"}
    words = (
        (k.replace("_", " "), said[v] if isinstance(v, bool) else v) for k, v in unusual.items()
    )
    return ", ".join(f"{key} {value}" for key, value in words)


_QUANTITY = {
    "precision": "partial correlation",
    "covariance": "correlation",
}
