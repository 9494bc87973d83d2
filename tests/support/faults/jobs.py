"""What the forks of `forkserver` do; what is slow and kills nobody is done before."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import resource
import sys
import tempfile
from pathlib import Path

from gramercy.application.auditing import make_audit
from gramercy.application.planning import Plan
from gramercy.archive.bundle import check
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import GramercyError
from tests.support import factories
from tests.support.faults.kill_points import Point, Points, Say, die, die_in, fail

_plan_of = factories.plan_of
_NOBODY = 65534


def warm() -> None:
    """Import all that a release and an audit of it import, in a process without threads."""
    sampler.self_test()
    reading, writing = os.pipe()
    if os.fork() == 0:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["GRAMERCY_HOME"] = folder
            request = str(factories.scene(Path(folder)))
            release(lambda *_: None, request)
            afterwards(lambda *_: None, request)
            os.write(writing, "\n".join(sys.modules).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        names = stream.read().split("\n")
    os.wait()
    for name in ["psycopg", "s3fs", *names]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


@functools.cache
def planned(request: str) -> Plan:
    """The plan of a request that nobody changes; its guarantee's digits are worked out, too."""
    found = _plan_of(Path(request))
    found.facts()
    return found


def release(
    say: Say,
    request: str,
    *,
    die_at: Point | None = None,
    fail_at: Point | None = None,
    delay: float = 0.0,
    reason: int = 0,
    lasting: bool = False,
    largest_file: int = -1,
    as_nobody: bool = False,
    trace: bool = False,
) -> None:
    """Run the steps of a release, and die or fail on the way; say what it answers.

    Parameters
    ----------
    die_at, delay
        Where to die, or how long after it.
    fail_at, reason, lasting
        Where the disk or the database fails, by which error, and whether it goes on failing.
    largest_file
        Bytes beyond which the system refuses to write any file.
    as_nobody
        Whether to be a user who may write nothing but what is everybody's.
    trace
        Whether to tell every point that was passed.
    """
    if largest_file >= 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if as_nobody:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    act = fail(reason) if fail_at else die_in(delay) if delay else die
    armed = die_at or fail_at
    points = Points(say, (armed[0], armed[1]) if armed else None, act, lasting)
    points.install()
    say("answered", *_answer(request))
    if trace:
        say("passed", *points.passed)


def afterwards(say: Say, request: str) -> None:
    """What a fresh process finds, and makes of the same request, twice."""
    points = Points(lambda *_: None)
    points.install()
    books = Ledger.of(Home.default())
    say("found", *_charged(books, request))
    say("visible", *_visible(request))
    anchors = [books.head()]
    say("answers", _answer(request), _answer(request))
    say("draws", points.draws)
    say("visible then", *_visible(request))
    say("then", *_charged(books, request))
    wrong = [each.words for each in books.examine(anchors)]
    wrong += [f"{each.subject}: {each.words}" for each in make_audit().discrepancies]
    say("wrong", *wrong)


def _answer(request: str) -> tuple[str, str]:
    factories.plan_of = lambda path: planned(str(path))
    try:
        return "published", factories.run_steps(Path(request))
    except GramercyError as error:
        return type(error).__name__, str(error)


def _charged(books: Ledger, request: str) -> tuple[str | None, str]:
    """State and digest of the charge of this version of the data."""
    plan = planned(request)
    known = books.charges(plan.contract.id) if plan.contract.id in books.datasets() else ()
    of_version = [(c.state, c.sha256) for c in known if c.version == plan.request.version]
    assert len(of_version) <= 1
    return of_version[0] if of_version else (None, "")


def _visible(request: str) -> list[str]:
    """Digests of what readers see of this version; every file of every release is verified."""
    archive = Archive.of(Home.default())
    seen = {name: check(archive.release(dataset, name)) for dataset, name in archive.releases()}
    version = f"{planned(request).request.version}-r"
    return [digest for name, digest in seen.items() if name.startswith(version)]
