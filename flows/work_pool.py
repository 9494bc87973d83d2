"""The work pool that runs the deployments of one home."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prefect import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.deployments.runner import RunnerDeployment
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.utilities.processutils import command_to_string

from gramercy.common.home import Home
from gramercy.flows.deployments import served_tag
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError

_PAGE = 100  # deployments that are fetched at a time


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
    """The work pool of one home, on a Prefect server that other homes may share.

    Parameters
    ----------
    api
        URL of the Prefect server's API.
    name
        Name of the work pool.
    home
        The only home that deploys in it.
    login
        The login of the server; None if it asks for none.
    """

    api: str
    name: str
    home: Home
    login: str | None = None

    def deploy(self, deployments: Sequence[RunnerDeployment]) -> list[str]:
        """Create the pool and these deployments, and remove those that are no longer served.

        Returns
        -------
        list of str
            Names of the removed deployments.

        Raises
        ------
        RequestError
            As `check_owner`.
        ServerError
            If the server does not accept them.
        """
        reason = ""
        try:
            self.check_owner(deployments)
            self._create()
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

    def check_owner(self, deployments: Sequence[RunnerDeployment]) -> None:
        """Refuse deployments that would replace those of others, or share their pool.

        Raises
        ------
        RequestError
            If the pool has a deployment that this home did not make, or if another deployment has
            the name of one of these.
        """
        names = {(each.entrypoint, each.name) for each in deployments}
        with self._client() as client:
            for each in _all_deployments(client):
                collides = each.work_pool_name == self.name or (each.entrypoint, each.name) in names
                if collides and served_tag(self.home) not in each.tags:
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

        Returns
        -------
        list of str
            Their names. Their runs stay in the history.
        """
        served = {each.name for each in deployments}
        of_home = DeploymentFilter(tags=DeploymentFilterTags(all_=[served_tag(self.home)]))
        removed = []
        with self._client() as client:
            for each in _all_deployments(client, deployment_filter=of_home):
                if each.name not in served:
                    client.delete_deployment(each.id)
                    removed.append(f"release/{each.name}")
        return removed

    def _create(self) -> None:
        pool = WorkPoolCreate(
            name=self.name,
            type="process",
            base_job_template=job_template(),
        )
        with self._client() as client:
            client.create_work_pool(pool, overwrite=True)

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
