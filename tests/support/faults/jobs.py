"""The jobs of the forks of `forkserver`; slow preparations are done before forking."""

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
from gramercy.application.context import Context
from gramercy.application.planning import Plan
from gramercy.archive.bundle import check
from gramercy.archive.open import archive_of
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import GramercyError
from tests.support import factories
from tests.support.faults.kill_points import KillPoints, Point, Say, die, die_in, fail

_plan_of = factories.read_plan
_NOBODY = 65534


def warm() -> None:
    """Import all that a release and an audit of it import, in a process without threads."""
    sampler.self_test()
    reading, writing = os.pipe()
    if os.fork() == 0:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["GRAMERCY_HOME"] = folder
            request = str(factories.write_request(Path(folder)))
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
def cached_plan(request: str) -> Plan:
    """The plan of an unchanging request, including its guarantee's digits."""
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
    """Run a release, which may be killed or fail on the way; report its answer.

    Parameters
    ----------
    die_at, delay
        Where to be killed, or how long after it.
    fail_at, reason, lasting
        Where the disk or the database fails, with which error, and whether it keeps failing.
    largest_file
        Bytes beyond which the system refuses to write any file.
    as_nobody
        Whether to run as a user without permissions.
    trace
        Whether to report every point that was passed.
    """
    if largest_file >= 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if as_nobody:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    act = fail(reason) if fail_at else die_in(delay) if delay else die
    armed = die_at or fail_at
    points = KillPoints(say, (armed[0], armed[1]) if armed else None, act, lasting)
    points.install()
    say("answered", *_answer(request))
    if trace:
        say("passed", *points.passed)


def afterwards(say: Say, request: str) -> None:
    """Report what a new process finds, and how it answers the same request, twice."""
    points = KillPoints(lambda *_: None)
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
    audit = make_audit(Context.default())
    wrong += [f"{each.subject}: {each.words}" for each in audit.discrepancies]
    say("wrong", *wrong)


def _answer(request: str) -> tuple[str, str]:
    factories.read_plan = lambda path: cached_plan(str(path))
    try:
        return "published", factories.run_release(Path(request))
    except GramercyError as error:
        return type(error).__name__, str(error)


def _charged(books: Ledger, request: str) -> tuple[str | None, str]:
    """State and digest of the charge of this version of the data."""
    plan = cached_plan(request)
    known = books.charges(plan.contract.id) if plan.contract.id in books.datasets() else ()
    of_version = [(c.state, c.sha256) for c in known if c.version == plan.request.version]
    assert len(of_version) <= 1
    return of_version[0] if of_version else (None, "")


def _visible(request: str) -> list[str]:
    """Digests of what readers see of this version; every file of every release is verified."""
    archive = archive_of(Home.default())
    seen = {name: check(archive.release(dataset, name)) for dataset, name in archive.releases()}
    version = f"{cached_plan(request).request.version}-r"
    return [digest for name, digest in seen.items() if name.startswith(version)]
