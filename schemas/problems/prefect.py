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
    "The request contains '{{{{', which Prefect would replace.",
    "Remove the double braces, for example from the name of a column.",
)
def request_with_braces() -> None:
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


# What a run that a Prefect server starts may ask for.


@problem(
    "GRM-761",
    RequestError,
    "A worker of Gramercy runs these flows only: {flows}.",
    "Deploy one of them, as prefect.yaml does.",
)
def flow_not_allowed(flows: tuple[str, ...]) -> None:
    """A deployment in a work pool of Gramercy names another flow."""


@problem(
    "GRM-762",
    RequestError,
    "key 'dataset': a run that Prefect starts needs the id of a registered contract.",
    "Run 'gramercy register CONTRACT' in the home of the worker, and write the contract's id.",
)
def no_registered_contract() -> None:
    """The request names a path, a URL or an id that the steward has not registered.

    Otherwise anyone who can start runs could publish any table that the steward can read.
    """


@problem(
    "GRM-763",
    RequestError,
    "The contract of '{dataset}' is not registered in this home, or has changed since.",
    "Run 'gramercy register {path}'.",
)
def contract_not_registered(dataset: str, path: str) -> None:
    """`gramercy serve` schedules releases of registered contracts only."""


@problem(
    "GRM-764",
    RequestError,
    "key 'engine': a run that Prefect starts cannot name a scheduler.",
    "Write 'engine: dask', and set DASK_SCHEDULER_ADDRESS for the worker.",
)
def scheduler_named() -> None:
    """The address of a Dask cluster, which receives the rows, is the operator's to choose."""


@problem(
    "GRM-765",
    RequestError,
    "key 'mechanism.arithmetic': the contract of '{dataset}' does not allow runs that Prefect "
    "starts to use floating-point noise.",
    "Write 'arithmetic: floating-point' in the contract and register it again; or release from the "
    "command line.",
)
def floating_point_not_allowed(dataset: str) -> None:
    """The stated guarantee of such a mechanism does not cover the rounding of its noise."""


@problem(
    "GRM-766",
    RequestError,
    "key 'estimates': at most {most} in one run.",
    "Split them into several runs.",
)
def too_many_estimates(most: int) -> None:
    """A request for a single run lists more estimates than any release has needed."""


@problem(
    "GRM-767",
    ServerError,
    "The Prefect server at {url} refuses this login.",
    "Set PREFECT_API_AUTH_STRING to the login of that server.",
)
def login_refused(url: str) -> None:
    """The server asks for a login, and none or a wrong one was given."""


@problem(
    "GRM-768",
    Notice,
    "The Prefect server at {url} asks for no login: anyone who reaches it can start releases of "
    "all registered contracts, up to their budgets.",
    "Set PREFECT_SERVER_API_AUTH_STRING for that server.",
)
def server_without_login(url: str) -> None:
    """`gramercy serve` uses a server at PREFECT_API_URL that answers everybody."""


@problem(
    "GRM-769",
    RequestError,
    "{path} is registered with another content.",
    "Compare both files; 'gramercy register {contract} --replace' replaces it.",
)
def registered_differently(path: str, contract: str) -> None:
    """Another version of the contract was registered, and scheduled runs use it."""


@problem(
    "GRM-770",
    RequestError,
    "GRAMERCY_ESTIMATE_MINUTES must be a positive number.",
    "Write a number such as 60, or unset it.",
)
def minutes_not_positive() -> None:
    """The limit on runs of estimates and reports is not a number of minutes."""
