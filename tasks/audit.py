"""Hold ledger, archive and run history against each other, as a task."""

from __future__ import annotations

from pathlib import Path

from gramercy.application.auditing import make_audit, write_audit
from gramercy.tasks.history import recall
from gramercy.tasks.policy import private_task


@private_task
def audit_home(folder: str | None) -> tuple[str, list[str]]:
    """Audit the home with its run history; returns the page, and what does not agree, in words."""
    audit = make_audit(recall())
    page = write_audit(audit, Path(folder) if folder else None)
    return str(page), [f"{each.subject}: {each.words}" for each in audit.discrepancies]
