"""Estimators and solvers: codes 600 to 659."""

from __future__ import annotations

from gramercy.schemas.errors import InvalidValue, NoMinimiser, RequestError, StepFailed
from gramercy.schemas.problem import problem

# Arguments of solvers and of estimators in Python.


@problem("GRM-600", InvalidValue, "{argument} must be a square matrix with at least one column.")
def not_square(argument: str) -> None:
    """A matrix has different numbers of rows and columns, or none at all."""


@problem("GRM-601", InvalidValue, "{argument} must be finite.", "Remove NaN and infinite entries.")
def not_finite(argument: str) -> None:
    """An array has entries that are NaN or infinite."""


@problem("GRM-602", InvalidValue, "{argument} must be symmetric.", "Pass (A + A.T) / 2.")
def not_symmetric(argument: str) -> None:
    """A matrix differs from its transpose by more than rounding."""


@problem("GRM-603", InvalidValue, "{argument} must be real.")
def not_real(argument: str) -> None:
    """An argument has complex numbers."""


@problem("GRM-604", InvalidValue, "{argument} must have a positive diagonal.")
def diagonal_not_positive(argument: str) -> None:
    """A column has no variance, so it cannot be scaled to unit variance."""


@problem(
    "GRM-605",
    InvalidValue,
    "{argument} must be positive semidefinite.",
    "Use the denoised matrix of the release.",
)
def not_positive_semidefinite(argument: str) -> None:
    """A matrix has negative eigenvalues, and the problem is not convex."""


@problem("GRM-606", InvalidValue, "{argument} must be positive and finite.")
def not_positive(argument: str) -> None:
    """A number is zero, negative, infinite or NaN."""


@problem("GRM-607", InvalidValue, "{argument} must not be negative.")
def negative_entries(argument: str) -> None:
    """A penalty is negative or NaN."""


@problem("GRM-608", InvalidValue, "{argument} must have the same shape as {expected}.")
def shapes_differ(argument: str, expected: str) -> None:
    """Two arrays that belong together have different shapes."""


@problem(
    "GRM-609",
    InvalidValue,
    "{argument} must have one entry for each of the {columns} columns of the matrix, or be empty.",
)
def wrong_number_of_columns(argument: str, columns: int) -> None:
    """The number of names or of column descriptions differs from the size of the matrix."""


@problem("GRM-610", InvalidValue, "{argument} must have {rows} rows.")
def wrong_number_of_rows(argument: str, rows: int) -> None:
    """An array needs one row for each column of the matrix."""


@problem("GRM-611", InvalidValue, "{argument} must be positive.")
def bound_not_positive(argument: str) -> None:
    """An upper bound is zero, negative or NaN."""


@problem("GRM-612", InvalidValue, "{argument} must have at least one row and one column.")
def no_rows(argument: str) -> None:
    """An array of rows is empty, or does not have two dimensions."""


@problem("GRM-613", InvalidValue, "All rows are of one class.", "Pass rows of two classes or more.")
def one_class() -> None:
    """A classifier needs rows of at least two classes."""


@problem("GRM-614", InvalidValue, "solver must be one of {known}.")
def unknown_solver(known: tuple[str, ...]) -> None:
    """The name of a solver of the graphical lasso is unknown."""


@problem("GRM-615", InvalidValue, "penalties must have at least one penalty.")
def no_penalties() -> None:
    """A path of estimates needs at least one penalty."""


@problem(
    "GRM-616",
    InvalidValue,
    "Of any two matrices in penalties, one must be at least the other in every entry.",
    "Multiply one matrix of penalties by several numbers.",
)
def penalties_not_ordered() -> None:
    """A path goes from larger penalties to smaller ones, and these two cannot be ordered."""


@problem("GRM-617", InvalidValue, "penalty must be between 0 and 1.")
def penalty_outside_unit_interval() -> None:
    """SCIO's penalty has no unit; at 1 or more every column would be zero."""


@problem(
    "GRM-618",
    InvalidValue,
    "'refit: true' cannot be combined with 'input: raw'.",
    "Write 'input: denoised': the raw matrix may have no inverse.",
)
def refit_of_raw() -> None:
    """Refitting without a penalty requires a positive definite matrix."""


# What a release, or an estimate, does not have.


@problem(
    "GRM-619",
    RequestError,
    "An estimate of kind '{kind}' has no matrix.",
    "Its tables are: {tables}.",
)
def no_matrix(kind: str, tables: tuple[str, ...]) -> None:
    """The result of this estimator consists of tables only."""


@problem(
    "GRM-620",
    RequestError,
    "The denoised matrix is zero.",
    "Estimate from another release, with less noise or more rows.",
)
def matrix_is_zero() -> None:
    """Denoising has removed the whole matrix, so nothing can be estimated from it."""


@problem(
    "GRM-621",
    RequestError,
    "Cross-validation needs a release with at least two folds.",
    "Write 'folds' in the request of the release, or choose another 'penalty'.",
)
def folds_missing() -> None:
    """The rule 'cross-validation' is chosen for a release that was published without folds."""


@problem(
    "GRM-622",
    RequestError,
    "The estimator has no solution at any penalty of the grid.",
    "Use the denoised matrix ('input: denoised'), or give a penalty.",
)
def no_penalty_works() -> None:
    """A rule for choosing a penalty tried each penalty of its grid, and none gave an estimate."""


@problem(
    "GRM-623",
    RequestError,
    "The release has no column of levels, so it has no classes.",
    "Declare 'levels' for a column of the contract.",
)
def no_column_of_levels() -> None:
    """The estimator 'discriminant' needs a column whose levels are the classes."""


@problem(
    "GRM-624",
    RequestError,
    "'classes' is required: the release has several columns of levels.",
    "Name one of: {columns}.",
)
def classes_ambiguous(columns: tuple[str, ...]) -> None:
    """Several columns have levels, and the request does not say which of them is the class."""


@problem(
    "GRM-625",
    RequestError,
    "'classes: {column}' does not name a column of levels.",
    "Columns of levels, most similar first: {columns}.",
)
def classes_unknown(column: str, columns: tuple[str, ...]) -> None:
    """The column in 'classes' does not exist, or has no levels."""


@problem(
    "GRM-626",
    RequestError,
    "The release has no column except its classes '{classes}'.",
    "Choose another estimator.",
)
def no_features(classes: str) -> None:
    """A discriminant needs at least one column besides that of the classes."""


@problem(
    "GRM-627",
    RequestError,
    "Fewer than two classes of '{classes}' are above the noise.",
    "Publish with more rows or a larger epsilon, or use a column of fewer levels.",
)
def classes_lost_in_noise(classes: str) -> None:
    """The noisy sizes of all classes but one are within three standard deviations of zero."""


@problem(
    "GRM-628",
    InvalidValue,
    "This {estimator} has no precision_: its covariance matrix is not positive definite.",
)
def no_precision(estimator: str) -> None:
    """A likelihood needs a positive definite precision matrix, which the estimate does not have."""


@problem("GRM-629", InvalidValue, "{estimator} does not estimate a graph.")
def no_graph(estimator: str) -> None:
    """A graph was requested from an estimator whose result has matrices or tables only."""


@problem(
    "GRM-638",
    RequestError,
    "The estimator compares the groups of a release, and there are none.",
    "Write 'by: COLUMN' in the request of the release, and no 'group' in that of the estimate.",
)
def groups_missing() -> None:
    """Quadratic discriminant analysis needs a matrix for every class: a release with groups."""


@problem(
    "GRM-639",
    RequestError,
    "Fewer than two of {groups} groups are above the noise.",
    "Publish with more rows or a larger epsilon, or by a column of fewer levels.",
)
def groups_lost_in_noise(groups: int) -> None:
    """The noise hides the numbers of rows, or the matrices, of all groups but one."""


# Solvers that did not find a solution.


@problem(
    "GRM-630",
    NoMinimiser,
    "The graphical lasso has no minimiser at penalty {penalty:g}: the matrix is too far from "
    "positive definite.",
    "Use a penalty of {feasible:.6g} or more, or the denoised matrix.",
)
def no_minimiser(penalty: float, feasible: float) -> None:
    """A certificate proves that the objective is unbounded below; a larger penalty works."""


@problem(
    "GRM-631",
    NoMinimiser,
    "The graphical lasso has no minimiser at penalties from {smallest:g} to {largest:g}: the "
    "matrix is too far from positive definite.",
    "Multiply the penalties by {factor:.6g} or more, or use the denoised matrix.",
)
def no_minimiser_of_penalties(smallest: float, largest: float, factor: float) -> None:
    """The objective is unbounded below for this matrix of penalties; larger penalties work."""


@problem(
    "GRM-632",
    NoMinimiser,
    "The graphical lasso has no minimiser: a diagonal entry of the matrix is not positive and not "
    "penalised.",
    "Penalise the diagonal too (penalize_diagonal: true), with a larger penalty, or use the "
    "denoised matrix.",
)
def diagonal_not_penalised() -> None:
    """A column has no positive variance, so its precision grows without limit."""


@problem(
    "GRM-633",
    NoMinimiser,
    "The graphical lasso has no minimiser: the matrix is too far from positive definite, and some "
    "entries are not penalised.",
    "Penalise every entry off the diagonal, or use the denoised matrix.",
)
def entries_not_penalised() -> None:
    """The entries with penalty zero alone leave the objective unbounded below."""


@problem(
    "GRM-634",
    RequestError,
    "The graphical lasso did not converge at penalty {penalty:g}: the problem is nearly singular.",
    "Use a larger penalty.",
)
def not_converged(penalty: float) -> None:
    """Within rounding, the solver found neither a minimiser nor a proof that none exists."""


@problem(
    "GRM-635",
    RequestError,
    "The graphical lasso did not converge at penalties from {smallest:g} to {largest:g}: the "
    "problem is nearly singular.",
    "Use larger penalties, also for pairs of nearly equal columns.",
)
def not_converged_at_penalties(smallest: float, largest: float) -> None:
    """The solver found neither a minimiser for these penalties nor a proof that none exists."""


@problem(
    "GRM-636",
    RequestError,
    "The lasso of each column did not converge: the matrix is nearly singular.",
    "Use a larger penalty.",
)
def columns_not_converged() -> None:
    """Neighbourhood selection or SCIO reached its limit of iterations."""


@problem("GRM-637", StepFailed, "output: the solution could not be certified.")
def not_certified() -> None:
    """The release was charged, but its graphical lasso solution could not be proven accurate."""
