"""What a Prefect server says of the runs of a home: due, late, failed or waiting for a person.

Asked over HTTP, because importing Prefect takes longer than everything else that a status needs.
"""

from __future__ import annotations

import base64
import datetime
import itertools
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from gramercy.common.disk import make_folder, write_atomically
from gramercy.common.home import Home

LATE = datetime.timedelta(minutes=10)  # a run may wait for so long until a worker takes it
AHEAD = datetime.timedelta(days=30)
_SHIFT = datetime.timedelta(hours=2)  # more than the clock is changed by
LONGEST = datetime.timedelta(hours=12)  # that a run may take
_SEEN = datetime.timedelta(days=100)  # other runs say nothing of today
_SECONDS = 5
_PAGE = 200  # the most that Prefect returns
_DATASET = "dataset:"  # the prefix of a deployment's tag
_WATCHED = {"release", "audit"}  # flows
_CLIENT = "gramercy-status"


@dataclass(frozen=True)
class Service:
    """What `gramercy serve` has last started: where its runs are found.

    Parameters
    ----------
    pool
        Work pool.
    schedules
        Cron schedule and time zone, in words, by data set.
    api, login_file
        The Prefect server that it started, if it started one.
    """

    pool: str = "gramercy"
    schedules: Mapping[str, str] = field(default_factory=dict)
    api: str | None = None
    login_file: str | None = None

    @classmethod
    def of(cls, home: Home) -> Service | None:
        """The service of a home, or None if nothing was ever served and no server is set."""
        try:
            return cls(**json.loads(_record(home).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls() if os.environ.get("PREFECT_API_URL") else None

    def record(self, home: Home) -> None:
        """Keep it in the home, for `gramercy status`."""
        make_folder(_record(home).parent, 0o700)
        write_atomically(_record(home), json.dumps(vars(self)).encode(), 0o600)

    def ask(self, now: datetime.datetime) -> Answer | None:
        """What the server says of the pool; None if it does not answer."""
        try:
            return _answer(self._server(), self.pool, now)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _server(self) -> _Server:
        if url := os.environ.get("PREFECT_API_URL"):
            return _Server(url, os.environ.get("PREFECT_API_AUTH_STRING"))
        login = Path(self.login_file).read_text(encoding="utf-8") if self.login_file else None
        return _Server(self.api or "", login)


@dataclass(frozen=True)
class Answer:
    """What a server says of a work pool."""

    workers: int  # online
    due: Mapping[str, Sequence[datetime.datetime]]  # the next 100 days, by data set
    begun: Mapping[str, datetime.datetime]  # the newest run that was due, by data set
    # By flow and data set (empty for other flows): what is wrong, and since when.
    troubles: Mapping[tuple[str, str], tuple[str, datetime.datetime]]

    def missed(
        self, dataset: str, charged: datetime.datetime | None, now: datetime.datetime
    ) -> datetime.datetime | None:
        """When a release was due that nothing was planned for, or None.

        Planned runs are gone with a lost database of Prefect. The time follows from those of the
        next ones, and is stated if a run or a charge was seen up to two intervals before.
        """
        due, seen = self.due.get(dataset, ()), self.begun.get(dataset, charged)
        if len(due) < 2 or seen is None:
            return None
        interval = max(later - earlier for earlier, later in pairwise(due))
        before = due[0] - interval
        newest = max(seen, charged or seen) + _SHIFT
        return before if before - 2 * interval < newest < before < now - LATE else None


def _record(home: Home) -> Path:
    return home.root / "serve" / "service.json"


class _Server:
    """The API of a Prefect server, with or without a login."""

    def __init__(self, api: str, login: str | None) -> None:
        if not api.startswith(("http://", "https://")):
            raise ValueError  # no answer
        self._api, self._headers = api, {"Content-Type": "application/json"}
        if login:
            encoded = base64.b64encode(login.strip().encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"
        try:
            token = self.request(f"/csrf-token?client={_CLIENT}")["token"]
            self._headers |= {"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": _CLIENT}
        except urllib.error.HTTPError as refused:  # a server without this protection
            refused.close()

    def request(self, path: str, body: Any = None) -> Any:
        """The answer to a GET request, or to a POST request with a body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310  checked above
            self._api + path, data, self._headers
        )
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310
            return json.loads(reply.read())

    def pages(self, path: str, body: Mapping[str, Any]) -> Iterator[Any]:
        """All that a POST request finds."""
        for offset in itertools.count(0, _PAGE):
            page = self.request(path, {**body, "limit": _PAGE, "offset": offset})
            yield from page
            if len(page) < _PAGE:
                return


def _answer(server: _Server, pool: str, now: datetime.datetime) -> Answer:
    """Due releases, and the newest run of every release and audit that should have started."""
    of_pool = {"work_pools": {"name": {"any_": [pool]}}}
    workers = server.request(f"/work_pools/{pool}/workers/filter", {})
    watched = {
        each["id"]: (flow, _dataset(each["tags"]))
        for each in server.pages("/deployments/filter", of_pool)
        if (flow := each["entrypoint"].rpartition(".")[2]) in _WATCHED
    }

    def runs(order: str, **filters: Any) -> Iterator[Any]:
        body = {"deployments": {"id": {"any_": [*watched]}}, "flow_runs": filters}
        return server.pages("/flow_runs/filter", body | {"sort": f"EXPECTED_START_TIME_{order}"})

    due: dict[str, list[datetime.datetime]] = {}
    times = {"after_": now.isoformat(), "before_": (now + _SEEN).isoformat()}
    for run in runs("ASC", state={"type": {"any_": ["SCHEDULED"]}}, expected_start_time=times):
        flow, dataset = watched[run["deployment_id"]]
        if flow == "release":
            due.setdefault(dataset, []).append(_time(run))
    begun: dict[str, datetime.datetime] = {}
    troubles: dict[tuple[str, str], tuple[str, datetime.datetime]] = {}
    unseen = {*watched}
    times = {"after_": (now - _SEEN).isoformat(), "before_": now.isoformat()}
    for run in runs("DESC", expected_start_time=times):
        deployment, at = run["deployment_id"], _time(run)
        flow, dataset = watched[deployment]
        if flow == "release":
            begun.setdefault(dataset, at)
        changed = (run.get("state") or {}).get("timestamp")  # later, if it waited for an approval
        since = datetime.datetime.fromisoformat(changed) if changed else at
        trouble = _trouble(run, now - max(at, since))
        if deployment in unseen and trouble is not None:
            unseen.remove(deployment)
            if trouble:
                troubles[flow, dataset] = trouble, at
        if not unseen:
            break
    online = sum(each["status"] == "ONLINE" for each in workers)
    return Answer(online, due, begun, troubles)


def _trouble(run: Mapping[str, Any], age: datetime.timedelta) -> str | None:
    """What is wrong with a run; empty if nothing is, None if it says nothing of its deployment."""
    state = str(run["state_type"])
    if state == "SCHEDULED" and age > LATE:
        return "has not started"
    if state in {"PENDING", "RUNNING", "CANCELLING"} and age > LONGEST:  # its machine was lost
        return "has not ended"
    if state == "PAUSED":
        return f"waits for 'gramercy approve {run['id']}'"
    if state in {"FAILED", "CRASHED"}:
        return state.lower()
    return "" if state == "COMPLETED" else None


def _dataset(tags: Sequence[str]) -> str:
    names = (tag.removeprefix(_DATASET) for tag in tags if tag.startswith(_DATASET))
    return next(names, "")


def _time(run: Mapping[str, Any]) -> datetime.datetime:
    return datetime.datetime.fromisoformat(run["expected_start_time"])
