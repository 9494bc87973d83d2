"""One cell: time and memory of commands and of readers with an archive of some size."""

from __future__ import annotations

import atexit
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gramercy.pipeline.plan.planning import Plan

Run = Callable[[], object]

ROUNDS = 3
COMMANDS = ("list", "list --json", "budget", "budget --json", "history", "history --json")
# The memory that the system reports of a child includes that of its parent.
_PROGRAM = (
    "import sys; from gramercy.cli.main import main; "
    "from benchmarks.load.cells import report_peak; report_peak(); main()"
)
OPEN, PUBLISH, LISTING = "open a release", "catalogue of a publish", "listing of all bundles"
HTTP_LIST, HTTP_OPEN = "list over HTTP", "open a release over HTTP"


@dataclass(frozen=True)
class Cell:
    """The size of an archive and its ledger."""

    datasets: int
    releases: int


@dataclass(frozen=True)
class Measured:
    """Seconds and processor seconds of every round, and the peak of the memory in megabytes."""

    seconds: list[float]
    processor: list[float]
    peak: int


@dataclass(frozen=True)
class Result:
    """The measurements of one cell, by what was measured.

    Parameters
    ----------
    cell
        The archive.
    seconds
        Of the cell in total, with building the archive.
    measured
        By what was measured.
    cores
        Processors of the machine.
    load
        Processes that ran or waited for a processor, on average over five minutes, before and after
        the cell; this benchmark adds one.
    """

    cell: Cell
    seconds: float
    measured: dict[str, Measured]
    cores: int
    load: tuple[float, float]


def plan(quick: bool) -> Iterator[Cell]:
    """Yield all cells; about ten minutes in total."""
    sizes = [(10, 10), (10, 100)] if quick else [(10, 10), (10, 100), (100, 1_000), (100, 10_000)]
    for datasets, releases in sizes:
        yield Cell(datasets, releases)


def measure(cell: Cell) -> Result:
    """Build the archive and its ledger, and measure everything."""
    began, before = time.perf_counter(), os.getloadavg()[1]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRAMERCY_HOME"] = str(Path(folder) / "home")
        measured = _measure(cell, Path(folder))
    seconds, load = time.perf_counter() - began, (before, os.getloadavg()[1])
    cores = os.cpu_count() or 1
    return Result(cell, round(seconds, 1), measured, cores, (round(load[0], 1), round(load[1], 1)))


def _measure(cell: Cell, folder: Path) -> dict[str, Measured]:
    from benchmarks.load import synthetic

    plan, release = synthetic.original(folder)
    names = synthetic.names(cell.datasets, cell.releases)
    synthetic.grow(plan, release, names)
    return measure_home(plan, release, names[-1])


def measure_home(plan: Plan, release: Path, last: tuple[str, str, int]) -> dict[str, Measured]:
    """Measure everything with the home in use, which `synthetic.grow` has filled.

    Parameters
    ----------
    plan, release
        Of the release that was copied.
    last
        Data set, version and number of the last copy.
    """
    import gramercy
    from benchmarks.load import synthetic
    from gramercy.pipeline.catalogue.catalogue_pages import read_entries, write_listing, write_site
    from gramercy.pipeline.context import Context

    context, (dataset, _, number) = Context.default(), last

    def add(k: int) -> tuple[Run, Run]:
        """Add a release, which is not measured; and write its pages, which is."""
        new = (dataset, f"v{number + 1 + k}", number + 1 + k)
        return (
            lambda: synthetic.grow(plan, release, [new]),
            lambda: write_site(Context.default(), (dataset, f"{new[1]}-r1")),
        )

    def open_release(address: str | Path = context.home.archive) -> object:
        return gramercy.open(address)[f"{dataset}/v{number}-r1"]

    def list_all() -> None:
        update = read_entries(context.archive, context.ledger)
        write_listing(context.archive, update, update.before.pages)

    listing = _here([(_nothing, list_all)])
    with _served(context.home.archive) as url:
        over_http = {
            HTTP_LIST: _command(["list", "--archive", url]),
            HTTP_OPEN: _here([(_nothing, lambda: open_release(url))] * (ROUNDS + 1)),
        }
    return {
        **over_http,
        **{each: _command(each.split()) for each in COMMANDS},
        OPEN: _here([(_nothing, open_release)] * (ROUNDS + 1)),
        LISTING: listing,
        PUBLISH: _here([add(k) for k in range(ROUNDS + 1)]),
    }


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve a folder as static files from another process; yields its address."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(
        [*command, "--directory", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().split(' port ')[1].split()[0]}"
        finally:
            server.terminate()


def _nothing() -> None:
    """Prepare nothing."""


def _here(rounds: list[tuple[Run, Run]]) -> Measured:
    """Measure the second function of each pair in this process; of several, the first warms up."""
    seconds, processor = [], []
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    for prepare, run in rounds:
        prepare()
        began, used = time.perf_counter(), time.process_time()
        run()
        seconds.append(round(time.perf_counter() - began, 3))
        processor.append(round(time.process_time() - used, 3))
    return Measured(seconds[1:] or seconds, processor[1:] or processor, _peak())


def _peak() -> int:
    """The peak of this process's resident memory, in megabytes."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(round(int(line.split()[1]) / 1024) for line in status if line.startswith("VmHWM"))


def report_peak() -> None:
    """Print the peak of this process's memory to standard error, when it ends."""
    atexit.register(lambda: print(_peak(), file=sys.stderr))


def _command(words: list[str]) -> Measured:
    """Measure a command of Gramercy, including the start of Python."""
    seconds, processor, peaks = [], [], []
    for _ in range(ROUNDS + 1):
        began, before = time.perf_counter(), os.times()
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )
        used = os.times()
        seconds.append(round(time.perf_counter() - began, 3))
        ended, started = (each.children_user + each.children_system for each in (used, before))
        processor.append(round(ended - started, 3))
        peaks.append(int(done.stderr.split()[-1]))
    return Measured(seconds[1:], processor[1:], max(peaks))
