"""Names from other packages, and what they are called here."""

from __future__ import annotations

from collections.abc import Mapping

from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError

_ESTIMATORS = {  # other names of estimators
    "glasso": "graphical-lasso",
    "graph-lasso": "graphical-lasso",
    "sparse-inverse-covariance": "graphical-lasso",
    "neighborhood-selection": "neighbourhood-selection",
    "meinshausen-buhlmann": "neighbourhood-selection",
    "fdr": "discoveries",
    "lda": "discriminant",
    "linear-discriminant": "discriminant",
    "qda": "quadratic-discriminant",
    "ols": "regression",
    "lm": "regression",
    "linear-regression": "regression",
    "components": "pca",
    "principal-components": "pca",
    "factor-analysis": "factors",
    "fa": "factors",
    "crosstab": "tables",
    "describe": "moments",
    "summary": "moments",
}

_INSTEAD = {  # what to use, and the attributes of data frames and of other packages
    "Use .correlation, or .correlation.listed() with p-values.": "corr rcorr pairwise_corr",
    "Use .partial_correlation, or .partial_correlation.listed() with p-values.": (
        "pcorr partial_corr"
    ),
    "Use .covariance.": "cov",
    "Use .means, and .means.standard_error.": "mean sem",
    "Use .standard_deviations, or the diagonal of .covariance.": "std var",
    "Use .quantiles(0.5), or .quantiles(q, columns=COLUMNS).": "median quantile iqr",
    "It is the cell of one row, so it is not published. Use .quantiles([0.05, 0.95]).": "min max",
    "Third and fourth moments are not published. Use .marginals or .quantiles().": "skew kurtosis",
    "Use .crosstab(COLUMN) for levels, or .marginals for numbers.": (
        "value_counts unique nunique mode"
    ),
    "Use .crosstab(A, B) for counts, or .describe(by=COLUMN) for means.": (
        "pivot_table groupby agg"
    ),
    "Use .describe(), .evidence.rows, and .names for the columns of the matrix.": (
        "info summary columns shape"
    ),
    "Use the line 'missing' of .describe().": "isna",
    "Use .means.plot(), .correlation.plot() or .describe(by=COLUMN).plot(COLUMN).": "plot",
    "Use .marginals.plot(COLUMN).": "hist histplot",
    "Use .quantiles().plot(COLUMN).": "boxplot",
    "Use .correlation.plot().": "heatmap",
    "A release has no rows of the table. .synthesize() draws rows with its distributions.": (
        "head tail sample loc iloc values to_csv scatter pairplot"
    ),
    "Use .groups.compare(A, B) in a release with groups, .compare(OTHER) of two releases, or the "
    "coefficient of a level in .regression('y ~ level').": "ttest ttest_ind",
    "Use .groups.changes() in a release with groups, or .regression('y ~ level').fvalue for the "
    "levels of a column.": "anova welch_anova",
    "Use .crosstab(A, B).test, which has chi-squared, its p-value and Cramer's V.": (
        "chi2 chi2_independence"
    ),
    "Use .regression('y ~ a + b').": "ols lm",
    "It needs more than means and covariances. .regression() fits a linear model.": "logit glm",
    "Only a whole release has histograms, and not its groups or several together.": (
        "marginals quantiles"
    ),
    "Use .factor_analysis().": "fa factor_analyzer efa",
    "Use .reliability(COLUMNS).": "cronbach_alpha omega",
}
_INSTEAD_OF_REGRESSION = {
    "A release has no rows. Use .residual_sd, or .predict() for rows of your own.": (
        "resid fittedvalues resid_pearson get_influence"
    ),
    "It is unknown: half the number of rows multiplies the noise in the logarithm of the "
    "residuals' variance. Compare models by .rsquared_adj or .wald_test().": (
        "llf aic bic compare_lr_test"
    ),
}


def _by_name(instead: Mapping[str, str]) -> dict[str, str]:
    return {name: text for text, names in instead.items() for name in names.split()}


HABITS, OF_REGRESSION = _by_name(_INSTEAD), _by_name(_INSTEAD_OF_REGRESSION)


def no_attribute(name: str, instead: str) -> GramercyError:
    """The error of a name from another package, which says what to use."""
    return families.UNKNOWN_NAME(
        "There is no .{name} here.", "{instead}", name=name, instead=instead
    )


def estimator_name(name: str) -> str:
    """The name of an estimator from another name of it, or from another spelling.

    Examples
    --------
    >>> estimator_name("Graphical Lasso"), estimator_name("glasso"), estimator_name("ridge")
    ('graphical-lasso', 'graphical-lasso', 'ridge')
    """
    spelt = "-".join(str(name).lower().replace("_", " ").replace("-", " ").split())
    return _ESTIMATORS.get(spelt, spelt)
