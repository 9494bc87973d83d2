"""Where the graphs of two groups, periods or releases differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gramercy.api.notebook import html_table
from gramercy.common.notation import shortened, shortened_pair
from gramercy.common.plotting import Picture
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.schemas.evidence import Evidence


class GraphDifference:
    """Where the partial correlations of two tables of different rows differ.

    Each is given all other columns whose variances exceed the noise in both tables. The test knows
    the noise, the sampling error and what clipping may have done: see
    `estimators.graph_difference`.

    Parameters
    ----------
    first, second
        Names of the two.
    evidence
        What is published about each of them.
    rate
        Upper bound on the expected share of false differences among the found ones.

    Attributes
    ----------
    untested
        Number of pairs of columns of which one table does not determine the partial correlation.

    Raises
    ------
    RequestError
        If the two have different columns, or cannot be compared.
    """

    def __init__(
        self, first: str, second: str, evidence: tuple[Evidence, Evidence], rate: float
    ) -> None:
        from gramercy.estimators.equal_terms import together
        from gramercy.estimators.graph_difference import Difference

        self.first, self.second, self.rate = first, second, rate
        both = together(dict(zip((first, second), evidence, strict=True)))
        settings = {"between": (first, second), "rate": rate}
        self._estimate = parse(Difference, settings, "the difference", RequestError).fit(both)
        self._names = list(evidence[0].names)
        self.untested = int(self._estimate.tuning["untested"])

    def table(self) -> pd.DataFrame:
        """All pairs that were tested, the surest first.

        Returns ``row``, ``column``, the partial correlations ``first`` and ``second``, their
        ``difference`` (the first minus the second), its interval from ``lower`` to ``upper``, the
        ``p_value`` of no difference, and ``adjusted``, the least rate at which it is found.
        Intervals are adjusted for selection: of those of the found differences, the expected share
        that miss the truth is at most `rate`.
        """
        return self._estimate.tables["differences"].drop(columns="law")

    def discoveries(self) -> pd.DataFrame:
        """The differences that are found at the rate, the surest first."""
        table = self.table()
        return table[table["adjusted"] <= self.rate]

    @property
    def precision(self) -> pd.DataFrame:
        """The first precision matrix minus the second, as a sparse estimate.

        Of columns divided by their common standard deviation. Its entries are not tested. NaN if a
        matrix is nearly singular.
        """
        matrices, names = self._estimate.matrices, self._names or None
        unknown = np.full_like(matrices["difference"], np.nan)
        return pd.DataFrame(matrices.get("precision_difference", unknown).copy(), names, names)

    @property
    def graph(self) -> Picture:
        """The graph of the differences that are found, to show in a notebook or to save.

        Raises
        ------
        MissingPackages
            If the extra ``plot`` is not installed.
        """
        edges = self._estimate.edges
        assert edges is not None  # noqa: S101  for mypy
        return Picture.of_graph(edges, self._names or [str(i) for i in range(len(edges))])

    def plot(self, ax: Axes | None = None, pairs: int = 30) -> Axes:
        """Draw the surest differences with their intervals; found ones are filled.

        Parameters
        ----------
        ax
            Axes to draw on; None for a new figure.
        pairs
            Number of pairs of columns to draw.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        """
        from gramercy.common.plotting import forest

        shown = self.table().head(pairs)
        labels = [shortened_pair(a, b) for a, b in shown[["row", "column"]].to_numpy()]
        numbers = shown[["difference", "lower", "upper"]].to_numpy(dtype=np.float64).T
        unsure = (shown["adjusted"] > self.rate).to_numpy()
        axes = forest(numbers, labels, ax, unsure, hollow_means="not found to differ")
        words = f"partial correlation: {shortened(self.first)} minus {shortened(self.second)}"
        axes.set_xlabel(words, parse_math=False)
        return axes

    def _repr_html_(self) -> str:
        found = self.discoveries().set_index("row")
        html = html_table(found.head(20), f"{repr(self)[1:-1]}; the surest differences:")
        return html + (self.graph.html if len(found) else "")

    def __repr__(self) -> str:
        found = f"{len(self.discoveries())} of {len(self.table())} pairs differ"
        untested = f", {self.untested} untested" if self.untested else ""
        rate = f"(false discovery rate {self.rate:g})"
        return f"<GraphDifference of {self.first} and {self.second}: {found}{untested} {rate}>"
