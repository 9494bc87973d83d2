"""Publish one release of a data set."""

from __future__ import annotations

from prefect.artifacts import create_table_artifact

from tasks.accumulate import accumulate
from tasks.plan import Plan, make_plan
from tasks.policy import private_flow
from tasks.publish import publish, replay
from tasks.request import Request
from tasks.steward import record
from tasks.validate import validate


@private_flow
def release(request: Request) -> str:
    """Validate, accumulate, publish; or return what the same request has published before.

    Parameters
    ----------
    request
        Data set, version, mechanism and normalisation: public facts, all of them.

    Returns
    -------
    str
        ``<dataset>/<release id>``.
    """
    plan = make_plan(request)
    dataset = plan.contract.id
    done = replay(plan)
    if done is None:
        sampled = validate(plan.contract)
        collected = accumulate(plan)
        done = publish(plan, collected)
        record(dataset, done, sampled)
    _log(plan, done)
    return f"{dataset}/{done}"


def _log(plan: Plan, done: str) -> None:
    """The privacy parameters, as an artifact of the run."""
    facts = {"release": done, **plan.facts()}
    create_table_artifact(
        table=[{"parameter": key, "value": str(value)} for key, value in facts.items()],
        key=f"privacy-{plan.contract.id}",
        description=f"Privacy parameters of release {plan.contract.id}/{done}",
    )
