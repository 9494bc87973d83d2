"""The ledger: write-ahead accounting, budgets and charges, its head, and whether to trust it.

A charge is durable before its noise exists, and is never refunded. Every method is one transaction;
those that read do so from one snapshot.

Admission follows docs/privacy.md: all charges of a data set together (of one period of its data,
where budgets are per period) must fit its budget, by basic composition of pure epsilons or by
the Gaussian-DP filter of Smith and Thakurta (2022). It does not depend on the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError

from gramercy.common.home import Home
from gramercy.common.process_lock import HeldLock, file_lock
from gramercy.ledger import checks, journal
from gramercy.ledger.advisory_lock import advisory_lock
from gramercy.ledger.database import (
    WRITES,
    display_location,
    entries,
    error_name,
    location_of,
    open_engine,
    shows_damage,
)
from gramercy.ledger.entry import (
    BUDGET_CHANGES,
    BUDGET_KINDS,
    INCLUDED,
    RELEASE_KINDS,
    Entry,
    account,
    next_number,
)
from gramercy.ledger.integrity import Finding, find_inconsistencies
from gramercy.ledger.journal import (
    PARTS,
    Stated,
    append,
    append_copies,
    lock_head,
    open_journal,
    read,
    read_all,
)
from gramercy.ledger.series import ChargedSeries, SeriesCharge
from gramercy.ledger.statement import BudgetChange, Charge, Statement
from gramercy.ledger.timelines import timelines
from gramercy.mechanisms.accounting.composition import NO_CHARGES
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import LedgerError, RequestError
from gramercy.schemas.ledger_history import Anchor, ChargeState, Timeline
from gramercy.schemas.problem import Wording

_ledger_damaged = Wording(
    families.UNTRUSTED,
    "{ledger}: the ledger is damaged ({reason}).",
    "Keep a copy of the file, put the newest backup in its place, and run 'gramercy audit', "
    "which compares it with the anchors in the archive: charges that the backup lacks are "
    "still spent.",
)


_ledger_unusable = Wording(
    families.LEDGER,
    "{ledger}: the ledger cannot be used ({reason}).",
    "Check that the disk has free space, you may write to the file, the database server "
    "answers, and no other process keeps the ledger locked.",
)


@dataclass(frozen=True)
class DatasetAccounts:
    """The budgets of a data set and the charges to them."""

    changes: tuple[BudgetChange, ...]  # the budget as it was registered, raised and lowered
    # one statement, or one for every period of the data that was charged
    statements: tuple[Statement, ...]
    # number of charges, by the period of the data; the period is empty with one budget
    charged: Mapping[str, int]


class Ledger:
    """A budget ledger.

    What it appends is checked in the same transaction, which has the write lock from its start.

    Parameters
    ----------
    where
        Path of an SQLite file, created if it does not exist, or the URL of a PostgreSQL database.
    copied
        If the ledger does not exist, it begins with these entries of a copy of it.

    Raises
    ------
    LedgerError
        If it cannot be opened, or stays locked for a minute.
    UntrustedLedger
        If its file is damaged.
    """

    def __init__(self, where: Path | str, copied: Sequence[Entry] = ()) -> None:
        self.location = str(where) if isinstance(where, Path) else "GRAMERCY_LEDGER_URL"
        with self._database_errors():
            self._engine = open_engine(where)
            self.location = display_location(self._engine)
            open_journal(self._engine, copied)
        self._where = where

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens it for itself."""
        return type(self), (self._where,)

    @classmethod
    def of(cls, home: Home) -> Self:
        """The ledger of a home: its own, or the one of $GRAMERCY_LEDGER_URL."""
        return cls(home.ledger_url or home.ledger)

    def datasets(self) -> list[str]:
        """Ids of the registered data sets."""
        with self._reading() as db:
            return journal.registered_datasets(db)

    def preview(self, contract: Contract, version: str) -> Statement:
        """The statement that a release under this contract would be charged to.

        Changes nothing. Before its first charge, a data set has the budget of its contract.
        """
        window = contract.window(version)
        with self._reading() as db:
            checks.verify_location(db)
            if not journal.is_registered(db, contract.id):
                return Statement(contract.budget, window=window)
            checks.verify_terms(db, contract)
            return journal.statement(db, contract.id, window)

    def statement(self, dataset: str, window: str = "") -> Statement:
        """Budget and total of a registered data set, or of one period of its data."""
        with self._reading() as db:
            return journal.statement(db, dataset, window)

    def statements(self, dataset: str) -> tuple[Statement, ...]:
        """One statement, or one for every period of the data that was charged."""
        charged = select(entries.c.window).where(*journal.is_charge(dataset)).distinct()
        with self._reading() as db:
            # An owner of the database may have stored bytes, or nothing.
            windows = sorted(db.scalars(charged), key=str) or [""]
            return tuple(journal.statement(db, dataset, window) for window in windows)

    def statements_around(self, dataset: str, release: str) -> tuple[Statement, Statement]:
        """The statements before and after a release was charged, with the budget of today."""
        with self._reading() as db:
            (entry,) = read(db, *journal.is_charge(dataset), entries.c.release == release)
            window = str(entry.window)
            before = journal.total(db, dataset, window, entries.c.seq < entry.seq)
            budget = journal.budget_history(db, dataset)[-1].budget
            return Statement(budget, before, window), Statement(budget, entry.total, window)

    def charges(self, dataset: str) -> tuple[Charge, ...]:
        """All charges of a data set, oldest first."""
        with self._reading() as db:
            return tuple(journal.charges(db, dataset))

    def budget_history(self, dataset: str) -> tuple[BudgetChange, ...]:
        """All budgets of a data set, the registered one first."""
        with self._reading() as db:
            return journal.budget_history(db, dataset)

    def budget_at(self, dataset: str, seq: int) -> Budget | None:
        """The budget of a data set that was in use at an entry; None before it was registered."""
        with self._reading() as db:
            until = (*journal.has_budget(dataset), entries.c.seq <= seq)
            return next((entry.budget for entry in read(db, *until, last=True)), None)

    def timelines(
        self, dataset: str, mechanisms: Mapping[str, str] | None = None
    ) -> tuple[Timeline, ...]:
        """The history of a budget, event by event; see `ledger.timelines.timelines`."""
        kinds = entries.c.kind.in_([*BUDGET_KINDS, *RELEASE_KINDS])
        with self._reading() as db:
            events = read(db, entries.c.dataset == dataset, kinds)
            if not events:
                journal.budget_history(db, dataset)  # raises: it is not registered
        return timelines(dataset, events, mechanisms or {})

    def charge_of(self, dataset: str, release: str) -> Charge | None:
        """The charge of a release, if there is one."""
        with self._reading() as db:
            return next(journal.charges(db, dataset, entries.c.release == release), None)

    def derived(self, dataset: str, release: str) -> dict[tuple[str, str], str]:
        """The digests of a release's estimates and reports, by (kind, id)."""
        with self._reading() as db:
            return journal.derived(db, dataset, release)

    def find_charge(self, dataset: str, request: str) -> Charge | None:
        """The charge of a request: the published one if there is one, otherwise the last."""
        with self._reading() as db:
            return journal.find_charge(db, dataset, request)

    def sealed_charges(self, dataset: str) -> list[Charge]:
        """Charges whose bundle was sealed and is neither published nor spent yet."""
        of_dataset = entries.c.dataset == dataset
        is_final = entries.c.kind.in_([ChargeState.PUBLISHED.value, ChargeState.SPENT.value])
        final = select(entries.c.release).where(of_dataset, is_final)
        pending = (entries.c.kind == ChargeState.SEALED.value, entries.c.release.not_in(final))
        with self._reading() as db:
            return list(journal.charges(db, dataset, *pending))

    def releases(self, dataset: str) -> list[str]:
        """Ids of all releases that were charged, in any state, oldest first."""
        with self._reading() as db:
            return journal.releases(db, dataset)

    def sources(self) -> dict[str, set[str]]:
        """Normalised sources by data set, as its contracts declared them; see `ledger.entry`."""
        by_dataset: dict[str, set[str]] = {}
        query = select(entries.c.kind, entries.c.dataset, entries.c.facts, entries.c.seq)
        with self._reading() as db:
            rows = db.execute(
                query.where(entries.c.kind == ChargeState.RESERVED.value), execution_options=PARTS
            )
            for row in rows:
                entry = Entry(row.kind, row.dataset, facts=row.facts, seq=row.seq)
                sources = by_dataset.setdefault(str(entry.dataset), set())
                sources.add(entry.fact("source", str))
        return by_dataset

    def approved_charges(self) -> list[Entry]:
        """Charges that a second person has approved."""
        states = entries.c.facts.contains('"approved":{')
        with self._reading() as db:
            return read(db, entries.c.kind == ChargeState.RESERVED.value, states)

    def steward_changes(self) -> list[Entry]:
        """Entries by which a steward changed what may be charged: moves, and new budgets."""
        with self._reading() as db:
            return read(db, entries.c.kind.in_(["moved", *BUDGET_CHANGES]))

    def head(self) -> Anchor:
        """The last entry, as an anchor to be written outside the ledger."""
        with self._reading() as db:
            return journal.head_anchor(db)

    def verify_anchor(self, anchor: Anchor | None, witness: str = "the archive") -> None:
        """Verify this ledger against an anchor of it that was written elsewhere."""
        with self._reading() as db:
            checks.verify_anchor(db, anchor, witness)

    def verify_anchors(self, anchors: Sequence[Anchor], witness: str = "the archive") -> None:
        """Verify this ledger against all anchors of one place, the newest last; see above."""
        with self._reading() as db:
            checks.verify_anchor(db, anchors[-1] if anchors else None, witness)
            for each in journal.foreign(db, anchors):
                checks.verify_anchor(db, each, witness)

    def foreign(self, those: Sequence[Stated]) -> list[Stated]:
        """Those of the anchors or entries, the oldest first, that are not of this ledger."""
        with self._reading() as db:
            return journal.foreign(db, those)

    def original_location(self) -> str | None:
        """The location of the original if this ledger is a copy, otherwise None."""
        with self._reading() as db:
            recorded = journal.recorded_location(db)
            return None if recorded == location_of(db) else recorded

    def find_inconsistencies(self, anchors: Iterable[Anchor] = ()) -> list[Finding]:
        """All inconsistencies of this ledger; see `ledger.integrity.find_inconsistencies`."""
        with self._reading() as db:
            return find_inconsistencies(read_all(db), journal.head_anchor(db), anchors)

    def entries(self, after: int = 0, until: int | None = None) -> list[Entry]:
        """All entries in order, or those after a number, until another."""
        some = [entries.c.seq > after, *([] if until is None else [entries.c.seq <= until])]
        with self._reading() as db:
            return list(read_all(db, *some))

    def hash_of(self, seq: int) -> str | None:
        """The hash of an entry; None if it does not exist."""
        with self._reading() as db:
            return db.scalar(select(entries.c.hash).where(entries.c.seq == seq))

    def secret(self) -> bytes:
        """What only those know who have a copy of this ledger: the salt of its first entry."""
        with self._reading() as db:
            (first,) = read(db, first=True)
        return first.salt.encode()

    def append_copies(self, copies: Sequence[Entry]) -> None:
        """Append entries that another copy of this ledger has and this one lacks; atomic.

        Raises
        ------
        UntrustedLedger
            If they do not follow the last entry of this ledger.
        """
        with self._writing() as db:
            append_copies(db, copies)

    def charge_again(self, others: Iterable[Entry]) -> None:
        """Charge, as spent, what another copy of this ledger has charged; atomic, and once.

        A step of a series is charged as the whole series. Lower budgets are taken over as well,
        and larger ones are not. The charges may exceed the budget.
        """
        with self._writing() as db:
            for entry in others:
                known = (entries.c.dataset == entry.dataset, entries.c.facts.contains(entry.hash))
                dataset = str(entry.dataset)
                if entry.kind == "registered" and not journal.is_registered(db, dataset):
                    append(db, entry)
                elif entry.kind == "lowered":
                    now = journal.budget_history(db, dataset)[-1].budget
                    with suppress(RequestError):  # it is lower already
                        checks.check_direction(dataset, now, entry.budget, lower=True)
                        append(db, entry)
                elif entry.kind == ChargeState.RESERVED.value and not read(db, *known):
                    turn = 1 + journal.charge_count(db, dataset)
                    number = next_number(journal.releases(db, dataset), entry.fact("version", str))
                    total = journal.total(db, dataset, str(entry.window))
                    again = entry.charged_again(turn, number, total.plus(entry.stated_guarantee))
                    reserved = append(db, again)
                    spent = {"reason": "charged by another copy of this ledger"}
                    append(
                        db,
                        Entry.marked(dataset, str(reserved.release), ChargeState.SPENT, spent),
                    )

    def published(self) -> set[tuple[str, str]]:
        """(data set, release id) of every release that was ever published."""
        query = select(entries.c.dataset, entries.c.release).where(
            entries.c.kind == ChargeState.PUBLISHED.value
        )
        with self._reading() as db:
            return {(str(dataset), str(release)) for dataset, release in db.execute(query)}

    def statements_by_dataset(self) -> dict[str, tuple[Statement, ...]]:
        """Budgets and totals of all data sets, as `statements` returns them for one."""
        with self._reading() as db:
            return _statements(db, _budgets(db))

    def accounts(self) -> dict[str, DatasetAccounts]:
        """Budgets, totals and numbers of charges of all data sets, by their ids.

        Charges are only counted, so that memory does not grow with them; raises as above. Steps
        that the charge of their series includes are not counted.
        """
        with self._reading() as db:
            changes = _budgets(db)
            statements = _statements(db, changes)
            count = select(entries.c.dataset, entries.c.window, func.count())
            count = count.where(*journal.is_charged_alone()).group_by(
                entries.c.dataset, entries.c.window
            )
            charged: dict[str, dict[str, int]] = {}
            for dataset, window, charges in db.execute(count):
                charged.setdefault(str(dataset), {})[str(window)] = charges
        return {
            name: DatasetAccounts(changes[name], statements[name], charged.get(name, {}))
            for name in sorted(changes)
        }

    def lock(self, name: str) -> AbstractContextManager[HeldLock]:
        """Acquire the lock of this name among all machines that share this ledger, or wait for it.

        On PostgreSQL it can be lost: see `HeldLock.renew`.
        """
        if self._engine.dialect.name == "sqlite":
            return file_lock(Path(str(self._engine.url.database)).parent / "locks", name)
        return advisory_lock(self._engine, name)

    def charge(
        self,
        contract: Contract,
        version: str,
        request: str,
        guarantee: Guarantee,
        fingerprint: str,
        *,
        instead_of: str | None = None,
        series: SeriesCharge | None = None,
        approved: Mapping[str, str] | None = None,
    ) -> Charge:
        """Charge a release, durably, or refuse; atomic. The first charge registers the data set.

        Parameters
        ----------
        guarantee
            Of the release; of a step, that of the whole window of its series, drawn once.
        instead_of
            The spent or withdrawn release of the same request that a new charge replaces.
        series
            The step of a cumulative series, if it is one. The first charge of a series is for its
            whole window and registers its facts, the others are as `ChargedSeries.due` states.
        approved
            The approval of a second person, which the caller has verified; see `Entry.approved`.
        """
        dataset, window = contract.id, contract.window(version)
        with self._writing() as db:
            checks.verify_location(db)
            if not journal.is_registered(db, dataset):
                append(db, Entry.registered(contract))
            checks.verify_terms(db, contract)
            earlier = journal.find_charge(db, dataset, request)
            checks.check_not_charged(dataset, earlier, instead_of)
            due, facts = guarantee, None
            if series is not None:
                charged = journal.series(db, dataset, window, series.series)
                checks.check_step(dataset, version, series, guarantee, charged, instead_of)
                due = charged.due(series.step, guarantee)
                included = charged.charges[0].release if due == INCLUDED else ""
                facts = asdict(series.stated(included))
                facts |= {} if charged.charges else {"registered": series.terms}
            statement = journal.statement(db, dataset, window)
            checks.check_budget(dataset, statement, due)
            turn = 1 + journal.charge_count(db, dataset)
            number = next_number(journal.releases(db, dataset), version)
            checks.check_name(version, number)
            total = statement.charged.plus(due)
            # An entry states a guarantee of more than 0: that of the series which includes it.
            stated = guarantee if due == INCLUDED else due
            entry = Entry.reserved(
                contract,
                version,
                request,
                turn,
                number,
                stated,
                total,
                fingerprint,
                facts,
                account(),
                approved,
            )
            return Charge.of([append(db, entry)])

    def series(self, dataset: str, window: str, key: str) -> ChargedSeries:
        """All charges of a series in one window; `key`: its digest."""
        with self._reading() as db:
            return journal.series(db, dataset, window, key)

    def registered_series(self, dataset: str, release: str) -> dict[str, Any]:
        """The facts of a series that the charge of its first release registers."""
        with self._reading() as db:
            (first,) = read(db, *journal.is_charge(dataset), entries.c.release == release)
        return first.registered_series or {}

    def mark(self, dataset: str, release: str, state: ChargeState, **facts: str) -> None:
        """Record the new state of a release."""
        with self._writing() as db:
            checks.verify_location(db)
            present = journal.state(db, dataset, release)
            checks.check_transition(dataset, release, present, state)
            append(db, Entry.marked(dataset, release, state, facts))

    def record_derived(
        self, dataset: str, release: str, kind: str, name: str, sha256: str, *, replace: bool
    ) -> bool:
        """Record the digest of an ``estimate`` or a ``report``.

        With `replace`, it takes the place of another digest that was recorded before.

        Returns
        -------
        bool
            Whether an entry was added; not for a release that is not published in this ledger.
        """
        with self._writing() as db:
            recorded = journal.derived(db, dataset, release).get((kind, name))
            is_new = recorded is None or (replace and recorded != sha256)
            state = journal.state(db, dataset, release)
            if not (is_new and state and state.was_published):
                return False
            checks.verify_location(db)
            append(db, Entry.derived(dataset, release, kind, name, sha256))
            return True

    def change_budget(
        self, dataset: str, budget: Budget, reason: str, *, lower: bool = False
    ) -> None:
        """Raise or lower a budget, with the reason for it.

        Lowering a budget refunds nothing. It is for a table that has grown, because delta must stay
        less than 1/rows.
        """
        reason = checks.checked_reason(reason)
        with self._writing() as db:
            checks.verify_location(db)
            current = journal.budget_history(db, dataset)[-1].budget
            new = budget.model_copy(update={"per": current.per})
            checks.check_direction(dataset, current, new, lower=lower)
            rows = read(db, *journal.has_budget(dataset), last=True)[0].fact("rows", int)
            checks.check_delta(new, rows)
            kind = "lowered" if lower else "raised"
            append(db, Entry.budget_changed(kind, dataset, new, rows, reason))

    def move(self, reason: str) -> None:
        """Record, as the steward states it, that the ledger or its archive has moved."""
        reason = checks.checked_reason(reason)
        with self._writing() as db:
            append(db, Entry.moved(location_of(db), reason))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction with the write lock from its start, so that what it reads stays true."""
        with self._database_errors(), self._engine.connect() as connection:
            db = connection.execution_options(**WRITES)
            with db.begin():
                lock_head(db)
                yield db

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A transaction that reads from one snapshot."""
        with self._database_errors(), self._engine.connect() as connection:
            db = connection
            if self._engine.dialect.name == "postgresql":
                db = connection.execution_options(isolation_level="REPEATABLE READ")
            with db.begin():
                yield db

    @contextmanager
    def _database_errors(self) -> Iterator[None]:
        """Raise errors of the database and the disk as one that names the ledger."""
        error: LedgerError | None = None
        try:
            yield
        except (SQLAlchemyError, OSError, UnicodeDecodeError) as caught:  # also a damaged schema
            problem = _ledger_damaged if shows_damage(caught) else _ledger_unusable
            error = problem(self.location, error_name(caught))
        if error is not None:
            raise error from None  # the cause may quote the URL


def _budgets(db: Connection) -> dict[str, tuple[BudgetChange, ...]]:
    changes: dict[str, list[BudgetChange]] = {}
    for each in read(db, entries.c.kind.in_(BUDGET_KINDS)):
        change = BudgetChange(each.budget, each.fact("reason", str), each.at)
        changes.setdefault(str(each.dataset), []).append(change)
    return {name: tuple(of_dataset) for name, of_dataset in changes.items()}


def _statements(
    db: Connection, changes: Mapping[str, tuple[BudgetChange, ...]]
) -> dict[str, tuple[Statement, ...]]:
    """From the last charge of every budget, which states their sum."""
    last = (
        select(func.max(entries.c.seq))
        .where(entries.c.kind == ChargeState.RESERVED.value)
        .group_by(entries.c.dataset, entries.c.window)
    )
    of_dataset: dict[str, list[Statement]] = {name: [] for name in changes}
    for each in read(db, entries.c.seq.in_(last)):
        name = str(each.dataset)
        statement = Statement(changes[name][-1].budget, each.total, str(each.window))
        of_dataset[name].append(statement)
    return {
        name: tuple(sorted(statements, key=lambda each: each.window))
        or (Statement(changes[name][-1].budget, NO_CHARGES),)
        for name, statements in of_dataset.items()
    }
