"""One entry of the journal, and the hash that chains it to all entries before it.

The class methods make new entries of each kind; the journal adds their number, time and hash.

A table with two ids has two budgets: the sources that contracts declare are compared. Not
recognised are a copy of a table, a path of another machine that leads to it, and a pattern that
matches some of the same files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import pwd
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from gramercy.mechanisms.accounting.composition import Filter, Total
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.errors import UntrustedLedger
from gramercy.schemas.ledger_history import ChargeState, SeriesStep, number_of
from gramercy.schemas.model import canonical_json
from gramercy.schemas.source import AnySource, location
from gramercy.schemas.url import without_secrets

T = TypeVar("T")

_LOGIN = Path("/proc/self/loginuid")  # of Linux
FIRST_PREVIOUS = "0" * 64  # the hash that the first entry states as that of the entry before it

LEDGER_KINDS = ("opened", "moved")
DERIVED, DERIVED_KINDS = "derived", ("estimate", "report")
BUDGET_CHANGES = ("raised", "lowered")
BUDGET_KINDS = ("registered", *BUDGET_CHANGES)
RELEASE_KINDS = tuple(each.value for each in ChargeState)

INCLUDED = Guarantee(0.0)  # the charge of a step that the charge of its series includes


@dataclass(frozen=True)
class Entry:
    """An event of the ledger, of a data set or of one of its releases."""

    # `opened` (the ledger itself) or `moved`; `registered`, `raised` or `lowered` (a data set's
    # budget); `reserved` (a charge), `drawn`, `sealed`, `published`, `spent` or `withdrawn` (a
    # release); `derived` (an estimate or a report of a release)
    kind: str
    # dataset, release, window, request: ids of the data set and the release, the period of the data
    # where budgets are per period, and the request's key
    dataset: str | None = None
    release: str | None = None
    window: str | None = None
    request: str | None = None
    # mu, delta0, pure: guarantee of a charge, or of the series whose charge includes it; `pure` is
    # None where the charge is not pure epsilon-DP
    mu: float | None = None
    delta0: float | None = None
    pure: float | None = None
    # epsilon, delta: a budget
    epsilon: float | None = None
    delta: float | None = None
    facts: str = "{}"  # all other facts, as JSON
    at: str = ""  # Time, UTC, ISO 8601. For people: no decision depends on it.
    seq: int = 0  # number of the entry, from 1
    salt: str = ""  # random, so that a guess of an entry cannot be confirmed by its hash
    # previous, hash: SHA-256 of the entry before, and of this one
    previous: str = FIRST_PREVIOUS
    hash: str = field(default="", compare=False)

    @classmethod
    def opened(cls, location: str) -> Entry:
        """The first entry of a journal: a random id of the ledger, and its location."""
        facts = {"ledger": uuid.uuid4().hex, "place": location}
        return cls("opened", facts=canonical_json(facts))

    @classmethod
    def moved(cls, location: str, reason: str) -> Entry:
        """The ledger is at another location now, or its archive is another."""
        return cls("moved", facts=canonical_json({"place": location, "reason": reason}))

    @classmethod
    def registered(cls, contract: Contract) -> Entry:
        """A data set's terms, and its first budget."""
        terms = contract.terms()
        terms.pop("budget")
        facts = {"terms": canonical_json(terms), "reason": "registered"}
        return cls._of_budget("registered", contract.id, contract.budget, contract.count, facts)

    @classmethod
    def budget_changed(
        cls, kind: str, dataset: str, budget: Budget, rows: int, reason: str
    ) -> Entry:
        """A budget that was ``raised`` or ``lowered``."""
        return cls._of_budget(kind, dataset, budget, rows, {"reason": reason})

    @classmethod
    def reserved(
        cls,
        contract: Contract,
        version: str,
        request: str,
        turn: int,
        number: int,
        guarantee: Guarantee,
        total: Total,
        fingerprint: str,
        series: Mapping[str, Any] | None = None,
        by: str = "",
        approved: Mapping[str, str] | None = None,
    ) -> Entry:
        """A charge: the `turn` of it in the data set, the `total` including it, and the `number`.

        `number`: see `next_number`.

        `series`: the facts of a step. If the charge of its series includes it, `guarantee` is that
        of the series.

        `by`: see `account`. `approved`: see `Entry.approved`.
        """
        facts: dict[str, Any] = {
            "version": version,
            "turn": turn,
            "total": str(total),
            "fingerprint": fingerprint,
            "source": normalised_source(contract.source),
        }
        facts |= ({"by": by} if by else {}) | dict(series or {})
        facts |= {"approved": dict(approved)} if approved else {}
        return cls(
            "reserved",
            contract.id,
            f"{version}-r{number}",
            contract.window(version),
            request,
            mu=float(guarantee.mu),
            delta0=float(guarantee.delta0),
            pure=float(guarantee.pure) if guarantee.pure < math.inf else None,
            facts=canonical_json(facts),
        )

    def charged_again(self, turn: int, number: int, total: Total) -> Entry:
        """The same charge, after other entries; `fact` of its hash: ``again``. Without series."""
        kept = {name: self.fact(name, str) for name in ("version", "fingerprint", "source")}
        stated = {"turn": turn, "total": str(total), "again": self.hash}
        facts = kept | stated | ({"by": self.by} if self.by else {})
        release = f"{kept['version']}-r{number}"
        return replace(self, release=release, facts=canonical_json(facts))

    @classmethod
    def marked(cls, dataset: str, release: str, state: ChargeState, facts: dict[str, str]) -> Entry:
        """A release's new state."""
        return cls(str(state), dataset, release, facts=canonical_json(facts))

    @classmethod
    def derived(cls, dataset: str, release: str, kind: str, name: str, sha256: str) -> Entry:
        """An estimate or a report of a release, by the digest of its SHA256SUMS."""
        facts = {"artifact": kind, "name": name, "sha256": sha256}
        return cls(DERIVED, dataset, release, facts=canonical_json(facts))

    @classmethod
    def _of_budget(
        cls, kind: str, dataset: str, budget: Budget, rows: int, facts: dict[str, str]
    ) -> Entry:
        text = canonical_json(
            facts | {"rows": rows, "per": budget.per, "failures": budget.failure_share}
        )
        return cls(kind, dataset, epsilon=budget.epsilon, delta=budget.delta, facts=text)

    def digest(self) -> str:
        """SHA-256 of all fields but `hash`, which has to equal it."""
        values = [getattr(self, name) for name in _HASHED]
        text = json.dumps(values, separators=(",", ":"), default=repr)  # repr: for forged types
        return hashlib.sha256(text.encode()).hexdigest()

    def fact(self, name: str, kind: type[T]) -> T:
        """One of the facts."""
        value = self._facts.get(name) if isinstance(self._facts, dict) else None
        if type(value) is not kind:
            raise self._malformed()
        return value

    @cached_property
    def _facts(self) -> Any:
        try:
            return json.loads(self.facts)
        except (ValueError, TypeError, RecursionError):
            return None

    @property
    def by(self) -> str:
        """Who has charged it, if the entry says so: see `account`; raises as `fact` does."""
        is_stated = isinstance(self._facts, dict) and "by" in self._facts
        return self.fact("by", str) if is_stated else ""

    @property
    def approved(self) -> dict[str, str]:
        """Who has approved the charge (`by`), the `statement` and its `signature`; may be empty.

        Raises as `fact` does.
        """
        if not (isinstance(self._facts, dict) and "approved" in self._facts):
            return {}
        stated = self.fact("approved", dict)
        if [*sorted(stated)] != _APPROVAL or {*map(type, stated.values())} != {str}:
            raise self._malformed()
        return stated

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that was charged; raises as `fact` does."""
        return INCLUDED if self.is_included else self.stated_guarantee

    @property
    def is_included(self) -> bool:
        """Whether it is a step that the charge of its series includes; raises as `fact` does."""
        return self.series is not None and self.series.included != ""

    @property
    def stated_guarantee(self) -> Guarantee:
        """The guarantee of a charge, or of the series that includes it; raises as `fact` does."""
        numbers = (self.mu, self.delta0, math.inf if self.pure is None else self.pure)
        if all(type(number) is float for number in numbers):
            with contextlib.suppress(ValueError):
                return Guarantee(*numbers)  # type: ignore[arg-type]
        raise self._malformed()

    @property
    def series(self) -> SeriesStep | None:
        """The step of a series that was charged, if it is one; raises as `fact` does."""
        if not (isinstance(self._facts, dict) and self._facts.keys() & _SERIES):
            return None
        series, terms, included = (self.fact(x, str) for x in ("series", "terms", "included"))
        step, steps = self.fact("step", int), self.fact("steps", int)
        with contextlib.suppress(ValueError):
            return SeriesStep(series, step, steps, terms, included)
        raise self._malformed()

    @property
    def registered_series(self) -> dict[str, Any] | None:
        """The facts of a series that its first charge registers; raises as `fact` does."""
        has_facts = isinstance(self._facts, dict) and "registered" in self._facts
        return self.fact("registered", dict) if has_facts else None

    @property
    def budget(self) -> Budget:
        """The budget that was set; raises as `fact` does."""
        per = self.fact("per", str)
        with contextlib.suppress(ValidationError):
            return Budget.model_validate({"epsilon": self.epsilon, "delta": self.delta, "per": per})
        raise self._malformed()

    @property
    def rule(self) -> Filter:
        """The rule by which the budget admits charges; raises as `fact` does."""
        failures = self.fact("failures", float)
        if failures != self.budget.failure_share:
            raise self._malformed()
        return Filter(self.budget.epsilon, self.budget.delta, failures)

    @property
    def total(self) -> Total:
        """Sum of the charges of the data set and window, up to this one; raises as `fact` does."""
        with contextlib.suppress(ValueError):
            return Total.parse(self.fact("total", str))
        raise self._malformed()

    @property
    def subject(self) -> str:
        """The data set or the release that the entry is about, or ``ledger``."""
        return "/".join(str(name) for name in (self.dataset, self.release) if name) or "ledger"

    def _malformed(self) -> UntrustedLedger:
        return families.UNTRUSTED(
            "Entry {entry} ({subject}) is malformed: it was changed after it was written.",
            "Run 'gramercy audit' to list all changes, and restore the ledger from a copy.",
            entry=self.seq,
            subject=self.subject,
        )


def account() -> str:
    """The account of this process; before it who had logged in, if that was another account.

    Linux keeps the login through `sudo` and `su`, and lets only root change it. Services have
    none.
    """
    names = [_name(os.getuid()) or str(os.getuid())]
    with contextlib.suppress(OSError, ValueError):
        names.insert(0, _name(int(_LOGIN.read_text())))
    return " as ".join(dict.fromkeys(filter(None, names)))


def _name(uid: int) -> str:
    with contextlib.suppress(KeyError, OverflowError):
        return pwd.getpwuid(uid).pw_name
    return ""


def numbering(version: str) -> str:
    """Releases of versions with the same numbering are numbered together.

    Ids then differ also on disks that ignore case, and in links, which have letters and digits.
    """
    return re.sub(r"[^a-z0-9]+", "-", version.lower())


def next_number(releases: Iterable[str], version: str) -> int:
    """The number of the next release of a version, by the ids of all releases of its data set."""
    own = numbering(version)
    same = (each for each in releases if numbering(each.rpartition("-r")[0]) == own)
    return 1 + max(map(number_of, same), default=0)


_SERIES = {"registered"} | {each.name for each in fields(SeriesStep)}
_APPROVAL = ["by", "signature", "statement"]
_HASHED = [each.name for each in fields(Entry) if each.name != "hash"]


def normalised_source(source: AnySource) -> str:
    """A contract's source in a form that is equal for the same location.

    Links in a path are resolved, and what may be a secret in a URL is removed. Tables of a database
    are compared by their names and by the URL that contracts state.
    """
    if isinstance(source, DatabaseTable):
        return source.identity
    source = location(source)
    local = source.removeprefix("file://").removeprefix("local://")
    return without_secrets(local) if "://" in local else os.path.realpath(local)


def datasets_with_same_source(
    sources: Mapping[str, set[str]], dataset: str, new_sources: Iterable[AnySource] = ()
) -> tuple[str, ...]:
    """Ids of the other data sets that read a table of this one."""
    own = sources.get(dataset, set()).union(map(normalised_source, new_sources))
    return tuple(sorted(name for name in sources if name != dataset and own & sources[name]))
