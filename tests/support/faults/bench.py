"""Trials of one request: processes that fail or die, and another that finds what they have left."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.databases import fresh
from tests.support.factories import MECHANISM, at_scale, scene
from tests.support.faults.forkserver import Ended, Zygote
from tests.support.faults.kill_points import Point

UNFINISHED = {"reserved", "drawn"}
MADE = {"sealed", "published"}

# What is asked for, and what of the contract differs; and whether the home has a release already.
VARIANTS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {}, False),
    ({}, {}, True),
    ({"folds": 3}, {"neighbours": "add-remove"}, False),
    ({"mechanism": MECHANISM | {"name": "rows"}}, {}, True),
][: at_scale(1, 4)]


@dataclass(frozen=True)
class Bench:
    """Where trials of one request are made."""

    zygote: Zygote
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
            scene(place / "before", request=asked | {"version": "v0"}, **declared)
            scene(place, request=asked, **declared)
        return str(place / "request.yaml")

    def home(self) -> dict[str, str]:
        """The environment of a fresh home."""
        folder = self.folder / f"home-{next(_NUMBERS)}"
        folder.mkdir()
        made = {"GRAMERCY_HOME": str(folder), "TMPDIR": str(folder)}
        made |= {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        if self.kind != "sqlite":
            made["GRAMERCY_LEDGER_URL"] = str(fresh(self.kind, folder))
        if self.archive:
            made["GRAMERCY_ARCHIVE_URL"] = f"{self.archive}/{uuid.uuid4().hex}"
        if VARIANTS[self.variant][2]:
            before = str(Path(self.request).parent / "before/request.yaml")
            done = self.zygote.fork("release", made, request=before)
            assert done.word("answered") == ["published", "v0-r1"]
        return made

    def traced(self, *died: Point) -> tuple[list[Point], float]:
        """Every point that a release passes, after others that died; and its seconds."""
        home = self.home()
        for point in died:
            self.zygote.fork("release", home, request=self.request, die_at=point)
        done = self.zygote.fork("release", home, request=self.request, trace=True)
        passed = done.word("passed")
        assert passed is not None
        return [(name, turn) for name, turn in passed], done.seconds

    def trial(self, *how: dict[str, Any], home: dict[str, str] | None = None) -> list[Ended]:
        """Releases that die or fail, one after the other, each in its way; and what comes after."""
        home = home or self.home()
        died = [self.zygote.fork("release", home, request=self.request, **each) for each in how]
        after = self.zygote.fork("afterwards", home, request=self.request)
        try:
            for each, ended in zip(how, died, strict=True):
                if "die_at" in each and "delay" not in each:
                    assert ended.signal == signal.SIGKILL
            hold(died, after)
        except AssertionError as failure:
            raise AssertionError(how, [each.said for each in died], after.said) from failure
        shutil.rmtree(home["GRAMERCY_HOME"])
        return died


_NUMBERS = itertools.count()


def hold(died: list[Ended], after: Ended) -> None:
    """What is true however they died."""
    (state, sealed), answers = after.word("found") or [], after.word("answers") or []
    draws = [
        *(each.word("drawing") for each in died),
        ["drawn"] if after.word("draws")[0] else None,
    ]
    # A charge that was acknowledged is there; noise was drawn for a durable one, and once.
    assert state is not None or not any(each.word("charged") for each in died)
    assert [each for each in draws if each] in ([], [["drawn"]])
    assert state not in {None, "reserved"} or not any(each.word("drawing") for each in died)
    # What readers saw was whole, and followed its charge.
    visible = after.word("visible")
    assert visible == [] or (visible == [sealed] and state in MADE)
    # The same artifact, or a spent failure; the second answer is the first.
    assert answers[0] == answers[1]
    (kind, words), then = answers[0], after.word("then") or []
    if state in UNFINISHED | {"spent"}:
        assert kind == "SpentFailure"
        assert "no noise will be drawn for it again" in words
        assert "--new-charge" in words
        assert (then[0], after.word("visible then")) == ("spent", [])
    else:
        assert kind == "published"
        assert then[0] == "published"
        assert after.word("visible then") == [then[1]]
        assert state is None or sealed == then[1]
    assert (state is None) == (after.word("draws") != [0])
    assert after.word("wrong") == []
