"""Trials of one request: processes are killed or fail, then another one recovers."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramercy.schemas import families
from tests.support.cumulative import MONTHLY, STEPS, TERMS, write_visits
from tests.support.databases import ledger_location
from tests.support.factories import MECHANISM, write_request
from tests.support.faults.forkserver import ChildResult, ForkServer
from tests.support.faults.kill_points import Point

UNFINISHED = {"reserved", "drawn"}
SEALED = {"sealed", "published"}


@dataclass(frozen=True)
class Variant:
    """A request, and what its home has before it."""

    name: str
    request: dict[str, Any] = field(default_factory=dict)  # changes of the request
    terms: dict[str, Any] = field(default_factory=dict)  # changes of the contract
    # earlier requests, as changes of this one, each with the point at which it is killed
    before: tuple[tuple[dict[str, Any], Point | None], ...] = ()

    def write(self, folder: Path, **request: Any) -> Path:
        """Write a request, and its table; returns its path."""
        folder.mkdir()
        if "period" in self.terms:
            write_visits(folder / "table.csv")
        return write_request(folder, request=self.request | request, **self.terms)


_PUBLISHED_BEFORE = (({"version": "v0"}, None),)
VARIANTS = [
    Variant("first"),
    Variant("second", before=_PUBLISHED_BEFORE),
    Variant("folds", {"folds": 3}, {"neighbours": "add-remove"}),
    Variant("rows", {"mechanism": MECHANISM | {"name": "rows"}}, before=_PUBLISHED_BEFORE),
    Variant(
        "stages",
        {"scaling": "private", "mechanism": MECHANISM | {"epsilon": 80.0}},
        {"budget": {"epsilon": 100.0, "delta": 1e-5}, "intercept": True},
    ),
]
STAGED = VARIANTS[-1]  # draws histograms, a pilot, and matrices in its metric

# Steps of a cumulative series: the first one, a later one, and one that is drawn again.
_FIRST, _SECOND = ({"version": step, "new_charge": None} for step in STEPS[:2])
SERIES = [
    Variant("first step", MONTHLY | _FIRST, TERMS),
    Variant("later step", MONTHLY | _SECOND, TERMS, ((_FIRST, None),)),
    Variant(
        "redraw",
        MONTHLY | _SECOND | {"new_charge": f"{STEPS[1]}-r1"},
        TERMS,
        ((_FIRST, None), (_SECOND, ("after draw", 1))),
    ),
]


@dataclass(frozen=True)
class Trials:
    """Runs trials of one request, each in a home of its own."""

    fork_server: ForkServer
    folder: Path
    kind: str
    variant: Variant = VARIANTS[0]
    archive: str = ""

    @property
    def request(self) -> str:
        folder = self.folder / f"request-{self.variant.name}"
        if not folder.exists():
            self.variant.write(folder)
            for number, (request, _) in enumerate(self.variant.before):
                self.variant.write(folder / f"before-{number}", **request)
        return str(folder / "request.yaml")

    def home(self) -> dict[str, str]:
        """The environment of a fresh home."""
        folder = self.folder / f"home-{next(_NUMBERS)}"
        folder.mkdir()
        environ = {"GRAMERCY_HOME": str(folder), "TMPDIR": str(folder)}
        environ |= {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        if self.kind != "sqlite":
            environ["GRAMERCY_LEDGER_URL"] = str(ledger_location(self.kind, folder))
        if self.archive:
            environ["GRAMERCY_ARCHIVE_URL"] = f"{self.archive}/{uuid.uuid4().hex}"
        for number, (_, killed_at) in enumerate(self.variant.before):
            earlier = str(Path(self.request).parent / f"before-{number}/request.yaml")
            done = self.fork_server.fork("release", environ, request=earlier, die_at=killed_at)
            if killed_at is not None:
                done = self.fork_server.fork("release", environ, request=earlier)
            kind, *_ = done.message("answered") or []
            assert kind == ("published" if killed_at is None else "SpentFailure")
        return environ

    def trace(self, *killed_at: Point) -> tuple[list[Point], float]:
        """The points that a release passes after others were killed there, and its seconds."""
        home = self.home()
        for point in killed_at:
            self.fork_server.fork("release", home, request=self.request, die_at=point)
        done = self.fork_server.fork("release", home, request=self.request, trace=True)
        passed = done.message("passed")
        assert passed is not None
        return [(name, count) for name, count in passed], done.seconds

    def run(self, *faults: dict[str, Any], home: dict[str, str] | None = None) -> list[ChildResult]:
        """Run releases that are killed or fail, one after the other; check the recovery."""
        home = home or self.home()
        results = [
            self.fork_server.fork("release", home, request=self.request, **fault)
            for fault in faults
        ]
        after = self.fork_server.fork("recover", home, request=self.request)
        try:
            for fault, result in zip(faults, results, strict=True):
                if "die_at" in fault and "delay" not in fault:
                    assert result.signal == signal.SIGKILL
            check_outcome(results, after)
        except AssertionError as failure:
            messages = [result.messages for result in results]
            raise AssertionError(faults, messages, after.messages) from failure
        shutil.rmtree(home["GRAMERCY_HOME"])
        return results


_NUMBERS = itertools.count()


def check_outcome(results: list[ChildResult], after: ChildResult) -> None:
    """Check the invariants that hold wherever the releases were killed."""
    (state, sealed), answers = after.message("charge before") or [], after.message("answers") or []
    draws = [
        *(each.message("drawing") for each in results),
        ["drawn"] if after.message("draws")[0] else None,
    ]
    # Acknowledged charges are durable; noise is drawn only for a durable charge, and once.
    assert state is not None or not any(each.message("charged") for each in results)
    assert [each for each in draws if each] in ([], [["drawn"]])
    assert state not in {None, "reserved"} or not any(each.message("drawing") for each in results)
    # Readers see only complete bundles, each after its charge.
    visible = after.message("visible before")
    assert visible == [] or (visible == [sealed] and state in SEALED)
    # The answer is the bundle or a spent failure, and a second run gives the same answer.
    assert answers[0] == answers[1]
    (kind, code, _), final = answers[0], after.message("charge after") or []
    if state in UNFINISHED | {"spent"}:
        assert kind == "SpentFailure"
        assert code == families.SPENT.code
        assert (final[0], after.message("visible after")) == ("spent", [])
    else:
        assert kind == "published"
        assert final[0] == "published"
        assert after.message("visible after") == [final[1]]
        assert state is None or sealed == final[1]
    assert (state is None) == (after.message("draws") != [0])
    assert after.message("findings") == []
