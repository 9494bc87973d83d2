"""The state machine: the rules by which steward, analysts, auditors, crashes and clock act."""

from __future__ import annotations

import errno

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from gramercy.mechanisms.mechanism import RowWise
from gramercy.schemas.errors import GramercyError
from tests.support.clocks import ZONES
from tests.support.factories import as_flow_step
from tests.support.faults.kill_points import Point
from tests.support.whole import commands, inspection
from tests.support.whole.commands import Command, Outcome, refused
from tests.support.whole.damage import DAMAGES
from tests.support.whole.twins import Pending, TwinWorlds
from tests.support.whole.world import CONTRACTS, REQUESTS, dataset_of

_REQUESTS = st.integers(0, len(REQUESTS) - 1)
_HANDLES = st.integers(0, 1)
_ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)


class WholeMachine(TwinWorlds):
    """Any history of two worlds."""

    @initialize(damage=st.sampled_from([None, *DAMAGES]), first=st.none() | _REQUESTS)
    def start(self, damage: str | None, first: int | None) -> None:
        self.damage = damage
        if first is not None:
            self.publish_request(first, 0)

    @rule(request=_REQUESTS, handle=_HANDLES, listed=st.booleans())
    def publish(self, request: int, handle: int, listed: bool) -> None:
        self.publish_request(request, handle, listed=listed)

    @precondition(lambda self: self.models_are_registered())
    @rule(data=st.data(), handle=_HANDLES, again=st.booleans())
    def repeat(self, data: st.DataObject, handle: int, again: bool) -> None:
        """A request that was charged before, perhaps at a new charge."""
        requests = {each.request for m in self.models.values() for each in m.attempts.values()}
        self.publish_request(data.draw(st.sampled_from(sorted(requests))), handle, again=again)

    @rule(request=_REQUESTS, handle=_HANDLES, again=st.booleans())
    def read_table(self, request: int, handle: int, again: bool) -> None:
        """The first half of a publication; other commands come in between."""
        plan, model = self.worlds[0].plan(request), self.models[dataset_of(request)]
        new_charge = model.of_request(request) if again else None
        trial = model.copy()
        expected = trial.publish(request, plan, new_charge)
        pending = Pending(request, new_charge, [], self.contexts[handle], [])
        outcomes = []
        for world, context in zip(self._each(), pending.contexts, strict=True):
            plan = world.plan(request).with_new_charge(new_charge)
            try:
                replayed = as_flow_step(commands.replay)(context, plan)
                if replayed is None:
                    pending.data.append(as_flow_step(commands.accumulate)(plan))
                    pending.plans.append(plan)
                outcomes.append(Outcome("done", replayed or "to be published"))
            except GramercyError as error:
                outcomes.append(refused(error))
        outcome = self._common(outcomes)
        if expected.is_new:
            assert outcome == Outcome("done", "to be published")
            self.pending.append(pending)
            trial.attempts.popitem()
            trial.registered = model.registered
        else:
            assert expected.agrees(outcome), (expected, outcome)
        self.models[dataset_of(request)] = trial

    @precondition(lambda self: self.pending)
    @rule(which=st.integers(0, 9))
    def publish_what_was_read(self, which: int) -> None:
        pending = self.pending.pop(which % len(self.pending))
        model = self.models[dataset_of(pending.request)]
        readable, model.unreadable = model.unreadable, False
        plan = pending.plans[0]
        reads_again = plan.draws_counts or isinstance(plan.mechanism, RowWise)
        changed = pending.changed and reads_again
        expected = model.publish(pending.request, plan, pending.new_charge, changed=changed)
        model.unreadable = readable
        outcomes = []
        for k, _ in enumerate(self._each()):
            plan, data = pending.plans[k], pending.data[k]
            try:
                made = as_flow_step(commands.publish)(pending.contexts[k], plan, data)
                outcomes.append(Outcome("done", made))
            except GramercyError as error:
                outcomes.append(refused(error))
        outcome = self._common(outcomes)
        assert expected.agrees(outcome), (expected, outcome)

    @rule(
        dataset=st.sampled_from(sorted(CONTRACTS)),
        how=st.sampled_from(["new", "new", "garbled", "missing"]),
    )
    def replace_tables(self, dataset: str, how: str) -> None:
        self.seeds += 1
        for world in self.worlds:
            world.replace_tables(dataset, how, self.seeds)
        self.models[dataset].unreadable = how != "new"
        for each in self.pending:
            each.changed |= dataset_of(each.request) == dataset

    @rule(
        dataset=st.sampled_from(sorted(CONTRACTS)),
        epsilon=st.sampled_from([0.5, 1.5, 3.0, 4.0]),
        lower=st.booleans(),
        handle=_HANDLES,
    )
    def change_budget(self, dataset: str, epsilon: float, lower: bool, handle: int) -> None:
        model = self.models[dataset]
        name = "lower" if lower else "raise"
        outcome = self._answers(Command(name, dataset=dataset, epsilon=epsilon), handle)
        changes = epsilon < model.budget.epsilon if lower else epsilon > model.budget.epsilon
        assert outcome.is_done == (model.registered and changes)
        if outcome.is_done:
            model.budget = model.budget.model_copy(update={"epsilon": epsilon})

    @precondition(lambda self: self._releases())
    @rule(data=st.data(), handle=_HANDLES)
    def withdraw(self, data: st.DataObject, handle: int) -> None:
        dataset, release = data.draw(st.sampled_from(self._releases()))
        self.derive_from(Command("withdraw", dataset=dataset, release=release), handle)

    @precondition(lambda self: self._releases())
    @rule(data=st.data(), handle=_HANDLES, name=st.sampled_from(["estimate", "report"]))
    def derive(self, data: st.DataObject, handle: int, name: str) -> None:
        dataset, release = data.draw(st.sampled_from(self._releases()))
        self.derive_from(Command(name, dataset=dataset, release=release), handle)

    @rule(data=st.data(), request=_REQUESTS, again=st.booleans())
    def interrupt_publication(self, data: st.DataObject, request: int, again: bool) -> None:
        """It is killed, or the disk or the database fails."""
        new_charge = self.models[dataset_of(request)].of_request(request) if again else None
        self.interrupt(Command("publish", request, new_charge), *self._fault(data, "publish"))

    @precondition(lambda self: self._releases())
    @rule(data=st.data(), name=st.sampled_from(["withdraw", "estimate", "report"]))
    def interrupt_command(self, data: st.DataObject, name: str) -> None:
        dataset, release = data.draw(st.sampled_from(self._releases()))
        self.interrupt(Command(name, dataset=dataset, release=release), *self._fault(data, name))

    @rule(days=st.integers(-40_000, 40_000), zone=st.sampled_from(ZONES), handle=_HANDLES)
    def time_passes(self, days: int, zone: str, handle: int) -> None:
        """The clock moves, and another process opens the stores."""
        self.clock.set(days)
        self.clock.zone(zone)
        self.contexts[handle] = self._new_contexts()

    @precondition(lambda self: self.models_are_registered())
    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        """An auditor and an analyst read everything."""
        name = data.draw(st.sampled_from(self._releases())) if self._releases() else None
        for world in self._each():
            inspection.audit(world, self.models)
            if name is not None:
                inspection.read_as_analyst(world, name)

    def _fault(self, data: st.DataObject, name: str) -> tuple[Point, int]:
        """A point of a command, and the error that is raised there, or 0 for a kill."""
        point = data.draw(st.sampled_from(self.points[name]))
        return point, data.draw(st.sampled_from([0, 0, *_ERRORS]))

    @invariant()
    def _agrees(self) -> None:
        self.worlds_agree_with_the_model()
