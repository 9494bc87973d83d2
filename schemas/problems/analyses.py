"""Regression, components, tables, synthetic rows and pooling: codes 550 to 599."""

from __future__ import annotations

from gramercy.schemas.errors import InvalidValue, MissingPackages, RequestError, UnknownName
from gramercy.schemas.problem import problem

# Plots.


@problem("GRM-588", MissingPackages, "Plots need matplotlib:", "{command}.")
def plotting_packages(command: str) -> None:
    """Gramercy was installed without the packages that draw plots."""


# Regression: 550 to 559.


@problem(
    "GRM-550",
    InvalidValue,
    "The formula '{formula}' cannot be read: {reason}.",
    "Write 'y ~ a + b', or 'y ~ .' for all other columns; put backticks around names that are not "
    "words.",
)
def formula_not_parsed(formula: str, reason: str) -> None:
    """The formula of a regression has a mistake in its syntax."""


@problem(
    "GRM-551",
    InvalidValue,
    "'{term}' in the formula '{formula}' is not a column: a second moment contains no products "
    "and no other functions of columns.",
    "Use columns as they are. The curator can publish such a term as a column of its own.",
)
def term_not_a_column(formula: str, term: str) -> None:
    """Interactions such as a:b, and functions such as log(a), need more than a second moment."""


@problem(
    "GRM-552",
    InvalidValue,
    "The formula '{formula}' removes the intercept.",
    "Leave out '- 1' and '0 +': moments are about the means.",
)
def intercept_removed(formula: str) -> None:
    """Every regression has an intercept."""


@problem(
    "GRM-553",
    InvalidValue,
    "'{outcome}' is on both sides of the regression.",
    "Remove one of them.",
)
def outcome_predicts_itself(outcome: str) -> None:
    """The outcome, or another level of its column, is one of the predictors."""


@problem(
    "GRM-554",
    InvalidValue,
    "'formula' cannot be combined with 'outcome' or 'predictors'.",
    "Use one of the two forms.",
)
def formula_and_names() -> None:
    """The columns of a regression are given by a formula or by their names."""


@problem(
    "GRM-555",
    RequestError,
    "A regression needs an outcome.",
    "Give a 'formula', such as 'y ~ a + b', or an 'outcome'.",
)
def outcome_missing() -> None:
    """Neither a formula nor an outcome was given."""


@problem(
    "GRM-556",
    RequestError,
    "The release has no column '{column}'.",
    "Its columns, most similar first: {known}.",
)
def regression_column_unknown(column: str, known: tuple[str, ...]) -> None:
    """A regression names a column that the release does not have."""


@problem(
    "GRM-557",
    RequestError,
    "The outcome '{column}' has levels.",
    "Name one level, for the share of rows that have it: {levels}.",
)
def outcome_has_levels(column: str, levels: tuple[str, ...]) -> None:
    """The outcome of a linear regression is a number, or whether a row has one level."""


# Components: 560 to 563.


@problem(
    "GRM-560",
    RequestError,
    "'columns' names columns that the release does not have: {unknown}.",
    "Its columns, most similar first: {known}.",
)
def components_unknown_columns(unknown: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Principal components are those of columns of the release."""


@problem(
    "GRM-561",
    RequestError,
    "Rows cannot be transformed: the release has no means of the columns.",
    "They need rows that were not divided by their own length, and an intercept: 'normalisation: "
    "clip' in the request, 'intercept: true' in the contract.",
)
def components_without_means() -> None:
    """Scores of rows are about the means, which unit rows and rows without an intercept lack."""


@problem("GRM-562", RequestError, "The rows have no columns {missing}.", "Name them as in {known}.")
def rows_lack_columns(missing: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Rows are transformed by the columns that the components were computed from."""


# Tables and moments: 564 to 569.


@problem(
    "GRM-564",
    RequestError,
    "'{estimator}' needs means of the columns, which this release does not have.",
    "They need rows that were not divided by their own length, and an intercept: 'normalisation: "
    "clip' in the request, 'intercept: true' in the contract.",
)
def analysis_needs_means(estimator: str) -> None:
    """Shares and means are quotients by the intercept's entry, in rows whose lengths are kept."""


@problem(
    "GRM-565",
    RequestError,
    "'{column}' is not a column of levels of this release.",
    "Columns of levels, most similar first: {known}.",
)
def not_a_column_of_levels(column: str, known: tuple[str, ...]) -> None:
    """Cross tables count the levels that the contract declares."""


@problem(
    "GRM-566",
    RequestError,
    "The release has no columns of levels.",
    "Tables count the levels of columns of the matrix, which the contract declares by 'levels'. "
    "Groups of rows ('by' in the request) are counted by .groups.rows.",
)
def no_levels_to_count() -> None:
    """Cross tables need at least one column of levels."""


@problem(
    "GRM-567",
    RequestError,
    "The table of {rows} and {columns} would have {cells} cells; at most {limit} are possible.",
    "Choose columns with fewer levels by 'rows' and 'columns', or leave out 'columns' for the "
    "counts of one column. .second_moment has the counts of all pairs of levels as its entries.",
)
def table_too_large(rows: str, columns: str, cells: int, limit: int) -> None:
    """Making a table consistent takes time that grows with the cube of its cells."""


@problem(
    "GRM-568",
    RequestError,
    "'rows' and 'columns' must be two different columns of levels.",
    "Leave out 'columns' for the counts of one column.",
)
def table_of_one_column() -> None:
    """A cross table counts pairs of levels of two different columns."""


@problem(
    "GRM-569",
    RequestError,
    "There are no means by level of '{column}'.",
    "Use .describe(by=...) with a column of levels. Columns with means: {known}.",
)
def no_means_by_level(column: str, known: tuple[str, ...]) -> None:
    """A plot shows the means of a numeric column within levels that were asked for."""


# Pools of releases.


@problem(
    "GRM-580",
    RequestError,
    "'{first}' and '{other}' cannot be pooled: they differ in the columns {columns}.",
    "Pool releases with the same names, kinds and levels of all columns, and with the intercept in "
    "all of them or in none.",
)
def pool_columns_differ(first: str, other: str, columns: tuple[str, ...]) -> None:
    """A pool averages matrices entry by entry, so all of them must have the same columns."""


@problem(
    "GRM-581",
    RequestError,
    "'{first}' and '{other}' cannot be pooled: their rows were normalised in different ways.",
    "Pool releases with the same kind of 'normalisation' and the same 'neighbours'.",
)
def pool_normalisations_differ(first: str, other: str) -> None:
    """Clipped rows and rows divided by their own length have different second moments."""


@problem(
    "GRM-582",
    RequestError,
    "'{first}' and '{other}' cannot be pooled: their constants of {columns} differ.",
    "Publish with an intercept and 'normalisation: clip', or take the constants of the first "
    "release: 'scaling: {{from: ...}}' in the request.",
)
def pool_constants_differ(first: str, other: str, columns: tuple[str, ...]) -> None:
    """Without an intercept, or of unit rows, a matrix cannot be brought to other constants."""


@problem(
    "GRM-583",
    RequestError,
    "'{release}' cannot be pooled: its noise is on the rows.",
    "Put the published rows of all releases together, and estimate from these.",
)
def pool_of_rows(release: str) -> None:
    """The noise of published rows depends on the rows; these can be pooled as they are."""


@problem(
    "GRM-584",
    RequestError,
    "'{release}' cannot be pooled: it has no values in the columns {columns}.",
    "Leave this release out.",
)
def pool_column_empty(release: str, columns: tuple[str, ...]) -> None:
    """A column whose cells are all missing in one release would be averaged with nothing."""


@problem(
    "GRM-585",
    RequestError,
    "'{first}' and '{other}' are of two versions of one data set, which may have rows in common.",
    "Say whether they have: rows='same' or rows='disjoint'.",
)
def pool_rows_unknown(first: str, other: str) -> None:
    """Sampling errors of the same rows are shared; those of different rows are independent."""


@problem(
    "GRM-586",
    RequestError,
    "'{first}' and '{other}' are not of the same rows: {number} differs.",
    "Use rows='disjoint' for tables without common rows.",
)
def pool_of_other_rows(first: str, other: str, number: str) -> None:
    """Releases of one table have the same number of rows or persons and protect the same unit."""


@problem(
    "GRM-587", RequestError, "A pool needs two or more different releases.", "Given: {release}."
)
def pool_too_small(release: str) -> None:
    """A release is pooled with others; the same release twice would count its noise as two."""


@problem(
    "GRM-593",
    InvalidValue,
    "'{name}' is not the name of a release.",
    "Write DATASET/RELEASE as 'gramercy list' does, with commas between several.",
)
def pool_name_malformed(name: str) -> None:
    """The setting 'releases' of a pool has an entry that cannot be the name of a release."""


@problem(
    "GRM-594",
    RequestError,
    "'{release}' cannot be pooled: it was withdrawn ({reason}).",
    "Leave this release out.",
)
def pool_of_withdrawn(release: str, reason: str) -> None:
    """New estimates do not use a release that its curator has withdrawn."""


@problem(
    "GRM-595",
    RequestError,
    "A pool is estimated from several releases, and not from the evidence of one.",
    "Run 'gramercy estimate RELEASE --estimator pool', or use gramercy.pool in Python.",
)
def pool_without_releases() -> None:
    """The estimator of pools was fitted to a single release."""


@problem(
    "GRM-596",
    RequestError,
    "An opened release was expected, not an object of the type {given}.",
    "Open it by its name: catalogue['DATASET/RELEASE'].",
)
def not_a_release(given: str) -> None:
    """Pools and comparisons take releases that were opened; a pool takes no groups or pools."""


# Synthetic rows: 570 to 579.


@problem(
    "GRM-570",
    RequestError,
    "The noise hides the weight of the rows, so nothing is known of the columns.",
    "Release with a larger epsilon, or with 'scaling: private', which publishes histograms.",
)
def rows_lost_in_noise() -> None:
    """The intercept's entry is within the noise, and the release has no histograms."""


@problem(
    "GRM-571",
    RequestError,
    "'integers' names columns that are not numeric: {unknown}.",
    "Numeric columns, most similar first: {known}.",
)
def not_numeric_columns(unknown: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Only numeric cells of synthetic rows can be rounded to whole numbers."""


@problem("GRM-572", RequestError, "The number of synthetic rows must be at least 1.")
def synthetic_rows_not_positive() -> None:
    """No rows, or a negative number of rows, were asked for."""


@problem(
    "GRM-589",
    RequestError,
    "'{first}' and '{other}' cannot be pooled: one averages over persons, the other over rows.",
    "Pool releases that protect the same unit.",
)
def pool_units_differ(first: str, other: str) -> None:
    """Where persons are protected, a person counts once, however many rows they have."""


# Results by name.


@problem(
    "GRM-590",
    UnknownName,
    "'{release}' has no estimate '{estimate}'.",
    "Estimates, most similar first: {known}.",
)
def unknown_estimate(release: str, estimate: str, known: tuple[str, ...]) -> None:
    """Estimates have the ids that .estimates lists; others are computed by .estimate()."""


@problem(
    "GRM-598",
    UnknownName,
    "There is no column '{column}'.",
    "Columns, most similar first: {known}.",
)
def unknown_column(column: str, known: tuple[str, ...]) -> None:
    """Means, covariances and the like have the columns that .names lists."""


@problem(
    "GRM-597",
    UnknownName,
    "'{release}' has no group '{group}'.",
    "Groups, most similar first: {known}.",
)
def unknown_group(release: str, group: str, known: tuple[str, ...]) -> None:
    """A release has groups if its request has the key 'by'; they are the levels of that column."""


@problem(
    "GRM-591",
    UnknownName,
    "The estimate '{estimate}' has no matrix or table '{name}'.",
    "It has, most similar first: {known}.",
)
def unknown_frame(estimate: str, name: str, known: tuple[str, ...]) -> None:
    """Every estimator gives matrices and tables of its own."""


@problem("GRM-592", InvalidValue, "This {estimator} has no {name}_.", "See .estimate_ for all.")
def no_such_matrix(estimator: str, name: str) -> None:
    """Estimators of graphs have no covariance, and singular covariances have no precision."""
