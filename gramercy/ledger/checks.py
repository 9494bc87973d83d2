"""Checks before an entry is appended, and before a ledger is trusted."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from gramercy.ledger.database import display_location, entries, location_of
from gramercy.ledger.journal import has_budget, head_anchor, last_move, read, recorded_location
from gramercy.ledger.series import ChargedSeries, SeriesCharge
from gramercy.ledger.statement import Charge, Statement
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families, wordings
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.corrections import as_yaml
from gramercy.schemas.errors import SpentFailure, TermsChanged
from gramercy.schemas.ledger_history import Anchor, ChargeState
from gramercy.schemas.model import LONGEST_LABEL, canonical_json, single_line


def verify_location(db: Connection) -> None:
    """Verify that a ledger is where it says that it is."""
    recorded = recorded_location(db)
    if recorded != location_of(db):
        raise wordings.ledger_copied(display_location(db.engine), recorded)


def verify_anchor(db: Connection, anchor: Anchor | None, witness: str) -> None:
    """Verify a ledger against an anchor; see `Ledger.verify_anchor`."""
    head, ledger = head_anchor(db), display_location(db.engine)
    remedy = (
        "Restore the ledger and the archive that belong together: charges that are missing here "
        "are still spent."
    )
    if anchor is None:
        drawn = (entries.c.kind == ChargeState.DRAWN.value, entries.c.seq > last_move(db).seq)
        if read(db, *drawn, first=True):
            raise families.UNTRUSTED(
                "{ledger}: the ledger has drawn noise, but {witness} has no anchor of it.",
                "Restore the ledger and the archive that belong together; if the archive is lost "
                "for good, run 'gramercy budget --moved --reason WHY'.",
                ledger=ledger,
                witness=witness,
            )
    elif anchor.ledger != head.ledger:
        raise families.UNTRUSTED(
            "{ledger}: {witness} belongs to another ledger.",
            "{remedy}",
            remedy=remedy,
            ledger=ledger,
            witness=witness,
        )
    elif anchor.seq > head.seq:
        raise families.UNTRUSTED(
            "{ledger}: the ledger ends at entry {last}, but {witness} has an anchor of entry "
            "{anchored}.",
            "If this is an older copy, and the original is no longer used, run 'gramercy budget "
            "--moved --reason WHY': it brings the ledger up to date from the archive. Charges that "
            "are missing here are still spent.",
            ledger=ledger,
            last=head.seq,
            witness=witness,
            anchored=anchor.seq,
        )
    elif db.scalar(select(entries.c.hash).where(entries.c.seq == anchor.seq)) != anchor.hash:
        raise families.UNTRUSTED(
            "{ledger}: entry {entry} differs from the anchor in {witness}.",
            "{remedy}",
            remedy=remedy,
            ledger=ledger,
            entry=anchor.seq,
            witness=witness,
        )


def verify_terms(db: Connection, contract: Contract) -> None:
    """Verify that a contract states the terms with which its data set was registered."""
    first, *_ = budgets = read(db, *has_budget(contract.id))
    registered: dict[str, Any] = json.loads(first.fact("terms", str))
    stated = json.loads(canonical_json(contract.terms()))
    # A contract may state any budget that the data set has had; the last one is in use.
    earlier = [each.budget.model_dump() for each in budgets]
    registered["budget"] = stated["budget"] if stated["budget"] in earlier else earlier[-1]
    if changed := list(_differences(registered, stated)):
        raise _terms_changed(contract, registered, changed)
    delta, limit = budgets[-1].budget.delta, 1 / contract.count
    if delta >= limit:
        raise families.TERMS(
            "The budget of '{dataset}' has delta={delta:g}, which must be less than 1/{count_key} "
            "= {limit:.3g}.",
            "Lower it with 'gramercy budget --lower'.",
            dataset=contract.id,
            delta=delta,
            count_key=contract.count_key,
            limit=limit,
        )


@dataclass(frozen=True)
class _Change:
    """A registered fact that a contract states otherwise; None where there is no such fact."""

    key: str
    registered: Any
    stated: Any
    column: str = ""  # whose fact it is

    @property
    def in_words(self) -> str:
        """What was registered and what is stated."""
        if self.registered is None:
            return f"{self.key} is new"
        if self.stated is None:
            return f"{self.key} is missing"
        return f"{self.key} was {as_yaml(self.registered)} and is {as_yaml(self.stated)}"


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Change]:
    """The terms that differ, columns by their names."""
    before, now = ({x["name"]: x for x in terms["columns"]} for terms in (old, new))
    for key in dict.fromkeys([*old, *new]):
        if key != "columns":
            yield from _inner(old.get(key), new.get(key), key)
        elif before == now and list(before) != list(now):
            yield _Change(key, list(before), list(now))
        else:
            for name in dict.fromkeys([*before, *now]):
                yield from _inner(before.get(name), now.get(name), f"columns.{name}", name)


def _inner(old: Any, new: Any, key: str, column: str = "") -> Iterator[_Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        for inner in dict.fromkeys([*old, *new]):
            yield from _inner(old.get(inner), new.get(inner), f"{key}.{inner}", column)
    elif old != new:
        yield _Change(key, old, new, column)


def _terms_changed(
    contract: Contract, registered: Mapping[str, Any], changes: Sequence[_Change]
) -> TermsChanged:
    """The error for changed terms, with what to write in the contract for each of them."""
    columns = {each["name"]: _written(each) for each in registered["columns"]}
    added = [each.column for each in changes if each.column and each.column not in columns]
    matched = {name for names in contract.patterns.values() for name in names}
    excluded = [name for name in added if name in matched]
    declared = [name for name in added if name not in matched]
    remedies = [
        f"Write exclude: {as_yaml(excluded)} in the contract, with what is excluded already: "
        "a pattern in 'columns' matches these new columns of the table."
    ] * bool(excluded)
    remedies += [f"Remove from 'columns': {', '.join(declared)}."] * bool(declared)
    for each in changes:
        if each.column in columns:
            line = as_yaml({each.column: columns[each.column]})[1:-1]
            remedies.append(f"Write {line} in 'columns'.")
            if each.column not in contract.columns:
                remedies.append("The table must have this column; its cells may be empty.")
        elif each.key.startswith("budget."):
            remedies.append("To change a budget, use 'gramercy budget --raise' or '--lower' first.")
        elif each.key == "columns":
            remedies.append(f"List 'columns' in this order: {', '.join(each.registered)}.")
        elif each.registered is not None:
            remedies.append(f"Write {each.key}: {as_yaml(each.registered)}.")
        elif not each.column:
            remedies.append(f"Remove {each.key}.")
    return families.TERMS(
        "Data set '{dataset}' was registered with other terms: {changes}.",
        "{remedy} Earlier guarantees depend on these terms. Use a new id only for a data set that "
        "shares no people with this one.",
        dataset=contract.id,
        changes=tuple(each.in_words for each in changes),
        terms=tuple(each.key for each in changes),
        exclude=tuple(excluded),
        remedy=" ".join(dict.fromkeys(remedies)),
    )


def _written(column: Mapping[str, Any]) -> dict[str, Any]:
    """A registered column as a contract states it."""
    facts = {key: value for key, value in column.items() if key != "name"}
    lower, upper = facts.get("lower"), facts.get("upper")
    if lower is not None and upper is not None:
        defaults = {"centre": lower / 2 + upper / 2, "scale": upper / 2 - lower / 2}
        facts = {key: x for key, x in facts.items() if defaults.get(key) != x}
    return facts


def checked_reason(reason: str) -> str:
    """A steward's reason, without blanks around it."""
    if not reason.strip():
        raise families.CHANGE(
            "A reason is required.",
            "State it with --reason.",
        )
    with contextlib.suppress(ValueError):
        return single_line(reason.strip())
    raise families.CHANGE(
        "--reason must be a single line of text.",
        "Remove line breaks and control characters.",
    )


def check_direction(dataset: str, current: Budget, new: Budget, *, lower: bool) -> None:
    """Refuse a new budget that is not larger, or not smaller if `lower`, than the current one."""
    smaller, larger = (new, current) if lower else (current, new)
    if new == current or smaller.epsilon > larger.epsilon or smaller.delta > larger.delta:
        wanted, other, numbers = (
            ("lower", "raise", "smaller") if lower else ("raise", "lower", "larger")
        )
        raise families.CHANGE(
            "--{wanted} must not {other} epsilon or delta, and must change one of them: the "
            "budget of '{dataset}' is epsilon={epsilon:g}, delta={delta:g}.",
            "Give {numbers} numbers, or use --{other}.",
            wanted=wanted,
            other=other,
            numbers=numbers,
            dataset=dataset,
            epsilon=current.epsilon,
            delta=current.delta,
        )


def check_delta(budget: Budget, rows: int) -> None:
    """Refuse a new budget at which a whole row could be published."""
    if budget.delta >= 1 / rows:
        raise families.BUDGET_DELTA(
            "delta must be less than 1/rows = {limit:.3g}.",
            "Choose a smaller delta: at this one, publishing a whole row would be allowed.",
            limit=1 / rows,
        )


def check_name(version: str, number: int) -> None:
    """Refuse a version that is too long for the id of its next release."""
    most = LONGEST_LABEL - len(f"-r{number}")
    if len(version) > most:
        raise families.PERIOD(
            "The version {version} is too long: its next release is number {number}.",
            "Write a version of at most {most} characters.",
            version=version,
            number=number,
            most=most,
        )


def check_not_charged(dataset: str, earlier: Charge | None, instead_of: str | None) -> None:
    """Refuse to charge a request twice, unless it replaces a spent or withdrawn release."""
    if earlier and not (earlier.state.is_closed and earlier.release == instead_of):
        raise spent_failure(dataset, earlier)


def check_step(
    dataset: str,
    version: str,
    series: SeriesCharge,
    window: Guarantee,
    charged: ChargedSeries,
    instead_of: str | None,
) -> None:
    """Refuse a step of another series, one that is charged, and one before those before it.

    Parameters
    ----------
    window
        The guarantee of the whole window, with every step drawn once.
    charged
        The series so far.
    instead_of
        The spent or withdrawn release of the step that a new charge replaces.
    """
    if window != Guarantee(window.mu):
        raise families.REQUEST_USE(
            "A series needs a Gaussian mechanism: its guarantee must be a mu that never fails.",
            "Write 'name: gaussian' in 'mechanism'.",
        )
    if charged.charges:
        _check_same_series(dataset, series, window, charged.charges[0])
    *before, own = charged.before(series.step + 1)
    check_not_charged(dataset, own, instead_of)
    check_before(dataset, version, before)


def check_before(dataset: str, version: str, before: Sequence[Charge | None]) -> None:
    """Refuse a step that cannot be decoded, because one before it is not published.

    Parameters
    ----------
    version
        That of the step.
    before
        The charges of all steps before it; see `ChargedSeries.before`.
    """
    for earlier in before:
        if earlier is None:
            raise families.PERIOD(
                "A step before {version} is not published.",
                "Run 'gramercy release' with the same request: it publishes the steps in order.",
                version=version,
            )
        if earlier.state.is_closed:
            raise families.SPENT(
                "{version} needs the numbers of all steps before it, and {earlier} ({release}) was "
                "{state}.",
                "Publish step {earlier} under a new charge: run 'gramercy release REQUEST --period "
                "{earlier} --new-charge'. It shows the charge, and asks.",
                version=version,
                earlier=earlier.version,
                release=f"{dataset}/{earlier.release}",
                state="withdrawn" if earlier.state is ChargeState.WITHDRAWN else "interrupted",
            )
        if not earlier.is_published:
            raise families.SPENT(
                "{version} needs the numbers of all steps before it, and {earlier} ({release}) is "
                "not published yet.",
                "Repeat the request of {earlier}: it is then finished, or recorded as spent.",
                version=version,
                earlier=earlier.version,
                release=f"{dataset}/{earlier.release}",
            )


def _check_same_series(
    dataset: str, series: SeriesCharge, window: Guarantee, first: Charge
) -> None:
    """Refuse a step of a series whose first charge registered other facts."""
    release = f"{dataset}/{first.release}"
    if first.series is None or first.series.terms != series.stated().terms:
        raise families.TERMS(
            "{release} is the first step of a series with other dates of its steps, or another "
            "column of dates or type of it: the table was moved or retyped.",
            "Restore the column and its type. What was charged for the series holds for steps "
            "whose rows are always the same.",
            release=release,
        )
    if first.guarantee != window:
        raise families.TERMS(
            "Step {step} of a series needs mu={mu:.6g} for all its steps, but {release} charged "
            "mu={charged:.6g} for them.",
            "Use the version of Gramercy that published {release}: all steps have the same noise.",
            step=series.step,
            mu=window.mu,
            release=release,
            charged=first.guarantee.mu,
        )


def check_transition(
    dataset: str, release: str, state: ChargeState | None, new_state: ChargeState
) -> None:
    """Refuse a state that a release cannot enter from its present one; None if never charged."""
    if state not in new_state.before:
        raise families.SPENT(
            "Release {release} is {state}, and cannot become {new_state}.",
            "'gramercy budget' shows the state of every release.",
            release=f"{dataset}/{release}",
            state=state or "never charged",
            new_state=new_state,
        )


def check_budget(dataset: str, statement: Statement, guarantee: Guarantee) -> None:
    """Refuse a charge that does not fit the budget."""
    if statement.admits(guarantee):
        return
    budget, total = statement.budget, statement.total
    name = f"{dataset}, data of {statement.window}" if statement.window else dataset
    after = statement.after(guarantee).total
    if guarantee.delta0 and after.delta0 > budget.failure_share:
        raise families.EXCEEDED(
            "The failure share of the budget of {budget} is exceeded: this release needs "
            "delta0={needed:.3g}, and delta0={spent:.3g} of {share:.3g} was spent.",
            "Choose a mechanism with delta0 = 0 or a smaller delta0, or raise the budget's delta "
            "with 'gramercy budget --raise'.",
            budget=name,
            needed=guarantee.delta0,
            spent=total.delta0,
            share=budget.failure_share,
        )
    pure = guarantee.pure < math.inf
    raise families.EXCEEDED(
        "The budget of {budget} is exceeded. At its delta={delta:g}, this release needs "
        "epsilon={needed:.4g} (mu={needed_mu:.4g}); epsilon={left:.4g} (mu={left_mu:.4g}) is left "
        "of epsilon={epsilon:g}, after epsilon={spent:.4g} (mu={spent_mu:.4g}) was spent.",
        "Ask for a smaller epsilon (a tenth of the budget's delta is always set aside), or raise "
        "the budget with 'gramercy budget --raise'.",
        budget=name,
        needed=guarantee.epsilon(budget.delta),
        needed_mu=guarantee.mu,
        left=statement.remaining if pure else statement.remaining_gaussian,
        left_mu=statement.left.mu,
        epsilon=budget.epsilon,
        delta=budget.delta,
        spent=statement.spent,
        spent_mu=total.mu,
    )


def spent_failure(dataset: str, charge: Charge) -> SpentFailure:
    """The error for a charge that cannot be answered with a release."""
    name = f"{dataset}/{charge.release}"
    if charge.series is not None:
        return _step_failure(name, charge)
    if charge.state is ChargeState.WITHDRAWN:
        return families.SPENT(
            "Release {release} was withdrawn: {reason}. Its charge is spent.",
            "To publish this version under a new charge, add --new-charge.",
            release=name,
            reason=charge.reason.rstrip("."),
        )
    return families.SPENT(
        "Release {release} was charged (mu={mu:.4g}) and then interrupted: the charge "
        "is spent, and its noise is never drawn again.",
        "To publish this version under a new charge, add --new-charge.",
        release=name,
        mu=charge.guarantee.mu,
    )


def _step_failure(release: str, charge: Charge) -> SpentFailure:
    """The error for a step of a series that cannot be answered with a release."""
    withdrawn = charge.state is ChargeState.WITHDRAWN
    return families.SPENT(
        "Release {release} of step {version} was {state}: a step is never drawn again for the same "
        "charge.",
        "Publish step {version} under a new charge: run 'gramercy release REQUEST --period "
        "{version} --new-charge'. It shows the charge, and asks.",
        release=release,
        version=charge.version,
        state=f"withdrawn ({charge.reason.rstrip('.')})" if withdrawn else "interrupted",
    )
