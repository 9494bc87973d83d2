"""Tests of hypotheses about the coefficients of a regression, and its predictions with errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.api.frames import check_between
from gramercy.estimators.linear.least_squares import Regression
from gramercy.estimators.regression import inference

Array = NDArray[np.float64]

_BLOCK = 256  # rows of predictions with errors at a time


@dataclass(frozen=True)
class ContrastResults:
    """Single tests of linear combinations of coefficients, one each.

    Parameters
    ----------
    result
        The q combinations; None if the outcome is unknown.
    terms
        Their names, one each.
    values
        The values that are tested, shape (q,).
    """

    result: Regression | None
    terms: tuple[str, ...]
    values: Array

    @property
    def table(self) -> pd.DataFrame:
        """Everything about the combinations, one line each; NaN where unknown."""
        return self._at(0.05).drop(columns=["fitted"])

    @property
    def effect(self) -> pd.Series:
        """The combinations of the coefficients."""
        return self.table["coefficient"]

    @property
    def sd(self) -> pd.Series:
        """Their standard errors."""
        return self.table["standard_error"]

    @property
    def statistic(self) -> pd.Series:
        """The difference from the hypothesis, in standard errors; also ``tvalue``."""
        return self.table["t"]

    tvalue = statistic

    @property
    def pvalue(self) -> pd.Series:
        """P-values of the hypotheses, each for itself; they allow for bias."""
        return self.table["p_value"]

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals that contain a combination with probability 1 - `alpha`.

        Raises
        ------
        RequestError
            If `alpha` is not greater than 0 and less than 0.5.
        """
        return self._at(alpha)[["lower", "upper"]]

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """The table with the names of statsmodels; raises as `conf_int` does."""
        names = ["coef", "std err", "t", "P>|t|", "Conf. Int. Low", "Conf. Int. Upp."]
        columns = ["coefficient", "standard_error", "t", "p_value", "lower", "upper"]
        return self._at(alpha)[columns].set_axis(names, axis=1).rename_axis(None)

    def _at(self, alpha: float) -> pd.DataFrame:
        check_between("alpha", alpha, 0, 0.5, usual=0.05)
        table = inference(self.result, self.terms, 1 - alpha, self.values)
        return table.set_index("term")

    def __repr__(self) -> str:
        return str(self.summary_frame().to_string())

    def _repr_html_(self) -> str:
        html: str = self.summary_frame().to_html()
        return html


@dataclass(frozen=True)
class Prediction:
    """Means of the outcome for rows, with their errors.

    They are those of `params`, for which errors are known, and differ from `predict` by as much as
    its stronger regularisation; NaN where the noise hides them.

    Parameters
    ----------
    result
        The regression; None if the outcome is unknown.
    cells
        1 and the cells of the terms, shape (rows, 1 + k); NaN where missing.
    index
        Labels of the rows.
    residual_sd
        Standard deviation of the residuals.
    """

    result: Regression | None
    cells: Array
    index: pd.Index
    residual_sd: float

    @property
    def predicted_mean(self) -> pd.Series:
        """The means."""
        return self.summary_frame()["mean"]

    @property
    def se_mean(self) -> pd.Series:
        """Standard errors of the means."""
        return self.summary_frame()["mean_se"]

    def conf_int(self, obs: bool = False, alpha: float = 0.05) -> pd.DataFrame:
        """``lower`` and ``upper`` of the means, or of observations; see `summary_frame`."""
        kind = "obs" if obs else "mean"
        found = self.summary_frame(alpha)[[f"{kind}_ci_lower", f"{kind}_ci_upper"]]
        return found.set_axis(["lower", "upper"], axis=1)

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """``mean``, ``mean_se``, and intervals of the mean and of an observation.

        Parameters
        ----------
        alpha
            Greater than 0 and less than 0.5. ``obs_ci`` contains an observation with probability
            1 - `alpha` if residuals are normal, with one standard deviation for all rows.

        Raises
        ------
        RequestError
            If `alpha` is out of range.
        """
        check_between("alpha", alpha, 0, 0.5, usual=0.05)
        whole: NDArray[np.bool_] = np.asarray(np.isfinite(self.cells).all(axis=1))
        blocks = np.array_split(np.where(whole[:, None], self.cells, 0.0), 1 + len(whole) // _BLOCK)
        tables = [
            inference(self.result and self.result.transformed(each), [""] * len(each), 1 - alpha)
            for each in blocks
        ]
        table = pd.concat(tables).set_axis(self.index)
        table.loc[~whole, :] = np.nan
        mean, error, bias = (table[x] for x in ("coefficient", "standard_error", "bias"))
        reach = (
            (table["upper"] - mean - bias)
            / error.where(error > 0)
            * np.hypot(error, self.residual_sd)
        )
        return pd.DataFrame(
            {
                "mean": mean,
                "mean_se": error,
                "mean_ci_lower": table["lower"],
                "mean_ci_upper": table["upper"],
                "obs_ci_lower": mean - bias - reach,
                "obs_ci_upper": mean + bias + reach,
            }
        )

    def __repr__(self) -> str:
        return str(self.summary_frame().to_string())
