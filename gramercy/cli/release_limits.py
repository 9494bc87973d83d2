"""What limits the numbers of a release, in the JSON of every command that names one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.estimators.caveats import Caveat
from gramercy.reports.reader_notes import verdict_note


def limits_facts(bundle: ReleaseBundle, caveats: Sequence[Caveat]) -> dict[str, Any]:
    """The verdict and the caveats of a release, or of a group of its rows, as plain data."""
    note = verdict_note(bundle)
    return {
        "verdict": None if note is None else note.described(),
        "caveats": [each.described() for each in caveats],
    }
