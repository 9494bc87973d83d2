"""Write-ahead accounting: a charge is durable before its noise exists, and stays whatever happens.

Admission follows docs/privacy.md: all charges of a data set together (of one calendar year of its
data, where its budget is per year) must fit its budget by basic composition of pure epsilons or by
the Gaussian-DP filter of Smith and Thakurta (2022). It looks at no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Connection

from gramercy.common.process_lock import Turn, on_this_machine
from gramercy.ledger import checks, new_entries, queries
from gramercy.ledger.database import WRITES
from gramercy.ledger.database_tables import entries
from gramercy.ledger.journal import append, lock, read
from gramercy.ledger.place import place
from gramercy.ledger.reader import LedgerReader
from gramercy.ledger.statement import Charge
from gramercy.ledger.terms import hold_to_terms
from gramercy.ledger.turns import on_every_machine
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract


class Ledger(LedgerReader):
    """A budget ledger that can be charged; opened as a `LedgerReader` is.

    Every entry is checked and appended in one transaction, which holds the write lock from its
    start.
    """

    def alone(self, name: str) -> AbstractContextManager[Turn]:
        """Hold the turn of this name; others wait, on every machine that shares this ledger.

        On PostgreSQL it can be lost: see `Turn.hold`.
        """
        if self._engine.dialect.name == "sqlite":
            return on_this_machine(Path(str(self._engine.url.database)).parent / "locks", name)
        return on_every_machine(self._engine, name)

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
            checks.hold_to_place(db)
            if not queries.is_registered(db, dataset):
                append(db, new_entries.registered(contract))
            hold_to_terms(db, contract)
            checks.check_request(dataset, queries.find(db, dataset, request), instead_of)
            statement = queries.statement(db, dataset, window)
            checks.admit(dataset, statement, guarantee)
            turn = 1 + queries.turns(db, dataset)
            total = statement.charged.plus(guarantee)
            entry = new_entries.reserved(
                contract, version, request, turn, guarantee, total, fingerprint
            )
            return Charge.of([append(db, entry)])

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
        with self._writing() as db:
            known = read(db, entries.c.dataset == dataset, entries.c.release == release)
            now = known[-1].kind if known else "never charged"
            checks.check_mark(dataset, release, now, state)
            append(db, new_entries.marked(dataset, release, state, facts))

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
        reason = checks.stated(reason, "A budget is changed for a reason.")
        with self._writing() as db:
            checks.hold_to_place(db)
            now = queries.raises(db, dataset)[-1].budget
            asked = budget.model_copy(update={"per": now.per})
            checks.check_direction(dataset, now, asked, lower=lower)
            rows = read(db, *queries.budgets_of(dataset), last=True)[0].says("rows", int)
            checks.check_delta(asked, rows)
            kind = "lowered" if lower else "raised"
            append(db, new_entries.budget_changed(kind, dataset, asked, rows, reason))

    def move(self, reason: str) -> None:
        """Enter that the ledger, or its archive, lies elsewhere now, on the steward's word.

        Raises
        ------
        RequestError
            If no reason is given.
        """
        reason = checks.stated(reason, "A ledger is moved for a reason.")
        with self._writing() as db:
            append(db, new_entries.moved(place(db), reason))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction that has its turn from the start, so that what it reads stays true."""
        with self._trouble(), self._engine.connect() as connection:
            db = connection.execution_options(**WRITES)
            with db.begin():
                lock(db)
                yield db
