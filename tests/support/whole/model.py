"""What ledger and archive have to say after every command: lists, and totals made from scratch."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from gramercy.mechanisms.accounting.composition import Filter, compose
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.plan.planning import Plan
from gramercy.schemas import families
from gramercy.schemas.budget import Budget

CLOSED = {"spent", "withdrawn"}
PUBLIC = {"published", "withdrawn"}
REFUSED = {families.EXCEEDED.code, families.EXCEEDED.code}


@dataclass
class Attempt:
    """A charge: the request that it answers, and its state."""

    request: int
    window: str
    guarantee: Guarantee
    state: str


@dataclass(frozen=True)
class Expected:
    """What a publication has to answer: a release, or one of these codes or types of errors."""

    release: str = ""
    codes: frozenset[str] = frozenset()
    is_new: bool = False

    def agrees(self, outcome: Any) -> bool:
        if self.release:
            return bool(outcome.is_done and outcome.text == self.release)
        return bool(not outcome.is_done and {outcome.kind, outcome.text} & self.codes)


@dataclass
class DatasetModel:
    """The budget of a data set, and its charges by the names of their releases."""

    budget: Budget
    registered: bool = False
    attempts: dict[str, Attempt] = field(default_factory=dict)
    unreadable: bool = False  # the table

    def copy(self) -> DatasetModel:
        return copy.deepcopy(self)

    def of_request(self, request: int) -> str | None:
        """The release that answers a request, or the last attempt."""
        names = [name for name, each in self.attempts.items() if each.request == request]
        published = [name for name in names if self.attempts[name].state == "published"]
        return (published or names[-1:] or [None])[0]

    def settle(self) -> None:
        """Whatever is published next finishes what was sealed."""
        for each in self.attempts.values():
            if each.state == "sealed":
                each.state = "published"

    def admits(self, plan: Plan) -> bool:
        window = plan.contract.window(plan.request.version)
        earlier = [each.guarantee for each in self.attempts.values() if each.window == window]
        rule = Filter(self.budget.epsilon, self.budget.delta, self.budget.delta / 10)
        return rule.admits(compose([*earlier, plan.guarantee]))

    def publish(
        self, number: int, plan: Plan, new_charge: str | None, *, changed: bool = False
    ) -> Expected:
        """Publish a request; a table that is read again has `changed` since it was read."""
        self.settle()
        name = self.of_request(number)
        if name is not None:
            attempt = self.attempts[name]
            if attempt.state == "published":
                return Expected(name)
            if attempt.state not in CLOSED:
                attempt.state = "spent"
            if new_charge != name:
                problem = families.SPENT
                return Expected(codes=frozenset({problem.code}))
        if not self.admits(plan):
            return Expected(codes=frozenset(REFUSED))
        if self.unreadable:
            return Expected(codes=frozenset({"TableError"}))
        release = self.charge(number, plan, "spent" if changed else "published")
        if changed:
            return Expected(codes=frozenset({"TableError"}), is_new=True)
        return Expected(release, is_new=True)

    def charge(self, number: int, plan: Plan, state: str) -> str:
        release = self.next_release(plan)
        window = plan.contract.window(plan.request.version)
        self.attempts[release] = Attempt(number, window, plan.guarantee, state)
        self.registered = True
        return release

    def next_release(self, plan: Plan) -> str:
        version = plan.request.version
        number = 1 + sum(name.rpartition("-r")[0] == version for name in self.attempts)
        return f"{version}-r{number}"

    def states(self) -> dict[str, str]:
        return {name: each.state for name, each in self.attempts.items()}


def fits(charged: Iterable[Guarantee], budget: Budget) -> bool:
    """Whether charges fit a budget, by the formulas of docs/privacy.md in double precision."""
    charged = list(charged)
    if math.fsum(each.pure for each in charged) <= budget.epsilon * (1 + 1e-9):
        return True
    mu = math.sqrt(math.fsum(each.mu**2 for each in charged))
    normal, epsilon = NormalDist(), budget.epsilon
    delta = normal.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal.cdf(
        -mu / 2 - epsilon / mu
    )
    return delta + math.fsum(each.delta0 for each in charged) <= budget.delta * (1 + 1e-9)
