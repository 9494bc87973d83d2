"""The steward's own report: exact facts about private data. Never published, never sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.reports.page import render

_MANY = 0.05  # of the rows


def internal_page(dataset: str, release: str, facts: Mapping[str, Any]) -> str:
    """The page, from what `application.internal_record` has recorded.

    Parameters
    ----------
    dataset, release
        What it is about.
    facts
        Repair counts by column, sample expectations, comparison with the truth; what is not there
        is left out.
    """
    rows = facts.get("rows", 0)
    filled, clamped = facts.get("filled_cells", {}), facts.get("clamped_cells", {})
    repairs = [
        (name, filled[name], clamped.get(name, 0))
        for name in filled
        if filled[name] or clamped.get(name)
    ]
    many = [name for name, *counts in repairs if max(counts) > _MANY * max(rows, 1)]
    return render(
        "internal.html",
        dataset=dataset,
        release=release,
        facts=facts,
        rows=rows,
        repairs=sorted(repairs, key=lambda each: -max(each[1:])),
        many=many,
        sample=facts.get("sample"),
        truth=facts.get("truth"),
    )
