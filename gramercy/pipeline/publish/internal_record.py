"""Internal records of releases: exact facts about private data, which stay in the home."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.common.disk import error_reason, make_folder, write_atomically
from gramercy.common.extras import publishing
from gramercy.common.home import Home
from gramercy.common.process_lock import file_lock
from gramercy.pipeline.context import Context
from gramercy.pipeline.page_links import archive_links
from gramercy.schemas import families

with publishing():
    from gramercy.reports.rendering import Links
    from gramercy.reports.steward_pages import internal_page

_RUNS, _MOST_RUNS = "runs", 100
_NOTICE = "INTERNAL: exact functions of private data. Never publish, never send."


def update_record(home: Home, dataset: str, release: str, facts: dict[str, Any]) -> None:
    """Add facts to the record of a release, and rewrite its page; only the owner may read them."""
    with file_lock(home.locks, f"{dataset}.{release}.internal"):
        record = {"notice": _NOTICE, **read_record(home, dataset, release), **facts}
        _write_private(
            _record_path(home, dataset, release, "json"), json.dumps(record, indent=2) + "\n"
        )
        page = page_path(home, dataset, release)
        links = archive_links(Context(home), page)
        _write_private(page, internal_page(dataset, release, record, links))


def record_run(home: Home, dataset: str, at: datetime.datetime, facts: dict[str, Any]) -> None:
    """Keep what a run found of a table that it may refuse; the last runs are kept."""
    folder = home.internal / dataset / _RUNS
    for old in sorted(folder.glob("*.json"))[: -_MOST_RUNS + 1]:
        old.unlink(missing_ok=True)
    record = {"notice": _NOTICE, "at": at.isoformat(), **facts}
    _write_private(folder / f"{at:%Y%m%dT%H%M%S.%f}Z.json", json.dumps(record, indent=2) + "\n")


def refresh_page(home: Home, dataset: str, release: str, links: Links) -> None:
    """Rewrite the page of a record, if there is one, with links to pages that exist since then."""
    if not read_record(home, dataset, release):
        return
    with file_lock(home.locks, f"{dataset}.{release}.internal"):
        page = page_path(home, dataset, release)
        text = internal_page(dataset, release, read_record(home, dataset, release), links)
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            _write_private(page, text)


def read_record(home: Home, dataset: str, release: str) -> dict[str, Any]:
    """The record of a release; empty if it does not exist."""
    try:
        facts: dict[str, Any] = json.loads(_record_path(home, dataset, release, "json").read_text())
    except FileNotFoundError:
        return {}
    return facts


def page_path(home: Home, dataset: str, release: str) -> Path:
    """Path of the internal page of a release."""
    return _record_path(home, dataset, release, "html")


def error_against_truth(bundle: ReleaseBundle, truth: NDArray[np.float64]) -> dict[str, float]:
    """Distances between a released matrix and the exact one. Private, like the exact matrix.

    Parameters
    ----------
    truth
        Exact second moment of the normalised rows, shape (p, p); not stored.

    Returns
    -------
    dict
        Frobenius norms of the exact matrix, of the expected error, and of the errors of the
        released and the repaired matrix; and the largest error in standard deviations.
    """
    return {
        "norm": float(np.linalg.norm(truth)),
        "expected": float(np.linalg.norm(bundle.deviations)),
        "released": float(np.linalg.norm(bundle.unbiased - truth)),
        bundle.repair: float(np.linalg.norm(bundle.repaired - truth)),
        "largest": float((np.abs(bundle.unbiased - truth) / bundle.deviations).max()),
    }


def _record_path(home: Home, dataset: str, release: str, kind: str) -> Path:
    return home.internal / dataset / f"{release}.{kind}"


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read; nothing else of it stays after a crash."""
    reason = ""
    try:
        make_folder(path.parent, 0o700)
        write_atomically(path, text.encode(), 0o600)
    except OSError as caught:
        reason = error_reason(caught)
    if reason:
        raise families.INTERNAL(
            "{path}: the internal record cannot be written ({reason}).",
            "Free disk space, or make the folder writable, and run the same request again: what is "
            "published is returned.",
            path=str(path),
            reason=reason,
        )
