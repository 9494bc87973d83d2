"""Write-ahead accounting: a charge is durable before its noise exists, and stays whatever happens.

Admission follows docs/privacy.md: all charges of a data set together (of one calendar year of its
data, where its budget is per year) must fit its budget by basic composition of pure epsilons or by
the Gaussian-DP filter of Smith and Thakurta (2022). It looks at no clock.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gramercy.common.home import Home
from gramercy.ledger.database import WRITES, described, engine_of
from gramercy.ledger.database_tables import entries, head
from gramercy.ledger.entry import Entry
from gramercy.ledger.examine import BEFORE, CHANGED, OF_LEDGERS, Finding, examine
from gramercy.ledger.journal import append, lock, read, walk
from gramercy.ledger.migrate import migrate
from gramercy.ledger.place import place
from gramercy.ledger.sources import declared
from gramercy.ledger.statement import Charge, Raise, Statement, admit, compare_terms, unanswered
from gramercy.ledger.timelines import timelines
from gramercy.ledger.turns import Turn, on_every_machine, on_this_machine
from gramercy.mechanisms.accounting.composition import Total
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.contract import Budget, Contract
from gramercy.schemas.errors import (
    LedgerError,
    RequestError,
    SpentFailure,
    TermsChanged,
    UntrustedLedger,
)
from gramercy.schemas.model import canonical, one_line
from gramercy.schemas.timeline import Timeline

_OF_RELEASES = ["reserved", *BEFORE]
_OF_LEDGER = entries.c.dataset.is_(None) & entries.c.kind.in_(sorted(OF_LEDGERS))


class Ledger:
    """A budget ledger.

    Parameters
    ----------
    where
        Path of an SQLite file, made when absent, or the URL of a PostgreSQL database.

    Raises
    ------
    LedgerError
        If it cannot be opened, or stays locked for a minute.
    """

    def __init__(self, where: Path | str) -> None:
        self.where = str(where) if isinstance(where, Path) else "GRAMERCY_LEDGER_URL"
        with self._trouble():
            self._engine = engine_of(where)
            self.where = described(self._engine)
            migrate(self._engine)

    @classmethod
    def of(cls, home: Home) -> Ledger:
        """The ledger of a home: its own, or the one of $GRAMERCY_LEDGER_URL."""
        return cls(home.ledger_url or home.ledger)

    @classmethod
    def known(cls, home: Home) -> Ledger | None:
        """The ledger of a home, if it has one; none is made."""
        return cls.of(home) if home.ledger_url or home.ledger.exists() else None

    def alone(self, name: str) -> AbstractContextManager[Turn]:
        """Hold the turn of this name; others wait, on every machine that shares this ledger.

        On PostgreSQL it can be lost: see `Turn.hold`.
        """
        if self._engine.dialect.name == "sqlite":
            return on_this_machine(Path(str(self._engine.url.database)).parent / "locks", name)
        return on_every_machine(self._engine, name)

    def datasets(self) -> list[str]:
        """Ids of the registered data sets."""
        registered = select(entries.c.dataset).where(entries.c.kind == "registered")
        with self._reading() as db:
            return sorted(db.scalars(registered))

    def preview(self, contract: Contract, version: str) -> Statement:
        """The statement that a release of this contract would be charged to; changes nothing.

        A data set is registered by its first charge. Until then it has the contract's budget.

        Raises
        ------
        TermsChanged
            If the data set was registered with other terms.
        UntrustedLedger
            If this is a copy of a ledger that lies elsewhere.
        """
        window = contract.window(version)
        with self._reading() as db:
            self._hold_to_place(db)
            if not self._registered(db, contract.id):
                return Statement(contract.budget, window=window)
            self._hold_to_terms(db, contract)
            return self._statement(db, contract.id, window)

    def change_budget(
        self, dataset: str, budget: Budget, reason: str, *, lower: bool = False
    ) -> None:
        """Enter a larger budget, or a smaller one, with the reason for it.

        A smaller one takes nothing back of what was spent; it is for a table that has grown, whose
        delta has to lie below 1/rows still.

        Raises
        ------
        RequestError
            If the reason is empty, the budget is not larger (smaller), or delta is 1/rows or more.
        UntrustedLedger
            If this is a copy of a ledger that lies elsewhere.
        """
        reason = _stated(reason, "A budget is changed for a reason.")
        with self._writing() as db:
            self._hold_to_place(db)
            now = self._raises(db, dataset)[-1].budget
            asked = budget.model_copy(update={"per": now.per})
            less, more = (asked, now) if lower else (now, asked)
            if asked == now or less.epsilon > more.epsilon or less.delta > more.delta:
                raise RequestError(
                    f"The budget of '{dataset}' is epsilon {now.epsilon:g}, delta {now.delta:g}.",
                    f"It can only be {'lowered with --lower' if lower else 'raised with --raise'}.",
                )
            rows = read(db, *_budgets(dataset), last=True)[0].says("rows", int)
            if asked.delta >= 1 / rows:
                raise RequestError(
                    f"delta must lie below 1/rows = {1 / rows:.3g}.",
                    "Otherwise one row in the table may be given away.",
                )
            facts = {"reason": reason, "rows": rows}
            append(db, _budget_entry("lowered" if lower else "raised", dataset, asked, facts))

    def statement(self, dataset: str, window: str = "") -> Statement:
        """Budget and total of a registered data set, or of one year of its data.

        Raises
        ------
        RequestError
            If it is not registered.
        """
        with self._reading() as db:
            return self._statement(db, dataset, window)

    def statements(self, dataset: str) -> tuple[Statement, ...]:
        """One, or one for every calendar year of the data that was charged."""
        charged = (entries.c.dataset == dataset) & (entries.c.kind == "reserved")
        with self._reading() as db:
            windows = sorted(db.scalars(select(entries.c.window).where(charged).distinct()))
            return tuple(self._statement(db, dataset, window) for window in windows or [""])

    def around(self, dataset: str, release: str) -> tuple[Statement, Statement]:
        """The statement before a release was charged, and after; with the budget now in force."""
        named = (entries.c.release == release, entries.c.kind == "reserved")
        with self._reading() as db:
            (entry,) = read(db, entries.c.dataset == dataset, *named)
            window = str(entry.window)
            before = self._total(db, dataset, window, entries.c.seq < entry.seq)
            budget = self._raises(db, dataset)[-1].budget
            return Statement(budget, before, window), Statement(budget, entry.total, window)

    def charges(self, dataset: str) -> tuple[Charge, ...]:
        """Every charge of a data set, oldest first."""
        with self._reading() as db:
            return tuple(self._charges(db, dataset))

    def raises(self, dataset: str) -> tuple[Raise, ...]:
        """Every budget that a data set has had, the registered one first."""
        with self._reading() as db:
            return self._raises(db, dataset)

    def timelines(
        self, dataset: str, mechanisms: Mapping[str, str] | None = None
    ) -> tuple[Timeline, ...]:
        """What became of its budget, event by event; see `ledger.timelines.timelines`.

        Raises
        ------
        RequestError
            If it is not registered.
        """
        with self._reading() as db:
            self._raises(db, dataset)
            journal = read(db, entries.c.dataset == dataset)
        return timelines(dataset, journal, mechanisms or {})

    def charge_of(self, dataset: str, release: str) -> Charge | None:
        """The charge of a release, if there is one."""
        with self._reading() as db:
            return next(self._charges(db, dataset, entries.c.release == release), None)

    def sealed(self, dataset: str) -> list[Charge]:
        """Charges whose bundle was sealed, and that lack their last mark."""
        named = entries.c.dataset == dataset
        done = select(entries.c.release).where(named, entries.c.kind.in_(["published", "spent"]))
        with self._reading() as db:
            waiting = (entries.c.kind == "sealed", entries.c.release.not_in(done))
            return list(self._charges(db, dataset, *waiting))

    def releases(self, dataset: str) -> set[str]:
        """Ids of the releases that were charged, whatever became of them."""
        charged = (entries.c.dataset == dataset) & (entries.c.kind == "reserved")
        with self._reading() as db:
            return set(db.scalars(select(entries.c.release).where(charged)))

    def sources(self) -> dict[str, set[str]]:
        """What every data set has read, as its contracts declared it; see `ledger.sources`.

        Charges of version 0.1 do not say it.
        """
        found: dict[str, set[str]] = {}
        with self._reading() as db:
            for entry in read(db, entries.c.kind == "reserved"):
                if entry.states("source"):
                    found.setdefault(str(entry.dataset), set()).add(entry.says("source", str))
        return found

    def adaptive_shares(self) -> dict[tuple[str, str], int]:
        """Budgets with several charges by the rule of version 0.1, and how many those are.

        By data set and calendar year of its data, which is empty where budgets are for a lifetime.
        """
        found: dict[tuple[str, str], int] = {}
        for dataset in self.datasets():
            with self._reading() as db:
                budgets = read(db, *_budgets(dataset))
                shared = next((each.seq for each in budgets if each.states("failures")), math.inf)
                charged = read(db, entries.c.dataset == dataset, entries.c.kind == "reserved")
            older = Counter(str(entry.window) for entry in charged if entry.seq < shared)
            found |= {(dataset, window): n for window, n in older.items() if n > 1}
        return found

    def of_persons_by_year(self) -> list[str]:
        """Data sets that were registered with persons as their unit and a budget per year."""
        found = []
        with self._reading() as db:
            for entry in read(db, entries.c.kind == "registered"):
                unit = _terms(entry).get("unit")
                if entry.budget.per == "year" and unit not in {"row", "cell"}:
                    found.append(str(entry.dataset))
        return found

    def changes(self) -> list[Entry]:
        """Entries by which a steward has changed what may be charged: moves, and new budgets."""
        with self._reading() as db:
            return read(db, entries.c.kind.in_(["moved", *CHANGED]))

    def find(self, dataset: str, request: str) -> Charge | None:
        """The charge that answers this very request: the published one, else the last."""
        with self._reading() as db:
            return self._find(db, dataset, request)

    def charge(
        self,
        contract: Contract,
        version: str,
        request: str,
        guarantee: Guarantee,
        fingerprint: str,
        *,
        instead_of: str | None = None,
    ) -> Charge:
        """Charge a release, durably, or refuse; atomic. The first charge registers the data set.

        Parameters
        ----------
        contract, version, request
            The data set's contract, the version of the data, and the request's key.
        guarantee
            The exact guarantee of the noise that is about to be drawn.
        fingerprint
            Of the raw files; kept here alone.
        instead_of
            The spent or withdrawn release of the same request that is paid for again.

        Raises
        ------
        TermsChanged
            If the data set was registered with other terms.
        SpentFailure
            If the same request was charged before.
        BudgetRefused
            If the charge does not fit; shows asked, spent and remaining.
        UntrustedLedger
            If this is a copy of a ledger that lies elsewhere.
        """
        dataset, window = contract.id, contract.window(version)
        with self._writing() as db:
            self._hold_to_place(db)
            if not self._registered(db, dataset):
                self._register(db, contract)
            self._hold_to_terms(db, contract)
            before = self._find(db, dataset, request)
            again = before and before.state in {"spent", "withdrawn"}
            if before is not None and not (again and before.release == instead_of):
                raise unanswered(dataset, before)
            statement = self._statement(db, dataset, window)
            admit(dataset, statement, guarantee)
            turn = 1 + self._turns(db, dataset)
            facts = {
                "version": version,
                "turn": turn,
                "total": str(statement.charged.plus(guarantee)),
                "fingerprint": fingerprint,
                "source": declared(contract.source),
            }
            entry = Entry(
                "reserved",
                dataset,
                f"{version}-r{turn}",
                window,
                request,
                mu=float(guarantee.mu),
                delta0=float(guarantee.delta0),
                pure=float(guarantee.pure) if guarantee.pure < math.inf else None,
                facts=canonical(facts),
            )
            return _charge([append(db, entry)])

    def mark(self, dataset: str, release: str, state: str, **facts: str) -> None:
        """Record once that a release was ``drawn``, ``sealed``, ``published``, ``spent``...

        Parameters
        ----------
        dataset, release
            Which.
        state
            What it becomes.
        **facts
            ``sha256`` of what was sealed; ``reason`` why it is spent or withdrawn.

        Raises
        ------
        SpentFailure
            If it was before, or is none that can become it: noise is never drawn twice.
        """
        named = (entries.c.dataset == dataset, entries.c.release == release)
        with self._writing() as db:
            known = read(db, *named)
            now = known[-1].kind if known else "never charged"
            if now not in BEFORE[state]:
                raise SpentFailure(
                    f"Release '{dataset}/{release}' was already {now}, and cannot be {state}.",
                    "'gramercy budget' shows what became of it.",
                )
            append(db, Entry(state, dataset, release, facts=canonical(facts)))

    def head(self) -> Anchor:
        """The last entry: to be told outside of this ledger."""
        with self._reading() as db:
            return self._head(db)

    def hold_to(self, anchor: Anchor | None, witness: str = "the archive") -> None:
        """Hold this ledger to where it was seen to stand.

        Parameters
        ----------
        anchor
            The newest that was told; None where there is none.
        witness
            Who was told.

        Raises
        ------
        UntrustedLedger
            If it is older than that, another, or rewritten; or if it has drawn noise, and nobody
            was told.
        """
        with self._reading() as db:
            now = self._head(db)
            if anchor is None:
                since = self._stated_place(db)
                drawn = (entries.c.kind == "drawn", entries.c.seq > since.seq)
                unheard = read(db, *drawn, first=True)
                wrong = f"{witness} has never heard of it" if unheard else ""
            elif anchor.ledger != now.ledger:
                wrong = f"{witness} belongs to another ledger"
            elif anchor.seq > now.seq:
                wrong = f"it ends at entry {now.seq}, and {witness} has seen entry {anchor.seq}"
            else:
                at = select(entries.c.hash).where(entries.c.seq == anchor.seq)
                same = db.scalar(at) == anchor.hash
                wrong = "" if same else f"entry {anchor.seq} is not the one {witness} has seen"
        if wrong:
            lost = "if the archive is lost for good, 'gramercy budget --moved --reason WHY' says so"
            newer = "without it, what was charged is spent all the same, and nothing more fits"
            raise UntrustedLedger(
                f"{self.where}: {wrong}.",
                "Restore the ledger and the archive that belong together; "
                f"{lost if anchor is None else newer}.",
            )

    def elsewhere(self) -> str | None:
        """Where this ledger belongs, if that is not here: this is a copy of it."""
        with self._reading() as db:
            belongs = self._of_itself(db, last=True).says("place", str)
            return None if belongs == place(db) else belongs

    def move(self, reason: str) -> None:
        """Enter that the ledger, or its archive, lies elsewhere now, on the steward's word.

        Raises
        ------
        RequestError
            If no reason is given.
        """
        reason = _stated(reason, "A ledger is moved for a reason.")
        with self._writing() as db:
            append(db, Entry("moved", facts=canonical({"place": place(db), "reason": reason})))

    def examine(self, anchors: Iterable[Anchor] = ()) -> list[Finding]:
        """Everything that is wrong with this ledger; see `ledger.examine.examine`."""
        with self._reading() as db:
            return examine(walk(db), self._head(db), anchors)

    def entries(self) -> list[Entry]:
        """The whole journal, in order."""
        with self._reading() as db:
            return list(walk(db))

    def _head(self, db: Connection) -> Anchor:
        last = db.execute(select(head.c.seq, head.c.hash).where(head.c.id == 1)).first()
        if last is None:
            raise self._headless()
        name = self._of_itself(db, first=True).says("ledger", str)
        with contextlib.suppress(ValidationError):
            return Anchor(ledger=name, seq=last.seq, hash=last.hash)
        raise self._headless()

    def _of_itself(self, db: Connection, **which: bool) -> Entry:
        """The first or the last entry about the ledger itself: its name, or where it lies."""
        for entry in read(db, _OF_LEDGER, **which):
            return entry
        raise self._headless()

    def _stated_place(self, db: Connection) -> Entry:
        """The last entry by which somebody opened or moved the ledger; no upgrade is one."""
        places = [entry for entry in read(db, _OF_LEDGER) if not entry.states("upgraded")]
        if not places:
            raise self._headless()
        return places[-1]

    def _headless(self) -> UntrustedLedger:
        return UntrustedLedger(
            f"{self.where}: the entry that opened it, or its head, is gone or was changed.",
            "Restore the ledger from a copy.",
        )

    def _hold_to_place(self, db: Connection) -> None:
        belongs = self._of_itself(db, last=True).says("place", str)
        if belongs != place(db):
            raise UntrustedLedger(
                f"{self.where}: this ledger belongs at {belongs}. A copy would spend the same "
                "budget twice.",
                "Use that one. If it was moved, and nobody uses it there any more, say so with "
                "'gramercy budget --moved --reason WHY'.",
            )

    def _registered(self, db: Connection, dataset: str) -> bool:
        return bool(read(db, entries.c.dataset == dataset, entries.c.kind == "registered"))

    def _register(self, db: Connection, contract: Contract) -> None:
        terms = contract.terms()
        terms.pop("budget")
        facts = {"terms": canonical(terms), "rows": contract.count, "reason": "registered"}
        append(db, _budget_entry("registered", contract.id, contract.budget, facts))

    def _hold_to_terms(self, db: Connection, contract: Contract) -> None:
        first, *_ = budgets = read(db, *_budgets(contract.id))
        then = _terms(first)
        now = json.loads(canonical(contract.terms()))
        # A contract may still state a budget from before it was changed; the last one is in force.
        stated = [each.budget.model_dump() for each in budgets]
        then["budget"] = now["budget"] if now["budget"] in stated else stated[-1]
        compare_terms(contract.id, then, now)
        if budgets[-1].budget.delta >= 1 / contract.count:
            raise TermsChanged(
                f"The budget's delta of '{contract.id}' is {budgets[-1].budget.delta:g}, and the "
                f"table has {contract.count} {contract.count_key} by now: it must lie below one "
                "over that.",
                "Lower it with 'gramercy budget --lower'.",
            )

    def _statement(self, db: Connection, dataset: str, window: str) -> Statement:
        budget = self._raises(db, dataset)[-1].budget
        return Statement(budget, self._total(db, dataset, window), window)

    def _total(self, db: Connection, dataset: str, window: str, *where: Any) -> Total:
        charged = (entries.c.kind == "reserved", entries.c.window == window)
        found = read(db, entries.c.dataset == dataset, *charged, *where, last=True)
        return found[0].total if found else Total()

    def _turns(self, db: Connection, dataset: str) -> int:
        charged = (entries.c.dataset == dataset, entries.c.kind == "reserved")
        found = read(db, *charged, last=True)
        return found[0].says("turn", int) if found else 0

    def _find(self, db: Connection, dataset: str, request: str) -> Charge | None:
        found = list(self._charges(db, dataset, entries.c.request == request))
        return next((c for c in found if c.answers), found[-1] if found else None)

    def _charges(self, db: Connection, dataset: str, *where: Any) -> Iterator[Charge]:
        """Charges with all that became of them."""
        of_releases = (entries.c.dataset == dataset, entries.c.kind.in_(_OF_RELEASES))
        asked = select(entries.c.release).where(*of_releases, *where) if where else None
        chosen = () if asked is None else (entries.c.release.in_(asked),)
        known: dict[str, list[Entry]] = {}
        for entry in read(db, *of_releases, *chosen):
            known.setdefault(str(entry.release), []).append(entry)
        return map(_charge, known.values())

    def _raises(self, db: Connection, dataset: str) -> tuple[Raise, ...]:
        found = read(db, *_budgets(dataset))
        if not found:
            raise RequestError(
                f"No data set '{dataset}' in {self.where}.", "Release from its contract first."
            )
        return tuple(Raise(each.budget, each.says("reason", str), each.at) for each in found)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment, however much it reads."""
        with self._trouble(), self._engine.connect() as connection:
            db = connection
            if self._engine.dialect.name == "postgresql":
                db = connection.execution_options(isolation_level="REPEATABLE READ")
            with db.begin():
                yield db

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction that has its turn from the start, so that what it reads stays true."""
        with self._trouble(), self._engine.connect() as connection:
            db = connection.execution_options(**WRITES)
            with db.begin():
                lock(db)
                yield db

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        failure = None
        try:
            yield
        except (SQLAlchemyError, OSError) as caught:
            driver = caught.orig if isinstance(caught, DBAPIError) else None
            failure = type(driver or caught).__name__
        if failure:
            raise LedgerError(
                f"{self.where}: the ledger cannot be used ({failure}).",
                "Check that the disk has room, the file is yours, the server answers, and no other "
                "process holds it.",
            ) from None  # the driver's error, which is being handled, quotes the URL


def _stated(reason: str, otherwise: str) -> str:
    if not reason.strip():
        raise RequestError(otherwise, "State it with --reason.")
    with contextlib.suppress(ValueError):
        return one_line(reason.strip())
    raise RequestError("--reason: holds what is no text on one line.", "Write it plainly.")


def _terms(registered: Entry) -> dict[str, Any]:
    terms: dict[str, Any] = json.loads(registered.says("terms", str))
    return terms


def _budgets(dataset: str) -> tuple[Any, ...]:
    return entries.c.dataset == dataset, entries.c.kind.in_(["registered", *CHANGED])


def _budget_entry(kind: str, dataset: str, budget: Budget, facts: dict[str, Any]) -> Entry:
    said = canonical(facts | {"per": budget.per, "failures": budget.failures})
    return Entry(kind, dataset, epsilon=budget.epsilon, delta=budget.delta, facts=said)


def _charge(known: list[Entry]) -> Charge:
    """A charge from its own entry and the marks after it."""
    first, last = known[0], known[-1]
    return Charge(
        str(first.release),
        first.says("version", str),
        str(first.window),
        first.guarantee,
        first.says("fingerprint", str),
        first.at,
        last.kind,
        next((each.says("sha256", str) for each in known if each.kind == "sealed"), ""),
        last.says("reason", str) if last.kind in {"spent", "withdrawn"} else "",
    )
