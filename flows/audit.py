"""Audit the ledger, the archive and the run history against each other."""

from __future__ import annotations

from pathlib import Path

from gramercy.application.audit_record import new_folder
from gramercy.application.context import Context
from gramercy.schemas.errors import Discrepancies
from gramercy.tasks import steps
from gramercy.tasks.history import recall
from gramercy.tasks.policy import private_flow
from gramercy.tasks.run_artifacts import show_audit


@private_flow
def audit(folder: str | None = None) -> str:
    """Verify every charge, bundle and run; reads everything, and changes nothing.

    Parameters
    ----------
    folder
        Where the report goes; default: a new folder in the home.

    Returns
    -------
    str
        The page.

    Raises
    ------
    Discrepancies
        Naming each. The report is written all the same.
    """
    context = Context.default()
    place = Path(folder) if folder else new_folder(context.home)
    page, discrepancies = steps.audit(context, recall(context.ledger), place)
    show_audit(page, discrepancies)
    if discrepancies:
        raise Discrepancies(f"{'; '.join(discrepancies)}.", f"See {page}.")
    return str(page)
