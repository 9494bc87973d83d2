"""Audit the ledger, the archive and the run history against each other."""

from __future__ import annotations

from pathlib import Path

from gramercy.application.audit_record import new_audit_folder
from gramercy.application.context import Context
from gramercy.schemas.problems.prefect import discrepancies_found
from gramercy.tasks import steps
from gramercy.tasks.history import read_history
from gramercy.tasks.policy import private_flow
from gramercy.tasks.run_artifacts import attach_audit


@private_flow
def audit(folder: str | None = None) -> str:
    """Verify every charge, bundle and run; changes nothing.

    Parameters
    ----------
    folder
        Folder of the report; default: a new folder in the home.

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
    target = Path(folder) if folder else new_audit_folder(context.home)
    page, discrepancies = steps.audit(context, read_history(context.ledger), target)
    attach_audit(page, discrepancies)
    if discrepancies:
        raise discrepancies_found("; ".join(discrepancies), len(discrepancies), str(page))
    return str(page)
