"""The log of a Prefect run: the fixed sentences of the steps, and public facts, in order."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.pipeline.context import Context
from gramercy.pipeline.validation.outcome import Outcome
from gramercy.schemas import families
from gramercy.tasks import steps
from gramercy.tasks.policy import SENTENCES, PrivateTask
from tests.support.factories import read_registered, write_request
from tests.support.problems import raises

# Beginnings of Prefect's own lines.
BY_PREFECT = ("Beginning flow run", "Encountered exception", "Finished in state", "Task run failed")


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
def test_runs_log_fixed_sentences_and_public_facts(tmp_path: Path) -> None:
    from gramercy.flows.estimate import estimate
    from gramercy.flows.release import release
    from gramercy.flows.report import report

    request = read_registered(write_request(tmp_path))
    context = Context.default()
    before = f"Last entry of ledger {context.ledger.head().ledger}: "
    (done,) = release(request)
    after = context.ledger.head()
    sampled = expected_log("sampled_expectations")  # at any time after the columns
    every = logged_messages("release")
    assert [line for line in every if line in sampled] == sampled
    logged = [line for line in every if line not in sampled]
    facts = [line for line in logged if not line.startswith(tuple(SENTENCES.values()))]
    assert facts[0].startswith(before)
    assert facts[0] != facts[3] == f"{before}{after.seq}, SHA-256 {after.hash}."
    folder = context.archive.release(*done.split("/"))
    first, second = context.ledger.statements_around(*done.split("/"))
    assert facts[1:3] + facts[4:] == [
        f"Guarantee of {done}: epsilon = 1, delta = 1e-06 "
        "(replace-one, unit of privacy: row; gaussian).",
        f"Budget of toy, as epsilon: {first.spent:.6g} spent before {done}, {second.spent:.6g} "
        f"after; {first.remaining:.6g} left before, {second.remaining:.6g} after.",
        f"SHA-256 of the bundle's SHA256SUMS: {read_release(folder).sha256}.",
        f"Bundle of {done}: {folder}",
    ]
    assert first.spent == 0 < second.spent
    steps_of = ("replay", "validate", "accumulate", "publish", "catalogue")
    parallel = expected_log("expectations")  # while the table is read
    assert [line for line in logged if line in parallel] == parallel
    others = [line for line in logged if line not in facts and line not in parallel]
    assert others == expected_log(*steps_of)
    assert max(map(logged.index, parallel)) < logged.index(expected_log("publish")[0])
    assert logged[0] == facts[0]
    assert logged[-7:-2] == facts[1:]
    release(request)
    again = logged_messages("release")
    assert again[0] == facts[3]  # nothing was charged since
    assert [line for line in again if line not in facts] == expected_log("replay", "catalogue")
    estimate(done, request.estimates[:1])
    assert logged_messages("estimate") == expected_log("estimate", "catalogue")
    made = report(done, ())
    page = context.archive.report(*done.split("/"), made) / "report.html"
    assert logged_messages("report") == [
        *expected_log("report"),
        f"Report on {done}: {page}",
        *expected_log("catalogue"),
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server", "home")
def test_failed_step_is_not_logged_as_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gramercy.flows.release import release

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("a cell")

    def slow(*_: Any) -> None:
        time.sleep(0.5)  # it is still asked when the flow has failed

    monkeypatch.setattr("gramercy.pipeline.publish.private_table.open_source", broken)
    monkeypatch.setattr(Outcome, "ask_columns", slow)
    with raises(families.STEP_FAILED, step="accumulate", error="ValueError"):
        release(read_registered(write_request(tmp_path)))
    logged = logged_messages("release")
    assert logged[0].startswith("Last entry of ledger ")
    validation = expected_log("expectations", "sampled_expectations")
    assert [line for line in logged if line in validation] == validation
    others = [line for line in logged[1:] if line not in validation]
    assert others == expected_log("replay", "validate", "accumulate", done=False)
