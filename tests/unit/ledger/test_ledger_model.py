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
from gramercy.schemas.ledger_history import ChargeState
from tests.support.databases import ledger_location
from tests.support.factories import at_scale
from tests.support.ledgers import contract

pytestmark = pytest.mark.slow

DATASETS = st.sampled_from(["one", "two"])
REQUESTS = st.integers(0, 5)
GUARANTEES = st.one_of(
    st.floats(1e-3, 0.8).map(Guarantee),
    st.floats(1e-3, 0.8).map(Guarantee.from_pure),
    st.tuples(st.floats(1e-3, 0.5), st.floats(0, 2e-6)).map(lambda pair: Guarantee(*pair)),
)
NEXT_STATES = {
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
        self.anchors = [self.ledger.head()]

    def teardown(self) -> None:
        assert self.ledger.find_inconsistencies(self.anchors) == []
        shutil.rmtree(self.folder)

    @rule(dataset=DATASETS, request=REQUESTS, guarantee=GUARANTEES, again=st.booleans())
    def charge(self, dataset: str, request: int, guarantee: Guarantee, again: bool) -> None:
        terms, earlier = contract(id=dataset), self.of_request(dataset, request)
        charges = self.charged.setdefault(dataset, [])
        budget = self.budgets.get(dataset, terms.budget)
        total = compose([*(g for g, _ in charges), guarantee])
        rule = Filter(budget.epsilon, budget.delta, budget.delta / 10)
        closed = earlier is not None and self.states[dataset, earlier] in {"spent", "withdrawn"}
        try:
            made = self.ledger.charge(
                terms, "v", f"{request}", guarantee, "", instead_of=earlier if again else None
            )
        except SpentFailure:
            assert earlier is not None
            assert not (closed and again)
        except BudgetRefused:
            assert earlier is None or (closed and again)
            assert not rule.admits(total)
        else:
            assert earlier is None or (closed and again)
            assert rule.admits(total)
            charges.append((guarantee, request))
            self.budgets[dataset] = budget
            assert made.release == f"v-r{len(charges)}"
            self.states[dataset, made.release] = "reserved"

    def of_request(self, dataset: str, request: int) -> str | None:
        """The release that answers a request, or the last attempt."""
        charges = enumerate(self.charged.get(dataset, []), 1)
        attempts = [f"v-r{k}" for k, (_, answered) in charges if answered == request]
        published = [each for each in attempts if self.states[dataset, each] == "published"]
        return next(iter(published), attempts[-1] if attempts else None)

    @precondition(lambda self: self.states)
    @rule(data=st.data(), state=st.sampled_from(sorted(NEXT_STATES.keys() - {"reserved"})))
    def mark(self, data: st.DataObject, state: str) -> None:
        dataset, release = data.draw(st.sampled_from(sorted(self.states)))
        present = self.states[dataset, release]
        facts = {"sha256": "0" * 64} if state == "sealed" else {"reason": "so"}
        try:
            self.ledger.mark(dataset, release, ChargeState(state), **facts)
        except SpentFailure:
            assert state not in NEXT_STATES[present]
        else:
            assert state in NEXT_STATES[present]
            self.states[dataset, release] = state

    @rule(
        dataset=DATASETS,
        epsilon=st.sampled_from([2.0, 3.5, 5.0]),
        delta=st.sampled_from([1e-6, 2e-5]),
    )
    def raise_budget(self, dataset: str, epsilon: float, delta: float) -> None:
        budget, present = Budget(epsilon=epsilon, delta=delta), self.budgets.get(dataset)
        try:
            self.ledger.change_budget(dataset, budget, "asked")
        except RequestError:
            assert (
                present is None
                or budget == present
                or epsilon < present.epsilon
                or delta < present.delta
            )
        else:
            assert present is not None
            self.budgets[dataset] = budget

    @rule()
    def reopen(self) -> None:
        """Another process, or this one after a crash."""
        self.ledger = Ledger(self.where)

    @rule()
    def anchor(self) -> None:
        self.anchors.append(self.ledger.head())
        for each in self.anchors:
            self.ledger.verify_anchor(each)

    @invariant()
    def ledger_agrees_with_the_model(self) -> None:
        assert self.ledger.datasets() == sorted(self.budgets)
        for dataset, budget in self.budgets.items():
            statement = self.ledger.statement(dataset)
            assert statement.budget == budget
            assert statement.total == compose(g for g, _ in self.charged[dataset])
            states = {c.release: c.state for c in self.ledger.charges(dataset)}
            assert states == {r: s for (d, r), s in self.states.items() if d == dataset}


class PostgresqlMachine(LedgerMachine):
    kind = "postgresql"


def machine_settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=at_scale(11, 40),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )


TestOnSqlite = LedgerMachine.TestCase
TestOnSqlite.settings = machine_settings(at_scale(15, 200))
TestOnPostgresql = PostgresqlMachine.TestCase
TestOnPostgresql.settings = machine_settings(at_scale(8, 60))
