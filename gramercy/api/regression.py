"""A regression in the style of statsmodels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from gramercy.api.frames import check_between
from gramercy.api.habits import OF_REGRESSION, WithHabits
from gramercy.api.hypotheses import ContrastResults, Prediction
from gramercy.api.own_rows import OwnRows
from gramercy.common.plotting import draws, forest, with_words
from gramercy.estimators.linear.hypotheses import (
    Hypotheses,
    JointTest,
    joint_test,
    names_of_level,
    plain_term,
    read_hypotheses,
)
from gramercy.estimators.regression import LinearRegression, inference
from gramercy.estimators.uncertainty.jackknife import has_jackknife
from gramercy.schemas import families
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.schemas.evidence import Evidence

Facts = ColumnFacts | LevelsFacts | None
Rows: TypeAlias = "pd.DataFrame | pd.Series | Mapping[str, Any] | ArrayLike"

_SMALL_P = 0.001  # smaller ones are not distinguished in a text
_HEAD = ("coef", "std err", "t", "p", "lower", "upper")


class Summary(WithHabits, str):
    """A text of several lines, shown as it is by Python and notebooks."""

    __slots__ = ()
    habits = OF_REGRESSION

    def __repr__(self) -> str:
        return str(self)


class TermSeries(pd.Series):  # type: ignore[misc]
    """Numbers by term, also by the names that statsmodels gives terms, such as ``C(x)[T.b]``."""

    _metadata: ClassVar[list[str]] = [*pd.Series._metadata, "other_names"]

    @property
    def _constructor(self) -> type[TermSeries]:
        return TermSeries

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) and key not in self.index:
            key = getattr(self, "other_names", {}).get(plain_term(key), key)
        return super().__getitem__(key)


def of_errors(evidence: Evidence, cov_type: str) -> Evidence:
    """The release with errors of the type that statsmodels calls so.

    ``nonrobust`` leaves out the folds; ``HC0`` to ``HC3`` need them. Raises RequestError if the
    release has too few, or for another type.
    """
    if cov_type == "nonrobust":
        return replace(evidence, folds=())
    if cov_type not in _ROBUST:
        raise families.ANALYSIS(
            "'{cov_type}' is not a type of errors that a release can have.",
            "Use one of: {known}.",
            cov_type=cov_type,
            known=("nonrobust", *_ROBUST),
        )
    if not has_jackknife(evidence):
        raise families.ANALYSIS(
            "Robust errors need a release with folds: its moments do not tell how residuals "
            "depend on the predictors.",
            "Ask the curator for 'folds: 10' in the request; without 'cov_type', errors assume "
            "residuals of one variance.",
            cov_type=cov_type,
        )
    return evidence


_ROBUST = ("jackknife", "HC0", "HC1", "HC2", "HC3")


class RegressionResult(WithHabits):
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

    habits = OF_REGRESSION

    def __init__(self, evidence: Evidence, settings: LinearRegression) -> None:
        self._design, self._result = settings.design_and_result(evidence)
        self._tables = settings.estimate_of(evidence, self._design, self._result).tables
        self._rows = OwnRows(evidence)
        self.level = settings.level
        self.outcome = str(self._tables["terms"]["column"].iloc[0])
        self._other_names = {
            label: [label, *_other_names(evidence.columns[index], label)]
            for label, index in zip(self.table.index, (0, *self._design.regressors), strict=True)
        }

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
        return self._by_term("coefficient")

    @property
    def standardised(self) -> pd.DataFrame:
        """Coefficients in standard deviations of outcome and term, as `plot` draws them."""
        return self._tables["standardised"].set_index("term")

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
        return self._by_term("standard_error")

    @property
    def tvalues(self) -> pd.Series:
        """Coefficients over their standard errors."""
        return self._by_term("t")

    @property
    def pvalues(self) -> pd.Series:
        """P-values of the hypothesis that a coefficient is zero; they allow for bias."""
        return self._by_term("p_value")

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
    def rsquared_adj(self) -> float:
        """R squared, corrected for the number of terms."""
        return 1 - (1 - self.rsquared) * (self.nobs - 1) / self.df_resid

    @property
    def df_model(self) -> float:
        """Number of terms without the intercept."""
        return float(len(self.table) - 1)

    @property
    def df_resid(self) -> float:
        """Number of rows minus that of terms, at least 1."""
        return max(self.nobs - len(self.table), 1.0)

    @cached_property
    def _overall(self) -> JointTest:
        slopes = np.eye(len(self.table))[1:][self.known.to_numpy()[1:]]
        return joint_test(self._result, slopes, np.zeros(len(slopes)))

    @property
    def fvalue(self) -> float:
        """F of the hypothesis that all known coefficients but the intercept are zero.

        They are those given all terms, also the unknown ones; NaN if none is known. See
        `wald_test`.
        """
        return self._overall.statistic

    @property
    def f_pvalue(self) -> float:
        """The p-value of `fvalue`, which allows for bias; NaN if no coefficient is known."""
        return self._overall.pvalue

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

    @property
    def cov_type(self) -> str:
        """What errors are: ``jackknife``, which is robust, or ``nonrobust``."""
        return "nonrobust" if self.law == "Gaussian rows" else "jackknife"

    def cov_params(self) -> pd.DataFrame:
        """Covariance of the coefficients by noise and sampling; NaN for those that are unknown.

        Its diagonal has the squares of `bse`. It leaves out the bounds on the bias, which tests and
        intervals allow for.
        """
        covariance = np.full((len(self.table),) * 2, np.nan)
        if (found := self._result) is not None:
            covariance = found.by_noise + found.by_sampling
            np.fill_diagonal(covariance, found.noise_error**2 + found.sampling_error**2)
            both = np.outer(found.known, found.known)
            covariance = np.where(both, covariance, np.nan)
        terms = list(self.table.index)
        return pd.DataFrame(covariance, index=terms, columns=terms)

    def t_test(self, hypotheses: str | Sequence[str] | ArrayLike) -> ContrastResults:
        """Test linear combinations of the coefficients, one by one.

        Parameters
        ----------
        hypotheses
            Such as ``"a = b"``, ``"2 * a + b = 1, c = 0"``, or a list of them; or a matrix of shape
            (q, 1 + k), or a row of it, whose products with the coefficients are tested to be zero.
            Terms may have the names of statsmodels, such as ``C(x)[T.b]``.

        Raises
        ------
        RequestError
            If the hypotheses cannot be read, or name another term.
        """
        linear, values, texts = self._hypotheses(hypotheses)
        combined = None if self._result is None else self._result.transformed(linear)
        return ContrastResults(combined, texts, values)

    def wald_test(self, hypotheses: str | Sequence[str] | ArrayLike) -> JointTest:
        """Test linear combinations of the coefficients, all together, by F.

        The p-value allows for noise of any law, and for bias. With folds it is that of Hotelling's
        test, which is unknown if there are not more folds than hypotheses.

        Parameters
        ----------
        hypotheses
            As in `t_test`.

        Raises
        ------
        RequestError
            As `t_test` does.
        """
        linear, values, texts = self._hypotheses(hypotheses)
        return joint_test(self._result, linear, values)._replace(hypotheses=texts)

    f_test = wald_test

    def get_prediction(self, rows: Rows) -> Prediction:
        """Means of the outcome for rows, with standard errors and intervals.

        Parameters
        ----------
        rows
            As in `predict`; NaN for rows with missing numbers.

        Raises
        ------
        RequestError
            As `predict` does.
        """
        frame = self._frame(rows)
        cells = self._rows.read(frame, self._design.regressors)
        with_intercept = np.column_stack([np.ones(len(frame)), cells])
        return Prediction(self._result, with_intercept, frame.index, self.residual_sd)

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
        check_between("alpha", alpha, 0, 0.5, usual=0.05)
        table = inference(self._result, list(self.table.index), 1 - alpha)
        return table.set_index("term")[["lower", "upper"]]

    def predict(self, rows: Rows) -> pd.Series:
        """Predict the outcome of rows.

        Parameters
        ----------
        rows
            A table, a dict of columns or of the cells of one row, or an array of the terms without
            the intercept, shape (rows, k) or (k,).
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
        terms, frame = self.prediction_params.to_numpy(dtype=np.float64), self._frame(rows)
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

    def _by_term(self, name: str) -> TermSeries:
        found = TermSeries(self.table[name])
        found.other_names = {
            plain_term(each): term for term, names in self._other_names.items() for each in names
        }
        return found

    def _hypotheses(self, hypotheses: str | Sequence[str] | ArrayLike) -> Hypotheses:
        terms = list(self.table.index)
        if isinstance(hypotheses, list | tuple) and all(isinstance(x, str) for x in hypotheses):
            hypotheses = ", ".join(hypotheses)
        if isinstance(hypotheses, str):
            return read_hypotheses(hypotheses, self._other_names)
        linear = np.zeros((1, 0))
        with suppress(TypeError, ValueError):  # not a matrix
            linear = np.atleast_2d(np.asarray(hypotheses, dtype=np.float64))
        fits = linear.ndim == 2 and linear.shape[1] == len(terms) and np.isfinite(linear).all()
        if not fits or not linear.any(axis=1).all():
            raise families.ANALYSIS(
                "A matrix of hypotheses must have a column for each of the {count} terms, numbers "
                "alone, and no row of zeros.",
                "The terms are {terms}.",
                count=len(terms),
                terms=tuple(terms),
            )
        texts = tuple(
            " + ".join(
                f"{weight:g} * {name}" for weight, name in zip(row, terms, strict=True) if weight
            )
            for row in linear
        )
        return Hypotheses(linear, np.zeros(len(linear)), texts)

    def _frame(self, rows: Rows) -> pd.DataFrame:
        """Rows as a table."""
        if isinstance(rows, pd.DataFrame):
            return rows
        if isinstance(rows, pd.Series):
            return rows.to_frame().T.infer_objects()
        terms = list(self.table.index[1:])
        with suppress(TypeError, ValueError):
            if isinstance(rows, Mapping):
                several = any(pd.api.types.is_list_like(each) for each in rows.values())
                return pd.DataFrame(rows) if several else pd.DataFrame([rows])
            if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
                return pd.DataFrame(rows)
            return pd.DataFrame(np.atleast_2d(np.asarray(rows)), columns=terms)
        raise families.ANALYSIS(
            "The rows are not a table, nor a dict of columns of one length, nor an array with a "
            "column for each of the {count} terms.",
            "The terms are {terms}.",
            count=len(terms),
            terms=tuple(terms),
        )

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
            f"adjusted R squared {_plain(self.rsquared_adj)}, F({self._overall.df_num}, "
            f"{_plain(self._overall.df_denom)}) {_plain(self.fvalue)}, p {_p_value(self.f_pvalue)}",
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
        robust = self.cov_type == "jackknife"
        assumed = "nothing about residuals" if robust else "that residuals have one variance"
        notes.append(f"Errors include the noise, and assume {assumed}.")
        notes.append("R squared is that of .predict().")
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
        if left := [*self.known.index[1:][~self.known[1:]]]:
            notes.append(
                f"F tests that all known coefficients are zero; it leaves out {', '.join(left)}."
            )
        return notes


def _other_names(facts: Facts, label: str) -> Iterator[str]:
    """The names that formulas and statsmodels have for a term."""
    if isinstance(facts, LevelsFacts):
        yield from names_of_level(facts.name, label.removeprefix(f"{facts.name}="))
    elif facts is not None and facts.derived is not None:
        yield facts.derived.in_words
        if facts.derived.transform == "product":
            names = [
                [each, *(names_of_level(*each.split("=", 1)) if "=" in each else ())]
                for each in facts.derived.inputs
            ]
            for a, b in itertools.product(*names):
                yield from (f"{a}:{b}", f"{b}:{a}")


def _p_value(value: float) -> str:
    return f"<{_SMALL_P}" if value < _SMALL_P else _plain(value)


def _plain(value: float) -> str:
    """A number for a text table."""
    return "unknown" if np.isnan(value) else f"{value:.4g}"
