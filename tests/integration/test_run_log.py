"""The log of a Prefect run: only the fixed sentences of the steps, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramercy.application.yaml_files import read_request
from gramercy.schemas.problems.prefect import step_failed
from gramercy.tasks import steps
from gramercy.tasks.policy import PrivateTask
from gramercy.tasks.run_log import SENTENCES
from tests.support.factories import write_request
from tests.support.problems import raises

# Beginnings of Prefect's own lines.
BY_PREFECT = (
    "Beginning flow run",
    "Encountered exception",
    "Finished in state",
    "Task run failed",
)


def expected_log(*begun: str, done: bool = True) -> list[str]:
    """The log of these steps, the last of which is done or has failed."""
    lines = [f"{SENTENCES[step]}{end}" for step in begun for end in (" ...", ": done.")]
    return lines if done else lines[:-1]


def logged_messages(flow: str) -> list[str]:
    """Gramercy's messages in the log of the last run of a flow, in order."""
    from prefect import get_client
    from prefect.client.schemas.filters import (
        FlowFilter,
        FlowFilterName,
        LogFilter,
        LogFilterFlowRunId,
    )
    from prefect.client.schemas.sorting import FlowRunSort, LogSort
    from prefect.logging.handlers import APILogHandler

    APILogHandler().flush()
    with get_client(sync_client=True) as client:
        (run,) = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=[flow])),
            sort=FlowRunSort.START_TIME_DESC,
            limit=1,
        )
        of_run = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run.id]))
        logs = client.read_logs(of_run, sort=LogSort.TIMESTAMP_ASC)
    return [each.message for each in logs if not each.message.startswith(BY_PREFECT)]


def test_every_private_task_has_a_sentence() -> None:
    tasks = [each for each in vars(steps).values() if isinstance(each, PrivateTask)]
    assert {each.step.__name__ for each in tasks} == set(SENTENCES)


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server", "home")
def test_runs_log_only_the_fixed_sentences(tmp_path: Path) -> None:
    from gramercy.flows.estimate import estimate
    from gramercy.flows.release import release
    from gramercy.flows.report import report

    request = read_request(write_request(tmp_path))
    done = release(request)
    published = ("replay", "validate", "accumulate", "publish", "update_listing")
    assert logged_messages("release") == expected_log(*published)
    release(request)
    assert logged_messages("release") == expected_log("replay", "update_listing")
    estimate(done, request.estimates[:1])
    assert logged_messages("estimate") == expected_log("estimate", "update_listing")
    report(done, ())
    assert logged_messages("report") == expected_log("report", "catalogue")


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server", "home")
def test_failed_step_is_not_logged_as_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gramercy.flows.release import release

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("a cell")

    monkeypatch.setattr("gramercy.application.accumulation.open_source", broken)
    with raises(step_failed, step="accumulate", error="ValueError"):
        release(read_request(write_request(tmp_path)))
    assert logged_messages("release") == expected_log(
        "replay", "validate", "accumulate", done=False
    )
