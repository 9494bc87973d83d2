"""Runs the project's own reading path in processes of their own, and measures their memory.

A server: imports and a small table once, then one fork a case. A fork begins with the memory in
use, so that its peak less where it began is what the case took; a process started by ``exec`` would
be charged with its parent's peak.
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

_MOST = 16 << 30  # bytes of address space: a bomb may not take the machine with it


def _now() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _outcome(request: Path, way: str) -> dict[str, Any]:
    from gramercy.application.accumulation import accumulate as accumulated
    from gramercy.application.public_parameters import normalised
    from gramercy.application.validation import validate
    from gramercy.schemas.errors import GramercyError
    from gramercy.tables.source import open_source
    from gramercy.tables.streaming import accumulate
    from tests.support.factories import read_plan, run_release, seal_step

    try:
        if way == "request":
            return {"release": run_release(request)}
        plan = read_plan(request)
        sampled = seal_step(validate)(plan.contract)["sample"] if way == "tables" else None
        source, how, lattice = plan.contract.source, normalised(plan.asked), plan.mechanism.lattice
        if way == "as a library would":
            pq.read_table(source)
        if way == "in place":
            sums = accumulate(open_source(source), plan.contract, how, lattice, in_place=True)
        else:
            sums = seal_step(accumulated)(plan).sums
    except GramercyError as error:
        return {"error": type(error).__name__, "said": str(error), "exit_code": error.exit_code}
    return {
        "rows": sums.rows,
        "malformed": sums.malformed,
        "filled": sums.repairs.filled.tolist(),
        "moment": (sums.gram[:9, :9] / lattice.divisor / max(1, sums.rows)).tolist(),
        "sample": sampled,
    }


def _measured(asked: dict[str, Any]) -> dict[str, Any]:
    os.environ["GRAMERCY_HOME"] = asked["home"]
    resource.setrlimit(resource.RLIMIT_AS, (_MOST, _MOST))
    signal.alarm(asked["seconds"])
    base, began = _now(), time.monotonic()
    try:
        found = _outcome(Path(asked["request"]), asked["way"])
    except BaseException as caught:  # no error of ours: what the test is to see
        found = {"error": type(caught).__name__, "said": str(caught), "exit_code": None}
    return found | {"seconds": time.monotonic() - began, "took": _now() - base}


def _serve() -> None:
    from tests.support.factories import run_release, write_request

    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRAMERCY_HOME"] = f"{folder}/home"
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
        died = {"error": f"killed by signal {os.WTERMSIG(status)}" if status else "nothing said"}
        print(answer or json.dumps(died), flush=True)


class MemoryClient:
    """Client of the server: one case at a time."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def __call__(self, request: Path, *, way: str = "tables", seconds: int = 60) -> dict[str, Any]:
        asked = {"request": str(request), "way": way, "seconds": seconds}
        asked |= {"home": str(request.parent / "home")}
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        found: dict[str, Any] = json.loads(self._server.stdout.readline())
        return found


@contextmanager
def memory_server() -> Iterator[MemoryClient]:
    """Run the server until the context ends."""
    words = [sys.executable, "-m", "tests.acceptance.hostile.memory_server"]
    root = Path(__file__).parents[3]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=root, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield MemoryClient(server)
        assert server.stdin is not None
        server.stdin.close()


if __name__ == "__main__":
    _serve()
