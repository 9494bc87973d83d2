"""Fail where something needs a person, so that an alert tells of it."""

from __future__ import annotations

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import utc_now
from gramercy.pipeline.status.facts import status as facts_of
from gramercy.schemas import families
from gramercy.tasks.history import name_run
from gramercy.tasks.policy import log_fact, private_flow


@private_flow
def status() -> int:
    """Look at releases, budgets, audits, worker, disk and witness, as ``gramercy status`` does.

    Returns
    -------
    int
        How many facts were looked at; all are well.

    Raises
    ------
    Discrepancies
        Naming what needs a person.
    """
    now = utc_now()
    name_run(f"status {now:%Y-%m-%d}")
    facts = facts_of(Context.default(), now)
    problems = [f"{each.subject} {each.dataset}".strip() for each in facts if not each.well]
    for each in facts:
        log_fact(f"{each.subject} {each.dataset}: {each.text}")
    if problems:
        name_run(f"status {now:%Y-%m-%d}: {', '.join(problems)}")  # which the alert quotes
        raise families.DISCREPANCIES(
            "These need a person: {discrepancies}.",
            "Run 'gramercy status' in the home of the worker.",
            discrepancies=", ".join(problems),
            count=len(problems),
        )
    return len(facts)
