"""An audit on record: what was found, as data and as files."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gramercy.common.extras import publishing
from gramercy.common.home import Home
from gramercy.ledger import Charge, Statement
from gramercy.schemas.anchor import Anchor

with publishing():
    from gramercy.reports.audit_page import audit_page


@dataclass(frozen=True)
class Discrepancy:
    """Something that cannot be where all is well.

    Parameters
    ----------
    subject
        The release, the data set, or ``ledger``.
    words
        What is wrong.
    """

    subject: str
    words: str


@dataclass(frozen=True)
class Audited:
    """A charge, and what there is to show for it.

    Parameters
    ----------
    dataset, release
        Which.
    charge
        As the ledger has it.
    bundle
        What became of the bundle, in a word or two.
    runs
        Names of the flow runs that published it; None where history was not looked at.
    """

    dataset: str
    charge: Charge
    bundle: str
    runs: tuple[str, ...] | None

    @property
    def id(self) -> str:
        """DATASET/RELEASE."""
        return f"{self.dataset}/{self.charge.release}"


@dataclass
class Audit:
    """What was found.

    Parameters
    ----------
    ledger, archive
        Where they lie.
    head
        The ledger's last entry.
    at
        When, UTC, ISO 8601.
    history
        Whether Prefect was asked.
    anchors
        How often the ledger's place was found told outside of it.
    statements
        (data set, statement) of every budget.
    releases
        Every charge, in the order of the ledger.
    discrepancies
        Everything that cannot be.
    notes
        What an auditor should know, though nothing is wrong with it.
    """

    ledger: str
    archive: str
    head: Anchor
    at: str
    history: bool = False
    anchors: int = 0
    statements: list[tuple[str, Statement]] = field(default_factory=list)
    releases: list[Audited] = field(default_factory=list)
    discrepancies: list[Discrepancy] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def facts(audit: Audit) -> dict[str, Any]:
    """An audit as plain data. Of private facts the ledger's fingerprints alone are left out."""
    return {
        "at": audit.at,
        "ledger": audit.ledger,
        "archive": audit.archive,
        "head": audit.head.model_dump(),
        "anchors": audit.anchors,
        "runs": audit.history,
        "discrepancies": [asdict(each) for each in audit.discrepancies],
        "notes": audit.notes,
        "budgets": [{"dataset": name, **each.facts()} for name, each in audit.statements],
        "releases": [_release(each) for each in audit.releases],
    }


def _release(each: Audited) -> dict[str, Any]:
    runs = None if each.runs is None else list(each.runs)
    return each.charge.facts() | {"release": each.id, "bundle": each.bundle, "runs": runs}


def new_folder(home: Home) -> Path:
    """Where a report of now goes, in the home."""
    now = datetime.datetime.now(datetime.UTC)
    return home.audits / now.strftime("%Y-%m-%dT%H%M%SZ")


def write_audit(audit: Audit, folder: Path) -> Path:
    """Write ``audit.html`` and ``audit.json``; returns the page.

    Parameters
    ----------
    audit
        What was found.
    folder
        Where; see `new_folder`.
    """
    said = facts(audit)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "audit.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    (folder / "audit.html").write_text(audit_page(said), encoding="utf-8")
    return folder / "audit.html"
