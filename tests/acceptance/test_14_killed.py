"""Killed at any step: no charge is lost, and no noise is drawn without a charge or twice.

Every trial is a separate process with its own home, killed at a certain point or at a random
moment. Another process then recovers, and answers the same request.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.databases import KINDS
from tests.support.factories import FULL, at_scale
from tests.support.faults.bench import VARIANTS, Bench
from tests.support.faults.forkserver import ForkServer
from tests.support.faults.kill_points import Point, is_fine

REPEATS = at_scale(1, 20)
RANDOM = at_scale(4, 400)


def steps(passed: list[Point], kind: str) -> list[Point]:
    """Before and after every call.

    In the reduced run, adjacent points without a call between them count once, and a database
    server skips the points of files.
    """
    called = [point for point in passed if not is_fine(point)]
    if FULL:
        return called
    pairs = itertools.pairwise([("", 0), *passed])
    same = {p for q, p in pairs if p[0].startswith("before") and q[0].startswith("after")}
    files = () if kind == "sqlite" else ("matrix", "bits", "write a", "remove a")
    return [p for p in called if p not in same and not p[0].partition(" ")[2].startswith(files)]


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, fork_server: ForkServer, tmp_path: Path) -> Bench:
    return Bench(fork_server, tmp_path, request.param)


def repeated(bench: Bench) -> Iterator[Bench]:
    """Repeat every trial with every variant."""
    for turn in range(REPEATS):
        yield Bench(
            bench.fork_server, bench.folder, bench.kind, turn % len(VARIANTS), bench.archive
        )


def test_killed_at_every_step(bench: Bench) -> None:
    found: dict[int, list[Point]] = {}
    for each in repeated(bench):
        points = found.setdefault(each.variant, steps(each.traced()[0], each.kind))
        assert {"after charge", "after mark 'drawn'", "after seal", "after rename"} <= {
            name for name, _ in points
        }
        # Reduced, the databases share the points.
        for point in points[KINDS.index(each.kind) :: at_scale(2, 1)]:
            each.trial({"die_at": point})


def test_killed_at_database_statements_and_single_files(bench: Bench) -> None:
    """All of them in the full run, otherwise a few."""
    fine = [point for point in bench.traced()[0] if is_fine(point)]
    for point in fine[5 :: at_scale(len(fine) // 3, 1)]:
        bench.trial({"die_at": point})


def test_killed_at_random_moments(bench: Bench) -> None:
    """Half of them at some moment of a database commit."""
    passed, seconds = bench.traced()
    commits = [point for point in passed if point[0] == "before commit;"]
    rng = np.random.default_rng(14)
    for turn in range(RANDOM):
        if turn % 2:
            bench.trial({"killed_after": rng.uniform(0, seconds)})
        else:
            point = commits[rng.integers(len(commits))]
            bench.trial({"die_at": point, "delay": rng.uniform(1e-5, 1e-2)})


FIRST = [("after draw", 1), ("after mark 'sealed'", 1), ("after keep", 1)]


@pytest.mark.parametrize("first", FIRST[: at_scale(2, 3)])
def test_killed_during_recovery(bench: Bench, first: Point) -> None:
    """The process that recovers may be killed, too."""
    passed, _ = bench.traced(first)
    chosen = steps(passed, bench.kind)
    assert chosen
    for point in passed if FULL else [p for p in chosen if "mark" in p[0] or "rename" in p[0]]:
        bench.trial({"die_at": first}, {"die_at": point})


def test_killed_at_every_step_of_a_remote_archive(
    fork_server: ForkServer, tmp_path: Path, s3: str
) -> None:
    bench = Bench(fork_server, tmp_path, "sqlite", archive=s3)
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
