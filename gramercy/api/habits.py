"""Names from other packages, and what they are called here."""

from __future__ import annotations

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

_NO_ROWS = "A release has no rows of the table. .synthesize() draws rows with its distributions."
_HISTOGRAM = "Use .marginals, which has a line for each bin."
_GRAPH = "Use .estimate('graphical-lasso'), or .graph(ESTIMATE) for one that is published."
_REGRESSION = "Use .regression('y ~ a + b')."
_TWO_GROUPS = (
    "Use .groups.compare(A, B) in a release with groups, .compare(OTHER) of two releases, or the "
    "coefficient of a level in .regression('y ~ level')."
)
_LEVELS = (
    "Use .groups.changes() in a release with groups, or .regression('y ~ level') for the levels of "
    "a column."
)
_CROSSTAB = "Use .crosstab(A, B): .test has chi-squared, its p-value and Cramer's V."
_LINEAR = "It needs more than means and covariances. .regression() fits a linear model."
_MOMENTS = "It needs more than means and covariances of the columns, which are all that is there."
HABITS: dict[str, str] = {  # attributes of data frames and of other packages, and what to use
    "corr": "Use .correlation, or .correlation.listed() with p-values.",
    "corrwith": "Use .correlation['COLUMN'].",
    "pairwise_corr": "Use .correlation.listed(), which has p-values and intervals.",
    "rcorr": "Use .correlation and .correlation.pvalues.",
    "pcorr": "Use .partial_correlation.",
    "partial_corr": "Use .partial_correlation, or .partial_correlation.listed() with p-values.",
    "cov": "Use .covariance.",
    "mean": "Use .means.",
    "average": "Use .means.",
    "std": "Use .standard_deviations.",
    "var": "Use .standard_deviations ** 2, or the diagonal of .covariance.",
    "sem": "Use .means.standard_error, by noise and sampling.",
    "median": "Use .quantiles(0.5).",
    "quantile": "Use .quantiles(q, columns=COLUMNS).",
    "iqr": "Subtract the quantiles of .quantiles([0.25, 0.75]).",
    "min": "No minimum is published: it is the cell of one row. Use .quantiles(0.05).",
    "max": "No maximum is published: it is the cell of one row. Use .quantiles(0.95).",
    "mode": "No mode is published. Use .marginals, or .crosstab(COLUMN) of levels.",
    "nunique": "Levels are declared: .crosstab(COLUMN) counts them.",
    "unique": "Levels are declared: .crosstab(COLUMN) counts them.",
    "value_counts": "Use .crosstab(COLUMN), or .marginals for numbers.",
    "pivot_table": "Use .crosstab(A, B), or .describe(by=COLUMN) for means.",
    "groupby": "Use .describe(by=COLUMN) for means, or .groups of a release with groups.",
    "agg": "Use .describe().",
    "info": "Use .describe(); .names has the columns of the matrix.",
    "summary": "Use .describe(), and .warnings for what numbers do not say.",
    "columns": "Use .names for the columns of the matrix, and .describe() for those of the table.",
    "isna": "Use the line 'missing' of .describe().",
    "missing": "Use the line 'missing' of .describe().",
    "skew": _MOMENTS,
    "kurtosis": _MOMENTS,
    "plot": "Use .means.plot(), .correlation.plot() or .describe(by=COLUMN).plot(COLUMN).",
    "hist": _HISTOGRAM,
    "histogram": _HISTOGRAM,
    "histplot": _HISTOGRAM,
    "boxplot": "Use .quantiles(), which has the quartiles of each column.",
    "scatter": "Use .synthesize() and plot its rows.",
    "pairplot": "Use .synthesize() and plot its rows.",
    "heatmap": "Use .correlation.plot().",
    **dict.fromkeys(
        ("head", "tail", "sample", "iloc", "loc", "iterrows", "to_csv", "to_frame", "values"),
        _NO_ROWS,
    ),
    "shape": "Use .evidence.rows for the number of rows, and .names for the columns.",
    **dict.fromkeys(("ttest", "ttest_ind", "t_test", "mannwhitneyu", "cohens_d"), _TWO_GROUPS),
    **dict.fromkeys(("anova", "welch_anova", "f_oneway", "kruskal"), _LEVELS),
    **dict.fromkeys(("chi2", "chi2_contingency", "chi2_independence", "cramers_v"), _CROSSTAB),
    **dict.fromkeys(("ols", "lm", "fit", "linear_regression"), _REGRESSION),
    **dict.fromkeys(("logit", "glm", "logistic_regression", "poisson"), _LINEAR),
    **dict.fromkeys(("kmeans", "cluster", "tsne", "umap"), _NO_ROWS),
    **dict.fromkeys(("glasso", "graphical_lasso"), _GRAPH),
    **dict.fromkeys(("fa", "factanal", "factor_analyzer", "efa"), "Use .factor_analysis()."),
    **dict.fromkeys(("cronbach_alpha", "alpha", "omega"), "Use .reliability(COLUMNS)."),
    "lda": "Use .estimate('discriminant').",
    "qda": "Use .groups.classifier().",
    "network": _GRAPH,
}


def estimator_name(name: str) -> str:
    """The name of an estimator from another name of it, or from another spelling.

    Examples
    --------
    >>> estimator_name("Graphical Lasso"), estimator_name("glasso"), estimator_name("ridge")
    ('graphical-lasso', 'graphical-lasso', 'ridge')
    """
    spelt = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    return _ESTIMATORS.get(spelt, spelt)
