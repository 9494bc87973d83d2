"""Open a ledger and read it: budgets and charges, where it stands, and whether it can be trusted.

Every question is one transaction, which sees one moment however much it reads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from gramercy.common.home import Home
from gramercy.ledger import checks, queries
from gramercy.ledger.database import described, engine_of, failure_name
from gramercy.ledger.database_tables import entries
from gramercy.ledger.entry import CHANGED, Entry
from gramercy.ledger.examine import Finding, examine
from gramercy.ledger.journal import read, walk
from gramercy.ledger.migrate import migrate
from gramercy.ledger.place import place
from gramercy.ledger.statement import Charge, Raise, Statement
from gramercy.ledger.terms import hold_to_terms, terms_of
from gramercy.ledger.timelines import timelines
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import LedgerError
from gramercy.schemas.timeline import Timeline


class LedgerReader:
    """A budget ledger, for code that only reads it.

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
    def of(cls, home: Home) -> Self:
        """The ledger of a home: its own, or the one of $GRAMERCY_LEDGER_URL."""
        return cls(home.ledger_url or home.ledger)

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
            checks.hold_to_place(db)
            if not queries.is_registered(db, contract.id):
                return Statement(contract.budget, window=window)
            hold_to_terms(db, contract)
            return queries.statement(db, contract.id, window)

    def statement(self, dataset: str, window: str = "") -> Statement:
        """Budget and total of a registered data set, or of one year of its data.

        Raises
        ------
        RequestError
            If it is not registered.
        """
        with self._reading() as db:
            return queries.statement(db, dataset, window)

    def statements(self, dataset: str) -> tuple[Statement, ...]:
        """One, or one for every calendar year of the data that was charged."""
        charged = select(entries.c.window).where(*queries.charged_to(dataset)).distinct()
        with self._reading() as db:
            windows = sorted(db.scalars(charged)) or [""]
            return tuple(queries.statement(db, dataset, window) for window in windows)

    def around(self, dataset: str, release: str) -> tuple[Statement, Statement]:
        """The statement before a release was charged, and after; with the budget now in force."""
        with self._reading() as db:
            (entry,) = read(db, *queries.charged_to(dataset), entries.c.release == release)
            window = str(entry.window)
            before = queries.total(db, dataset, window, entries.c.seq < entry.seq)
            budget = queries.raises(db, dataset)[-1].budget
            return Statement(budget, before, window), Statement(budget, entry.total, window)

    def charges(self, dataset: str) -> tuple[Charge, ...]:
        """Every charge of a data set, oldest first."""
        with self._reading() as db:
            return tuple(queries.charges(db, dataset))

    def raises(self, dataset: str) -> tuple[Raise, ...]:
        """Every budget that a data set has had, the registered one first."""
        with self._reading() as db:
            return queries.raises(db, dataset)

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
            queries.raises(db, dataset)
            journal = read(db, entries.c.dataset == dataset)
        return timelines(dataset, journal, mechanisms or {})

    def charge_of(self, dataset: str, release: str) -> Charge | None:
        """The charge of a release, if there is one."""
        with self._reading() as db:
            return next(queries.charges(db, dataset, entries.c.release == release), None)

    def find(self, dataset: str, request: str) -> Charge | None:
        """The charge that answers this very request: the published one, else the last."""
        with self._reading() as db:
            return queries.find(db, dataset, request)

    def sealed(self, dataset: str) -> list[Charge]:
        """Charges whose bundle was sealed, and that lack their last mark."""
        named = entries.c.dataset == dataset
        done = select(entries.c.release).where(named, entries.c.kind.in_(["published", "spent"]))
        waiting = (entries.c.kind == "sealed", entries.c.release.not_in(done))
        with self._reading() as db:
            return list(queries.charges(db, dataset, *waiting))

    def releases(self, dataset: str) -> set[str]:
        """Ids of the releases that were charged, whatever became of them."""
        with self._reading() as db:
            return set(db.scalars(select(entries.c.release).where(*queries.charged_to(dataset))))

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
                budgets = read(db, *queries.budgets_of(dataset))
                charged = read(db, *queries.charged_to(dataset))
            shared = next((each.seq for each in budgets if each.states("failures")), math.inf)
            older = Counter(str(entry.window) for entry in charged if entry.seq < shared)
            found |= {(dataset, window): n for window, n in older.items() if n > 1}
        return found

    def of_persons_by_year(self) -> list[str]:
        """Data sets that were registered with persons as their unit and a budget per year."""
        found = []
        with self._reading() as db:
            for entry in read(db, entries.c.kind == "registered"):
                unit = terms_of(entry).get("unit")
                if entry.budget.per == "year" and unit not in {"row", "cell"}:
                    found.append(str(entry.dataset))
        return found

    def changes(self) -> list[Entry]:
        """Entries by which a steward has changed what may be charged: moves, and new budgets."""
        with self._reading() as db:
            return read(db, entries.c.kind.in_(["moved", *CHANGED]))

    def head(self) -> Anchor:
        """The last entry: to be told outside of this ledger."""
        with self._reading() as db:
            return queries.head_of(db)

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
            checks.hold_to(db, anchor, witness)

    def elsewhere(self) -> str | None:
        """Where this ledger belongs, if that is not here: this is a copy of it."""
        with self._reading() as db:
            belongs = queries.stated_place(db)
            return None if belongs == place(db) else belongs

    def examine(self, anchors: Iterable[Anchor] = ()) -> list[Finding]:
        """Everything that is wrong with this ledger; see `ledger.examine.examine`."""
        with self._reading() as db:
            return examine(walk(db), queries.head_of(db), anchors)

    def entries(self) -> list[Entry]:
        """The whole journal, in order."""
        with self._reading() as db:
            return list(walk(db))

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
    def _trouble(self) -> Iterator[None]:
        """Errors of the database and of the disk become one that names the ledger."""
        failure = None
        try:
            yield
        except (SQLAlchemyError, OSError) as caught:
            failure = failure_name(caught)
        if failure:
            raise LedgerError(
                f"{self.where}: the ledger cannot be used ({failure}).",
                "Check that the disk has room, the file is yours, the server answers, and no other "
                "process holds it.",
            ) from None  # the driver's error, which is being handled, quotes the URL
