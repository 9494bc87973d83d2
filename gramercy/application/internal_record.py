"""The steward's own records: exact facts about private data, kept in the home, never published."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.release_bundle import ReleaseBundle
from gramercy.common.extras import publishing
from gramercy.common.home import Home
from gramercy.common.process_lock import on_this_machine
from gramercy.schemas.errors import StepFailed

with publishing():
    from gramercy.reports.internal_page import internal_page

_NOTICE = "INTERNAL: exact functions of private data. Never publish, never send."


def record(home: Home, dataset: str, release: str, facts: dict[str, Any]) -> None:
    """Add facts to the record of a release, and write its page anew; for the owner's eyes alone."""
    with on_this_machine(home.locks, f"{dataset}.{release}.internal"):
        known = {"notice": _NOTICE, **recall(home, dataset, release), **facts}
        _write(_place(home, dataset, release, "json"), json.dumps(known, indent=2) + "\n")
        _write(page(home, dataset, release), internal_page(dataset, release, known))


def recall(home: Home, dataset: str, release: str) -> dict[str, Any]:
    """What was recorded of a release; empty when nothing was."""
    try:
        facts: dict[str, Any] = json.loads(_place(home, dataset, release, "json").read_text())
    except FileNotFoundError:
        return {}
    return facts


def page(home: Home, dataset: str, release: str) -> Path:
    """Where the steward's page on a release lies."""
    return _place(home, dataset, release, "html")


def against_the_truth(bundle: ReleaseBundle, truth: NDArray[np.float64]) -> dict[str, float]:
    """How far a release lies from what it stands for. Private, like the truth itself.

    Parameters
    ----------
    bundle
        What was published.
    truth
        Exact second moment of the normalised rows, shape (p, p). It is compared, and not kept.
    """
    return {
        "norm": float(np.linalg.norm(truth)),
        "expected": float(np.linalg.norm(bundle.deviations)),
        "released": float(np.linalg.norm(bundle.unbiased - truth)),
        bundle.repair: float(np.linalg.norm(bundle.repaired - truth)),
        "largest": float((np.abs(bundle.unbiased - truth) / bundle.deviations).max()),
    }


def _place(home: Home, dataset: str, release: str, kind: str) -> Path:
    return home.internal / dataset / f"{release}.{kind}"


def _write(path: Path, text: str) -> None:
    fresh, reason = path.with_suffix(f".{uuid.uuid4().hex}.new"), ""
    try:
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            stream.write(text)
        fresh.replace(path)
    except OSError as caught:
        reason = os.strerror(caught.errno) if caught.errno else type(caught).__name__
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
    if reason:
        raise StepFailed(
            f"{path}: the steward's record cannot be written ({reason}).",
            "Make room, or make it writable. The release is published: the same request finds it.",
        )
