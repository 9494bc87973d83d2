"""One line of the journal, and the hash that chains it to all before it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

from pydantic import ValidationError

from gramercy.mechanisms.accounting.composition import AdaptiveShare, Filter, Total
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import UntrustedLedger

T = TypeVar("T")

NONE = "0" * 64  # what the first entry follows

OF_LEDGERS = ("opened", "moved")
CHANGED = ("raised", "lowered")
BUDGETS = ("registered", *CHANGED)
# What a release must have been, to become this.
BEFORE = {
    "drawn": {"reserved"},
    "sealed": {"drawn"},
    "published": {"sealed"},
    "spent": {"reserved", "drawn", "sealed"},
    "withdrawn": {"published"},
}
OF_RELEASES = ("reserved", *BEFORE)


@dataclass(frozen=True)
class Entry:
    """What happened to a data set or to one of its releases.

    Parameters
    ----------
    kind
        ``opened`` (the ledger itself) or ``moved``; ``registered``, ``raised`` or ``lowered`` (a
        data set's budget); ``reserved`` (a charge), ``drawn``, ``sealed``, ``published``,
        ``spent`` or ``withdrawn`` (a release).
    dataset, release, window, request
        Which.
    mu, delta0, pure
        Of a charge; `pure` is None where there is no pure epsilon.
    epsilon, delta
        Of a budget.
    facts
        Everything else, as JSON.
    at
        When, UTC, ISO 8601. For people: no decision looks at it.
    seq
        Its number, from 1.
    salt
        Random.
    previous, hash
        Of the entry before, and of this one.
    """

    kind: str
    dataset: str | None = None
    release: str | None = None
    window: str | None = None
    request: str | None = None
    mu: float | None = None
    delta0: float | None = None
    pure: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    facts: str = "{}"
    at: str = ""
    seq: int = 0
    salt: str = ""
    previous: str = NONE
    hash: str = field(default="", compare=False)

    def digest(self) -> str:
        """SHA-256 of everything it says; what `hash` has to be."""
        said = [getattr(self, name) for name in _HASHED]
        text = json.dumps(said, separators=(",", ":"), default=repr)  # repr: of what was forged
        return hashlib.sha256(text.encode()).hexdigest()

    def says(self, name: str, kind: type[T]) -> T:
        """One of its facts.

        Raises
        ------
        UntrustedLedger
            If it has none of this name and type: no such entry was ever made.
        """
        said = self._facts.get(name) if isinstance(self._facts, dict) else None
        if type(said) is not kind:
            raise self._forged()
        return said

    def states(self, name: str) -> bool:
        """Whether it has a fact of this name."""
        return isinstance(self._facts, dict) and name in self._facts

    @cached_property
    def _facts(self) -> Any:
        try:
            return json.loads(self.facts)
        except (ValueError, TypeError, RecursionError):
            return None

    @property
    def guarantee(self) -> Guarantee:
        """What was charged; raises as `says` does."""
        numbers = (self.mu, self.delta0, math.inf if self.pure is None else self.pure)
        if all(type(number) is float for number in numbers):
            with contextlib.suppress(ValueError):
                return Guarantee(*numbers)  # type: ignore[arg-type]
        raise self._forged()

    @property
    def budget(self) -> Budget:
        """The budget that was entered; raises as `says` does."""
        per = self.says("per", str)
        with contextlib.suppress(ValidationError):
            return Budget.model_validate({"epsilon": self.epsilon, "delta": self.delta, "per": per})
        raise self._forged()

    @property
    def rule(self) -> Filter | AdaptiveShare:
        """By which its budget admits charges; entries of version 0.1 state no share for failures.

        Raises as `says` does.
        """
        if not self.states("failures"):
            return AdaptiveShare(self.budget.epsilon, self.budget.delta)
        failures = self.says("failures", float)
        if failures != self.budget.failures:
            raise self._forged()
        return Filter(self.budget.epsilon, self.budget.delta, failures)

    @property
    def total(self) -> Total:
        """The sum of all charges of its data set and window, and its own; raises as `says`."""
        with contextlib.suppress(ValueError):
            return Total.parse(self.says("total", str))
        raise self._forged()

    @property
    def subject(self) -> str:
        """The data set or the release that it is about; empty if about the ledger itself."""
        return "/".join(str(name) for name in (self.dataset, self.release) if name)

    def _forged(self) -> UntrustedLedger:
        about = self.subject
        return UntrustedLedger(
            f"Entry {self.seq} of the ledger{f' ({about})' if about else ''} does not say what "
            "such an entry says: it was changed.",
            "'gramercy audit' tells what else was. Restore the ledger from a copy.",
        )


_HASHED = [each.name for each in fields(Entry) if each.name != "hash"]
