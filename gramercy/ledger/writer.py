"""Write-ahead accounting: a charge is durable before its noise exists, and is never refunded.

Admission follows docs/privacy.md: all charges of a data set together (of one period of its data,
where budgets are per period) must fit its budget, by basic composition of pure epsilons or by
the Gaussian-DP filter of Smith and Thakurta (2022). It does not depend on the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Connection

from gramercy.common.process_lock import HeldLock, file_lock
from gramercy.ledger import checks, journal
from gramercy.ledger.advisory_lock import advisory_lock
from gramercy.ledger.database import WRITES, location_of
from gramercy.ledger.entry import Entry
from gramercy.ledger.journal import append, lock_head, read
from gramercy.ledger.reader import LedgerReader
from gramercy.ledger.statement import Charge
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.ledger_history import ChargeState


class Ledger(LedgerReader):
    """A budget ledger that can be charged; opened as a `LedgerReader` is.

    Every entry is checked and appended in one transaction, which has the write lock from its start.
    """

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
    ) -> Charge:
        """Charge a release, durably, or refuse; atomic. The first charge registers the data set.

        Parameters
        ----------
        instead_of
            The spent or withdrawn release of the same request that a new charge replaces.
        """
        dataset, window = contract.id, contract.window(version)
        with self._writing() as db:
            checks.verify_location(db)
            if not journal.is_registered(db, dataset):
                append(db, Entry.registered(contract))
            checks.verify_terms(db, contract)
            earlier = journal.find_charge(db, dataset, request)
            checks.check_not_charged(dataset, earlier, instead_of)
            statement = journal.statement(db, dataset, window)
            checks.check_budget(dataset, statement, guarantee)
            number = 1 + journal.charge_count(db, dataset)
            total = statement.charged.plus(guarantee)
            entry = Entry.reserved(
                contract, version, request, number, guarantee, total, fingerprint
            )
            return Charge.of([append(db, entry)])

    def mark(self, dataset: str, release: str, state: ChargeState, **facts: str) -> None:
        """Record the new state of a release."""
        with self._writing() as db:
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
