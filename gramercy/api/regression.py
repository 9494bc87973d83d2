"""A regression in the style of statsmodels."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gramercy.api.own_rows import OwnRows
from gramercy.common.plotting import draws, forest, with_words
from gramercy.estimators.regression import LinearRegression, inference
from gramercy.schemas import wordings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.schemas.evidence import Evidence

_SMALL_P = 0.001  # smaller ones are not distinguished in a text
_HEAD = ("coef", "std err", "t", "p", "lower", "upper")


class Summary(str):
    """A text of several lines, shown as it is by Python and notebooks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class RegressionResult:
    """Coefficients in the columns' own units, with errors by noise and by sampling.

    A coefficient that noise or clipping hides is NaN, and shown as unknown. Errors assume that
    residuals do not depend on the regressors, unless the release has folds.

    Parameters
    ----------
    evidence
        The release.
    settings
        Formula or columns, and the confidence level.

    Raises
    ------
    RequestError
        If the release has no means of the columns, or a column is unknown.
    """

    def __init__(self, evidence: Evidence, settings: LinearRegression) -> None:
        self._design, self._result = settings.design_and_result(evidence)
        self._tables = settings.estimate_of(evidence, self._design, self._result).tables
        self._rows, self._names = OwnRows(evidence), evidence.names
        self.level = settings.level
        self.outcome = str(self._tables["terms"]["column"].iloc[0])

    @property
    def table(self) -> pd.DataFrame:
        """Everything about the coefficients, one line a term."""
        return self._tables["coefficients"].set_index("term")

    @property
    def fit(self) -> pd.Series:
        """Facts about the whole fit by name, such as the number of rows."""
        return self._tables["fit"].set_index("quantity")["value"]

    @property
    def params(self) -> pd.Series:
        """The coefficients; NaN where unknown."""
        return self.table["coefficient"]

    @property
    def ratios(self) -> pd.DataFrame | None:
        """Of an outcome log1p(x): ratios of geometric means of 1 + x, with their intervals.

        For one unit more of each term, given all others. None for other outcomes.
        """
        if "ratio" not in self.table:
            return None
        ratios = self.table[["ratio", "ratio_lower", "ratio_upper"]].iloc[1:]
        return ratios.set_axis(["ratio", "lower", "upper"], axis=1)

    @property
    def bse(self) -> pd.Series:
        """Standard errors by noise and sampling together."""
        return self.table["standard_error"]

    @property
    def tvalues(self) -> pd.Series:
        """Coefficients over their standard errors."""
        return self.table["t"]

    @property
    def pvalues(self) -> pd.Series:
        """P-values of the hypothesis that a coefficient is zero; they allow for bias."""
        return self.table["p_value"]

    @property
    def known(self) -> pd.Series:
        """Whether each coefficient is known."""
        return self.table["known"] == "yes"

    @property
    def selected(self) -> pd.Series:
        """Whether `predict` uses each term: without ``selection: lasso``, all of them."""
        if not self._selects:
            return pd.Series(True, index=self.table.index, name="selected")
        return self.table["selected"] == "yes"

    @property
    def prediction_params(self) -> pd.Series:
        """The coefficients by which `predict` predicts, also where single ones are unknown."""
        return self.table["fitted"]

    @property
    def rsquared(self) -> float:
        """Share of the outcome's variance that `predict` explains; NaN if it is lost."""
        return float(self.fit.iloc[0])

    @property
    def residual_sd(self) -> float:
        """Standard deviation of the residuals, in units of the outcome."""
        return float(self.fit.iloc[1])

    @property
    def nobs(self) -> float:
        """Public or noisy number of rows."""
        return float(self.fit.iloc[2])

    @property
    def law(self) -> str:
        """What errors assume: ``Gaussian rows``, or ``jackknife over K folds``."""
        return str(self._tables["fit"]["errors"].iloc[0])

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals that contain a coefficient with probability 1 - `alpha`.

        Parameters
        ----------
        alpha
            Greater than 0 and less than 0.5.

        Returns
        -------
        DataFrame
            ``lower`` and ``upper`` of every term; NaN where unknown.

        Raises
        ------
        RequestError
            If `alpha` is out of range.
        """
        if not 0 < alpha < 0.5:
            raise wordings.level_out_of_range()
        table = inference(self._result, list(self.table.index), 1 - alpha)
        return table.set_index("term")[["lower", "upper"]]

    def predict(self, frame: pd.DataFrame) -> pd.Series:
        """Predict the outcome of rows.

        Parameters
        ----------
        frame
            Has the columns of the table that are predictors, in their own units, or their levels.
            Numbers beyond the bounds that the release states are clamped to them, as its rows were.
            Derived columns are computed from their inputs, as they were for the release.
            Dates and truth values may be such, or the numbers and the levels of the release.

        Returns
        -------
        Series
            NaN for rows with missing numbers, or with a value that is not a level of its column; an
            `UnknownLevels` warning names the column.

        Raises
        ------
        RequestError
            If a column is missing.
        """
        terms = self.prediction_params.to_numpy(dtype=np.float64)
        cells = self._rows.read(frame, self._design.regressors)
        return pd.Series(terms[0] + cells @ terms[1:], index=frame.index, name=self.outcome)

    def summary(self) -> Summary:
        """The regression as a text table."""
        body = self._texts()
        width = max(len(name) for name in body.index) + 2
        lines = ["".join(f"{head:>12}" for head in body.columns)]
        lines[0] = " " * width + lines[0]
        for name, texts in body.iterrows():
            line = f"{name:<{width}}" + "".join(f"{text:>12}" for text in texts)
            lines.append(line.rstrip())
        rule = "-" * max(map(len, lines))
        return Summary("\n".join([*self._head(), rule, *lines, rule, *self._notes()]))

    @draws
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw standardised coefficients with their intervals, one line a term.

        They are in standard deviations of the outcome for one standard deviation of the regressor.
        """
        shown = self._tables["standardised"]
        drawn = forest(shown[["estimate", "lower", "upper"]].to_numpy().T, list(shown["term"]), ax)
        scale = f"standard deviations of {self.outcome} for one of the term"
        words = f"{100 * self.level:g} % intervals"
        return with_words(drawn, f"Regression of {self.outcome}, with {words}", scale)

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(line)}</p>" for line in (*self._head(), *self._notes()))
        html: str = self._texts().to_html()
        return html + notes

    def _texts(self) -> pd.DataFrame:
        columns = ["coefficient", "standard_error", "t", "p_value", "lower", "upper"]
        texts = self.table[columns].map(_plain)
        texts["p_value"] = texts["p_value"].mask(self.pvalues < _SMALL_P, f"<{_SMALL_P}")
        texts.loc[~self.known, :] = ["unknown", *[""] * (len(columns) - 1)]
        texts = texts.set_axis(list(_HEAD), axis=1).rename_axis(None)
        if "ratio" in self.table:
            texts["exp(coef)"] = (
                self.table["ratio"].map(_plain).mask(self.table["ratio"].isna(), "")
            )
        return texts.assign(selected=self.table["selected"]) if self._selects else texts

    @property
    def _logarithm_of(self) -> str:
        """The column of which the outcome is the logarithm."""
        words = self._tables["terms"].set_index(["role", "column"])["level"]
        return str(words["derived", self.outcome]).removeprefix("log1p(").removesuffix(")")

    @property
    def _selects(self) -> bool:
        return "selected" in self.table

    def _head(self) -> list[str]:
        return [
            f"Linear regression of {self.outcome}: {100 * self.level:g} % intervals, {self.law}",
            f"rows {self.nobs:,.0f}, R squared {_plain(self.rsquared)}, residual sd "
            f"{_plain(self.residual_sd)}, mean weight of a row {_plain(float(self.fit.iloc[3]))}",
        ]

    def _notes(self) -> list[str]:
        references = [f"{column}={level}" for column, level in self._design.references.items()]
        notes = [f"Reference levels: {', '.join(references)}."] if references else []
        terms = self._tables["terms"]
        derived, left_out = (terms[terms["role"] == role] for role in ("derived", "left out"))
        if len(derived):
            words = zip(derived["column"], derived["level"], strict=True)
            notes.append(f"Derived: {', '.join(f'{name} is {of}' for name, of in words)}.")
        if "ratio" in self.table:
            notes.append(
                f"exp(coef): ratio of the geometric means of 1 + {self._logarithm_of} for one unit "
                "more of the term."
            )
        if len(left_out):
            notes.append(
                f"'.' leaves out {', '.join(left_out['column'])}: computed from columns that it "
                "has, or from the outcome. Name them to use them."
            )
        notes.append("Errors include the noise. R squared is that of .predict().")
        if self._selects:
            notes.append(
                f"A lasso selects {self.selected[1:].sum()} of {len(self.table) - 1} predictors; "
                ".predict() uses no others. Intervals are those without selection."
            )
        if not self.known.all():
            notes.append(
                "unknown: the noise hides this coefficient, or how it differs from others; or "
                "clipping hides the column (see 'reason')."
            )
        return notes


def _plain(value: float) -> str:
    """A number for a text table."""
    return "unknown" if np.isnan(value) else f"{value:.4g}"
