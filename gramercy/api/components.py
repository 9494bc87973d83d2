"""Principal components of a release as analysts read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.api.habits import OF_LOADINGS, WithHabits
from gramercy.api.notebook import html_table
from gramercy.api.own_rows import OwnRows
from gramercy.common.plotting import axes, draws, loading_map, scree
from gramercy.schemas import families

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.estimators import Estimate
    from gramercy.schemas.evidence import Evidence


class ComponentsResult(WithHabits):
    """Principal components that are above the noise, with intervals of their shares.

    Parameters
    ----------
    estimate
        Of the estimator ``pca``: see `estimators.components`.
    evidence
        The release.
    n_components
        Number of components; None for those that are above the noise.

    Attributes
    ----------
    n_components
        Number of components. Nothing is known of those within the noise: they are NaN.
    n_above_noise
        Number of components whose eigenvalue noise does not explain.
    noise_edge
        The largest eigenvalue that noise alone has in 95 % of releases.
    eigenvalues
        DataFrame, one line for each component: the ``eigenvalue`` as released, ``corrected`` for
        noise, whether it is ``above_noise``, and its ``resolution``: about the sine of the angle
        to its true direction.
    shares
        DataFrame of known shares of the variance with intervals. Components that cannot be
        separated are one line, such as ``PC2 to PC3``.
    left_out
        Columns whose variance is hidden by noise, so that they have no correlations.

    Examples
    --------
    >>> import gramercy
    >>> found = gramercy.open(survey).latest("toy").pca()
    >>> found.n_components, list(found.components.columns)
    (3, ['income', 'age', 'hours'])
    """

    habits = OF_LOADINGS

    def __init__(
        self, estimate: Estimate, evidence: Evidence, n_components: int | None = None
    ) -> None:
        tables, tuning = estimate.tables, estimate.tuning
        self._rows, self._names = OwnRows(evidence), list(evidence.names)
        self.level = tuning["level"]
        self.n_above_noise = int(tuning["components"])
        self.n_components = self.n_above_noise if n_components is None else n_components
        self.noise_edge = tuning["noise_edge"]
        self._total = tuning["total_variance"]
        self.eigenvalues = tables["eigenvalues"].set_index(
            pd.Index([f"PC{k}" for k in tables["eigenvalues"]["component"]])
        )
        self.eigenvalues = self.eigenvalues.drop(columns="component")
        most = len(self.eigenvalues)
        if n_components is not None and n_components not in range(1, most + 1):
            raise families.ANALYSIS(
                "'n_components' must be a number from 1 to {most}, not {given}.",
                most=most,
                given=n_components,
            )
        shares = tables["shares"]
        shares = shares[shares["first"] <= self.n_components]
        labels = [
            f"PC{first}" if size == 1 else f"PC{first} to PC{first + size - 1}"
            for first, size in zip(shares["first"], shares["size"], strict=True)
        ]
        self.shares = shares.drop(columns=["components", "first", "size"]).set_index(
            pd.Index(labels, dtype="object")
        )
        used = tables["columns"]["used"] == "yes"
        self._columns = tables["columns"][used].set_index("column")
        self.left_out = list(tables["columns"][~used]["column"])
        self._loadings = tables["loadings"]

    @property
    def explained_variance_ratio(self) -> pd.Series:
        """Share of the variance of each component, or of components that cannot be separated."""
        return self.shares["share"]

    def conf_int(self) -> pd.DataFrame:
        """Lower and upper bounds of `explained_variance_ratio`."""
        return self.shares[["lower", "upper"]]

    @property
    def explained_variance_ratio_(self) -> NDArray[np.float64]:
        """As in scikit-learn: one share for each component; NaN where it is not known alone."""
        shares = self.explained_variance_ratio.reindex(self.components.index)
        return np.asarray(shares, dtype=np.float64)

    @property
    def explained_variance_(self) -> NDArray[np.float64]:
        """As in scikit-learn: eigenvalues corrected for noise, NaN within it."""
        return np.asarray(self.eigenvalues["corrected"][: self.n_components], dtype=np.float64)

    @property
    def components_(self) -> NDArray[np.float64]:
        """As in scikit-learn: `components` as an array."""
        return np.asarray(self.components, dtype=np.float64)

    @property
    def components(self) -> pd.DataFrame:
        """Loadings, one line for each component.

        NaN for components within the noise, and for those that noise or sampling mixes with others.
        """
        return self._matrix("loading")

    @property
    def loadings(self) -> pd.DataFrame:
        """The same as columns of the table by components, as in R's ``prcomp(x)$rotation``."""
        return self.components.T

    @property
    def standard_errors(self) -> pd.DataFrame:
        """Standard errors of `components`, to first order."""
        return self._matrix("standard_error")

    def transform(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Scores of rows of your own: their coordinates along the components.

        Parameters
        ----------
        rows
            With the columns of the table that the components use, in their own units; a column of
            levels has its levels, or 0 and 1 in a column for each level. Derived columns are
            computed, and numbers are clamped to the bounds in use, as in the release.

        Returns
        -------
        DataFrame
            One column for each component with known loadings.

        Raises
        ------
        RequestError
            If a column is missing, or the release has no means of the columns.
        """
        mean, divisor = self._units()
        names, known = list(self._columns.index), self.components.dropna()
        cells = self._rows.read(rows, [*map(self._names.index, names)])
        return ((pd.DataFrame(cells, rows.index, names) - mean) / divisor) @ known.T

    def inverse_transform(self, scores: pd.DataFrame) -> pd.DataFrame:
        """The rows, in the columns' own units, that have these scores and nothing else.

        Parameters
        ----------
        scores
            As `transform` returns them.

        Raises
        ------
        RequestError
            If the release has no means of the columns.
        """
        mean, divisor = self._units()
        return (scores @ self.components.loc[scores.columns]) * divisor + mean

    def _units(self) -> tuple[pd.Series, pd.Series]:
        mean, divisor = self._columns["mean"], self._columns["divisor"]
        if not np.isfinite(mean).all():
            raise families.ANALYSIS(
                "Rows cannot be transformed: the release has no means of the columns.",
                "They need rows that were not divided by their own length, and an intercept: "
                "'normalisation: clip' in the request, 'intercept: true' in the contract.",
            )
        return mean, divisor

    def summary(self) -> str:
        """The shares and loadings as text."""
        lines = [self._head]
        if self.left_out:
            lines.append(f"Left out, their variance is hidden by noise: {', '.join(self.left_out)}")
        if len(self.shares):
            lines += [
                "",
                f"Shares of the variance with {100 * self.level:g} % intervals:",
                self.shares[["share", "standard_error", "lower", "upper"]].to_string(
                    float_format="{:.3f}".format
                ),
                "",
                "Loadings (NaN: unknown):",
                self.loadings.to_string(float_format="{:.3f}".format),
            ]
        return "\n".join(lines)

    @draws
    def plot(self, ax: Axes | None = None) -> Axes:
        """Scree plot: released eigenvalues, and the band in which they may be noise alone."""
        drawn = axes(ax)
        released, corrected = self.eigenvalues["eigenvalue"], self.eigenvalues["corrected"]
        scree(released.to_numpy(), corrected.to_numpy(), self.noise_edge, drawn)
        words = f"{self.n_above_noise} of {len(released)} components are above the noise"
        drawn.set_title(words, fontsize="medium")
        return drawn

    @draws
    def plot_loadings(self, ax: Axes | None = None) -> Axes:
        """Heat map of the loadings; unknown ones are hatched."""
        return loading_map(self.loadings, ax, "Loadings of the components")

    @property
    def _head(self) -> str:
        head = f"{self.n_above_noise} of {len(self.eigenvalues)} components are above the noise."
        if self.n_components > self.n_above_noise:
            head += f" Nothing is known of PC{self.n_above_noise + 1} and all after it."
        return head

    def _matrix(self, value: str) -> pd.DataFrame:
        """A column of the loadings, components by columns of the table."""
        names, known = list(self._columns.index), self.n_above_noise
        values = self._loadings[value].to_numpy(dtype=np.float64).reshape(known, len(names))
        index = [f"PC{k}" for k in range(1, self.n_components + 1)]
        found = pd.DataFrame(values, [f"PC{k}" for k in range(1, known + 1)], names)
        return found.reindex(pd.Index(index, dtype="object"))

    def __repr__(self) -> str:
        known = f"{self.n_above_noise} of {len(self.eigenvalues)}"
        return f"<ComponentsResult: {known} above the noise>"

    def _repr_html_(self) -> str:
        shares = self.shares[["share", "lower", "upper"]].round(3)
        return html_table(shares, f"{self._head} Shares of the variance:") + html_table(
            self.loadings.round(3), "Loadings; unknown ones are empty:"
        )
