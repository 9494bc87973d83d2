"""Principal components of a release as analysts read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gramercy.api.notebook import html_table
from gramercy.api.own_rows import OwnRows
from gramercy.common.plotting import axes, draws, scree
from gramercy.schemas import families

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.estimators import Estimate
    from gramercy.schemas.evidence import Evidence


class ComponentsResult:
    """Principal components that are above the noise, with intervals of their shares.

    Parameters
    ----------
    estimate
        Of the estimator ``pca``: see `estimators.components`.
    evidence
        The release.

    Attributes
    ----------
    n_components
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

    def __init__(self, estimate: Estimate, evidence: Evidence) -> None:
        tables, tuning = estimate.tables, estimate.tuning
        self._rows, self._names = OwnRows(evidence), list(evidence.names)
        self.level = tuning["level"]
        self.n_components = int(tuning["components"])
        self.noise_edge = tuning["noise_edge"]
        self._total = tuning["total_variance"]
        self.eigenvalues = tables["eigenvalues"].set_index(
            pd.Index([f"PC{k}" for k in tables["eigenvalues"]["component"]])
        )
        self.eigenvalues = self.eigenvalues.drop(columns="component")
        shares = tables["shares"]
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
    def components(self) -> pd.DataFrame:
        """Loadings, one line for each component above the noise.

        NaN for components that noise or sampling mixes with others.
        """
        return self._matrix("loading")

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
        mean, divisor = self._columns["mean"], self._columns["divisor"]
        if not np.isfinite(mean).all():
            raise families.ANALYSIS(
                "Rows cannot be transformed: the release has no means of the columns.",
                "They need rows that were not divided by their own length, and an intercept: "
                "'normalisation: clip' in the request, 'intercept: true' in the contract.",
            )
        names, known = list(self._columns.index), self.components.dropna()
        cells = self._rows.read(rows, [*map(self._names.index, names)])
        return ((pd.DataFrame(cells, rows.index, names) - mean) / divisor) @ known.T

    def summary(self) -> str:
        """The shares and loadings as text."""
        number, total = self.n_components, len(self.eigenvalues)
        lines = [f"{number} of {total} components are above the noise."]
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
                self.components.T.to_string(float_format="{:.3f}".format),
            ]
        return "\n".join(lines)

    @draws
    def plot(self, ax: Axes | None = None) -> Axes:
        """Scree plot: released eigenvalues, and the band in which they may be noise alone."""
        drawn = axes(ax)
        released, corrected = self.eigenvalues["eigenvalue"], self.eigenvalues["corrected"]
        scree(released.to_numpy(), corrected.to_numpy(), self.noise_edge, drawn)
        words = f"{self.n_components} of {len(released)} components are above the noise"
        drawn.set_title(words, loc="left", fontsize="medium")
        return drawn

    def _matrix(self, value: str) -> pd.DataFrame:
        """A column of the loadings, components by columns of the table."""
        names, number = list(self._columns.index), self.n_components
        values = self._loadings[value].to_numpy(dtype=np.float64).reshape(number, len(names))
        index = [f"PC{k}" for k in range(1, number + 1)]
        return pd.DataFrame(values, index=pd.Index(index, dtype="object"), columns=names)

    def __repr__(self) -> str:
        return f"<ComponentsResult: {self.n_components} of {len(self.eigenvalues)} above the noise>"

    def _repr_html_(self) -> str:
        found = f"{self.n_components} of {len(self.eigenvalues)} components are above the noise."
        shares = self.shares[["share", "lower", "upper"]].round(3)
        return html_table(shares, f"{found} Shares of the variance:") + html_table(
            self.components.T.round(3), "Loadings; unknown ones are empty:"
        )
