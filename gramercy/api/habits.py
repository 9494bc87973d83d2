"""Names from other packages, and what they are called here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from gramercy.schemas import families

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

_COLLINEAR = (
    "1 / (1 - .rsquared) of .regression('a ~ b + c') is the variance inflation factor of a next "
    "to b and c."
)
_OF_TABLES = "to_csv to_excel to_latex to_html to_markdown to_frame to_dict loc iloc values"


def _by_name(instead: Mapping[str, str]) -> dict[str, str]:
    return {name: text for text, names in instead.items() for name in names.split()}


# What to use, and the attributes of data frames and of other packages.
HABITS = _by_name(
    {
        "Use .correlation (Pearson's), or .correlation.listed() with p-values.": (
            "corr rcorr pairwise_corr corrwith"
        ),
        "Ranks are published only where the contract derives a column by 'rank': .correlation has "
        "those of its normal scores.": "spearman spearmanr kendall kendalltau",
        ".partial_correlation is given all other columns, with p-values in .listed(). Given z "
        "alone, x has a coefficient, interval and p-value in .regression('y ~ x + z').": (
            "pcorr partial_corr"
        ),
        "Use .covariance.": "cov",
        "Use .means, and .means.standard_error.": "mean average sem",
        "Use .standard_deviations, or the diagonal of .covariance.": "std var",
        "Use .quantiles(0.5), or .quantiles(q, columns=COLUMNS).": "median quantile iqr",
        "It is the cell of one row, so it is not published. Use .quantiles([0.05, 0.95]).": (
            "min max"
        ),
        "Third and fourth moments are not published. Use .marginals or .quantiles().": (
            "skew kurtosis"
        ),
        "Use .crosstab(COLUMN) for levels, or .marginals for numbers.": (
            "value_counts unique nunique mode"
        ),
        "Use .crosstab(A, B) for counts, or .describe(by=COLUMN) for means.": (
            "pivot_table groupby agg"
        ),
        "Use .describe(), .evidence.rows, and .names for the columns of the matrix.": (
            "info summary columns shape"
        ),
        "Use .describe(), or .manifest.columns of the release for what the contract declares.": (
            "dtypes contract"
        ),
        "Use the line 'missing' of .describe().": "isna missing",
        "Use .means.plot(), .correlation.plot() or .describe(by=COLUMN).plot(COLUMN).": "plot",
        "Use .marginals.plot(COLUMN).": "hist histogram histplot",
        "Use .quantiles().plot(COLUMN).": "boxplot",
        "Use .correlation.plot().": "heatmap",
        "A release has no rows of the table. .synthesize() draws rows with its distributions.": (
            "head tail sample loc iloc iterrows values to_csv to_frame scatter pairplot "
            "kmeans cluster random_forest tsne umap"
        ),
        "Use .groups.compare(A, B) in a release with groups, .compare(OTHER) of two releases, or "
        "the coefficient of a level in .regression('y ~ level').": (
            "ttest ttest_ind t_test mannwhitneyu cohens_d"
        ),
        "Use .groups.changes() in a release with groups, or .regression('y ~ level').fvalue for "
        "the levels of a column.": "anova welch_anova f_oneway kruskal",
        "Use .crosstab(A, B).test, which has chi-squared, its p-value and Cramer's V.": (
            "chi2 chi2_independence chi2_contingency cramers_v"
        ),
        "Use .regression('y ~ a + b').": "ols lm fit linear_regression",
        "It needs more than means and covariances. .regression() fits a linear model: of zeros and "
        "ones a linear probability model, of counts their mean.": (
            "logit probit glm logistic_regression poisson"
        ),
        _COLLINEAR: "vif variance_inflation_factor collinearity",
        "Use .estimate('graphical-lasso'), or .graph(ESTIMATE) of the release for one that is "
        "published.": "glasso graphical_lasso network graphs",
        "Use .estimate('discriminant').": "lda",
        "Use .groups.classifier() in a release with groups.": "qda",
        "Only a whole release has histograms, and not its groups or several together.": (
            "marginals quantiles"
        ),
        "Use .factor_analysis().": "fa factor_analyzer efa parallel_analysis",
        "Use .reliability(COLUMNS).": "cronbach_alpha omega",
        "Use .synthesize(ROWS).": "synthetic generate",
        "Use .guarantee.epsilon and .guarantee.delta of the release.": (
            "epsilon delta budget privacy"
        ),
        "Cite .id and .sha256 of the release; .manifest.dataset has title, curator and version, "
        ".manifest.published the day.": "cite citation published curator title doi",
        "Seal, checksums and signature were verified when the release was opened: .signed_by is "
        "the key. 'gramercy verify' recomputes its numbers.": "verify signature",
    }
)
_OF_ARGUMENTS = {  # of methods
    "regression": {
        HABITS["glm"]: "family link",
        "Rows have no weights but those of clipping.": "weights",
        "The release is the data: its columns are .names.": "data",
        "Use level=0.95, or .conf_int(alpha) of the result.": "alpha",
        "Use cov_type='HC3', in a release with folds.": "robust",
    },
    "crosstab": {
        "Use .crosstab(A, B).table(margins=True).": "margins",
        "Use .crosstab(A, B).table('share', normalize='index').": "normalize",
        "It counts rows. Use .describe(by=COLUMN) for means.": "values aggfunc",
    },
}
OF_GROUPS = _by_name(
    {
        "Use .changes().": "anova welch_anova f_oneway kruskal",
        "Use .compare(A, B).table().": "ttest ttest_ind t_test mannwhitneyu cohens_d",
        "Use .means, or .describe() of one group.": "mean agg describe",
        "Use that of one group: groups[A].correlation.": "correlation corr",
        "Use that of one group: groups[A].regression(FORMULA).": "regression ols",
    }
)
OF_REGRESSION = _by_name(
    {
        "A release has no rows. Use .residual_sd, or .predict() for rows of your own.": (
            "resid fittedvalues resid_pearson get_influence"
        ),
        "It is unknown: half the number of rows multiplies the noise in the logarithm of the "
        "residuals' variance. Compare models by .rsquared_adj or .wald_test().": (
            "llf aic bic compare_lr_test"
        ),
        "Use .params, or .table with errors and intervals.": "coef_ coefficients coef intercept_",
        "Use .standardised.": "standardized beta std_coef",
        "Use .regression(FORMULA, cov_type='HC3') of a release with folds.": (
            "get_robustcov_results"
        ),
        "Use .rsquared.": "score",
        "Use .residual_sd.": "mse_resid scale ssr",
        "The summary is a text: print() shows it.": "as_text",
        _COLLINEAR: "vif variance_inflation_factor condition_number",
        "Use .table of the regression, a DataFrame with .to_csv(), .to_excel() and .to_latex().": (
            f"{_OF_TABLES} as_latex as_html as_csv tables"
        ),
    }
)
OF_LOADINGS = _by_name(  # of components and factors
    {
        "Use .transform(ROWS).": "scores fit_transform fit",
        "Use .loadings, a DataFrame with .to_csv(), .to_excel() and .to_latex().": (
            f"{_OF_TABLES} loadings_"
        ),
        "Use .eigenvalues.": "get_eigenvalues",
        "Use .communalities.": "get_communalities",
        "Use .uniquenesses.": "get_uniquenesses",
        "Use .variance.": "get_factor_variance",
    }
)
OF_TABLES = _by_name(
    {"Use .table(), a DataFrame with .to_csv(), .to_excel() and .to_latex().": _OF_TABLES}
)


class WithHabits:
    """An object whose missing attributes are explained, where another package has them.

    Attributes
    ----------
    habits
        What to use instead of each name.
    """

    __slots__ = ()
    habits: ClassVar[Mapping[str, str]] = HABITS

    if not TYPE_CHECKING:  # so that type checkers know the attributes

        def __getattr__(self, name: str) -> Any:
            """An error that says what a name from another package is called here."""
            if name in self.habits and not hasattr(type(self), name):
                raise families.UNKNOWN_NAME(
                    "There is no .{name} here.", "{instead}", name=name, instead=self.habits[name]
                )
            return object.__getattribute__(self, name)  # raises what was raised before


def refuse_arguments(method: str, given: Mapping[str, object]) -> None:
    """Refuse arguments that a method of releases lacks, with what to use instead."""
    instead = _by_name(_OF_ARGUMENTS[method])
    for argument in given:
        raise families.ANALYSIS(
            "'{argument}' is not an argument of .{method}().",
            "{instead}",
            argument=argument,
            method=method,
            instead=instead.get(argument, "Its arguments are in the reference, and in help()."),
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
