"""Jobs of the forks of `forkserver`; slow preparations are done before forking."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gramercy.archive.seal.bundle import check
from gramercy.archive.seal.signing import create_signing_key, steward_key
from gramercy.archive.store.opening import archive_of
from gramercy.archive.store.storage import FolderStore
from gramercy.common.home import Home
from gramercy.common.machine import single_blas_thread
from gramercy.ledger import Ledger
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish import attachments
from gramercy.pipeline.publish.internal_record import update_record
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.reports import rendering
from gramercy.schemas.errors import GramercyError
from tests.support import factories
from tests.support.archives import update_listing
from tests.support.faults.kill_points import KillPoints, Point, Send, die, die_in, fail
from tests.support.whole.commands import Command, answer, plain_page
from tests.support.whole.planted import FAULTS

_plan_of = factories.read_plan
_UNPRIVILEGED = 65534  # user and group id


def preload() -> None:
    """Import all modules that a release and an audit import, without starting threads."""
    sampler.self_test()
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["GRAMERCY_HOME"] = folder
            request = str(factories.write_request(Path(folder)))
            release(lambda *_: None, request)
            recover(lambda *_: None, request)
            os.write(write_end, "\n".join(sys.modules).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as stream:
        names = stream.read().split("\n")
    os.wait()
    for name in ["psycopg", "s3fs", *names]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Every fork would compile the template and look for the libraries of BLAS.
    rendering._environment().get_template("internal.html")
    with single_blas_thread():
        pass


@functools.cache
def cached_plan(request: str) -> Plan:
    """The plan of a request, computed once, with its guarantee."""
    plan = _plan_of(Path(request))
    plan.facts()
    return plan


def release(
    send: Send,
    request: str,
    *,
    die_at: Point | None = None,
    fail_at: Point | None = None,
    delay: float = 0.0,
    reason: int = 0,
    lasting: bool = False,
    largest_file: int = -1,
    as_unprivileged: bool = False,
    trace: bool = False,
) -> None:
    """Run a release, which may be killed or fail; report its answer.

    Parameters
    ----------
    die_at, delay
        Where to be killed, or how long after it.
    fail_at, reason, lasting
        Where the disk or the database fails, with which error, and whether it keeps failing.
    largest_file
        Bytes beyond which the system refuses to write any file.
    as_unprivileged
        Whether to run as a user without permissions.
    trace
        Whether to report all points that were passed.
    """
    if largest_file >= 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if as_unprivileged:
        os.setgroups([])
        os.setgid(_UNPRIVILEGED)
        os.setuid(_UNPRIVILEGED)
    act = fail(reason) if fail_at else die_in(delay) if delay else die
    armed = die_at or fail_at
    points = KillPoints(send, (armed[0], armed[1]) if armed else None, act, lasting)
    points.install()
    send("answered", *_answer(request))
    if trace:
        send("passed", *points.passed)


def command(
    send: Send,
    request: str,
    command: dict[str, Any],
    *,
    die_at: Point | None = None,
    fail_at: Point | None = None,
    reason: int = 0,
    planted: str = "",
    trace: bool = False,
) -> None:
    """Run a command of `tests.support.whole` as `release` does; requests are next to each other."""
    attachments.report_page = plain_page
    if planted:
        FAULTS[planted](pytest.MonkeyPatch())
    armed = die_at or fail_at
    points = KillPoints(
        send, (armed[0], armed[1]) if armed else None, fail(reason) if fail_at else die
    )
    points.install()

    def plan_of(number: int) -> Plan:
        return cached_plan(str(Path(request).with_name(f"request-{number}.yaml")))

    send("answered", *answer(Context.default(), plan_of, Command(**command)))
    send("draws", points.draws)
    if trace:
        send("passed", *points.passed)


def recover(send: Send, request: str) -> None:
    """Report the state of the ledger and the archive before and after two more requests."""
    points = KillPoints(lambda *_: None)
    points.install()
    ledger = Ledger.of(Home.default())
    send("charge before", *_charged(ledger, request))
    send("visible before", *_visible(request))
    anchors = [ledger.head()]
    send("answers", _answer(request), _answer(request))
    send("draws", points.draws)
    send("visible after", *_visible(request))
    send("charge after", *_charged(ledger, request))
    findings = [str(each.notice) for each in ledger.find_inconsistencies(anchors)]
    update_listing(Context.default(), "toy", "v1-r1")
    audit = make_audit(Context.default())
    findings += [str(each) for each in audit.discrepancies]
    send("findings", *findings)


def _answer(request: str) -> tuple[str, str, dict[str, Any]]:
    """Publish; return "published" and the release, or an error's type, code and facts."""
    factories.read_plan = lambda path: cached_plan(str(path))
    try:
        return "published", factories.run_release(Path(request)), {}
    except GramercyError as error:
        return type(error).__name__, error.code, error.facts


def _charged(ledger: Ledger, request: str) -> tuple[str | None, str]:
    """State and digest of the charge of this version of the data, without one that it replaces."""
    plan = cached_plan(request)
    charges = ledger.charges(plan.contract.id) if plan.contract.id in ledger.datasets() else ()
    of_version = [
        (c.state, c.sha256)
        for c in charges
        if c.version == plan.request.version and c.release != plan.request.new_charge
    ]
    assert len(of_version) <= 1
    return of_version[0] if of_version else (None, "")


def _visible(request: str) -> list[str]:
    """Digests of the bundles that readers see of this version, after verifying every file."""
    archive = archive_of(Home.default())
    digests = {name: check(archive.release(dataset, name)) for dataset, name in archive.releases()}
    version = f"{cached_plan(request).request.version}-r"
    return [digest for name, digest in digests.items() if name.startswith(version)]


def write_small_files(send: Send, request: str, die_at: int = 0, record: bool = False) -> None:
    """Write keys, pages and an anchor, or a `record` only; be killed after some file operations.

    Reports the number of operations.
    """
    home, done = Home.default(), 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def operation(*args: Any, **named: Any) -> Any:
            nonlocal done
            result = call(*args, **named)
            done += 1
            if done == die_at:
                die("")
            return result

        return operation

    for name in ("open", "link", "replace", "fsync", "unlink", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))
    if record:
        update_record(home, "toy", "v1-r1", {"rows": 40})
        send("operations", done)
        return
    archive = archive_of(home)
    steward_key(home.keys)
    for text in ("<p>1</p>", "<p>2</p>"):
        create_signing_key(home.keys)
        archive.write_page("index.html", text)
        archive.write_page("toy/index.html", text)
        FolderStore(home.audits).write("toy/page.html", text.encode())
    send("operations", done)
