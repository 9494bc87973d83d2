"""Noise, its guarantee and the sampler: codes 500 to 549."""

from __future__ import annotations

from gramercy.schemas.errors import InvalidValue, RequestError, SamplerError
from gramercy.schemas.problem import problem

# A mechanism that does not fit the contract or the request.


@problem(
    "GRM-500",
    RequestError,
    "{mechanism} does not support 'neighbours: {neighbours}'.",
    "Use another mechanism, or declare 'neighbours: {supported}' in the contract.",
)
def neighbours_not_supported(mechanism: str, neighbours: str, supported: str) -> None:
    """The mechanism's output reveals the number of rows, which is private under 'add-remove'."""


@problem(
    "GRM-501",
    RequestError,
    "{mechanism} has no guarantee per cell.",
    "Use rows or integer-rows, or declare 'privacy_unit: row' in the contract.",
)
def cells_not_protected(mechanism: str) -> None:
    """The contract protects cells; only mechanisms that publish rows have a guarantee per cell."""


@problem(
    "GRM-502",
    RequestError,
    "{mechanism} has no guarantee per person.",
    "Use gaussian, which publishes a second moment.",
)
def persons_not_protected(mechanism: str) -> None:
    """The contract protects persons, and the mechanism's guarantee is for a single row."""


@problem(
    "GRM-503",
    RequestError,
    "{mechanism}: normalised rows have no guarantee per cell, since one cell changes its whole "
    "row.",
    "Use 'normalisation: box'.",
)
def cells_need_box(mechanism: str) -> None:
    """The contract protects cells, and the request divides each row by its own length."""


@problem(
    "GRM-504",
    RequestError,
    "mechanism.arithmetic: the noise of {mechanism} is drawn in floating-point numbers.",
    "Write 'arithmetic: floating-point' to accept that.",
)
def floating_point_not_accepted(mechanism: str) -> None:
    """The mechanism's noise is not exact on the integer lattice, and a request must accept that."""


@problem(
    "GRM-505",
    RequestError,
    "mechanism.arithmetic: the noise of {mechanism} is exact on a lattice of integers.",
    "Leave the key out.",
)
def arithmetic_is_exact(mechanism: str) -> None:
    """The request accepts floating-point noise from a mechanism that draws exact integers."""


# Noise that cannot be drawn or accounted for.


@problem(
    "GRM-506",
    RequestError,
    "{mechanism}: the standard deviation {sd:.3g} is too small for exact noise.",
    "Ask for more noise.",
)
def noise_too_small(mechanism: str, sd: float) -> None:
    """The noise is so small that rounding it to the lattice leaves almost nothing of it."""


@problem(
    "GRM-507",
    RequestError,
    "{mechanism}: the standard deviation {sd:.3g} is too large for exact noise.",
    "Ask for less noise.",
)
def noise_too_large(mechanism: str, sd: float) -> None:
    """The noise, counted in lattice units, does not fit 64-bit integers."""


@problem(
    "GRM-508",
    RequestError,
    "integer-rows: the discrete Gaussian is limited to sigma <= {limit:g}; {sigma:.6g} is needed.",
    "Use 'calibration: exact': the rounded Gaussian has the same accuracy.",
)
def discrete_gaussian_too_wide(sigma: float, limit: float) -> None:
    """The published calibration draws a discrete Gaussian, whose table would be too long."""


@problem(
    "GRM-509",
    RequestError,
    "local: a report of {columns} columns has {entries} entries; the limit is {limit}.",
    "Publish fewer columns.",
)
def report_too_long(columns: int, entries: int, limit: int) -> None:
    """Every row sends a report with one entry for each pair of columns."""


@problem(
    "GRM-510",
    RequestError,
    "mechanism.penalty must be at least {least:.6g} for {columns} columns; it is {penalty:g}.",
    "Use a larger penalty.",
)
def penalty_too_small(penalty: float, columns: int, least: float) -> None:
    """The solver could fail on some tables, and a failure would reveal facts about the table."""


@problem(
    "GRM-511",
    RequestError,
    "output: mu={mu:.3g} would need more noise than can be drawn.",
    "Ask for a larger epsilon.",
)
def mu_too_small(mu: float) -> None:
    """The noise is so large that rounding it to its lattice would use up the guarantee."""


@problem(
    "GRM-512",
    RequestError,
    "wishart: {degrees:.3g} degrees of freedom exceed the limit of the accounting, {limit:g}.",
    "Ask for a larger epsilon, or use 'calibration: exact'.",
)
def too_many_degrees_of_freedom(degrees: float, limit: float) -> None:
    """The published scale has more degrees of freedom than the exact guarantee is computed for."""


@problem(
    "GRM-513",
    RequestError,
    "wishart cannot publish a noisy number of rows.",
    "Use 'normalisation: unit', where the trace is the number of rows, or another mechanism.",
)
def count_not_supported() -> None:
    """Under add-remove the number of rows is private, and must be published with noise."""


@problem(
    "GRM-514",
    RequestError,
    "{mechanism} has no published calibration.",
    "Use 'calibration: exact'.",
)
def calibration_not_published(mechanism: str) -> None:
    """The request asks for the scale of a paper, and no paper publishes this mechanism."""


# The sampler's self-test, before anything is charged.


@problem(
    "GRM-520",
    SamplerError,
    "The noise sampler's fast path leaves too many draws undecided.",
    "Install the pinned versions of requirements.lock.",
)
def fast_path_undecided() -> None:
    """The libraries of this machine compute numbers outside the sampler's error bound."""


@problem(
    "GRM-521",
    SamplerError,
    "The noise sampler's fast path and exact path disagree.",
    "Install the pinned versions of requirements.lock.",
)
def sampler_paths_disagree() -> None:
    """The libraries of this machine compute numbers outside the sampler's error bound."""


@problem(
    "GRM-522",
    SamplerError,
    "The noise sampler's fast path decided a draw that 64 bits do not determine.",
    "Install the pinned versions of requirements.lock.",
)
def fast_path_not_certified() -> None:
    """The libraries of this machine compute numbers outside the sampler's error bound."""


@problem(
    "GRM-523",
    SamplerError,
    "The noise sampler's compiled code and its Python code disagree.",
    "Delete __pycache__ in the folder of gramercy/mechanisms, and install the pinned versions of "
    "requirements.lock.",
)
def compiled_code_differs() -> None:
    """The compiled loop of the sampler, or its cached copy, does not match its source."""


# Arguments in Python.


@problem("GRM-530", InvalidValue, "'{argument}' must be {allowed}.")
def argument_out_of_range(argument: str, allowed: str) -> None:
    """A number given to a function of `gramercy.mechanisms` is outside its range, or is NaN."""


@problem("GRM-531", InvalidValue, "The Gram matrix must have {columns} rows and columns.")
def gram_has_wrong_shape(columns: int) -> None:
    """The matrix does not have the number of columns that the mechanism was created for."""


@problem("GRM-532", InvalidValue, "The noise is for {histograms} histograms of each stage.")
def wrong_number_of_histograms(histograms: int) -> None:
    """The counts are of more or of fewer histograms than the noise was created for."""
