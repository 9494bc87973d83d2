"""The release request: codes 160 to 199."""

from __future__ import annotations

from gramercy.schemas.errors import InvalidValue, RequestError
from gramercy.schemas.problem import problem


@problem(
    "GRM-160",
    InvalidValue,
    "The version's pattern has an unknown directive.",
    "Use %Y %m %d %G %V %H %M %j only.",
)
def version_pattern() -> None:
    """A version's pattern may use directives of fixed width only, so that labels sort by time."""


@problem("GRM-161", InvalidValue, "Unknown time zone.", "Write one such as Europe/Berlin.")
def timezone_unknown() -> None:
    """The time zone in which the version's pattern is read does not exist on this machine."""


@problem(
    "GRM-162",
    RequestError,
    "mechanism.delta must be less than 1/{count_key} = {limit:.3g}.",
    "Choose a smaller delta: at this one, publishing a whole record would be allowed.",
)
def delta_too_large(count_key: str, limit: float) -> None:
    """A delta of 1/n or more allows one of n records to be published outright."""


@problem(
    "GRM-163",
    RequestError,
    "version '{version}' does not start with a {per} of the data, but the budget is per {per}.",
    "Start it with the {per}, such as {example}; for a schedule, write '{{period}}'.",
)
def version_without_period(version: str, per: str, example: str) -> None:
    """A budget per period is charged to the period at the start of the version."""


@problem("GRM-164", InvalidValue, "Exactly one of these keys is required: {keys}.")
def privacy_level_keys(keys: tuple[str, ...]) -> None:
    """The privacy level is stated in one way: as epsilon, as mu or as a signal-to-noise ratio."""


@problem(
    "GRM-165", InvalidValue, "'calibration: published' needs 'epsilon' and 'delta', and not 'mu'."
)
def published_calibration_of_mu() -> None:
    """The papers state their scales for an epsilon and a delta."""


@problem(
    "GRM-166",
    InvalidValue,
    "'delta' must be greater than 0: the mechanism is not pure epsilon-DP.",
)
def delta_zero() -> None:
    """A paper claims that the mechanism is pure. It is not, and has no guarantee at delta = 0."""


@problem(
    "GRM-167",
    InvalidValue,
    "Must be an address such as tls://10.0.0.5:8786, without user, password, query and fragment.",
    "Name certificates in Dask's own configuration.",
)
def scheduler_address() -> None:
    """Prefect stores the address of a Dask scheduler, which must not contain a secret."""


@problem("GRM-168", InvalidValue, "'paper' needs 'calibration: published'.")
def paper_without_published() -> None:
    """The key 'paper' chooses among published scales, so it requires one."""


@problem(
    "GRM-169",
    InvalidValue,
    "'clip' needs a radius.",
    "Write 'normalisation: {{kind: clip, radius: R}}', or 'scaling: private', which chooses it.",
)
def radius_missing() -> None:
    """Rows are clipped at a public radius, which is declared or chosen from noisy histograms."""


@problem(
    "GRM-170",
    InvalidValue,
    "'scaling: {kind}' needs 'normalisation: clip' without a radius.",
    "Remove 'normalisation': the radius is chosen together with the centres and scales.",
)
def scaling_needs_clip(kind: str) -> None:
    """Estimated constants bound the length of rows by a radius that is estimated as well."""


# Constants from noisy histograms.


@problem(
    "GRM-171",
    RequestError,
    "'scaling: private' is not available with '{mechanism}' or with 'calibration: published'.",
    "Use a mechanism that adds noise to the matrix, such as 'gaussian', with exact calibration.",
)
def scaling_not_supported(mechanism: str) -> None:
    """Histograms can precede the exactly calibrated noise of a second moment only."""


@problem(
    "GRM-172",
    RequestError,
    "'scaling: private' needs a delta greater than 0.",
    "State 'mechanism.delta', far below one over the number of rows.",
)
def scaling_needs_delta() -> None:
    """Histograms have Gaussian noise, which has no pure epsilon."""


@problem(
    "GRM-173",
    RequestError,
    "'marginals' estimates the constants itself.",
    "Leave 'scaling' and 'normalisation' out.",
)
def marginals_estimate_constants() -> None:
    """The mechanism publishes the histograms from which constants are estimated."""


@problem(
    "GRM-174",
    RequestError,
    "Columns without bounds need estimated scaling: {columns}.",
    "Declare 'lower' and 'upper' in the contract, or write 'scaling: private' in the request.",
)
def bounds_missing(columns: tuple[str, ...]) -> None:
    """Declared scaling takes the middle and the half width of the bounds."""


@problem(
    "GRM-175",
    RequestError,
    "{count} {count_key} are too few to estimate the constants of columns without bounds: about "
    "{needed} are needed for {p} columns at this guarantee.",
    "Declare bounds for all columns in the contract.",
)
def too_few_rows_for_constants(count: int, count_key: str, needed: int, p: int) -> None:
    """With few rows, constants cost more than they bring, and bounds replace them."""


@problem(
    "GRM-176",
    RequestError,
    "Release '{release}' has no constants for this request: {reason}.",
    "Name a release of this data set with estimated scaling, or write 'scaling: private'.",
)
def release_without_constants(release: str, reason: str) -> None:
    """Constants can be taken from a release of the same data set and columns that has them."""


@problem(
    "GRM-177",
    RequestError,
    "'by': the contract has no column '{name}'.",
    "Similar columns: {similar}.",
)
def grouping_column_unknown(name: str, similar: tuple[str, ...]) -> None:
    """Rows are grouped by a column of the contract."""


@problem(
    "GRM-178",
    RequestError,
    "'by': the column '{name}' has no levels.",
    "Declare 'levels' for it in the contract, or group by a column that has them.",
)
def grouping_column_numeric(name: str) -> None:
    """Groups are the declared levels of a column, because they must not depend on the data."""


@problem(
    "GRM-179",
    RequestError,
    "'by': '{name}' is the only column of the contract.",
    "Leave 'by' out, or declare more columns.",
)
def only_grouping_column(name: str) -> None:
    """The matrix of a group has the other columns."""


@problem(
    "GRM-180",
    RequestError,
    "'by' is not available with '{mechanism}'.",
    "Use 'gaussian' or 'gaussian-iid', or leave 'by' out.",
)
def groups_not_supported(mechanism: str) -> None:
    """Only Gaussian noise on the matrix makes all groups as cheap as one matrix."""


@problem(
    "GRM-181",
    RequestError,
    "'by': the column '{name}' has a level '{level}', which names the group of all other rows.",
    "Rename the level in the table and in the contract, or leave 'by' out.",
)
def level_names_other_rows(name: str, level: str) -> None:
    """Rows without a declared level are a group of their own."""


@problem(
    "GRM-182",
    RequestError,
    "'by': {groups} groups with {folds} folds and {p} columns have {entries} entries; at most "
    "{limit} are possible.",
    "Group by a column with fewer levels, or publish fewer columns or folds.",
)
def groups_too_large(groups: int, folds: int, p: int, entries: int, limit: int) -> None:
    """The exact sums of all groups are kept in memory."""


# The period of the data.


@problem(
    "GRM-190",
    RequestError,
    "The request names a period, but the budget of '{dataset}' is for its lifetime.",
    "Remove 'period' and '{{period}}', or register a data set with a budget per period.",
)
def no_periods(dataset: str) -> None:
    """Only data sets whose budget is per period are published by period."""


@problem(
    "GRM-191",
    RequestError,
    "'period' is '{period}', but the budget is per {per} of the data.",
    "Write it such as {example}.",
)
def period_not_a_label(period: str, per: str, example: str) -> None:
    """A period is named by its label, which depends on whether it is a year, a month or another."""


@problem(
    "GRM-192",
    RequestError,
    "'period' is '{period}', but version '{version}' is of '{window}'.",
    "Write 'version: \"{{period}}\"', or remove 'period'.",
)
def version_of_other_period(version: str, window: str, period: str) -> None:
    """A release is charged to the period at the start of its version."""
