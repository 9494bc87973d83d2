"""Killed at any step: no charge is lost, no noise drawn without one, and none drawn twice.

Every trial is a process of its own, in a home of its own, that is gone without a word: at a point
of the way, or at any moment. Another then finds what it has left, and is asked for the same.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.databases import KINDS, fresh
from tests.faults.points import Point, is_fine
from tests.faults.zygote import Ended, Zygote
from tests.making import FULL, MECHANISM, at_scale, scene

REPEATS = at_scale(1, 20)
RANDOM = at_scale(10, 400)
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

    def trial(self, *how: dict[str, Any]) -> None:
        """Releases that die, one after the other, each in its way; and what comes after them."""
        home = self.home()
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
        assert (then, after.word("visible then")) == (["spent", ""], [])
    else:
        assert kind == "published"
        assert then[0] == "published"
        assert after.word("visible then") == [then[1]]
        assert state is None or sealed == then[1]
    assert (state is None) == (after.word("draws") != [0])
    assert after.word("wrong") == []


def steps(passed: list[Point]) -> list[Point]:
    """Before and after every call; what is before one and after another, with nothing between."""
    pairs = itertools.pairwise([("", 0), *passed])
    between = [p for q, p in pairs if not (p[0].startswith("before") and q[0].startswith("after"))]
    return [p for p in (passed if FULL else between) if not is_fine(p)]


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, zygote: Zygote, tmp_path: Path) -> Bench:
    return Bench(zygote, tmp_path, request.param)


def repeated(bench: Bench) -> Iterator[Bench]:
    """Every trial is made with every variant, as often as it is to be made."""
    for turn in range(REPEATS):
        yield Bench(bench.zygote, bench.folder, bench.kind, turn % len(VARIANTS), bench.archive)


def test_at_every_step(bench: Bench) -> None:
    found: dict[int, list[Point]] = {}
    for each in repeated(bench):
        points = found.setdefault(each.variant, steps(each.traced()[0]))
        assert {"after charge", "after mark 'drawn'", "after seal", "after rename"} <= {
            name for name, _ in points
        }
        for point in points:
            each.trial({"die_at": point})


def test_at_statements_of_the_database_and_at_single_files(bench: Bench) -> None:
    """All of them in full; else a few, spread over the way."""
    fine = [point for point in bench.traced()[0] if is_fine(point)]
    for point in fine[5 :: at_scale(len(fine) // 4, 1)]:
        bench.trial({"die_at": point})


def test_at_any_moment(bench: Bench) -> None:
    """Half of them while the database commits, wherever in its code it is."""
    passed, seconds = bench.traced()
    commits = [point for point in passed if point[0] == "before commit"]
    rng = np.random.default_rng(14)
    for turn in range(RANDOM):
        if turn % 2:
            bench.trial({"killed_after": rng.uniform(0, seconds)})
        else:
            point = commits[rng.integers(len(commits))]
            bench.trial({"die_at": point, "delay": rng.uniform(1e-5, 1e-2)})


@pytest.mark.parametrize(
    "first", [("after draw", 1), ("after keep", 1), ("after mark 'sealed'", 1)][: at_scale(2, 3)]
)
def test_while_it_recovers(bench: Bench, first: Point) -> None:
    """Whoever finishes or closes what another has left may die of it, too."""
    passed, _ = bench.traced(first)
    chosen = passed if FULL else [p for p in steps(passed) if "mark" in p[0] or "rename" in p[0]]
    assert chosen
    for point in chosen:
        bench.trial({"die_at": first}, {"die_at": point})


def test_at_every_step_of_a_remote_archive(zygote: Zygote, tmp_path: Path, s3: str) -> None:
    bench = Bench(zygote, tmp_path, "sqlite", archive=s3)
    passed, _ = bench.traced()
    remote = [p for p in passed if p[0].partition(" ")[2].startswith(("create", "upload", "write"))]
    uploads = [p for p in remote if p[0].startswith("after upload")]
    chosen = [
        ("after create SHA256SUMS", 1),  # the place is claimed
        uploads[len(uploads) // 2],
        ("after create SHA256SUMS.sig", 1),
    ]
    for point in remote * REPEATS if FULL else chosen:
        bench.trial({"die_at": point})
