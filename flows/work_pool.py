"""The work pool that runs the deployments of one home."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prefect import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.deployments.runner import RunnerDeployment
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.workers.process import ProcessWorker

from gramercy.common.home import Home
from gramercy.flows.deployments import served_tag
from gramercy.schemas.errors import GramercyError, RequestError, ServerError

_PAGE = 100  # of deployments


@dataclass(frozen=True)
class WorkPool:
    """The work pool of one home, on a Prefect server that others may use too.

    Parameters
    ----------
    api
        URL of the Prefect server's API.
    name
        The work pool.
    home
        The one home that deploys in it.
    """

    api: str
    name: str
    home: Home

    def deploy(self, deployments: Sequence[RunnerDeployment]) -> list[str]:
        """Make the pool and these deployments, and take back those served before and no more.

        Returns
        -------
        list of str
            What was taken back.

        Raises
        ------
        RequestError
            As `check`.
        ServerError
            If the server does not take them.
        """
        failure = ""
        try:
            self.check(deployments)
            self._create()
            gone = self.retire(deployments)
            with self._client():
                for each in deployments:
                    each.apply()
            self.check(deployments)  # nobody else came meanwhile
            return gone
        except GramercyError:
            raise
        except Exception as caught:  # its text may quote the server's URL
            failure = type(caught).__name__
        raise ServerError(
            f"The server did not take the deployments ({failure}).",
            "The server's log says more; of one that began here, 'serve/server.log' in the home.",
        )

    def check(self, deployments: Sequence[RunnerDeployment]) -> None:
        """Refuse what would take another's place, or be handed another's runs.

        Raises
        ------
        RequestError
            If this home did not make a deployment in the pool, or one that is called as one of
            these.
        """
        names = {(each.entrypoint, each.name) for each in deployments}
        with self._client() as client:
            for each in _all(client):
                taken = each.work_pool_name == self.name or (each.entrypoint, each.name) in names
                if taken and served_tag(self.home) not in each.tags:
                    raise RequestError(
                        f"On this server, '{each.name}' in the work pool '{each.work_pool_name}' "
                        "was deployed from elsewhere, or by hand.",
                        "Name a pool of your own with --pool; or delete that deployment, if it is "
                        "no longer wanted.",
                    )

    def retire(self, deployments: Sequence[RunnerDeployment]) -> list[str]:
        """Take back the release deployments that this home served before, and serves no more.

        Returns
        -------
        list of str
            Their names. Their runs stay in the history.
        """
        kept = {each.name for each in deployments}
        mine = DeploymentFilter(tags=DeploymentFilterTags(all_=[served_tag(self.home)]))
        gone = []
        with self._client() as client:
            for each in _all(client, deployment_filter=mine):
                if each.name not in kept:
                    client.delete_deployment(each.id)
                    gone.append(f"release/{each.name}")
        return gone

    def _create(self) -> None:
        pool = WorkPoolCreate(
            name=self.name,
            type=ProcessWorker.type,
            base_job_template=ProcessWorker.get_default_base_job_template(),
        )
        with self._client() as client:
            client.create_work_pool(pool, overwrite=True)

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        """A client of the server, which is that of all of Prefect in this block."""
        settings = temporary_settings({PREFECT_API_URL: self.api})
        with settings, get_client(sync_client=True) as client:
            yield client


def _all(client: Any, **of: Any) -> Iterator[Any]:
    """Deployments, a page after the other, all of them read before the first is given."""
    found: list[Any] = []
    while page := client.read_deployments(**of, limit=_PAGE, offset=len(found)):
        found += page
    return iter(found)
