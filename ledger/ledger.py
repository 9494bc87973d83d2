"""Write-ahead accounting: a charge is durable before its noise exists, and stays whatever happens.

Admission follows docs/privacy.md: all charges of a data set together must fit its budget by basic
composition of pure epsilons or by the Gaussian-DP filter of Smith and Thakurta (2022).
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, insert, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from ledger.database import sqlite
from ledger.statement import Charge, Raise, Statement, admit, compare_terms, spent_failure
from ledger.tables import budgets, charges, datasets, marks, metadata
from mechanisms.guarantee import Guarantee
from schemas.contract import Budget, Contract
from schemas.errors import LedgerError, RequestError, SpentFailure
from schemas.model import canonical


class Ledger:
    """The budget ledger of one home.

    Parameters
    ----------
    path
        SQLite file; made when absent.

    Raises
    ------
    LedgerError
        If it cannot be opened, or stays locked for a minute.
    """

    def __init__(self, path: Path) -> None:
        self._where = str(path)
        with self._trouble():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)  # fingerprints of private files are in it
            self._engine = sqlite(path)
            with self._engine.begin() as db:
                metadata.create_all(db)

    def datasets(self) -> list[str]:
        """Ids of the registered data sets."""
        with self._transaction() as db:
            return list(db.scalars(select(datasets.c.id).order_by(datasets.c.id)))

    def preview(self, contract: Contract) -> Statement:
        """The statement that a release of this contract would be charged to; changes nothing.

        A data set is registered by its first charge. Until then it has the contract's budget.

        Raises
        ------
        TermsChanged
            If the data set was registered with other terms.
        """
        with self._transaction() as db:
            if self._terms(db, contract.id) is None:
                return Statement(contract.budget, ())
            self._hold_to_terms(db, contract)
            return self._statement(db, contract.id)

    def raise_budget(self, dataset: str, budget: Budget, reason: str) -> None:
        """Enter a larger lifetime budget, with the reason for it.

        Raises
        ------
        RequestError
            If the reason is empty, the budget is not larger, or delta is 1/rows or more.
        """
        if not reason.strip():
            raise RequestError("A budget is raised for a reason.", "State it with --reason.")
        with self._transaction() as db:
            now = self._budget(db, dataset)
            if budget == now or budget.epsilon < now.epsilon or budget.delta < now.delta:
                raise RequestError(
                    f"The budget of '{dataset}' is epsilon {now.epsilon:g}, delta {now.delta:g}.",
                    "It can only be raised.",
                )
            rows = db.scalar(select(datasets.c.rows).where(datasets.c.id == dataset)) or 1
            if budget.delta >= 1 / rows:
                raise RequestError(
                    f"delta must lie below 1/rows = {1 / rows:.3g}.",
                    "Otherwise one row in the table may be given away.",
                )
            self._enter_budget(db, dataset, budget, reason.strip())

    def statement(self, dataset: str) -> Statement:
        """Budget and charges of a registered data set.

        Raises
        ------
        RequestError
            If it is not registered.
        """
        with self._transaction() as db:
            return self._statement(db, dataset)

    def raises(self, dataset: str) -> tuple[Raise, ...]:
        """Every budget that a data set has had, the registered one first."""
        with self._transaction() as db:
            return self._raises(db, dataset)

    def find(self, dataset: str, request: str) -> Charge | None:
        """The charge that answers this very request: the published one, else the last."""
        with self._transaction() as db:
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
            The spent release of the same request that is paid for again.

        Raises
        ------
        TermsChanged
            If the data set was registered with other terms.
        SpentFailure
            If the same request was charged before.
        BudgetRefused
            If the charge does not fit; shows asked, spent and remaining.
        """
        dataset = contract.id
        with self._transaction() as db:
            if self._terms(db, dataset) is None:
                self._register(db, contract)
            self._hold_to_terms(db, contract)
            before = self._find(db, dataset, request)
            if before is not None and (before.state, before.release) != ("spent", instead_of):
                raise spent_failure(dataset, before)
            statement = self._statement(db, dataset)
            admit(dataset, statement, guarantee)
            release = f"{version}-r{len(statement.charges) + 1}"
            db.execute(
                insert(charges).values(
                    dataset=dataset,
                    release=release,
                    version=version,
                    request=request,
                    mu=guarantee.mu,
                    delta0=guarantee.delta0,
                    pure=guarantee.pure if guarantee.pure < math.inf else None,
                    fingerprint=fingerprint,
                    at=_now(),
                )
            )
        return Charge(release, version, guarantee, fingerprint, _now(), "charged")

    def mark(self, dataset: str, release: str, mark: str, detail: str = "") -> None:
        """Record once that a release was ``drawn``, ``sealed``, ``published`` or ``spent``.

        Raises
        ------
        SpentFailure
            If it was recorded before: so noise cannot be drawn twice for one charge.
        """
        try:
            with self._transaction() as db:
                db.execute(
                    insert(marks).values(
                        dataset=dataset, release=release, mark=mark, detail=detail, at=_now()
                    )
                )
        except IntegrityError:
            raise SpentFailure(f"Release '{dataset}/{release}' was already {mark}.") from None

    def detail(self, dataset: str, release: str, mark: str) -> str | None:
        """What was recorded with a mark: for ``sealed``, the digest of the bundle."""
        row = (marks.c.dataset == dataset) & (marks.c.release == release) & (marks.c.mark == mark)
        with self._transaction() as db:
            found: str | None = db.scalar(select(marks.c.detail).where(row))
            return found

    def _register(self, db: Connection, contract: Contract) -> None:
        terms = contract.terms()
        terms.pop("budget")
        entry = {"id": contract.id, "terms": canonical(terms), "rows": contract.rows, "at": _now()}
        db.execute(insert(datasets).values(entry))
        self._enter_budget(db, contract.id, contract.budget, "registered")

    def _hold_to_terms(self, db: Connection, contract: Contract) -> None:
        then = json.loads(self._terms(db, contract.id) or "{}")
        now = json.loads(canonical(contract.terms()))
        # A contract may still state a budget from before it was raised; the last one is in force.
        stated = [each.budget.model_dump() for each in self._raises(db, contract.id)]
        then["budget"] = now["budget"] if now["budget"] in stated else stated[-1]
        compare_terms(contract.id, then, now)

    def _terms(self, db: Connection, dataset: str) -> str | None:
        found: str | None = db.scalar(select(datasets.c.terms).where(datasets.c.id == dataset))
        return found

    def _statement(self, db: Connection, dataset: str) -> Statement:
        budget = self._budget(db, dataset)
        chosen = select(charges).where(charges.c.dataset == dataset).order_by(charges.c.seq)
        states = self._states(db, dataset)
        rows = db.execute(chosen).all()
        return Statement(budget, tuple(_charge(r, states) for r in rows))

    def _find(self, db: Connection, dataset: str, request: str) -> Charge | None:
        same = (charges.c.dataset == dataset) & (charges.c.request == request)
        states = self._states(db, dataset)
        found = [
            _charge(row, states)
            for row in db.execute(select(charges).where(same).order_by(charges.c.seq))
        ]
        return next((c for c in found if c.state == "published"), found[-1] if found else None)

    def _states(self, db: Connection, dataset: str) -> dict[str, set[str]]:
        states: dict[str, set[str]] = {}
        query = select(marks.c.release, marks.c.mark).where(marks.c.dataset == dataset)
        for release, mark in db.execute(query):
            states.setdefault(release, set()).add(mark)
        return states

    def _budget(self, db: Connection, dataset: str) -> Budget:
        return self._raises(db, dataset)[-1].budget

    def _raises(self, db: Connection, dataset: str) -> tuple[Raise, ...]:
        chosen = select(budgets).where(budgets.c.dataset == dataset).order_by(budgets.c.seq)
        rows = db.execute(chosen).all()
        if not rows:
            raise RequestError(
                f"No data set '{dataset}' in {self._where}.", "Release from its contract first."
            )
        return tuple(
            Raise(Budget(epsilon=row.epsilon, delta=row.delta), row.reason, row.at) for row in rows
        )

    def _enter_budget(self, db: Connection, dataset: str, budget: Budget, reason: str) -> None:
        entry = {"dataset": dataset, **budget.model_dump(), "reason": reason, "at": _now()}
        db.execute(insert(budgets).values(entry))

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._trouble(), self._engine.begin() as db:
            yield db

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        failure = None
        try:
            yield
        except IntegrityError:
            raise
        except (SQLAlchemyError, OSError) as caught:
            failure = type(caught).__name__
        if failure:
            raise LedgerError(
                f"{self._where}: the ledger cannot be used ({failure}).",
                "Check that the disk has room, the file is yours, and no other process holds it.",
            )


def _charge(row: Row[Any], states: dict[str, set[str]]) -> Charge:
    known = states.get(row.release, set())
    state = next((m for m in ("published", "spent", "sealed", "drawn") if m in known), "charged")
    pure = math.inf if row.pure is None else row.pure
    guarantee = Guarantee(row.mu, row.delta0, pure)
    return Charge(row.release, row.version, guarantee, row.fingerprint, row.at, state)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
