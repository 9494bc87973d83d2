"""Graphs of several tables, such as the groups of a release or the periods of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from gramercy.api.analyses import analysis
from gramercy.api.estimates import Named
from gramercy.api.notebook import html_table
from gramercy.common.notation import shortened
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.common.graphs import Graph
    from gramercy.common.plotting import Picture
    from gramercy.estimators import Estimate
    from gramercy.schemas.evidence import Evidence


def joint_graphs(
    owner: str, tables: Mapping[str, Evidence], settings: Mapping[str, Any]
) -> JointGraphs:
    """The joint graphical lasso of several tables by name; see its estimator for `settings`."""
    from gramercy.estimators.equal_terms import together

    evidence = together(tables)
    return JointGraphs(owner, analysis("joint-graphical-lasso", settings, evidence))


class JointGraphs(Named[pd.DataFrame]):
    """The graphs of several tables that share edges, by the name of the table.

    Each is a DataFrame of partial correlations, zero for a missing edge, of the columns that are
    usable in all tables. A table that is lost in the noise, or has too few rows, has no graph.

    Parameters
    ----------
    owner
        DATASET/RELEASE, or the data set.
    estimate
        Of the estimator ``joint-graphical-lasso``: see `estimators.joint_graphical_lasso`.

    Attributes
    ----------
    edges
        DataFrame with a line for each edge of each table: ``table``, ``row``, ``column``, and the
        partial correlation ``weight``.
    tables
        DataFrame of the tables: their ``status``, ``rows``, effective sample sizes (noise and
        sampling) and numbers of ``edges``.
    tuning
        The penalties in use: ``penalty``, and ``shared``, its share that all tables share.
    """

    def __init__(self, owner: str, estimate: Estimate) -> None:
        from gramercy.estimators.joint_graphical_lasso import weights_of

        self._estimate = estimate
        self.edges = estimate.tables["edges"]
        self.tables = estimate.tables["tables"].set_index("table")
        self.tuning = dict(estimate.tuning)
        columns = list(estimate.tables["columns"]["column"])
        used = self.tables.index[self.tables["status"] == "used"]
        weights = {name: weights_of(self.edges, name, columns) for name in used}
        super().__init__(
            owner, {name: pd.DataFrame(own, columns, columns) for name, own in weights.items()}
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.owner, self._estimate)

    def __missing__(self, name: str) -> pd.DataFrame:
        raise families.UNKNOWN_NAME(
            "{owner} has no graph of '{table}'.",
            "Tables with a graph, most similar first: {known}.",
            owner=self.owner,
            table=str(name),
            known=most_similar_first(str(name), self),
        )

    @property
    def shared(self) -> pd.DataFrame:
        """The edges that all tables have: ``row``, ``column``, and a weight for each table."""
        wide = self._wide()
        return wide[wide.notna().all(axis=1)].reset_index()

    @property
    def differs(self) -> pd.DataFrame:
        """The edges that some tables have, and not all; NaN for a table without the edge.

        It does not test a difference: an edge may be below the threshold in one table, and above
        it in another.
        """
        wide = self._wide()
        return wide[wide.isna().any(axis=1)].reset_index()

    def to_networkx(self, name: str) -> Graph:
        """The graph of one table, with partial correlations as weights.

        Raises
        ------
        RequestError
            If the table has no graph.
        """
        from gramercy.common.graphs import weighted_graph  # imports networkx

        weights = self[name]
        return weighted_graph(list(weights.index), weights.to_numpy())

    def plot(self) -> list[Axes]:
        """Draw the graphs side by side; each column has the same place in all of them.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        """
        from gramercy.common.graphs import draw_graph
        from gramercy.common.pictures import MOST_FREE, all_edges
        from gramercy.common.plotting import axes

        weights = [frame.to_numpy() for frame in self.values()]
        on_circles = len(weights[0]) > MOST_FREE
        wide = min(len(self), 2 if on_circles else 4)
        high, size = -(-len(self) // wide), 5.0 if on_circles else 3.2
        figure = axes(None, size * wide, size * high).figure
        figure.clear()
        drawn: list[Axes] = [figure.add_subplot(high, wide, k + 1) for k in range(len(self))]
        for (name, frame), own, each in zip(self.items(), weights, drawn, strict=True):
            draw_graph(own, list(frame.index), each, all_edges(weights))
            each.set_title(shortened(name), parse_math=False)
        return drawn

    def picture(self) -> Picture:
        """The graphs side by side for notebooks and pages; names and weights are shown on hover.

        Raises
        ------
        MissingPackages
            If the packages that draw are not installed.
        """
        from gramercy.common.plotting import Picture

        first = next(iter(self.values()))
        weights = {name: frame.to_numpy() for name, frame in self.items()}
        return Picture.of_graphs(weights, list(first.index))

    def summary(self) -> str:
        """The tables, and the edges that not all of them have, as text."""
        shared = f"{len(self.shared)} edges in all tables. In some tables only:"
        parts = [self.tables.to_string(float_format="{:.4g}".format), shared]
        return "\n\n".join([*parts, self.differs.to_string(float_format="{:.2f}".format)])

    def _wide(self) -> pd.DataFrame:
        wide = self.edges.pivot(index=["row", "column"], columns="table", values="weight")
        return wide.reindex(columns=list(self)).rename_axis(columns=None)

    def _repr_html_(self) -> str:
        return html_table(self.tables, f"Graphs of {self.owner}")

    def __repr__(self) -> str:
        found = ", ".join(f"{name} ({count})" for name, count in self.tables["edges"].items())
        return f"<JointGraphs of {self.owner}, edges: {found}>"
