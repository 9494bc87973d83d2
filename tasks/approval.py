"""Runs that wait for the approval of a second person: suspended here, resumed by the approver.

A run that waits has no process: workers and machines may change meanwhile. What the approver has
signed is an input of the run in Prefect, which also a retry on another machine reads.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from prefect import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.context import FlowRunContext
from prefect.flow_runs import resume_flow_run, suspend_flow_run
from prefect.input import RunInput

from gramercy.common.home import minutes_stated
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.approval import is_required, statement, verified
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.tasks.policy import log_fact

_MINUTES = 3 * 24 * 60.0


class Approval(RunInput):
    """What the approver signs, which Prefect's form shows as well, and the signatures."""

    statements: tuple[str, ...]
    signatures: tuple[str, ...] = ()


def approved(context: Context, plans: Sequence[Plan]) -> list[Plan]:
    """Plans with their approvals, before a table is read for them.

    The run ends here and waits, if it was started by a deployment; it begins again when it is
    resumed. A retry reads the same approval.

    Raises
    ------
    RequestError
        If an approval is required, and there is none that is valid.
    """
    if not any(is_required(context.home, each.contract) for each in plans):
        return [*plans]
    running, lines = FlowRunContext.get(), tuple[str, ...]()
    if running is not None and running.flow_run is not None and running.flow_run.deployment_id:
        run = running.flow_run.id
        command = f"gramercy approve {run}"
        log_fact(f"Before it is charged, somebody else must approve it: {command}")
        minutes = minutes_stated("GRAMERCY_APPROVAL_MINUTES", _MINUTES)
        form = Approval.with_initial_data(
            f"`{command}`", statements=tuple(statement(context, each) for each in plans)
        )
        key = f"approval-{plans[-1].key[:16]}"  # of one request, a run asks once
        answer: Any = suspend_flow_run(form, timeout=round(60 * minutes), key=key)
        lines = answer.signatures
    signed = [replace(each, approvals=lines) for each in plans]
    for each in signed:
        verified(context, each)
    return signed


def waiting() -> dict[str, str]:
    """The names of the runs that wait for an approval, by their ids."""
    paused = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.PAUSED]))
    with _server_errors(), get_client(sync_client=True) as client:
        found = client.read_flow_runs(flow_run_filter=FlowRunFilter(state=paused))
    return {str(each.id): each.name for each in found}


def statements_of(run: UUID) -> dict[str, dict[str, Any]]:
    """What is to be signed for a run that waits, and what each of the statements says."""
    with _server_errors(), get_client(sync_client=True) as client:
        state = client.read_flow_run(run).state
        keys = state.state_details.run_input_keyset if state and state.is_paused() else None
        schema = client.read_flow_run_input(run, keys["schema"]) if keys else "{}"
        form = json.loads(schema).get("properties", {})
        texts = form.get("statements", {}).get("default", ())
        return {each: dict(json.loads(each)) for each in texts}


def resume(run: UUID, signatures: Sequence[str]) -> None:
    """Let a run go on that waits for these signatures."""
    with _server_errors():
        resume_flow_run(run, {"signatures": [*signatures]})


@contextlib.contextmanager
def _server_errors() -> Iterator[None]:
    """Turn errors of Prefect, whose text may quote an address, into one that names their type."""
    try:
        yield
        return
    except GramercyError:
        raise
    except Exception as caught:
        reason = type(caught).__name__
    raise families.SERVER(
        "The Prefect server did not answer or refused ({reason}).",
        "Set PREFECT_API_URL and PREFECT_API_AUTH_STRING to the server that has the run; "
        "'gramercy approve' lists the runs that wait.",
        reason=reason,
    )
