"""Linear regression with standard errors and intervals that include the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BeforeValidator, model_validator

from gramercy.estimators.estimator import Estimate, Estimator, names_of
from gramercy.estimators.intervals import Level
from gramercy.estimators.linear.design import Design, Recoding, ReleasedColumns
from gramercy.estimators.linear.formula import Terms, parse_formula
from gramercy.estimators.linear.least_squares import Regression, regression
from gramercy.estimators.table_units import mean_weight
from gramercy.estimators.uncertainty.jackknife import (
    describe_sampling,
    has_jackknife,
    reach_tail,
    squared_reaches,
    student_quantile,
    student_tail,
)
from gramercy.estimators.uncertainty.moment_errors import has_intercept
from gramercy.estimators.uncertainty.tails import critical_value, tail_probability
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec

Array = NDArray[np.float64]


class LinearRegression(Estimator):
    """``regression``: least squares of one column on others, in the columns' own units.

    Parameters
    ----------
    formula
        Such as ``y ~ a + b``; ``y ~ .`` for all other columns, ``y ~ . - c`` for all but one, with
        backticks around names that are not words. The intercept is always included. Functions and
        products, such as ``log1p(a)``, ``a:b`` or ``I(a > 1000)``, are columns that the release
        derives so; ``.`` leaves them out if it has their inputs. ``C(a, Treatment("B"))`` compares
        levels with B, which need not be the first one.
    outcome, predictors
        The same as names of columns, in place of a formula; predictors are a list or a text with
        commas, and by default all other columns.
    selection
        ``lasso``: predict by those regressors that a lasso selects, and by no others. Coefficients
        and their intervals are the same with and without, so that they stay valid.
    level
        Confidence level of each interval.

    Notes
    -----
    `estimators.linear.least_squares` describes the fit, the lasso and the intervals. A column of
    levels has a coefficient for each level but its reference, the first one declared. If rows were
    clipped, this is weighted least squares, in which row z has the weight min(1, radius / |z|)^2.
    If the release states which share of each column's cells is present, moments are corrected for
    cells that are missing independently, as in `estimators.table_units`.

    The filter, and the limit beyond which a coefficient is unknown, were chosen for isotropic
    Gaussian noise. They work in the metric in which the noise of the release is nearly so;
    standard errors and quantiles follow its law itself.
    """

    name: Literal["regression"] = "regression"
    formula: str | None = None
    outcome: str | None = None
    predictors: Annotated[tuple[str, ...], BeforeValidator(names_of)] | None = None
    selection: Literal["lasso"] | None = None
    level: Level = 0.95

    @model_validator(mode="after")
    def _check_terms(self) -> Self:
        if self.formula is not None:
            if self.outcome is not None or self.predictors is not None:
                raise families.FORMULA(
                    "'formula' cannot be combined with 'outcome' or 'predictors'.",
                    "Use one of the two forms.",
                )
            parse_formula(self.formula)
        return self

    def check(self, spec: ReleaseSpec) -> None:
        if spec.normalisation.unit_rows or not spec.intercept:
            raise wordings.analysis_needs_means(self.name)
        self._design(spec.names, spec.source_columns)

    def fit(self, evidence: Evidence) -> Estimate:
        """Tables only.

        ``coefficients``: for each term ``coefficient``, ``standard_error``, ``t``, ``p_value``,
        ``lower``, ``upper``, the bound on the ``bias`` that interval and p-value include,
        ``fitted``, the coefficient for prediction, and whether it is ``known``; with `selection`,
        also whether the term is ``selected``. ``standardised``: the same in standard deviations.
        ``fit``: R squared of the fitted coefficients, residual standard deviation, and the numbers
        in use. ``terms``: the outcome, the reference of each column of levels, how derived columns
        are computed, and the columns that ``.`` leaves out. If the outcome is ``log1p`` of a
        column, see `with_ratios`. Raises RequestError if rows were divided by their length, or if
        there is no intercept, or a column is unknown or not released.
        """
        return self.estimate_of(evidence, *self.design_and_result(evidence))

    def estimate_of(
        self, evidence: Evidence, columns: Design, result: Regression | None
    ) -> Estimate:
        """The estimate from what `design_and_result` returns."""
        labels = ["Intercept", *(evidence.names[i] for i in columns.regressors)]
        coefficients = inference(result, labels, self.level)
        if self.selection is not None:
            selected = np.zeros(len(labels), dtype=bool) if result is None else result.selected
            coefficients["selected"] = np.where(selected, "yes", "no")
        # Facts about the whole fit, one a line.
        weight = mean_weight(evidence)
        facts = {
            "R squared of the fitted coefficients": np.nan if result is None else result.r_squared,
            "residual standard deviation": np.nan if result is None else result.residual_sd,
            "rows": evidence.rows,
            "mean weight of a row": 1.0 if weight is None else weight,
            "noise in a moment": np.nan if result is None else result.noise,
            "regularisation": np.nan if result is None else result.delta,
            "factor for heavy tails": np.nan if result is None else result.tails,
            "folds": float(len(evidence.folds)) if has_jackknife(evidence) else 1.0,
        }
        outcome = evidence.columns[columns.outcome]
        if is_log(outcome):
            coefficients = with_ratios(coefficients)
        derived = {
            evidence.names[index]: each.derived.in_words
            for index in columns.columns
            if isinstance(each := evidence.columns[index], ColumnFacts) and each.derived
        }
        roles = [
            ("outcome", evidence.names[columns.outcome], ""),
            *(("reference", name, level) for name, level in columns.references.items()),
            *(("derived", name, words) for name, words in derived.items()),
            *(("left out", name, "") for name in columns.left_out),
        ]
        tables = {
            "coefficients": coefficients,
            "standardised": standardised(result, coefficients),
            "fit": pd.DataFrame(
                {
                    "quantity": list(facts),
                    "value": list(facts.values()),
                    "errors": describe_sampling(evidence),
                }
            ),
            "terms": pd.DataFrame(roles, columns=["role", "column", "level"]),
        }
        tuning = {"level": self.level, "terms": float(len(labels))}
        if result is not None:
            tuning |= {"delta": result.delta}
        return Estimate("regression", {}, tuning, tables)

    def design_and_result(self, evidence: Evidence) -> tuple[Design, Regression | None]:
        """The columns, and their regression before tests and intervals; raises as `fit` does."""
        if evidence.unit or not evidence.names or not has_intercept(evidence):
            raise wordings.analysis_needs_means(self.name)
        columns, recoding = self._design(evidence.names, evidence.columns)
        found = regression(evidence, columns, sparse=self.selection == "lasso")
        if recoding is None:
            return columns, found
        return recoding.design, found and found.recoded(evidence, recoding)

    def _design(
        self, names: Sequence[str], columns: Sequence[ColumnFacts | LevelsFacts | None]
    ) -> tuple[Design, Recoding | None]:
        """The columns of the fit, and how its coefficients are shown."""
        released, left_out = ReleasedColumns(names, columns), list[str]()
        if self.formula is not None:
            others, left_out = released.others(parse_formula(self.formula).outcome)
            terms = parse_formula(self.formula, others)
        elif self.outcome is None:
            raise families.ANALYSIS(
                "A regression needs an outcome.",
                "Give a 'formula', such as 'y ~ a + b', or an 'outcome'.",
            )
        elif self.predictors is None:
            others, left_out = released.others(self.outcome)
            terms = Terms(self.outcome, tuple(others), all_others=True)
        else:
            terms = Terms(self.outcome, tuple(dict.fromkeys(self.predictors)))
        design = released.design(terms, left_out if terms.all_others else ())
        return design, released.recoding(terms.references, design)


def is_log(outcome: ColumnFacts | LevelsFacts | None) -> bool:
    """Whether the column is ``log1p`` of another."""
    derived = outcome.derived if isinstance(outcome, ColumnFacts) else None
    return derived is not None and derived.transform == "log1p"


def with_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Coefficients of a logarithm, and what they mean in its own units.

    ``ratio``, with ``ratio_lower`` and ``ratio_upper``: of the geometric means of 1 + the outcome
    for one unit more of the term, given all others. NaN for the intercept.
    """
    names = {"ratio": "coefficient", "ratio_lower": "lower", "ratio_upper": "upper"}
    with np.errstate(over="ignore"):
        ratios = {name: np.exp(table[of]) for name, of in names.items()}
    return table.assign(**{name: each.mask(table.index == 0) for name, each in ratios.items()})


LOST = "noise or clipping hides the outcome"
HIDDEN = "noise or other terms hide it"
CLIPPED = "clipping hides the column"


def inference(
    result: Regression | None, terms: Sequence[str], level: float, null: Array | float = 0.0
) -> pd.DataFrame:
    """One line for each term, the intercept first.

    `terms`: names of the q terms. `null`: the values that are tested. As `LinearRegression.fit`
    says. NaN for what is unknown, and the ``reason``.
    """
    numbers = ("coefficient", "standard_error", "t", "p_value", "lower", "upper", "bias")
    if result is None:
        table = pd.DataFrame({"term": list(terms), **dict.fromkeys(numbers, np.nan)})
        return table.assign(fitted=np.nan, known="no", reason=LOST)
    known = result.known
    error = np.hypot(result.noise_error, result.sampling_error)
    estimate = result.coefficients
    share = np.divide(result.noise_error**2, error**2, out=np.zeros_like(error), where=error > 0)
    beyond = np.maximum(np.abs(estimate - null) - result.bias, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t, distance = (estimate - null) / error, np.where(beyond > 0, beyond / error, 0.0)
    if result.by_folds:
        tail = reach_tail(distance, result.freedom, share)
    else:
        tail = student_tail(distance, result.freedom)
    p_value = np.maximum(tail_probability(distance, share, result.shape), tail)
    if result.by_folds:
        squares = squared_reaches(level, result.freedom, 1 - share, share, result.shape)
        quantile = np.sqrt(sum(squares))
    else:
        normal = critical_value(1 - level, share, result.shape)
        quantile = np.maximum(normal, student_quantile(level, result.freedom))
    reach = result.bias + error * quantile
    values = (estimate, error, t, p_value, estimate - reach, estimate + reach, result.bias)
    columns = {
        name: np.where(known, each, np.nan) for name, each in zip(numbers, values, strict=True)
    }
    return pd.DataFrame(
        {
            "term": list(terms),
            **columns,
            "fitted": result.fitted,
            "known": np.where(known, "yes", "no"),
            "reason": np.select([known, result.clipped], ["", CLIPPED], HIDDEN),
        }
    )


def standardised(result: Regression | None, table: pd.DataFrame) -> pd.DataFrame:
    """Coefficients in standard deviations of the outcome for one of the regressor.

    `result`, `table`: a regression, and the table of `inference`. Returns ``term``, ``estimate``,
    ``lower`` and ``upper``, without the intercept; NaN where a coefficient, or the variance of its
    regressor, is unknown.
    """
    factor = np.nan if result is None else result.standardised[1:]
    numbers = {"estimate": "coefficient", "lower": "lower", "upper": "upper"}
    scaled = {name: table[source].iloc[1:] * factor for name, source in numbers.items()}
    return pd.DataFrame({"term": table["term"].iloc[1:], **scaled}).reset_index(drop=True)
