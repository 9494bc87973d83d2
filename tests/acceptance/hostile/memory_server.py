"""Reads tables and archives in separate processes, and measures their memory.

A server imports the project and reads something small, then forks for every case. The memory
of a case is the difference between the peak of its fork and the memory of the fork at its start. A
process started by ``exec`` would inherit its parent's peak.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

_ADDRESS_SPACE = 16 << 30  # bytes, so that a bomb cannot exhaust the machine


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _outcome(request: Path, mode: str) -> dict[str, Any]:
    from gramercy.pipeline.plan.calibration import row_normalisation
    from gramercy.pipeline.plan.checking import check_table
    from gramercy.pipeline.publish.private_table import accumulate as accumulated
    from gramercy.schemas.errors import GramercyError
    from gramercy.tables.formats.source import open_source
    from gramercy.tables.sums.streaming import accumulate
    from tests.acceptance.hostile.archive_visit import visit
    from tests.support.factories import as_flow_step, read_plan, run_release

    if mode == "archive":
        return visit(request)
    try:
        if mode == "request":
            return {"release": run_release(request)}
        plan = read_plan(request)
        if mode == "tables":
            as_flow_step(check_table)(plan.contract)
        source, normalisation, lattice = (
            plan.contract.source,
            row_normalisation(plan.spec),
            plan.mechanism.lattice,
        )
        if mode == "unbounded":
            pq.read_table(source)
        if mode == "in place":
            sums = accumulate(
                open_source(source), plan.contract, normalisation, lattice, in_order=True
            )
        else:
            sums = as_flow_step(accumulated)(plan).sums
    except GramercyError as error:
        return {
            "error": type(error).__name__,
            "code": error.code,
            "facts": error.facts,
            "text": str(error),
            "exit_code": error.exit_code,
        }
    return {
        "rows": sums.rows,
        "malformed": sums.malformed,
        "filled": sums.repairs.filled.tolist(),
        "moment": (sums.gram[:9, :9] / lattice.divisor / max(1, sums.rows)).tolist(),
    }


def _measured(job: dict[str, Any]) -> dict[str, Any]:
    os.environ["GRAMERCY_HOME"] = job["home"]
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    signal.alarm(job["seconds"])
    base, start, cpu = _peak_memory(), time.monotonic(), time.process_time()
    try:
        result = _outcome(Path(job["request"]), job["mode"])
    except BaseException as caught:  # an unexpected error, which the test reports
        result = {"error": type(caught).__name__, "text": str(caught), "exit_code": None}
    used = {"seconds": time.monotonic() - start, "cpu": time.process_time() - cpu}
    return result | used | {"memory": _peak_memory() - base}


def _serve(archive: str = "") -> None:
    from tests.support.factories import run_release, write_request

    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRAMERCY_HOME"] = f"{folder}/home"
        if archive:
            _outcome(Path(archive), "archive")
        else:
            _outcome(write_request(Path(folder)), "tables")
            run_release(write_request(Path(folder)))
    print("ready", flush=True)
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, json.dumps(_measured(json.loads(line))).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            answer = pipe.read().decode()
        _, status = os.waitpid(child, 0)
        died = {"error": f"killed by signal {os.WTERMSIG(status)}" if status else "no answer"}
        print(answer or json.dumps(died), flush=True)


class MemoryClient:
    """Client of the server: one case at a time."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def __call__(self, request: Path, *, mode: str = "tables", seconds: int = 60) -> dict[str, Any]:
        job = {"request": str(request), "mode": mode, "seconds": seconds}
        job |= {"home": str(request.parent / "home")}
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return answer


@contextmanager
def memory_server(archive: Path | None = None) -> Iterator[MemoryClient]:
    """Run the server until the context ends; first it visits the archive, or reads a table."""
    command = [sys.executable, "-m", "tests.acceptance.hostile.memory_server"]
    command += [str(archive)] if archive else []
    root = Path(__file__).parents[3]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield MemoryClient(server)
        assert server.stdin is not None
        server.stdin.close()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
