"""The page of an audit: charges, their bundles, and discrepancies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.reports.navigation import Links, navigation, no_links
from gramercy.reports.rendering import render


def audit_page(facts: Mapping[str, Any], links: Links = no_links) -> str:
    """The page of an audit, from the plain data of `pipeline.verify.auditing`.

    Parameters
    ----------
    facts
        ``ledger``, ``archive``, ``at``, ``head``, ``anchors``, ``runs``, ``budgets``,
        ``releases``, ``discrepancies`` and ``notes``.
    links
        Addresses of the archive's pages.
    """
    return render(
        "audit.html", navigation=navigation(links, f"Audit of {facts['at'][:10]}"), **facts
    )
