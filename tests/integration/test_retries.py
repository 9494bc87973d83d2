"""Prefect may rerun a flow automatically or manually: noise is drawn only once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from prefect import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.flow_engine import run_flow
from prefect.settings import (
    PREFECT_FLOW_DEFAULT_RETRIES,
    PREFECT_FLOW_DEFAULT_RETRY_DELAY_SECONDS,
    PREFECT_TASK_DEFAULT_RETRIES,
    PREFECT_TASK_DEFAULT_RETRY_DELAY_SECONDS,
    temporary_settings,
)
from prefect.states import AwaitingRetry, Scheduled, State

from gramercy.common.home import Home
from gramercy.flows.release import release
from gramercy.ledger import Ledger
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import GramercyError
from tests.support.factories import bundle_bytes, read_registered, write_request

pytestmark = [pytest.mark.usefixtures("prefect_server"), pytest.mark.slow]


def broken(*_: object, **__: object) -> None:
    raise OSError("no space left")


# By the state of the charge at the failure: what fails, the state after the next run, its answer.
BROKEN = {
    "drawn": ("gramercy.pipeline.publish.drawing.denoise", "spent", "SpentFailure"),
    "sealed": ("gramercy.archive.store.archive.Archive.commit", "published", "toy/v1-r1"),
}


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The calls of the sampler. A release makes two: a diagonal, and an upper triangle."""
    calls: list[object] = []
    drawn = sampler.rounded_gaussian

    def counted(*args: object) -> object:
        calls.append(args)
        return drawn(*args)

    monkeypatch.setattr(sampler, "rounded_gaussian", counted)
    return calls


def states() -> list[str]:
    return [c.state for c in Ledger.of(Home.default()).charges("toy")]


def last_run() -> FlowRun:
    with get_client(sync_client=True) as client:
        (run,) = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=1)
    return run


def retry_manually(run: FlowRun, state: Callable[[], State]) -> str:
    """Schedule a failed run again, and run it as a worker would; return the release."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(run.id, state(), force=True)
        again = client.read_flow_run(run.id)
    try:
        (name,) = cast(list[str], run_flow(release, flow_run=again, parameters=run.parameters))
        return name
    except GramercyError as error:
        return type(error).__name__


@pytest.mark.parametrize("retries", ["of the flow", "by default"])
def test_retries_draw_nothing(
    retries: str, tmp_path: Path, draws: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramercy.pipeline.publish.drawing.denoise", broken)
    again = release.with_options(retries=2) if retries == "of the flow" else release
    settings = {
        PREFECT_FLOW_DEFAULT_RETRIES: 2,
        PREFECT_FLOW_DEFAULT_RETRY_DELAY_SECONDS: 0,
        PREFECT_TASK_DEFAULT_RETRIES: 2,
        PREFECT_TASK_DEFAULT_RETRY_DELAY_SECONDS: 0,
    }
    with temporary_settings(settings), pytest.raises(GramercyError):
        again(read_registered(write_request(tmp_path)))
    assert last_run().run_count == (3 if retries == "of the flow" else 1)
    assert (len(draws), states()) == (2, ["spent"])


@pytest.mark.parametrize(
    ("failed_in", "state"),
    [("drawn", AwaitingRetry), ("drawn", Scheduled), ("sealed", AwaitingRetry)],
)
def test_rerun_of_a_failed_run_draws_nothing(
    failed_in: str,
    state: Callable[[], State],
    tmp_path: Path,
    home: Path,
    draws: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken_step, final_state, answer = BROKEN[failed_in]
    with monkeypatch.context() as failing:
        failing.setattr(broken_step, broken)
        with pytest.raises(GramercyError):
            release(read_registered(write_request(tmp_path)))
    run = last_run()
    assert run.state is not None
    assert run.state.is_failed()
    staged = [bundle_bytes(folder) for folder in (home / "archive/.staging").iterdir()]
    assert [retry_manually(run, state) for _ in range(2)] == [answer] * 2
    assert (len(draws), states()) == (2, [final_state])
    assert [bundle_bytes(folder) for folder in home.glob("archive/toy/*/release")] == staged
