"""Two worlds with neighbouring tables, the model of both, and the steps of their histories."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import RuleBasedStateMachine

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish import attachments
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import GramercyError
from tests.support.clocks import Clock
from tests.support.faults.forkserver import ForkServer
from tests.support.faults.kill_points import Point
from tests.support.whole import commands, inspection
from tests.support.whole.commands import Command, Outcome
from tests.support.whole.damage import DAMAGES
from tests.support.whole.model import PUBLIC, DatasetModel, Expected
from tests.support.whole.monitor import DrawMonitor
from tests.support.whole.planted import FAULTS
from tests.support.whole.world import CONTRACTS, REQUESTS, World, dataset_of

Points = dict[str, list[Point]]


@dataclasses.dataclass
class Pending:
    """A request whose table was read, and that is about to be published."""

    request: int
    new_charge: str | None
    plans: list[Plan]
    contexts: list[Context]
    data: list[Any]
    changed: bool = False


class TwinWorlds(RuleBasedStateMachine):
    """Carries out commands in two worlds, and compares both with the model."""

    kind = "sqlite"
    fork_server: ForkServer
    points: Points
    planted = ""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(attachments, "report_page", commands.plain_page)
        self.monitor = DrawMonitor()
        self.monitor.install(self.patch)
        self.clock = Clock(self.patch)
        if self.planted:
            FAULTS[self.planted](self.patch)
        self.folder = Path(tempfile.mkdtemp(prefix="whole-"))
        self.worlds = [self._world("one", neighbour=False), self._world("two", neighbour=True)]
        self.models = {
            name: DatasetModel(Budget.model_validate(facts["budget"]))
            for name, facts in CONTRACTS.items()
        }
        self.ledgers = [each.context().ledger for each in self._each()]
        self.contexts = [self._new_contexts(), self._new_contexts()]
        self.digests: list[dict[tuple[str, str], str]] = [{}, {}]
        self.anchors = [[each.head()] for each in self.ledgers]
        self.pending: list[Pending] = []
        self.texts: list[list[str]] = [[], []]
        self.seeds = 0
        self.interrupted: list[Command] = []
        self.damage: str | None = None
        self.agreed = True  # a step that fails leaves this False

    def _world(self, name: str, *, neighbour: bool) -> World:
        folder = self.folder / name
        folder.mkdir()
        return World(folder, self.kind, neighbour)

    def _each(self) -> Any:
        """Each world, while it is the active one."""
        for world in self.worlds:
            with world.active():
                yield world

    def _new_contexts(self) -> list[Context]:
        return [world.context() for world in self._each()]

    def worlds_agree_with_the_model(self) -> None:
        self.agreed = False
        assert self.monitor.violations == []
        journals = []
        for k, world in enumerate(self._each()):
            ledger = self.ledgers[k]
            inspection.compare_ledger(ledger, self.models)
            inspection.compare_archive(world, self.models, self.digests[k])
            head = ledger.head()
            assert head.seq >= self.anchors[k][-1].seq
            self.anchors[k].append(head)
            for anchor in self.anchors[k]:
                ledger.verify_anchor(anchor)
            journals.append(inspection.journal(ledger))
        assert journals[0] == journals[1]
        self.agreed = True

    def models_are_registered(self) -> bool:
        return any(model.registered for model in self.models.values())

    def _releases(self) -> list[tuple[str, str]]:
        return [
            (name, release)
            for name, model in self.models.items()
            for release, state in model.states().items()
            if state in PUBLIC
        ]

    def _common(self, outcomes: list[Outcome]) -> Outcome:
        """The answer of both worlds."""
        self.agreed = False
        neutral = [
            Outcome(*map(world.neutral, outcome))
            for world, outcome in zip(self.worlds, outcomes, strict=True)
        ]
        assert neutral[0] == neutral[1], neutral
        for texts, outcome in zip(self.texts, outcomes, strict=True):
            texts.append(repr(outcome))
        return neutral[0]

    def _answers(self, command: Command, handle: int) -> Outcome:
        contexts = self.contexts[handle]
        return self._common(
            [
                commands.answer(context, world.plan, command)
                for world, context in zip(self._each(), contexts, strict=True)
            ]
        )

    def publish_request(
        self, request: int, handle: int = 0, *, again: bool = False, listed: bool = True
    ) -> None:
        model = self.models[dataset_of(request)]
        new_charge = model.of_request(request) if again else None
        expected = model.publish(request, self.worlds[0].plan(request), new_charge)
        outcome = self._answers(Command("publish", request, new_charge, listed), handle)
        assert expected.agrees(outcome), (expected, outcome)
        if outcome.is_done and listed:
            self._compare_listings(dataset_of(request))

    def derive_from(self, command: Command, handle: int = 0) -> None:
        """Withdraw a release, estimate from it, or report on it."""
        attempt = self.models[command.dataset].attempts[command.release]
        is_marginals = "marginals" in str(REQUESTS[attempt.request])
        outcome = self._answers(command, handle)
        assert outcome.is_done == (command.name != "estimate" or not is_marginals), outcome
        if command.name == "withdraw":
            attempt.state = "withdrawn"
        if outcome.is_done:
            self._compare_listings(command.dataset)

    def _compare_listings(self, dataset: str) -> None:
        for world in self._each():
            inspection.compare_listing(world, dataset)

    def interrupt(self, command: Command, point: Point, reason: int = 0) -> None:
        """Kill a command at a point, or have the disk or the database fail there."""
        self.agreed = False
        dataset = command.dataset or dataset_of(command.request)
        before, after = self.models[dataset], self.models[dataset].copy()
        expected: Expected | None = None
        if command.name == "publish":
            plan = self.worlds[0].plan(command.request)
            expected = after.publish(command.request, plan, command.new_charge)
        elif command.name == "withdraw":
            after.attempts[command.release].state = "withdrawn"
        fault: dict[str, Any] = (
            {"fail_at": point, "reason": reason} if reason else {"die_at": point}
        )
        observed, answers = [], []
        for k, world in enumerate(self._each()):
            done = self.fork_server.fork(
                "command",
                world.environ,
                request=str(world.request(command.request)),
                command=dataclasses.asdict(command),
                planted=self.planted,
                **fault,
            )
            charges = {}
            if dataset in self.ledgers[k].datasets():
                charges = {c.release: c.state for c in self.ledgers[k].charges(dataset)}
            observed.append(charges)
            answers.append(Outcome(*(done.message("answered") or ["killed", ""])))
            self.texts[k].append(repr(done.messages))
            new = [name for name in charges if name not in before.attempts]
            # Acknowledged charges are durable, and noise is drawn after its charge only.
            assert new or not done.message("charged")
            if done.message("drawing"):
                assert [charges[name] for name in new] not in ([], ["reserved"])
                self.monitor.note_draw((str(world.home.root), dataset, *new))
        assert observed[0] == observed[1]
        answer, states = answers[0], observed[0]
        assert answers[1].kind == answer.kind, answers
        if answer.kind != "killed" and (answer.is_done or not reason):
            assert expected is None or expected.agrees(answer), (expected, answer)
            assert states == after.states()
        self._adopt(dataset, before, after, states, failed=bool(reason))
        self.interrupted.append(command)

    def _adopt(
        self,
        dataset: str,
        before: DatasetModel,
        after: DatasetModel,
        states: dict[str, str],
        *,
        failed: bool,
    ) -> None:
        """Take over the states in which an interrupted command has left the charges."""
        assert before.attempts.keys() <= states.keys() <= after.attempts.keys()
        for name, state in states.items():
            end = after.attempts[name].state
            if name in before.attempts:
                assert state in {before.attempts[name].state, end}
            else:
                possible = {"reserved", "drawn", "sealed", "published"}
                assert state in possible | ({"spent"} if failed else set())
            after.attempts[name].state = state
        for name in after.attempts.keys() - states.keys():
            del after.attempts[name]
        after.registered = before.registered or bool(states)
        self.models[dataset] = after

    # The end

    def teardown(self) -> None:
        try:
            if self.agreed:
                self._end()
        finally:
            for context in [*self.contexts[0], *self.contexts[1]]:
                context.ledger._engine.dispose()
            for ledger in self.ledgers:
                ledger._engine.dispose()
            self.patch.undo()
            time.tzset()
            shutil.rmtree(self.folder)

    def _end(self) -> None:
        """Repeat what was interrupted; nothing of it is left. Then an attacker does damage."""
        self.contexts[0] = self._new_contexts()
        for model in self.models.values():
            for request in sorted({each.request for each in model.attempts.values()}):
                self.publish_request(request, 0)
        for command in self.interrupted:
            if command.name != "publish":
                self.derive_from(command, 0)
        self.worlds_agree_with_the_model()
        for k, world in enumerate(self._each()):
            ledger = self.ledgers[k]
            assert ledger.find_inconsistencies(self.anchors[k]) == []
            assert inspection.search_private_values(world, ledger, self.texts[k]) == []
            if self.models_are_registered():
                inspection.audit(world, self.models)
            if self._releases():
                assert inspection.leftovers(world) == []
                assert inspection.private_keys(world) == ["steward.pem"]
        if self.damage and (releases := self._releases()):
            self._do_damage(self.damage, releases[-1])

    def _do_damage(self, damage: str, name: tuple[str, str]) -> None:
        world = self.worlds[0]
        with world.active():
            DAMAGES[damage](world, name)
            found: list[Any] = []
            try:
                found = make_audit(world.context()).discrepancies
            except GramercyError as error:
                found = [error]
            assert found, f"{damage} of {name} was not found"
