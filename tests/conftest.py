"""One Prefect database for the session, and a separate home for every test."""

from __future__ import annotations

import atexit
import functools
import gc
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from gramercy.common.home import Home
from tests.support.databases import KINDS, ledger_location, stop_servers
from tests.support.faults.forkserver import ForkServer
from tests.support.scratch import SCRATCH, is_worker, one_certificate

TESTS = Path(__file__).parent

# A case may take any time where the machine is busy. Every run draws other cases.
CASES = 300 if os.environ.get("GRAMERCY_FULL") == "1" else 40
hypothesis.settings.register_profile("busy", deadline=None, max_examples=CASES)
hypothesis.settings.load_profile("busy")

if is_worker():
    # Called last. To take a worker's imports apart takes seconds, in which the session waits.
    atexit.register(os._exit, 0)

# Otherwise every worker rewrites all tests, and every process that they start compiles Gramercy.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.disable()  # the imports make millions of objects, which stay: see pytest_collection_finish

# Before anything imports Prefect, which reads its settings once.
os.environ["PREFECT_HOME"] = str(SCRATCH.session_folder("prefect"))
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["GRAMERCY_SERVER_MINUTES"] = "0"  # a server ends with those that use it
os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
# The session's server schedules no runs; integration/test_server.py starts servers that do.
_SERVICES = "SCHEDULER LATE_RUNS PAUSE_EXPIRATIONS CANCELLATION_CLEANUP FOREMAN REPOSSESSOR"
for _name in f"{_SERVICES} CLEANUP_RECONCILER TRIGGERS".split():
    os.environ[f"PREFECT_SERVER_SERVICES_{_name}_ENABLED"] = "false"
# Every client would load all authorities of the internet, though the session's server uses none.
os.environ["PREFECT_API_SSL_CERT_FILE"] = str(one_certificate(SCRATCH.session_folder("tls")))
os.environ.pop("PREFECT_API_URL", None)
for _name in ("HOME", "LEDGER_URL", "ARCHIVE_URL", "WITNESS_URL"):
    os.environ.pop(f"GRAMERCY_{_name}", None)


# Files that wait more than they compute, for processes that they start and stop. They run one after
# the other in one worker, from the beginning, while the other workers compute.
WAITING = (
    "test_server",
    "test_approved_runs",
    "test_14_",
    "test_16_",
    "test_shared_server",
    "test_29_",
    "test_17_",
    "test_13_",
    "test_42_",
    "test_30_",
)
# The slowest of the others come next, so that no worker ends with one of them; the first of them is
# of those that share a Prefect server.
SLOWEST = (
    "test_cli",
    "test_19_tampered",
    "test_22_",
    "test_uncertainty",
    "test_38_",
    "test_34_",
    "test_load",
    "test_catalogue",
    "test_missing_cells",
    "test_glasso",
    "test_24_",
)
FIRST = WAITING + SLOWEST
# `make quick` leaves these folders out, and every test with `@pytest.mark.slow`.
SLOW = ("acceptance", "benchmarks", "integration", "proofs")
MANY_SECONDS = 3.0
# Here pages are written, listed and compared as files: no one looks at their figures.
WITHOUT_FIGURES = (
    *(f"acceptance/test_{number}_" for number in (15, 16, 17, 18, 19, 23, 31, 32)),
    "benchmarks/test_load",
    "integration",
    "unit/archive",
    "unit/cli",
    "unit/ledger",
    "unit/mechanisms",
    "unit/pipeline",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip importing the slow folders if no slow test is selected."""
    folder = collection_path.parent == TESTS and collection_path.name in SLOW
    return True if folder and config.option.markexpr == "not slow" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow folders and files, and put the slowest files first."""

    def rank(item: pytest.Item) -> int:
        names = [name for name in FIRST if item.path.name.startswith(name)]
        return FIRST.index(names[0]) if names else len(FIRST)

    items.sort(key=rank)
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute whole files, and those that wait, or share a Prefect server, to one worker."""
    from xdist.scheduler import LoadFileScheduling

    @functools.cache
    def group(file: str) -> str:
        path = config.rootpath / file
        if path.name.startswith(WAITING):
            return "waiting"
        return "prefect_server" if "prefect_server" in path.read_text(encoding="utf-8") else file

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(super()._split_scope(nodeid))

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Keep all that is imported out of garbage collections, which otherwise take a tenth of all."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List tests that take many seconds and are not marked as slow, without failing."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    unmarked = {
        report.nodeid: report.duration
        for report in reports
        if report.duration > MANY_SECONDS and "slow" not in report.keywords
    }
    if unmarked:
        terminalreporter.section("not marked as slow")
    for name, seconds in sorted(unmarked.items(), key=lambda each: -each[1]):
        terminalreporter.write_line(f"{seconds:6.1f} s  {name}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Report files that tests left in the temporary folder; fail if they are Gramercy's."""
    yield  # fixtures are torn down, and xdist's workers end
    stop_servers()
    if is_worker():
        return
    leftovers = SCRATCH.leftovers()
    if not leftovers:
        return
    # A library whose process was killed may leave files behind: those do not fail the session.
    own = any(name.startswith("gramercy") for name in leftovers)
    if own and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if reporter := session.config.pluginmanager.get_plugin("terminalreporter"):
        reporter.write_line(f"Tests left temporary files: {', '.join(leftovers)}", red=True)


@pytest.fixture(scope="session", autouse=True)
def one_process() -> Iterator[None]:
    """Fit in the test's own process: the workers keep all cores busy already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gramercy.estimators.tuning.parallel.cores", lambda: 1)
        yield


@pytest.fixture(scope="module", autouse=True)
def plain_figures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw nothing where no one looks: matplotlib takes most of the time of a page."""
    with pytest.MonkeyPatch.context() as patch:
        file = request.path.relative_to(TESTS).as_posix()
        if file.startswith(WITHOUT_FIGURES):
            canvas = "matplotlib.backends.backend_svg.FigureCanvasSVG.print_svg"
            patch.setattr(canvas, lambda self, out, **_: out.write("<svg></svg>"))
        yield


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parent of the homes of tests without a folder of their own."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def home(
    request: pytest.FixtureRequest, homes: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An empty home, so that tests do not touch the user's own."""
    # Most tests use no file: a folder for each of them would take seconds in all.
    has_folder = "tmp_path" in request.fixturenames
    parent = request.getfixturevalue("tmp_path") if has_folder else homes
    folder = Path(parent, "home" if has_folder else uuid.uuid4().hex)
    monkeypatch.setenv("GRAMERCY_HOME", str(folder))
    yield folder
    if folder.parent == homes:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """The location of a new ledger, for every kind of database."""
    return ledger_location(request.param, tmp_path)


@pytest.fixture(params=KINDS)
def any_home(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home, for every kind of ledger database."""
    if request.param != "sqlite":
        monkeypatch.setenv("GRAMERCY_LEDGER_URL", str(ledger_location(request.param, home)))
    return Home.default()


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Let both streams be wide terminals."""
    from rich.console import Console

    from gramercy.cli import terminal

    # The class, because pytest opens other streams for the test itself.
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True)
    for name in ("out", "err"):
        console = Console(stderr=name == "err", force_terminal=True, width=500, highlight=False)
        monkeypatch.setattr(terminal, name, console)


@pytest.fixture
def in_place_of_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Let a program stand for the worker of Great Expectations that tests share."""
    from gramercy.pipeline.validation import worker_process

    monkeypatch.setattr(worker_process, "_idle", [])
    yield lambda code: monkeypatch.setattr(worker_process, "PROGRAM", (sys.executable, "-c", code))
    worker_process.end_idle()


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """The Prefect server of this process, which commands share that tests start."""
    from gramercy.cli.prefect_server import shared_server
    from tests.support.servers import copy_migrated_database

    copy_migrated_database(Path(os.environ["PREFECT_HOME"]))
    with shared_server():
        yield


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The URL of a bucket on a local S3 server."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        environ.setenv("AWS_ACCESS_KEY_ID", "access-key")
        environ.setenv("AWS_SECRET_ACCESS_KEY", "VERYSECRET")
        environ.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environ.setenv("AWS_EC2_METADATA_DISABLED", "true")
        import boto3

        boto3.client("s3").create_bucket(Bucket="archives")
        yield "s3://archives"
    server.stop()


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of a new archive, for every kind of archive."""
    if request.param == "local":
        return str(tmp_path / "elsewhere")
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}"
    return f"{request.getfixturevalue('s3')}/{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """A process that forks a child for every trial that may be killed."""
    server = ForkServer()
    yield server
    server.close()
