"""All data sets of a ledger at once, in as few queries as for one of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from gramercy.ledger.database_tables import entries
from gramercy.ledger.entry import BUDGET_KINDS
from gramercy.ledger.journal import read
from gramercy.ledger.statement import BudgetChange, Statement
from gramercy.mechanisms.accounting.composition import NO_CHARGES


@dataclass(frozen=True)
class DatasetAccounts:
    """The budgets of a data set and the charges to them.

    Parameters
    ----------
    changes
        The budget as it was registered, raised and lowered.
    statements
        One statement, or one for every period of the data that was charged.
    charged
        Number of charges, by the period of the data; the period is empty with one budget.
    """

    changes: tuple[BudgetChange, ...]
    statements: tuple[Statement, ...]
    charged: Mapping[str, int]


class LedgerOverview(ABC):
    """The part of a reader that is about all data sets."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]:
        """A transaction that reads from one snapshot."""

    def published(self) -> set[tuple[str, str]]:
        """(data set, release id) of every release that was ever published."""
        query = select(entries.c.dataset, entries.c.release).where(entries.c.kind == "published")
        with self._reading() as db:
            return {(str(dataset), str(release)) for dataset, release in db.execute(query)}

    def statements_by_dataset(self) -> dict[str, tuple[Statement, ...]]:
        """Budgets and totals of all data sets, as `statements` returns them for one.

        Raises
        ------
        UntrustedLedger
            If an entry is malformed.
        """
        with self._reading() as db:
            return _statements(db, _budgets(db))

    def accounts(self) -> dict[str, DatasetAccounts]:
        """Budgets, totals and numbers of charges of all data sets, by their ids.

        Charges are only counted, so that memory does not grow with them; raises as above.
        """
        with self._reading() as db:
            changes = _budgets(db)
            statements, charged = _statements(db, changes), _charge_counts(db)
        return {
            name: DatasetAccounts(changes[name], statements[name], charged.get(name, {}))
            for name in sorted(changes)
        }


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
        .where(entries.c.kind == "reserved")
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


def _charge_counts(db: Connection) -> dict[str, dict[str, int]]:
    """Number of charges, by data set and period of the data."""
    count = select(entries.c.dataset, entries.c.window, func.count())
    count = count.where(entries.c.kind == "reserved").group_by(entries.c.dataset, entries.c.window)
    counts: dict[str, dict[str, int]] = {}
    for dataset, window, charges in db.execute(count):
        counts.setdefault(str(dataset), {})[str(window)] = charges
    return counts
