"""Ledger and archive against a simple model, for any order of commands, crashes and clocks.

Every command is carried out in two worlds whose tables are neighbours: nothing but noise may
differ. Some commands are killed or fail at a point, in processes of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from gramercy.schemas.errors import GramercyError
from tests.support.databases import KINDS
from tests.support.factories import FULL, at_scale
from tests.support.faults.forkserver import ForkServer
from tests.support.faults.kill_points import Point, is_fine
from tests.support.whole import inspection
from tests.support.whole.commands import Command
from tests.support.whole.machine import WholeMachine
from tests.support.whole.planted import FAULTS
from tests.support.whole.twins import Points
from tests.support.whole.world import World

History = Callable[[WholeMachine], None]

DERIVING = ("estimate", "report", "withdraw")
# In the reduced run a few steps of the product; those that do not exist are never reached.
FEW: list[Point] = [
    (f"{when} {call}", 1)
    for call in ("charge", "mark 'drawn'", "draw", "seal", "mark 'sealed'", "rename", "record")
    for when in ("before", "after")
]


def passed_points(fork_server: ForkServer, folder: Path, kind: str) -> Points:
    """The points that the commands pass; those after the charge are drawn more often."""
    folder.mkdir()
    world, points = World(folder, kind), Points()
    derived = [Command(name, dataset="one", release="v1-r1") for name in DERIVING]
    for command in (Command("publish"), *derived):
        done = fork_server.fork(
            "command",
            world.environ,
            request=str(world.request(0)),
            command=dataclasses.asdict(command),
            trace=True,
        )
        assert (done.message("answered") or [""])[0] == "done"
        passed = [(name, count) for name, count in done.message("passed") or []]
        charged = passed.index(("before charge", 1)) if command.name == "publish" else 0
        coarse = [each for each in passed[charged:] if not is_fine(each)]
        points[command.name] = passed + passed[charged:] + 4 * coarse
    return points


def machine_class(database: str, of_server: ForkServer, fault: str = "") -> type[WholeMachine]:
    """The model on a database, perhaps with a planted fault."""

    class Machine(WholeMachine):
        kind = database
        fork_server = of_server
        planted = fault

    return Machine


@pytest.mark.parametrize("database", KINDS)
def test_any_history_agrees_with_the_model(
    database: str, fork_server: ForkServer, tmp_path: Path
) -> None:
    machine, few = machine_class(database, fork_server), dict.fromkeys(("publish", *DERIVING), FEW)
    machine.points = passed_points(fork_server, tmp_path / "traced", database) if FULL else few
    sqlite = database == "sqlite"
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=at_scale(3, 35) if sqlite else at_scale(1, 12),
            stateful_step_count=at_scale(10, 30),
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )


def publishes(*requests: int) -> History:
    def history(machine: WholeMachine) -> None:
        for request in requests:
            machine.publish_request(request)
            machine.worlds_agree_with_the_model()

    return history


def killed(when: str) -> History:
    """Killed when it publishes, then repeated at no new charge."""

    def history(machine: WholeMachine) -> None:
        machine.interrupt(Command("publish"), (when, 1))
        machine.worlds_agree_with_the_model()
        publishes(0, 1)(machine)

    return history


def raised(machine: WholeMachine) -> None:
    machine.publish_request(0)
    machine.change_budget("one", 3.0, lower=False, handle=0)
    machine.worlds_agree_with_the_model()


def replayed(machine: WholeMachine) -> None:
    machine.publish_request(0)
    machine.replace_tables("one", "missing")
    machine.publish_request(0)


def withdrawn(machine: WholeMachine) -> None:
    machine.publish_request(0)
    machine.derive_from(Command("withdraw", dataset="one", release="v1-r1"))


def with_other_tables(machine: WholeMachine) -> None:
    for request in (0, 1, 5, 7):
        machine.replace_tables("one", "new")
        machine.replace_tables("two", "new")
        machine.publish_request(request)


HISTORIES: dict[str, History] = {
    "anchors_are_not_written": publishes(0, 1),
    "budget_is_not_checked": publishes(0, 1, 2, 3, 4),
    "budget_is_the_registered_one": raised,
    "charge_is_too_small": publishes(0),
    "leftovers_are_kept": killed("before seal"),
    "noise_is_drawn_again": killed("after mark 'drawn'"),
    "noise_is_drawn_before_the_mark": publishes(0),
    "periods_are_added_up": publishes(5, 7),
    "publication_is_not_recorded": publishes(0),
    "published_before_it_is_sealed": killed("after rename"),
    "record_quotes_the_table": publishes(0),
    "refusal_depends_on_the_table": with_other_tables,
    "replay_reads_the_table": replayed,
    "sealed_releases_are_not_finished": killed("after mark 'sealed'"),
    "withdrawn_release_is_listed_as_valid": withdrawn,
}
CHEAP = ("charge_is_too_small", "noise_is_drawn_again", "replay_reads_the_table")


def play(machine: WholeMachine, history: History) -> None:
    try:
        history(machine)
    finally:
        machine.teardown()


@pytest.mark.parametrize("fault", sorted(FAULTS) if FULL else CHEAP)
def test_model_finds_planted_faults(fault: str, fork_server: ForkServer) -> None:
    history = HISTORIES[fault]
    if FULL:  # it is the fault that is found
        play(machine_class("sqlite", fork_server)(), history)
    with pytest.raises((AssertionError, GramercyError)):
        play(machine_class("sqlite", fork_server, fault)(), history)


def test_a_listing_that_was_not_written_is_found(fork_server: ForkServer) -> None:
    def history(machine: WholeMachine) -> None:
        machine.publish_request(0, listed=False)
        for world in machine._each():
            inspection.audit(world, machine.models)

    play(machine_class("sqlite", fork_server)(), history)
