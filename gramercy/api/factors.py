"""Factor analyses and reliabilities of a release as analysts read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gramercy.api.habits import OF_LOADINGS, WithHabits
from gramercy.api.notebook import html_table
from gramercy.api.own_rows import OwnRows
from gramercy.common.plotting import draws, loading_map
from gramercy.schemas import wordings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.estimators import Estimate
    from gramercy.schemas.evidence import Evidence


class FactorAnalysisResult(WithHabits):
    """Factors by maximum likelihood, with intervals that contain noise and sampling.

    Parameters
    ----------
    estimate
        Of the estimator ``factors``: see `estimators.factors`.
    evidence
        The release.
    release
        Its name.

    Attributes
    ----------
    n_factors
        Number of factors.
    n_above_noise
        Number of eigenvalues above those of independent columns with the same noise.
    variance
        DataFrame, one line for each factor: the sum of its squared loadings (``ss_loadings``), its
        ``proportion`` of all variance, and the ``cumulative`` one.
    columns
        DataFrame, one line for each column: its communality with standard error and interval, its
        uniqueness, and whether that is at its lower bound, a Heywood case.
    eigenvalues
        DataFrame of eigenvalues, largest first, and those of independent columns (95 %).
    residual
        Root mean square of the correlations that the factors leave unexplained, noise included.
    left_out
        Columns whose variance is hidden by noise.

    Examples
    --------
    >>> import gramercy
    >>> found = gramercy.open(survey).latest("toy").factor_analysis(1)
    >>> list(found.loadings.columns), list(found.loadings.index)
    (['F1'], ['income', 'age', 'hours'])
    """

    habits = OF_LOADINGS

    def __init__(self, estimate: Estimate, evidence: Evidence, release: str) -> None:
        tables, tuning = estimate.tables, estimate.tuning
        self._rows, self._names, self._release = OwnRows(evidence), list(evidence.names), release
        self.level, self.residual = tuning["level"], tuning["residual"]
        self.n_factors, self.n_above_noise = int(tuning["factors"]), int(tuning["above_noise"])
        self._factors = pd.Index([f"F{k + 1}" for k in range(self.n_factors)], dtype="object")
        self.variance = tables["variance"].set_index(self._factors).drop(columns="factor")
        used = tables["columns"]["used"] == "yes"
        self.columns = tables["columns"][used].set_index("column").drop(columns="used")
        self.left_out = list(tables["columns"][~used]["column"])
        self.eigenvalues = tables["eigenvalues"].set_index("number")
        self._loadings, self._pairs = tables["loadings"], tables["factor_correlations"]

    @property
    def loadings(self) -> pd.DataFrame:
        """Loadings, columns of the table by factors; NaN for unknown factors."""
        return self._matrix("loading")

    @property
    def standard_errors(self) -> pd.DataFrame:
        """Standard errors of `loadings`."""
        return self._matrix("standard_error")

    def conf_int(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Lower and upper bounds of `loadings`."""
        return self._matrix("lower"), self._matrix("upper")

    @property
    def communalities(self) -> pd.Series:
        """Share of each column's variance that the factors explain; `columns` has intervals."""
        return self.columns["communality"]

    @property
    def uniquenesses(self) -> pd.Series:
        """Share of each column's variance that they do not explain."""
        return self.columns["uniqueness"]

    @property
    def heywood(self) -> list[str]:
        """Columns whose uniqueness is at its lower bound."""
        return list(self.columns.index[self.columns["heywood"] == "yes"])

    @property
    def unknown(self) -> list[str]:
        """Factors that noise or sampling mixes with others."""
        return list(self._factors[self.variance["ss_loadings"].isna()])

    @property
    def factor_correlations(self) -> pd.DataFrame:
        """Correlations of the factors; NaN for unknown factors."""
        values = np.eye(self.n_factors)
        at = self._pairs["factor"].to_numpy() - 1, self._pairs["other"].to_numpy() - 1
        values[at] = values[at[::-1]] = self._pairs["correlation"]
        return pd.DataFrame(values, self._factors, self._factors)

    def scores(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Regression scores (Thurstone's) of rows of your own.

        Parameters
        ----------
        rows
            With the columns of the table that the factors use, in their own units; as in
            `ComponentsResult.transform`.

        Returns
        -------
        DataFrame
            One column for each known factor.

        Raises
        ------
        RequestError
            If a column is missing, or the release has no means of the columns.
        """
        mean, deviation = self.columns["mean"], self.columns["standard_deviation"]
        if not np.isfinite(mean).all():
            raise wordings.no_own_units(self._release)
        names = list(self.columns.index)
        cells = self._rows.read(rows, [*map(self._names.index, names)])
        standard = (pd.DataFrame(cells, rows.index, names) - mean) / deviation
        return standard @ self._matrix("weight").drop(columns=self.unknown)

    transform = scores

    def summary(self) -> str:
        """The loadings, communalities and shares as text."""
        shown = self.loadings.assign(communality=self.communalities)
        parts = [self._head, "", "Loadings (NaN: unknown):"]
        parts += [shown.to_string(float_format="{:.3f}".format), "", "Variance:"]
        parts += [self._shares.to_string(float_format="{:.3f}".format)]
        if (self._pairs["correlation"].fillna(0.0) != 0).any():
            parts += ["", "Correlations of the factors:"]
            parts += [self.factor_correlations.to_string(float_format="{:.3f}".format)]
        return "\n".join(parts)

    @draws
    def plot(self, ax: Axes | None = None) -> Axes:
        """Heat map of the loadings; unknown ones are hatched."""
        return loading_map(self.loadings, ax, "Loadings of the factors")

    plot_loadings = plot

    @property
    def _shares(self) -> pd.DataFrame:
        return self.variance[["ss_loadings", "proportion", "cumulative"]].T

    @property
    def _head(self) -> str:
        above = f"{self.n_above_noise} of {len(self.eigenvalues)} eigenvalues are above those of"
        lines = [f"{self.n_factors} factors; {above} independent columns."]
        if self.unknown:
            lines.append(f"Unknown, hidden or mixed by noise or sampling: {_list(self.unknown)}.")
        if self.heywood:
            lines.append(f"No uniqueness is left (Heywood cases): {_list(self.heywood)}.")
        if self.left_out:
            lines.append(f"Left out, their variance is hidden by noise: {_list(self.left_out)}.")
        return " ".join(lines)

    def _matrix(self, value: str) -> pd.DataFrame:
        """A column of the loadings, columns of the table by factors."""
        names = list(self.columns.index)
        values = self._loadings[value].to_numpy(dtype=np.float64)
        return pd.DataFrame(
            values.reshape(self.n_factors, len(names)).T, pd.Index(names), self._factors
        )

    def __repr__(self) -> str:
        return f"<FactorAnalysisResult: {self.n_factors} factors of {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        shown = self.loadings.assign(communality=self.communalities)
        return html_table(shown.round(3), f"{self._head} Loadings:") + html_table(
            self._shares.round(3), "Variance:"
        )


class ReliabilityResult:
    """Reliability of the sum of items, with intervals that contain noise and sampling.

    Parameters
    ----------
    estimate
        Of the estimator ``reliability``: see `estimators.reliability`.

    Attributes
    ----------
    coefficients
        DataFrame of ``alpha``, ``standardised alpha`` and ``omega`` (total, of one factor), with
        intervals; NaN where noise hides them.
    items
        DataFrame, one line for each item: its correlation with the sum of the others
        (``item_rest``) and alpha without it (``alpha_if_dropped``), with intervals, and its
        loading on the one factor.
    reverse
        Items whose sign was turned.

    Examples
    --------
    >>> import gramercy
    >>> found = gramercy.open(survey).latest("toy").reliability(["income", "age", "hours"])
    >>> list(found.coefficients.index)
    ['alpha', 'standardised alpha', 'omega']
    """

    def __init__(self, estimate: Estimate) -> None:
        coefficients, items = estimate.tables["coefficients"], estimate.tables["items"]
        self.level = estimate.tuning["level"]
        self.coefficients = coefficients.set_index("coefficient").drop(columns="law")
        self.items = items.set_index("column").drop(columns="reversed")
        self.reverse = list(items["column"][items["reversed"] == "yes"])

    @property
    def alpha(self) -> float:
        """Cronbach's alpha of the sum of the items in their own units."""
        return float(self.coefficients.loc["alpha", "estimate"])

    @property
    def standardised_alpha(self) -> float:
        """Cronbach's alpha of the sum of standardised items."""
        return float(self.coefficients.loc["standardised alpha", "estimate"])

    @property
    def omega(self) -> float:
        """McDonald's omega total of the sum of the items in their own units, from one factor."""
        return float(self.coefficients.loc["omega", "estimate"])

    def conf_int(self) -> pd.DataFrame:
        """Lower and upper bounds of the coefficients."""
        return self.coefficients[["lower", "upper"]]

    @property
    def negative(self) -> list[str]:
        """Items that go against the others: they may be keyed in reverse, see `reverse`."""
        return list(self.items.index[self.items["item_rest_upper"] < 0])

    def summary(self) -> str:
        """The coefficients and items as text."""
        tables = (self.coefficients, self.items)
        shown = [each.to_string(float_format="{:.3f}".format) for each in tables]
        return "\n\n".join([self._head, *shown])

    @property
    def _head(self) -> str:
        head = f"Reliability of the sum of {len(self.items)} items"
        head += f", with {100 * self.level:g} % intervals (NaN: unknown)."
        if self.negative:
            head += f" Against the others: {_list(self.negative)}; if these are keyed in reverse, "
            head += "name them in 'reverse'."
        return head

    def __repr__(self) -> str:
        return f"<ReliabilityResult: alpha {self.alpha:.3f}, omega {self.omega:.3f}>"

    def _repr_html_(self) -> str:
        return html_table(self.coefficients.round(3), self._head) + html_table(
            self.items.round(3), "Items:"
        )


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
