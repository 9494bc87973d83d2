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
    "version '{version}' does not start with a year, but the budget is per year of the data.",
    "Write a version such as 2026 or 2026-W48.",
)
def version_without_year(version: str) -> None:
    """A yearly budget is charged to the year at the start of the version."""


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
