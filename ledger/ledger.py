"""Write-ahead accounting: a charge is durable before its noise exists, and stays whatever happens.

Admission follows privacy.md's rule: all charges of a data set together must fit its budget by basic
composition of pure epsilons or by the Gaussian-DP filter of Smith and Thakurta (2022).
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Row, create_engine, event, insert, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from ledger.tables import budgets, charges, datasets, marks, metadata
from mechanisms.guarantee import Guarantee, compose, gdp_epsilon, gdp_mu, within
from schemas.contract import Budget, Contract
from schemas.errors import BudgetRefused, LedgerError, RequestError, SpentFailure, TermsChanged
from schemas.model import canonical

_BUSY_SECONDS = 60


@dataclass(frozen=True)
class Charge:
    """One release's charge.

    Parameters
    ----------
    release
        Release id: the version and a counter, so it says nothing about the data.
    version
        Public label of the data.
    guarantee
        What was charged.
    fingerprint
        Digest of the raw files' names, sizes and dates. Private.
    at
        When, UTC, ISO 8601.
    state
        ``charged``, ``drawn``, ``sealed``, ``published`` or ``spent``.
    """

    release: str
    version: str
    guarantee: Guarantee
    fingerprint: str
    at: str
    state: str


@dataclass(frozen=True)
class Statement:
    """What a data set may cost, has cost, and may still cost.

    Parameters
    ----------
    budget
        The lifetime budget in force.
    charges
        Every charge, oldest first.
    """

    budget: Budget
    charges: tuple[Charge, ...]

    @property
    def total(self) -> Guarantee:
        """All charges composed."""
        return compose(c.guarantee for c in self.charges)

    @property
    def spent(self) -> float:
        """Epsilon spent so far, at the budget's delta, rounded up."""
        return self.total.epsilon(self.budget.delta)

    @property
    def left(self) -> Guarantee:
        """The largest Gaussian charge that would still be admitted."""
        failures = self.budget.delta - self.total.delta0
        if not failures > 0:
            return Guarantee(0.0)
        most = gdp_mu(self.budget.epsilon, failures)
        return Guarantee(math.sqrt(max(0.0, (most - self.total.mu) * (most + self.total.mu))))

    @property
    def remaining(self) -> float:
        """Epsilon of one more Gaussian release at the budget's delta."""
        return gdp_epsilon(self.left.mu, self.budget.delta)

    def admits(self, guarantee: Guarantee) -> bool:
        """Whether one more charge fits, by the ledger's rule."""
        return within(compose([self.total, guarantee]), self.budget.epsilon, self.budget.delta)

    def after(self, guarantee: Guarantee) -> Statement:
        """The statement that one more charge would leave."""
        planned = Charge("planned", "planned", guarantee, "", "", "charged")
        return Statement(self.budget, (*self.charges, planned))


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
            self._engine = _sqlite(path)
            with self._engine.begin() as db:
                metadata.create_all(db)

    def datasets(self) -> list[str]:
        """Ids of the registered data sets."""
        with self._transaction() as db:
            return list(db.scalars(select(datasets.c.id).order_by(datasets.c.id)))

    def register(self, contract: Contract) -> None:
        """Enter a data set once; afterwards, check that its terms are still the same.

        Raises
        ------
        TermsChanged
            Naming each fixed term that the contract now states differently.
        """
        terms = contract.terms()
        budget = terms.pop("budget")
        with self._transaction() as db:
            known = db.scalar(select(datasets.c.terms).where(datasets.c.id == contract.id))
            if known is None:
                entry = {"id": contract.id, "terms": canonical(terms), "at": _now()}
                db.execute(insert(datasets).values(entry))
                self._enter_budget(db, contract.id, contract.budget, "registered")
                return
            in_force = self._budget(db, contract.id).model_dump()
        changed = _differences(json.loads(known), json.loads(canonical(terms)))
        changed += _differences({"budget": in_force}, {"budget": budget})
        if changed:
            raise TermsChanged(
                f"Data set '{contract.id}' was registered with other terms: {', '.join(changed)}.",
                "They are fixed, because earlier guarantees rest on them: restore them, raise the "
                "budget with 'gramercy budget --raise', or give the data set a new id only if it "
                "shares no people with this one.",
            )

    def raise_budget(self, dataset: str, budget: Budget, reason: str) -> None:
        """Enter a larger lifetime budget, with the reason for it.

        Raises
        ------
        RequestError
            If the reason is empty or the budget is not larger.
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

    def find(self, dataset: str, request: str) -> Charge | None:
        """The charge that answers this very request: the published one, else the last."""
        with self._transaction() as db:
            return self._find(db, dataset, request)

    def check(self, dataset: str, guarantee: Guarantee) -> None:
        """Refuse what `charge` would refuse as things stand; charges nothing.

        Raises
        ------
        BudgetRefused
            If the charge would not fit.
        """
        _admit(dataset, self.statement(dataset), guarantee)

    def charge(
        self,
        dataset: str,
        version: str,
        request: str,
        guarantee: Guarantee,
        fingerprint: str,
        *,
        again: bool = False,
    ) -> Charge:
        """Charge a release, durably, or refuse; atomic.

        Parameters
        ----------
        dataset, version, request
            Which data set, which version of it, and the request's key.
        guarantee
            The exact guarantee of the noise that is about to be drawn.
        fingerprint
            Of the raw files; kept here alone.
        again
            Pay once more after an earlier charge for the same request was spent for nothing.

        Raises
        ------
        SpentFailure
            If the same request was charged before and nothing came of it.
        BudgetRefused
            If the charge does not fit; shows asked, spent and remaining.
        """
        with self._transaction() as db:
            before = self._find(db, dataset, request)
            if before is not None and (before.state == "published" or not again):
                raise SpentFailure(*spent_words(dataset, before))
            statement = self._statement(db, dataset)
            _admit(dataset, statement, guarantee)
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
        chosen = select(budgets.c.epsilon, budgets.c.delta).where(budgets.c.dataset == dataset)
        row = db.execute(chosen.order_by(budgets.c.seq.desc()).limit(1)).first()
        if row is None:
            raise RequestError(
                f"No data set '{dataset}' in {self._where}.", "Release from its contract first."
            )
        return Budget(epsilon=row.epsilon, delta=row.delta)

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


def spent_words(dataset: str, charge: Charge) -> tuple[str, str]:
    """What to say of a charge with nothing to show for it."""
    epsilon = f"mu = {charge.guarantee.mu:.4g}"
    return (
        f"Release '{dataset}/{charge.release}' was charged ({epsilon}) and then interrupted: "
        "the charge is spent, and no noise will be drawn for it again.",
        "To pay for a new release of the same version, add --new-charge.",
    )


def _admit(dataset: str, statement: Statement, asked: Guarantee) -> None:
    if statement.admits(asked):
        return
    budget = statement.budget
    raise BudgetRefused(
        f"The budget of '{dataset}' (epsilon {budget.epsilon:g}, delta {budget.delta:g}) does not "
        f"hold this release: asked epsilon {asked.epsilon(budget.delta):.4g} at that delta "
        f"(mu {asked.mu:.4g}), spent {statement.spent:.4g} (mu {statement.total.mu:.4g}), "
        f"remaining {statement.remaining:.4g} (mu {statement.left.mu:.4g}).",
        "Ask for a smaller epsilon, or raise the budget with 'gramercy budget --raise'.",
    )


def _charge(row: Row[Any], states: dict[str, set[str]]) -> Charge:
    known = states.get(row.release, set())
    state = next((m for m in ("published", "spent", "sealed", "drawn") if m in known), "charged")
    pure = math.inf if row.pure is None else row.pure
    guarantee = Guarantee(row.mu, row.delta0, pure)
    return Charge(row.release, row.version, guarantee, row.fingerprint, row.at, state)


def _differences(then: Any, now: Any, at: str = "") -> list[str]:
    """Names of the terms that differ, columns by their names."""
    if isinstance(then, dict) and isinstance(now, dict):
        keys = [*then, *(k for k in now if k not in then)]
        inner = [_differences(then.get(k), now.get(k), f"{at}.{k}".strip(".")) for k in keys]
        return [name for names in inner for name in names]
    if at == "columns" and [c["name"] for c in then] == [c["name"] for c in now]:
        pairs = zip(then, now, strict=True)
        return [x for a, b in pairs for x in _differences(a, b, f"columns.{a['name']}")]
    return [] if then == now else [at]


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _sqlite(path: Path) -> Engine:
    """An engine whose every transaction takes the write lock first, and is durable when it ends."""
    engine = create_engine(
        f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": _BUSY_SECONDS}
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in ("foreign_keys=ON", "journal_mode=DELETE", "synchronous=EXTRA"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
