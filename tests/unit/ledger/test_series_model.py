"""The charges of a series against a simple model, for any order of operations."""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gramercy.common.prefix_sums import PrefixSums
from gramercy.ledger import Ledger
from gramercy.schemas.errors import RequestError, SpentFailure
from gramercy.schemas.ledger_history import ChargeState
from tests.support.databases import ledger_location
from tests.support.factories import at_scale
from tests.support.ledgers import contract
from tests.support.series import WINDOW, YEARLY, charge_step, publish, spend, step_of

pytestmark = pytest.mark.slow

STEPS = 4
TERMS = contract(**YEARLY | {"budget": {"epsilon": 90.0, "delta": 1e-5, "per": "year"}})


class SeriesMachine(RuleBasedStateMachine):
    """Lists of releases by step, and the guarantee of all draws computed from scratch."""

    kind = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger(ledger_location(self.kind, self.folder))
        self.steps: dict[int, list[str]] = {step: [] for step in range(1, STEPS + 1)}
        self.states: dict[str, str] = {}

    def teardown(self) -> None:
        assert self.ledger.find_inconsistencies([self.ledger.head()]) == []
        shutil.rmtree(self.folder)

    def state(self, step: int) -> str:
        """Of the release that answers a step, or of the last attempt."""
        states = [self.states[each] for each in self.steps[step]]
        return "published" if "published" in states else states[-1] if states else "never drawn"

    @rule(step=st.integers(1, STEPS), again=st.booleans(), suffix=st.sampled_from(["", ".2"]))
    def charge(self, step: int, again: bool, suffix: str) -> None:
        spent = [each for each in self.steps[step] if self.states[each] != "published"]
        is_free = self.state(step) in {"spent", "withdrawn"} and again
        is_next = all(self.state(each) == "published" for each in range(1, step))
        allowed = is_next and (is_free or not self.steps[step])
        try:
            made = charge_step(
                self.ledger,
                step_of(step, STEPS),
                version=f"2026-W0{step}{suffix}",
                instead_of=spent[-1] if spent and again else None,
                terms=TERMS,
            )
        except (SpentFailure, RequestError):
            assert not allowed
        else:
            assert allowed
            self.steps[step].append(made.release)
            self.states[made.release] = "reserved"

    @rule(to=st.sampled_from(["published", "spent"]))
    @precondition(lambda self: "reserved" in self.states.values())
    def finish(self, to: str) -> None:
        release = next(name for name, state in self.states.items() if state == "reserved")
        (publish if to == "published" else spend)(self.ledger, release)
        self.states[release] = to

    @rule(data=st.data())
    @precondition(lambda self: "published" in self.states.values())
    def withdraw(self, data: st.DataObject) -> None:
        published = sorted(name for name, state in self.states.items() if state == "published")
        release = data.draw(st.sampled_from(published))
        self.ledger.mark("toy", release, ChargeState.WITHDRAWN, reason="wrong file")
        self.states[release] = "withdrawn"

    @invariant()
    def charges_add_up_to_the_guarantee_of_all_draws(self) -> None:
        if not self.states:
            return
        prefixes = PrefixSums(STEPS)
        draws = [max(1, len(releases)) for releases in self.steps.values()]
        ratio = prefixes.squared_norm(draws) / prefixes.squared_norm()
        total = self.ledger.statement("toy", "2026").total
        assert total.mu == pytest.approx(WINDOW.mu * math.sqrt(ratio), rel=1e-12)


class PostgresqlMachine(SeriesMachine):
    kind = "postgresql"


def machine_settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=at_scale(14, 40),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )


TestOnSqlite = SeriesMachine.TestCase
TestOnSqlite.settings = machine_settings(at_scale(15, 200))
TestOnPostgresql = PostgresqlMachine.TestCase
TestOnPostgresql.settings = machine_settings(at_scale(6, 60))
