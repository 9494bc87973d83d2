"""Flows, deployments and the Prefect server: codes 750 to 799."""

from __future__ import annotations

from gramercy.schemas.errors import Discrepancies, RequestError, ServerError, StepFailed
from gramercy.schemas.problem import Notice, problem


@problem(
    "GRM-750",
    StepFailed,
    "Step '{step}' failed with {error}.",
    "Details are withheld, because they may contain private values.",
)
def step_failed(step: str, error: str) -> None:
    """A step of a flow raised an unexpected exception, of which only the type is reported.

    To find the reason, run the same step on a table without private values.
    """


@problem("GRM-751", RequestError, "Some estimates could not be made: {failures}")
def estimates_failed(estimates: tuple[str, ...], failures: str) -> None:
    """One or more of the requested estimates could not be made; the others were sealed.

    The message repeats the error of each, with its code.
    """


@problem("GRM-752", Discrepancies, "Discrepancies found: {discrepancies}.", "See {page}.")
def discrepancies_found(discrepancies: str, count: int, page: str) -> None:
    """An audit found records that contradict each other; its page lists them."""


@problem(
    "GRM-753",
    Notice,
    "{dataset}: {releases} releases of a data set of this name were charged to another ledger "
    "({ledger}).",
    "If it is the same data set, that part of its budget was spent there.",
)
def charged_to_another_ledger(dataset: str, releases: int, ledger: str) -> None:
    """Prefect's run history has releases under this name whose charges are in another ledger."""


@problem(
    "GRM-754",
    RequestError,
    "--pool must be at most 64 small letters, digits, hyphens and underscores, and must not start "
    "with 'prefect'.",
    "Choose a name such as 'cardiology'.",
)
def pool_name() -> None:
    """The name cannot be that of a work pool."""


@problem(
    "GRM-755",
    RequestError,
    "--timezone must be the name of a time zone.",
    "Write one such as Europe/Berlin.",
)
def timezone_unknown() -> None:
    """The time zone of a schedule does not exist on this machine."""


@problem(
    "GRM-756",
    RequestError,
    "--cron must be a schedule of five fields.",
    "Write one such as '0 6 * * 1': every Monday at 6:00.",
)
def cron_schedule() -> None:
    """A schedule is minute, hour, day of month, month and day of week."""


@problem(
    "GRM-757",
    RequestError,
    "The version '{version}' is the same at every run: it would be published once, and only "
    "replayed afterwards.",
    'Use a pattern of the date, such as "%G-W%V"; or, with a budget per period, "{{period}}".',
)
def version_without_date(version: str) -> None:
    """A request that runs on a schedule needs a different version for every run."""


@problem(
    "GRM-758",
    RequestError,
    "The path of the contract contains '{{{{', which Prefect would replace.",
    "Rename the folder or the file.",
)
def path_with_braces() -> None:
    """Prefect reads double braces in the parameters of a deployment as a template."""


@problem(
    "GRM-759",
    RequestError,
    "The deployment '{deployment}' in the work pool '{pool}' was not made by this home.",
    "Choose another work pool with --pool, or delete that deployment if it is no longer needed.",
)
def deployment_of_another_home(deployment: str, pool: str) -> None:
    """A deployment of this name, or in this pool, was made by another home or by hand."""


@problem(
    "GRM-760",
    ServerError,
    "The Prefect server did not accept the deployments ({reason}).",
    "See the server's log; if 'gramercy serve' started it, that is serve/server.log in the home.",
)
def deployments_not_accepted(reason: str) -> None:
    """The server cannot be reached, or refused a work pool or a deployment."""
