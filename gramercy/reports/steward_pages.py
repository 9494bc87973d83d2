"""Pages for the steward: an audit, and the internal record of a release.

The internal record has exact facts about private data, and is never published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramercy.reports.reader_notes import warning
from gramercy.reports.rendering import Links, navigation, no_links, render
from gramercy.schemas import families, wordings
from gramercy.schemas.problem import Notice


def audit_page(facts: Mapping[str, Any], links: Links = no_links) -> str:
    """The page of an audit, from the plain data of `pipeline.verify.auditing`."""
    return render(
        "audit.html", navigation=navigation(links, f"Audit of {facts['at'][:10]}"), **facts
    )


_MANY = 0.05  # share of the rows


def internal_page(
    dataset: str, release: str, facts: Mapping[str, Any], links: Links = no_links
) -> str:
    """The internal page of a release, from the record of `pipeline.publish.internal_record`.

    Repairs by column, numbers of rows by group, the comparison with the exact matrix, expectations,
    likely mistakes and changes since an earlier version are each optional.
    """
    rows = facts.get("rows", 0)
    filled, clamped = facts.get("filled_cells", {}), facts.get("clamped_cells", {})
    repairs = [
        (name, filled[name], clamped.get(name, 0))
        for name in filled
        if filled[name] or clamped.get(name)
    ]
    many = tuple(name for name, *counts in repairs if max(counts) > _MANY * max(rows, 1))
    notes = []
    if facts.get("table_changed_since"):
        notes.append(warning("The files have changed since", wordings.files_changed()))
    if changed := facts.get("changed_steps"):
        steps = tuple(f"{label} ({before} to {now})" for label, (before, now) in changed.items())
        notes.append(warning("Earlier steps have changed", wordings.steps_changed(steps)))
    if many:
        notice = families.REPAIRED_CELLS(
            "More than one row in twenty has a missing, invalid or out-of-bounds cell in: "
            "{columns}.",
            "If the bounds are wrong, correct them for the next data set from public knowledge; "
            "never from this page alone, because bounds are public.",
            columns=many,
        )
        notes.append(warning("Many cells were repaired", notice))
    notes += [warning("A likely mistake", Notice(**each)) for each in facts.get("mistakes", ())]
    if proposed := facts.get("proposals"):
        notice = families.TAILS(
            "Functions of some columns would be known more accurately than these, as the published "
            "histograms show.",
            "Add under 'columns' in the contract of the next version: {lines}",
            lines="; ".join(proposed),
        )
        notes.append(warning("Columns that are mostly zero or have long tails", notice))
    return render(
        "internal.html",
        navigation=navigation(links, "Internal record", (dataset, dataset), (release, release)),
        dataset=dataset,
        release=release,
        facts=facts,
        rows=rows,
        repairs=sorted(repairs, key=lambda repair: -max(repair[1:])),
        notes=notes,
        truth=facts.get("truth"),
        groups=facts.get("groups", {}),
        found=facts.get("expectations"),
        changed=facts.get("changes"),
    )
