"""Releases as analysts open them with `gramercy.open`: codes 660 to 699."""

from __future__ import annotations

from gramercy.schemas.errors import RequestError, UnknownName, UnknownRelease
from gramercy.schemas.problem import problem

# The catalogue.


@problem(
    "GRM-680", UnknownRelease, "{archive} has no release of '{dataset}'.", "Data sets: {known}."
)
def unknown_dataset(archive: str, dataset: str, known: tuple[str, ...]) -> None:
    """The archive has no release of this data set."""


@problem(
    "GRM-681",
    UnknownRelease,
    "{archive}: all releases of '{dataset}' were withdrawn.",
    "Open one by its name to see why; .history() lists them.",
)
def all_withdrawn(archive: str, dataset: str) -> None:
    """The curator has withdrawn every release of this data set."""


@problem(
    "GRM-682",
    RequestError,
    "'key' must name at least one file.",
    "Give the file of the curator's public key, or leave 'key' out to accept any signature.",
)
def no_key_file() -> None:
    """An empty list of public keys would trust no signature."""


@problem("GRM-660", RequestError, "'words' must be text, not {given}.", '"" finds all releases.')
def words_not_text(given: str) -> None:
    """A search in the catalogue is for words in one string."""


# A release.


@problem("GRM-683", RequestError, "'{release}' is a precision matrix.", "Use .precision.")
def not_a_second_moment(release: str) -> None:
    """A release that is a precision matrix has no second moment, covariance or correlation."""


@problem(
    "GRM-684",
    RequestError,
    "'{release}' is a second moment.",
    "Estimate its inverse: .estimate('graphical-lasso').to_frame('precision'). Published precision "
    "matrices are .estimates[NAME]['precision']; names: {published}.",
)
def not_a_precision_matrix(release: str, published: tuple[str, ...]) -> None:
    """Most releases are a second moment; precision matrices are estimated from it."""


@problem(
    "GRM-685",
    RequestError,
    "'{release}' has no denoised matrix: its noise is of the family {family}.",
    "Use .projected.",
)
def not_denoised(release: str, family: str) -> None:
    """Eigenvalue shrinkage is defined for some noise laws only."""


@problem("GRM-686", RequestError, "'{release}' has no rows.", "Its matrix is .second_moment.")
def no_rows(release: str) -> None:
    """The release is a matrix; only the row mechanisms publish rows."""


@problem(
    "GRM-687",
    RequestError,
    "'{release}' has no graph '{estimate}'.",
    "Estimates with a graph: {known}.",
)
def unknown_graph(release: str, estimate: str, known: tuple[str, ...]) -> None:
    """The release has no estimate of this id, or that estimate has no graph."""


@problem("GRM-688", RequestError, "'{release}' has no graph.", "Estimate one with .estimate().")
def no_graph(release: str) -> None:
    """None of the estimates that were published with this release has a graph."""


@problem(
    "GRM-693",
    RequestError,
    "'{release}' has no means and standard deviations of the columns.",
    "They need rows that were not divided by their own length, and an intercept: 'normalisation: "
    "clip' in the request, 'intercept: true' in the contract.",
)
def no_own_units(release: str) -> None:
    """Unit rows, and rows without an intercept, do not determine means in the columns' units."""


# Marginals.


@problem(
    "GRM-694",
    RequestError,
    "'{release}' has histograms of its columns, and no matrix.",
    "Use .marginals and .quantiles().",
)
def no_matrix(release: str) -> None:
    """A release of marginals publishes the distribution of every column, but no second moment."""


@problem(
    "GRM-695",
    RequestError,
    "'{release}' has no histograms of its columns.",
    "Use a release of private constants ('scaling: private' in its request) or of marginals.",
)
def no_marginals(release: str) -> None:
    """Only releases that estimate their constants publish histograms."""


@problem("GRM-696", RequestError, "'at' must be numbers between 0 and 1.", "0.5 is the median.")
def probability_out_of_range() -> None:
    """A quantile belongs to a probability between 0 and 1, both excluded."""


# Entries with their errors.


@problem(
    "GRM-689",
    RequestError,
    "This matrix was changed, so its errors are unknown now.",
    "Take the matrix from the release again, and change a .copy().",
)
def matrix_changed() -> None:
    """Errors and intervals belong to the matrix of the release, not to a changed one."""


@problem(
    "GRM-690", RequestError, "'level' must be greater than 0.5 and less than 1.", "0.95 is usual."
)
def level_out_of_range() -> None:
    """The confidence level of intervals is a probability above one half."""


# Estimates.


@problem("GRM-691", RequestError, "'{name}' is not the name of an estimator.", "Known: {known}.")
def unknown_estimator(name: str, known: tuple[str, ...]) -> None:
    """The name in .estimate() is unknown."""


@problem(
    "GRM-692",
    RequestError,
    "The estimator '{estimator}' is not available in .estimate().",
    "Use {call}.",
)
def has_own_call(estimator: str, call: str) -> None:
    """Intervals, regressions, pools and other analyses have calls of their own in Python."""


@problem(
    "GRM-698",
    RequestError,
    "'group' is not a setting of .estimate().",
    "Use .groups['{group}'].estimate('{estimator}').",
)
def group_in_settings(estimator: str, group: str) -> None:
    """In requests, 'group' names the rows to estimate from; in Python, every group is an object."""


@problem(
    "GRM-697",
    RequestError,
    "'{dataset}' has no release of a period of its data.",
    "Use .history() for its releases: its budget is not per period, or none of them has a matrix.",
)
def no_periods(dataset: str) -> None:
    """Numbers over time need releases of a data set whose budget is per year, month or the like."""


@problem(
    "GRM-699",
    UnknownName,
    "'{dataset}' has no release of the period '{period}'.",
    "Periods with a matrix, most similar first: {known}.",
)
def unknown_period(dataset: str, period: str, known: tuple[str, ...]) -> None:
    """No release of this period has a second moment, or all of them were withdrawn."""
