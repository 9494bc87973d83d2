"""The steward's own records: exact facts about private data, kept in the home, never published."""

from __future__ import annotations

import json
import os
import uuid
from typing import Any

from schemas.home import Home

_NOTICE = "INTERNAL: exact functions of private data. Never publish, never send."


def record(dataset: str, release: str, facts: dict[str, Any]) -> None:
    """Add facts to the record of a release; the file is readable by its owner alone."""
    path = Home.default().internal / dataset / f"{release}.json"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps({"notice": _NOTICE, **recall(dataset, release), **facts}, indent=2)
    fresh = path.with_suffix(f".{uuid.uuid4().hex}.new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        stream.write(text + "\n")
    fresh.replace(path)


def recall(dataset: str, release: str) -> dict[str, Any]:
    """What was recorded of a release; empty when nothing was."""
    path = Home.default().internal / dataset / f"{release}.json"
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return facts
