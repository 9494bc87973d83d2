"""The ledger against a simple model, for any order of operations, on both databases."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.composition import Filter, compose
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import BudgetRefused, RequestError, SpentFailure
from tests.support.databases import ledger_location
from tests.support.factories import at_scale
from tests.support.ledger_writers import contract

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["one", "two"])
REQUESTS = st.integers(0, 5)
GUARANTEES = st.one_of(
    st.floats(1e-3, 0.8).map(Guarantee),
    st.floats(1e-3, 0.8).map(Guarantee.of_pure),
    st.tuples(st.floats(1e-3, 0.5), st.floats(0, 2e-6)).map(lambda pair: Guarantee(*pair)),
)
AFTER = {
    "reserved": {"drawn", "spent"},
    "drawn": {"sealed", "spent"},
    "sealed": {"published", "spent"},
    "published": {"withdrawn"},
    "spent": set(),
    "withdrawn": set(),
}


class LedgerMachine(RuleBasedStateMachine):
    """A simple model of the ledger: lists, and totals computed from scratch."""

    kind = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.where = ledger_location(self.kind, self.folder)
        self.ledger = Ledger(self.where)
        self.budgets: dict[str, Budget] = {}
        self.charged: dict[str, list[tuple[Guarantee, int]]] = {}
        self.states: dict[tuple[str, str], str] = {}
        self.heads = [self.ledger.head()]

    def teardown(self) -> None:
        assert self.ledger.examine(self.heads) == []
        shutil.rmtree(self.folder)

    @rule(name=NAMES, request=REQUESTS, guarantee=GUARANTEES, again=st.booleans())
    def charge(self, name: str, request: int, guarantee: Guarantee, again: bool) -> None:
        asked, before = contract(id=name), self.of_request(name, request)
        charges = self.charged.setdefault(name, [])
        budget = self.budgets.get(name, asked.budget)
        total = compose([*(g for g, _ in charges), guarantee])
        rule = Filter(budget.epsilon, budget.delta, budget.delta / 10)
        closed = before is not None and self.states[name, before] in {"spent", "withdrawn"}
        try:
            made = self.ledger.charge(
                asked, "v", f"{request}", guarantee, "", instead_of=before if again else None
            )
        except SpentFailure:
            assert before is not None
            assert not (closed and again)
        except BudgetRefused:
            assert before is None or (closed and again)
            assert not rule.admits(total)
        else:
            assert before is None or (closed and again)
            assert rule.admits(total)
            charges.append((guarantee, request))
            self.budgets[name] = budget
            assert made.release == f"v-r{len(charges)}"
            self.states[name, made.release] = "reserved"

    def of_request(self, name: str, request: int) -> str | None:
        """The release that answers a request, or the last attempt."""
        asked = [
            f"v-r{k}" for k, (_, r) in enumerate(self.charged.get(name, []), 1) if r == request
        ]
        done = [release for release in asked if self.states[name, release] == "published"]
        return next(iter(done), asked[-1] if asked else None)

    @precondition(lambda self: self.states)
    @rule(data=st.data(), state=st.sampled_from(sorted(AFTER.keys() - {"reserved"})))
    def mark(self, data: st.DataObject, state: str) -> None:
        name, release = data.draw(st.sampled_from(sorted(self.states)))
        known = self.states[name, release]
        facts = {"sha256": "0" * 64} if state == "sealed" else {"reason": "so"}
        try:
            self.ledger.mark(name, release, state, **facts)
        except SpentFailure:
            assert state not in AFTER[known]
        else:
            assert state in AFTER[known]
            self.states[name, release] = state

    @rule(name=NAMES, epsilon=st.sampled_from([2.0, 3.5, 5.0]), delta=st.sampled_from([1e-6, 2e-5]))
    def raise_budget(self, name: str, epsilon: float, delta: float) -> None:
        budget, known = Budget(epsilon=epsilon, delta=delta), self.budgets.get(name)
        try:
            self.ledger.change_budget(name, budget, "asked")
        except RequestError:
            assert (
                known is None or budget == known or epsilon < known.epsilon or delta < known.delta
            )
        else:
            assert known is not None
            self.budgets[name] = budget

    @rule()
    def come_back(self) -> None:
        """Another process, or this one after a crash."""
        self.ledger = Ledger(self.where)

    @rule()
    def anchor(self) -> None:
        self.heads.append(self.ledger.head())
        for each in self.heads:
            self.ledger.hold_to(each)

    @invariant()
    def says_what_the_model_says(self) -> None:
        assert self.ledger.datasets() == sorted(self.budgets)
        for name, budget in self.budgets.items():
            statement = self.ledger.statement(name)
            assert statement.budget == budget
            assert statement.total == compose(g for g, _ in self.charged[name])
            states = {c.release: c.state for c in self.ledger.charges(name)}
            assert states == {r: s for (d, r), s in self.states.items() if d == name}


class PostgresqlMachine(LedgerMachine):
    kind = "postgresql"


def chosen(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=at_scale(11, 40),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )


TestOnSqlite = LedgerMachine.TestCase
TestOnSqlite.settings = chosen(at_scale(15, 200))
TestOnPostgresql = PostgresqlMachine.TestCase
TestOnPostgresql.settings = chosen(at_scale(8, 60))
