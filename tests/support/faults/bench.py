"""Trials of one request: processes that fail or are killed, and one that recovers afterwards."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.databases import ledger_location
from tests.support.factories import MECHANISM, at_scale, write_request
from tests.support.faults.forkserver import ChildResult, ForkServer
from tests.support.faults.kill_points import Point

UNFINISHED = {"reserved", "drawn"}
MADE = {"sealed", "published"}

# Changes of the request and of the contract, and whether the home has an earlier release.
VARIANTS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {}, False),
    ({}, {}, True),
    ({"folds": 3}, {"neighbours": "add-remove"}, False),
    ({"mechanism": MECHANISM | {"name": "rows"}}, {}, True),
][: at_scale(1, 4)]


@dataclass(frozen=True)
class Bench:
    """Runs trials of one request."""

    fork_server: ForkServer
    folder: Path
    kind: str
    variant: int = 0
    archive: str = ""

    @property
    def request(self) -> str:
        place = self.folder / f"asked-{self.variant}"
        if not place.exists():
            place.mkdir()
            asked, declared, _ = VARIANTS[self.variant]
            (place / "before").mkdir()
            write_request(place / "before", request=asked | {"version": "v0"}, **declared)
            write_request(place, request=asked, **declared)
        return str(place / "request.yaml")

    def home(self) -> dict[str, str]:
        """The environment of a fresh home."""
        folder = self.folder / f"home-{next(_NUMBERS)}"
        folder.mkdir()
        made = {"GRAMERCY_HOME": str(folder), "TMPDIR": str(folder)}
        made |= {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        if self.kind != "sqlite":
            made["GRAMERCY_LEDGER_URL"] = str(ledger_location(self.kind, folder))
        if self.archive:
            made["GRAMERCY_ARCHIVE_URL"] = f"{self.archive}/{uuid.uuid4().hex}"
        if VARIANTS[self.variant][2]:
            before = str(Path(self.request).parent / "before/request.yaml")
            done = self.fork_server.fork("release", made, request=before)
            assert done.message("answered") == ["published", "v0-r1"]
        return made

    def traced(self, *died: Point) -> tuple[list[Point], float]:
        """Every point that a release passes, after others were killed; and its seconds."""
        home = self.home()
        for point in died:
            self.fork_server.fork("release", home, request=self.request, die_at=point)
        done = self.fork_server.fork("release", home, request=self.request, trace=True)
        passed = done.message("passed")
        assert passed is not None
        return [(name, turn) for name, turn in passed], done.seconds

    def trial(self, *how: dict[str, Any], home: dict[str, str] | None = None) -> list[ChildResult]:
        """Run releases that are killed or fail, one after the other; check the recovery."""
        home = home or self.home()
        died = [
            self.fork_server.fork("release", home, request=self.request, **each) for each in how
        ]
        after = self.fork_server.fork("afterwards", home, request=self.request)
        try:
            for each, ended in zip(how, died, strict=True):
                if "die_at" in each and "delay" not in each:
                    assert ended.signal == signal.SIGKILL
            check_outcome(died, after)
        except AssertionError as failure:
            raise AssertionError(how, [each.messages for each in died], after.messages) from failure
        shutil.rmtree(home["GRAMERCY_HOME"])
        return died


_NUMBERS = itertools.count()


def check_outcome(died: list[ChildResult], after: ChildResult) -> None:
    """Check what must hold wherever they were killed."""
    (state, sealed), answers = after.message("found") or [], after.message("answers") or []
    draws = [
        *(each.message("drawing") for each in died),
        ["drawn"] if after.message("draws")[0] else None,
    ]
    # Acknowledged charges are durable; noise is drawn only for a durable charge, and once.
    assert state is not None or not any(each.message("charged") for each in died)
    assert [each for each in draws if each] in ([], [["drawn"]])
    assert state not in {None, "reserved"} or not any(each.message("drawing") for each in died)
    # Readers see only complete bundles, each after its charge.
    visible = after.message("visible")
    assert visible == [] or (visible == [sealed] and state in MADE)
    # The same bundle, or a spent failure; a second run answers the same.
    assert answers[0] == answers[1]
    (kind, words), then = answers[0], after.message("then") or []
    if state in UNFINISHED | {"spent"}:
        assert kind == "SpentFailure"
        assert "no noise will be drawn for it again" in words
        assert "--new-charge" in words
        assert (then[0], after.message("visible then")) == ("spent", [])
    else:
        assert kind == "published"
        assert then[0] == "published"
        assert after.message("visible then") == [then[1]]
        assert state is None or sealed == then[1]
    assert (state is None) == (after.message("draws") != [0])
    assert after.message("wrong") == []
