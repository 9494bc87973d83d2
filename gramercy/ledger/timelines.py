"""What became of a budget, event by event, in the journal's own order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gramercy.ledger.entry import Entry
from gramercy.ledger.statement import Charge, Statement
from gramercy.mechanisms.accounting.composition import NOTHING, Total
from gramercy.schemas.budget import Budget
from gramercy.schemas.timeline import Charged, Event, Timeline, What

_BUDGETS: dict[str, What] = {"registered": "registered", "raised": "raised", "lowered": "lowered"}


def timelines(
    dataset: str, journal: Iterable[Entry], mechanisms: Mapping[str, str]
) -> tuple[Timeline, ...]:
    """The timeline of a data set, or one for every calendar year of its data.

    Parameters
    ----------
    dataset
        Which.
    journal
        All its entries, in order.
    mechanisms
        Names of mechanisms by release, as far as they are known.

    Raises
    ------
    UntrustedLedger
        If an entry does not say what such an entry says.
    """
    entries = list(journal)
    marks: dict[str, list[Entry]] = {}
    for each in entries:
        marks.setdefault(str(each.release), []).append(each)
    windows = sorted({str(each.window) for each in entries if each.kind == "reserved"})
    found = []
    for window in windows or [""]:
        of_it = (e for e in entries if e.kind in _BUDGETS or _is_charged_to(e, window))
        events: list[Event] = []
        total, budget = NOTHING, entries[0].budget
        for entry in of_it:
            if entry.kind in _BUDGETS:
                budget = entry.budget
                events.append(_changed(entry, total))
            else:
                total = entry.total
                name = mechanisms.get(str(entry.release), "")
                events.append(_charged(marks[str(entry.release)], budget, name))
        found.append(Timeline(dataset, window, tuple(events)))
    return tuple(found)


def _is_charged_to(entry: Entry, window: str) -> bool:
    return entry.kind == "reserved" and entry.window == window


def _changed(entry: Entry, total: Total) -> Event:
    budget, reason = entry.budget, entry.says("reason", str)
    spent = Statement(budget, total).spent
    return Event(entry.at, _BUDGETS[entry.kind], budget.epsilon, budget.delta, spent, reason)


def _charged(known: list[Entry], budget: Budget, mechanism: str) -> Event:
    """A charge, from its own entry and the marks after it."""
    charge = Charge.of(known)
    guarantee = charge.guarantee
    charged = Charged(
        charge.release,
        charge.version,
        charge.state,
        guarantee.mu,
        guarantee.delta0,
        guarantee.pure,
        guarantee.epsilon(budget.delta),
        mechanism,
        charge.sha256,
    )
    spent = Statement(budget, known[0].total).spent
    return Event(charge.at, "charged", budget.epsilon, budget.delta, spent, charge.reason, charged)
