"""The result of an audit, as data and as files."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramercy.common.disk import make_folder
from gramercy.common.extras import publishing
from gramercy.common.home import Home
from gramercy.ledger import Charge, Statement
from gramercy.pipeline.context import Context
from gramercy.pipeline.page_links import archive_links
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.problem import Notice

with publishing():
    from gramercy.common.notation import message_in_symbols
    from gramercy.reports.audit_page import audit_page


@dataclass(frozen=True)
class Discrepancy:
    """A contradiction between ledger, archive and run history.

    Parameters
    ----------
    subject
        The release, the data set, the file, or ``ledger``.
    problem
        What is wrong.
    """

    subject: str
    problem: GramercyError | Notice

    def __str__(self) -> str:
        return f"{self.subject}: {self.words} ({self.code})"

    @property
    def words(self) -> str:
        """The problem as a message."""
        return self.problem.message

    @property
    def code(self) -> str:
        """The stable code of the problem."""
        return self.problem.code


@dataclass(frozen=True)
class AuditedCharge:
    """A charge, and the state of its bundle.

    Parameters
    ----------
    dataset
        Id of the data set.
    charge
        The charge in the ledger.
    bundle
        The state of the bundle, in a few words.
    runs
        Names of the flow runs that published it; None if the history was left out.
    """

    dataset: str
    charge: Charge
    bundle: str
    runs: tuple[str, ...] | None

    @property
    def id(self) -> str:
        """``<dataset>/<release>``."""
        return f"{self.dataset}/{self.charge.release}"


@dataclass
class Audit:
    """The result of an audit.

    Parameters
    ----------
    ledger, archive
        Locations of the ledger and the archive.
    head
        The last entry of the ledger.
    at
        Time of the audit, UTC, ISO 8601.
    history
        Whether Prefect's history was included.
    anchors
        Number of anchors of the ledger that were found outside of it, by where they were found.
    statements
        (data set, statement) of every budget.
    releases
        Every charge, in the order of the ledger.
    discrepancies
        All contradictions.
    notes
        Facts for the auditor to consider or confirm; they are not contradictions.
    """

    ledger: str
    archive: str
    head: Anchor
    at: str
    history: bool = False
    anchors: dict[str, int] = field(default_factory=dict)
    statements: list[tuple[str, Statement]] = field(default_factory=list)
    releases: list[AuditedCharge] = field(default_factory=list)
    discrepancies: list[Discrepancy] = field(default_factory=list)
    notes: list[Notice | str] = field(default_factory=list)


def audit_facts(audit: Audit) -> dict[str, Any]:
    """An audit as plain data, without the private fingerprints in the ledger."""
    return {
        "at": audit.at,
        "ledger": audit.ledger,
        "archive": audit.archive,
        "head": audit.head.model_dump(),
        "anchors": audit.anchors,
        "runs": audit.history,
        "discrepancies": [
            {"subject": each.subject, "words": each.words, "code": each.code}
            for each in audit.discrepancies
        ],
        "notes": [str(note) for note in audit.notes],
        "budgets": [{"dataset": name, **each.facts()} for name, each in audit.statements],
        "releases": [_release_facts(each) for each in audit.releases],
    }


def _shown_problems(audit: Audit) -> dict[str, Any]:
    """Discrepancies and notes in the notation of pages."""
    found = [
        {"subject": each.subject, "words": message_in_symbols(each.problem), "code": each.code}
        for each in audit.discrepancies
    ]
    notes = [
        each if isinstance(each, str) else f"{each.code}: {message_in_symbols(each)}"
        for each in audit.notes
    ]
    return {"discrepancies": found, "notes": notes}


def _release_facts(each: AuditedCharge) -> dict[str, Any]:
    runs = None if each.runs is None else list(each.runs)
    return each.charge.facts() | {"release": each.id, "bundle": each.bundle, "runs": runs}


def new_audit_folder(home: Home) -> Path:
    """A folder in the home for the report of an audit made now."""
    now = datetime.datetime.now(datetime.UTC)
    return home.audits / now.strftime("%Y-%m-%dT%H%M%SZ")


def write_audit(context: Context, audit: Audit, folder: Path) -> Path:
    """Write ``audit.html`` and ``audit.json``; returns the page.

    Parameters
    ----------
    context
        The archive, to whose pages the report links.
    audit
        The audit.
    folder
        The folder; see `new_audit_folder`.
    """
    facts = audit_facts(audit)
    make_folder(folder, 0o700)
    (folder / "audit.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    page = folder / "audit.html"
    shown = facts | _shown_problems(audit)
    page.write_text(audit_page(shown, archive_links(context, page)), encoding="utf-8")
    return page
