"""The deployments of prefect.yaml for the requests of one home, and their work pool."""

from __future__ import annotations

import contextlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.objects import ConcurrencyLimitConfig
from prefect.client.schemas.schedules import CronSchedule
from prefect.deployments.runner import RunnerDeployment
from prefect.events import DeploymentEventTrigger, ResourceSpecification
from prefect.flows import load_flow_from_entrypoint
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.types.entrypoint import EntrypointType
from prefect.utilities.processutils import command_to_string
from pydantic import ValidationError
from ruamel.yaml import YAML

from gramercy.common.home import Home
from gramercy.flows.alerts import make_alerts
from gramercy.flows.untrusted import check_request
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.due_steps import first_time
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import registered_request
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.model import canonical_json
from gramercy.schemas.request import PERIOD
from gramercy.tasks.history import HOME, dataset_tag

POOL = "gramercy"
_PAGE = 100  # deployments that are fetched at a time
_POOL_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def prefect_yaml() -> Path:
    """Path of prefect.yaml: in the root of a checkout, or in this folder once installed."""
    folder = Path(__file__).resolve().parent
    candidates = (folder / "prefect.yaml", folder.parent / "prefect.yaml")
    return next(path for path in candidates if path.is_file())


def served_tags(home: Home) -> list[str]:
    """The tags of all deployments that this home serves; each tells them from those of others.

    A home that was moved or restored goes on with its deployments: a ledger in a file belongs to
    one home. One in a database may belong to several.
    """
    ledger = None if home.ledger_url else Context(home).existing_ledger
    of_ledger = [] if ledger is None else [f"served:{ledger.head().ledger}"]
    return [f"served:{home.address}", *of_ledger]


def deployments(
    context: Context, requests: Sequence[Request], cron: str, timezone: str | None, pool: str = POOL
) -> list[RunnerDeployment]:
    """The deployments of prefect.yaml, with a release deployment for each of these requests.

    All of them run in this pool, and are triggered by releases of this home only.

    Parameters
    ----------
    context
        The home that serves them.
    requests
        Requests whose versions are patterns, so that every scheduled run has its own version.
    cron, timezone
        When they run; without a time zone, in that of each request.
    pool
        The work pool; if it is not the default, it becomes part of the deployments' names.

    Raises
    ------
    RequestError
        If a request cannot be planned, its contract is not registered, or the schedule or the
        pool's name is invalid.
    """
    if not _POOL_NAME.fullmatch(pool) or pool.startswith("prefect"):
        raise families.USAGE(
            "--pool must be at most 64 small letters, digits, hyphens and underscores, and must "
            "not start with 'prefect'.",
            "Choose a name such as 'cardiology'.",
        )
    stated = YAML(typ="safe", pure=True).load(prefect_yaml().read_text())["deployments"]
    # Releases of the table of that day, of a complete period, and of the steps of a series.
    weekly, of_period, of_series = stated[:3]
    others = [each for each in stated if each["entrypoint"] != weekly["entrypoint"]]
    releases: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()  # several requests for one data set are numbered
    for request in requests:
        schedule_zone = timezone or request.timezone
        template = of_period if PERIOD in request.version else weekly
        if request.cumulative is not None:
            template = of_series
        release = template | _release_facts(context, request, cron, schedule_zone)
        counts[release["name"]] += 1
        number = counts[release["name"]]
        releases.append(release | ({"name": f"{release['name']}.{number}"} if number > 1 else {}))
    return [_deployment(each, pool, context.home) for each in (*releases, *others)]


def _release_facts(context: Context, request: Request, cron: str, timezone: str) -> dict[str, Any]:
    """The facts in which the release deployment of a request differs from prefect.yaml."""
    invalid = ""
    try:
        CronSchedule(cron=cron, timezone=timezone)
    except ValidationError as caught:
        invalid = str(caught.errors()[0]["loc"][0])
    if invalid == "timezone" or not timezone:
        raise families.USAGE(
            "--timezone must be the name of a time zone.", "Write one such as Europe/Berlin."
        )
    if invalid or len(cron.split()) != 5:
        raise families.USAGE(
            "--cron must be a schedule of five fields.",
            "Write one such as '0 6 * * 1': every Monday at 6:00.",
        )
    request = registered_request(context.home, request.model_copy(update={"timezone": timezone}))
    check_request(context, request)
    plan = make_plan(context, request, at=first_time(context, request))
    if "%" not in request.version and (PERIOD not in request.version or request.period):
        raise families.PERIOD(
            "The version '{version}' is the same at every run: it would be published once, and "
            "only replayed afterwards.",
            'Use a pattern of the date, such as "%G-W%V"; or, with a budget per period or in a '
            'series, "{{period}}".',
            version=request.version,
        )
    estimates = [each.model_dump(mode="json") for each in request.estimates]
    # As the web form has them: see `gramercy.schemas.form`.
    facts = request.model_dump(mode="json", exclude_none=True) | {"estimates": estimates}
    parameters = {"request": facts}
    # `prefect deploy` would replace it, if the same request were deployed by hand.
    if "{{" in canonical_json(parameters):
        raise families.DEPLOYMENT(
            "The request contains '{{{{', which Prefect would replace.",
            "Remove the double braces, for example from the name of a column.",
        )
    # A run that goes on when it is approved must not be cancelled because another one is active.
    queued = {"concurrency_limit": {"limit": 1, "collision_strategy": "ENQUEUE"}}
    return (queued if plan.contract.approval else {}) | {
        "name": plan.contract.id,
        "tags": [dataset_tag(plan.contract.id)],  # its runs have them before they start
        "description": f"Publish the data set {plan.contract.id}.",
        "schedules": [{"slug": "schedule", "cron": cron, "timezone": timezone}],
        "parameters": parameters,
    }


def _deployment(facts: Mapping[str, Any], pool: str, home: Home) -> RunnerDeployment:
    """One deployment of prefect.yaml, bound to this home on a server that others may share."""
    limit = facts.get("concurrency_limit")
    match = ResourceSpecification({HOME: home.address})
    return RunnerDeployment.from_flow(
        load_flow_from_entrypoint(facts["entrypoint"]),
        name=facts["name"] if pool == POOL else f"{facts['name']}@{pool}",
        description=facts["description"],
        schedules=[
            DeploymentScheduleCreate(
                slug=each["slug"],
                schedule=CronSchedule(cron=each["cron"], timezone=each["timezone"]),
            )
            for each in facts.get("schedules", [])
        ],
        concurrency_limit=ConcurrencyLimitConfig(**limit) if limit else None,
        parameters=facts.get("parameters"),
        triggers=[
            DeploymentEventTrigger(**each, match=match) for each in facts.get("triggers", [])
        ],
        tags=[*facts.get("tags", []), *served_tags(home)],
        work_pool_name=pool,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def job_template() -> dict[str, Any]:
    """The job template of a pool of type ``process``, without any variable.

    It protects against deployments and runs, also with Prefect's own worker. Only `flows.worker`
    also protects against a changed template. A template that stated an environment would have
    that of a deployment merged into it.
    """
    command = command_to_string([sys.executable, "-P", "-m", "gramercy.flows.run"])
    return {
        "job_configuration": {"command": command},
        "variables": {"type": "object", "properties": {}},
    }


@dataclass(frozen=True)
class WorkPool:
    """The work pool of one home, on a Prefect server that other homes may share."""

    api: str
    name: str
    home: Home  # the only one that deploys in it
    login: str | None = None  # of the server, if it asks for one

    def deploy(self, deployments: Sequence[RunnerDeployment]) -> list[str]:
        """Create the pool and these deployments, and remove those that are no longer served.

        Returns the names of the removed ones.
        """
        reason = ""
        try:
            self.check_owner(deployments)
            pool = WorkPoolCreate(name=self.name, type="process", base_job_template=job_template())
            with self._client() as client:
                client.create_work_pool(pool, overwrite=True)
            removed = self.remove_unserved(deployments)
            with self._client():
                for each in deployments:
                    each.apply()
            self.check_owner(deployments)  # another home may have deployed in the meantime
            return removed
        except GramercyError:
            raise
        except Exception as caught:  # its text may quote the server's URL
            reason = type(caught).__name__
        raise families.SERVER(
            "The Prefect server did not accept the deployments ({reason}).",
            "See the server's log; if 'gramercy serve' started it, that is serve/server.log in "
            "the home.",
            reason=reason,
        )

    def make_alerts(self) -> bool:
        """Make the alerts of the pool, as `flows.alerts.make_alerts`."""
        with self._client():
            return make_alerts(self.name, self.home)

    def check_owner(self, deployments: Sequence[RunnerDeployment]) -> None:
        """Refuse deployments that would replace those of others, or share their pool.

        Raises
        ------
        RequestError
            If the pool has a deployment that this home did not make, or if another deployment has
            the name of one of these.
        """
        names, own = {(each.entrypoint, each.name) for each in deployments}, served_tags(self.home)
        with self._client() as client:
            for each in _all_deployments(client):
                collides = each.work_pool_name == self.name or (each.entrypoint, each.name) in names
                if collides and not {*own} & {*each.tags}:
                    raise families.DEPLOYMENT(
                        "The deployment '{deployment}' in the work pool '{pool}' was not made by "
                        "this home.",
                        "Choose another work pool with --pool, or delete that deployment if it is "
                        "no longer needed.",
                        deployment=each.name,
                        pool=each.work_pool_name,
                    )

    def remove_unserved(self, deployments: Sequence[RunnerDeployment]) -> list[str]:
        """Remove the release deployments of this home that are not among these.

        Returns their names. Their runs stay in the history.
        """
        served = {each.name for each in deployments}
        of_home = DeploymentFilter(tags=DeploymentFilterTags(any_=served_tags(self.home)))
        removed = []
        with self._client() as client:
            for each in _all_deployments(client, deployment_filter=of_home):
                if each.name not in served:
                    client.delete_deployment(each.id)
                    removed.append(f"release/{each.name}")
        return removed

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        """A client of the server, which all of Prefect uses within this block."""
        settings = temporary_settings(
            {PREFECT_API_URL: self.api, PREFECT_API_AUTH_STRING: self.login}
        )
        with settings, get_client(sync_client=True) as client:
            yield client


def _all_deployments(client: Any, **filters: Any) -> list[Any]:
    """All deployments, fetched page by page before any of them is changed."""
    deployments: list[Any] = []
    while page := client.read_deployments(**filters, limit=_PAGE, offset=len(deployments)):
        deployments += page
    return deployments
