"""A process killed at any step loses no charge, and never draws noise twice or uncharged.

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
from tests.support.faults.forkserver import ForkServer
from tests.support.faults.kill_points import Point, is_fine
from tests.support.faults.trials import SERIES, STAGED, VARIANTS, Trials, Variant

REPEATS = at_scale(1, 20)
RANDOM = at_scale(4, 400)


def steps(passed: list[Point], kind: str) -> list[Point]:
    """The points before and after every call.

    The reduced run keeps one of two adjacent points without a call in between, and skips the points
    of files if the ledger is on a database server.
    """
    called = [point for point in passed if not is_fine(point)]
    if FULL:
        return called
    pairs = itertools.pairwise([("", 0), *passed])
    redundant = {p for q, p in pairs if p[0].startswith("before") and q[0].startswith("after")}
    skipped = () if kind == "sqlite" else ("matrix", "bits", "write a", "remove a")
    called = [point for point in called if point not in redundant]
    return [point for point in called if not point[0].partition(" ")[2].startswith(skipped)]


@pytest.fixture(params=KINDS)
def trials(request: pytest.FixtureRequest, fork_server: ForkServer, tmp_path: Path) -> Trials:
    return Trials(fork_server, tmp_path, request.param)


def repeated(trials: Trials) -> Iterator[Trials]:
    """Repeat every trial with every variant; the reduced run has the first of them."""
    for turn in range(REPEATS):
        yield Trials(
            trials.fork_server,
            trials.folder,
            trials.kind,
            VARIANTS[turn % len(VARIANTS)],
            trials.archive,
        )


def test_killed_between_the_draws_of_stages(fork_server: ForkServer, tmp_path: Path) -> None:
    """Of histograms, a pilot and matrices in its metric: what was drawn is never drawn again."""
    trials = Trials(fork_server, tmp_path, "sqlite", STAGED)
    draws = [point for point in trials.trace()[0] if point[0] == "after draw"]
    assert len(draws) == 3  # of the pilot, the matrix, and what is lost
    for point in draws:
        trials.run({"die_at": point})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", SERIES, ids=lambda variant: variant.name)
def test_killed_at_every_point_of_a_step_of_a_series(
    fork_server: ForkServer, tmp_path: Path, kind: str, variant: Variant
) -> None:
    """A first step, a later one that is not charged, and a redraw: none is drawn or charged twice.

    In the reduced run, half of the points between the charge and the publication, other ones on
    each database.
    """
    trials = Trials(fork_server, tmp_path, kind, variant)
    points = steps(trials.trace()[0], kind)
    names = [name for name, _ in points]
    first = 0 if FULL else names.index("after charge") - 1
    for point in points[first + 2 * KINDS.index(kind) :: at_scale(4, 1)]:
        trials.run({"die_at": point})


def test_killed_at_every_step(trials: Trials) -> None:
    by_variant: dict[str, list[Point]] = {}
    for repetition in repeated(trials):
        points = by_variant.setdefault(
            repetition.variant.name, steps(repetition.trace()[0], repetition.kind)
        )
        assert {"after charge", "after mark 'drawn'", "after seal", "after rename"} <= {
            name for name, _ in points
        }
        # In the reduced run each database takes half of the points.
        for point in points[KINDS.index(repetition.kind) :: at_scale(2, 1)]:
            repetition.run({"die_at": point})


def test_killed_at_database_statements_and_single_files(trials: Trials) -> None:
    """All of them in the full run, a few in the reduced run."""
    fine = [point for point in trials.trace()[0] if is_fine(point)]
    for point in fine[5 :: at_scale(len(fine) // 3, 1)]:
        trials.run({"die_at": point})


def test_killed_at_random_moments(trials: Trials) -> None:
    """Half of the processes are killed during a database commit."""
    passed, seconds = trials.trace()
    commits = [point for point in passed if point[0] == "before commit;"]
    rng = np.random.default_rng(14)
    for turn in range(RANDOM):
        if turn % 2:
            trials.run({"killed_after": rng.uniform(0, seconds)})
        else:
            point = commits[rng.integers(len(commits))]
            trials.run({"die_at": point, "delay": rng.uniform(1e-5, 1e-2)})


FIRST = [("after draw", 1), ("after mark 'sealed'", 1), ("after preserve_sealed", 1)]


@pytest.mark.parametrize("first", FIRST[: at_scale(2, 3)])
def test_killed_during_recovery(trials: Trials, first: Point) -> None:
    """The process that recovers is killed as well."""
    passed, _ = trials.trace(first)
    chosen = steps(passed, trials.kind)
    assert chosen
    for point in passed if FULL else [p for p in chosen if "mark" in p[0] or "rename" in p[0]]:
        trials.run({"die_at": first}, {"die_at": point})


def test_killed_at_every_step_of_a_remote_archive(
    fork_server: ForkServer, tmp_path: Path, s3: str
) -> None:
    trials = Trials(fork_server, tmp_path, "sqlite", archive=s3)
    passed, _ = trials.trace()
    remote = [p for p in passed if p[0].partition(" ")[2].startswith(("create", "upload", "write"))]
    uploads = [p for p in remote if p[0].startswith("after upload")]
    chosen = [
        ("after create SHA256SUMS", 1),  # the release's location is reserved
        uploads[len(uploads) // 2],
        ("after create SHA256SUMS.sig", 1),
    ]
    for point in remote * REPEATS if FULL else chosen:
        trials.run({"die_at": point})
