"""The auditor's page: what was charged, what there is to show for it, and what does not agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.reports.page import render


def audit_page(facts: Mapping[str, Any]) -> str:
    """The page, from what `application.audit_record` holds, as plain data.

    Parameters
    ----------
    facts
        ``ledger``, ``archive``, ``at``, ``head``, ``anchors``, ``runs``, ``budgets``,
        ``releases``, ``discrepancies`` and ``notes``.
    """
    return render("audit.html", **facts)
