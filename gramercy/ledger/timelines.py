"""The timeline of a budget: its changes and charges, in the order of the journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gramercy.ledger.entry import RELEASE_KINDS, Entry
from gramercy.ledger.statement import Charge, Statement
from gramercy.mechanisms.accounting.composition import NO_CHARGES, Total
from gramercy.schemas.budget import Budget
from gramercy.schemas.timeline import ChargeRecord, Event, EventKind, Timeline

_BUDGETS: dict[str, EventKind] = {
    "registered": "registered",
    "raised": "raised",
    "lowered": "lowered",
}


def timelines(
    dataset: str, journal: Iterable[Entry], mechanisms: Mapping[str, str]
) -> tuple[Timeline, ...]:
    """The timeline of a data set, or one for every calendar year of its data.

    Parameters
    ----------
    dataset
        Id of the data set.
    journal
        All its entries, in order.
    mechanisms
        Names of mechanisms by release, where available.

    Raises
    ------
    UntrustedLedger
        If an entry is malformed.
    """
    entries = list(journal)
    by_release: dict[str, list[Entry]] = {}
    for each in entries:
        if each.kind in RELEASE_KINDS:
            by_release.setdefault(str(each.release), []).append(each)
    windows = sorted({str(each.window) for each in entries if each.kind == "reserved"})
    made = []
    for window in windows or [""]:
        events: list[Event] = []
        total, budget = NO_CHARGES, entries[0].budget
        for entry in entries:
            if entry.kind in _BUDGETS:
                budget = entry.budget
                events.append(_budget_event(entry, total))
            elif entry.kind == "reserved" and entry.window == window:
                total = entry.total
                release = str(entry.release)
                mechanism = mechanisms.get(release, "")
                events.append(_charge_event(by_release[release], budget, mechanism))
        made.append(Timeline(dataset, window, tuple(events)))
    return tuple(made)


def _budget_event(entry: Entry, total: Total) -> Event:
    budget, reason = entry.budget, entry.fact("reason", str)
    spent = Statement(budget, total).spent
    return Event(entry.at, _BUDGETS[entry.kind], budget.epsilon, budget.delta, spent, reason)


def _charge_event(entries: list[Entry], budget: Budget, mechanism: str) -> Event:
    """A charge and its present state, from all entries of its release."""
    charge = Charge.of(entries)
    guarantee = charge.guarantee
    charged = ChargeRecord(
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
    spent = Statement(budget, entries[0].total).spent
    return Event(charge.at, "charged", budget.epsilon, budget.delta, spent, charge.reason, charged)
