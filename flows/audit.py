"""Audit the ledger, the archive and the run history against each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import utc_now
from gramercy.pipeline.verify.auditing import new_audit_folder
from gramercy.schemas import families
from gramercy.tasks import steps
from gramercy.tasks.history import attach_audit, name_run, read_history
from gramercy.tasks.policy import private_flow


@private_flow
def audit() -> str:
    """Verify every charge, bundle and run; changes nothing. Reports to a new folder in the home.

    Returns
    -------
    str
        Path of the page.

    Raises
    ------
    Discrepancies
        Naming each. The report is written nevertheless.
    """
    context = Context.default()
    return _steps(context, new_audit_folder(context.home))


def audit_into(folder: Path) -> Callable[[], str]:
    """The same flow, with its report in a folder that a steward's command names."""

    @private_flow
    def audit() -> str:
        return _steps(Context.default(), folder)

    return audit


def _steps(context: Context, target: Path) -> str:
    name_run(f"audit {utc_now():%Y-%m-%d}")
    page, discrepancies = steps.audit(context, read_history(context.ledger), target)
    attach_audit(page, discrepancies)
    if discrepancies:
        raise families.DISCREPANCIES(
            "Discrepancies found: {discrepancies}.",
            "See {page}.",
            discrepancies="; ".join(discrepancies),
            count=len(discrepancies),
            page=str(page),
        )
    return str(page)
