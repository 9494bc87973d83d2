"""The summary of one estimate on a page: its graph, how stable its edges are, and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from gramercy import estimators
from gramercy.archive.bundles.bundle_kinds import EstimateBundle, ReleaseBundle
from gramercy.common.pictures import graph
from gramercy.estimators.tuning.stability import FEW_DRAWS_ABOVE
from gramercy.reports.correlations import correlations
from gramercy.schemas.column import INTERCEPT

Array = NDArray[np.float64]

_MOST_LINES = 25  # lines and columns of a table that the page shows; the files have all
_SECONDARY = {"laws", "means", "precision", "tuning"}  # tables that the page shows collapsed
_QUANTITY = {"precision": "partial correlation", "covariance": "correlation"}
_STABLE = 0.8  # share of the redraws in which a stable edge recurs


@dataclass(frozen=True)
class EstimateSummary:
    """The summary of one estimate."""

    # As in its manifest
    id: str
    name: str
    settings: str  # The settings that differ from their defaults, for display
    tuning: Mapping[str, float]
    quantity: str  # Name of the quantity that the edges' weights are, such as a partial correlation
    # Weights of the edges, zero for other pairs, shape (p, p); None without a graph
    weights: Array | None
    edges: int  # Number of edges
    # (row, column, weight, stability), strongest first
    strongest: list[tuple[str, str, float, float | None]]
    # Share of redraws of the release in which each pair is an edge, shape (p, p); None if the
    # estimate does not have it
    stability: Array | None
    names: Sequence[str]  # The p columns, without the intercept
    tables: Sequence[Mapping[str, Any]]  # The first lines of its tables, secondary ones last
    # What its intervals assume about the rows; None if it has no intervals
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
        cls, bundle: EstimateBundle, meaningless: NDArray[np.bool_] | None = None
    ) -> EstimateSummary:
        """Summarise a sealed estimate; edges of `meaningless_pairs` are not listed."""
        facts, names = bundle.manifest, bundle.manifest.names
        stability = None
        if len(names) <= FEW_DRAWS_ABOVE:  # of wider releases, a rule drew fewer than the page says
            stability = bundle.matrices.get("stability")
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
        laws, law = bundle.tables.get("laws"), None
        if laws is not None:
            law = dict(zip(laws["error"], map(str, laws["law"]), strict=True)).get("sampling")
        made = estimators.registry[facts.estimator["name"]].model_validate(dict(facts.estimator))
        settings = []  # those that differ from their defaults
        for key, value in made.model_dump(exclude_defaults=True, exclude={"name"}).items():
            text = " and ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            if isinstance(value, bool):
                text = "yes" if value else "no"
            settings.append(f"{key.replace('_', ' ')} {text}")
        tables = []
        for name, table in bundle.tables.items():
            excerpt = table.iloc[:_MOST_LINES, :_MOST_LINES]
            tables.append(
                {
                    "name": name,
                    "head": list(excerpt.columns),
                    "lines": [list(line) for line in excerpt.itertuples(index=False)],
                    "numbers": [pd.api.types.is_numeric_dtype(kind) for kind in excerpt.dtypes],
                    "total": len(table),
                    "secondary": name in _SECONDARY,  # shown collapsed
                }
            )
        return cls(
            facts.estimate,
            str(facts.estimator["name"]),
            ", ".join(settings),
            facts.tuning,
            _QUANTITY.get(facts.kind, "weight"),
            weights,
            edges,
            strongest,
            stability,
            names,
            sorted(filter(itemgetter("total"), tables), key=itemgetter("secondary")),
            law,
            unlisted,
        )


def with_figure(summary: EstimateSummary) -> dict[str, Any]:
    """The summary of an estimate, with a figure of its graph."""
    picture, p = Markup(), len(summary.names)
    if summary.sparse and summary.edges and summary.weights is not None:
        picture = graph(summary.id, summary.weights, summary.names, summary.stability)
    return vars(summary) | {
        "sparse": summary.sparse,
        "stable_edges": summary.stable_edges,
        "new_edge_rate": summary.new_edge_rate,
        "picture": picture,
        "pairs": p * (p - 1) // 2,
    }


def meaningless_pairs(release: ReleaseBundle) -> NDArray[np.bool_]:
    """Pairs whose edges say nothing about dependence, shape (p, p).

    They are between levels of one column, or with a column whose own variance is within the noise.
    """
    facts = release.manifest
    sources = np.array([each.name if each else INTERCEPT for each in facts.source_columns])
    found = correlations(release)
    own = dict(zip(found.names, np.isnan(np.diag(found.matrix)), strict=True))
    dead = np.array([bool(own.get(name)) for name in facts.names])
    pairs: NDArray[np.bool_] = (sources[:, None] == sources) | dead[:, None] | dead
    return pairs
