"""What is checked before an entry is added, and of the ledger before it is trusted."""

from __future__ import annotations

import contextlib
import math

from sqlalchemy import Connection, select

from gramercy.ledger.database import described
from gramercy.ledger.database_tables import entries
from gramercy.ledger.entry import BEFORE
from gramercy.ledger.journal import read
from gramercy.ledger.place import place
from gramercy.ledger.queries import head_of, last_move, stated_place
from gramercy.ledger.statement import Charge, Statement
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import BudgetRefused, RequestError, SpentFailure, UntrustedLedger
from gramercy.schemas.model import one_line


def hold_to_place(db: Connection) -> None:
    """Hold a ledger to the place that it states.

    Raises
    ------
    UntrustedLedger
        If it is a copy of a ledger that belongs elsewhere.
    """
    belongs = stated_place(db)
    if belongs != place(db):
        raise UntrustedLedger(
            f"{described(db.engine)}: this ledger belongs at {belongs}. A copy would spend the "
            "same budget twice.",
            "Use that one. If it was moved, and nobody uses it there any more, say so with "
            "'gramercy budget --moved --reason WHY'.",
        )


def hold_to(db: Connection, anchor: Anchor | None, witness: str) -> None:
    """Hold a ledger to where it was seen to stand; see `LedgerReader.hold_to`.

    Raises
    ------
    UntrustedLedger
        If it is older than that, another, or rewritten.
    """
    now = head_of(db)
    if anchor is None:
        drawn = (entries.c.kind == "drawn", entries.c.seq > last_move(db).seq)
        unheard = read(db, *drawn, first=True)
        wrong = f"{witness} has never heard of it" if unheard else ""
    elif anchor.ledger != now.ledger:
        wrong = f"{witness} belongs to another ledger"
    elif anchor.seq > now.seq:
        wrong = f"it ends at entry {now.seq}, and {witness} has seen entry {anchor.seq}"
    else:
        at = select(entries.c.hash).where(entries.c.seq == anchor.seq)
        same = db.scalar(at) == anchor.hash
        wrong = "" if same else f"entry {anchor.seq} is not the one {witness} has seen"
    if wrong:
        lost = "if the archive is lost for good, 'gramercy budget --moved --reason WHY' says so"
        newer = "without it, what was charged is spent all the same, and nothing more fits"
        raise UntrustedLedger(
            f"{described(db.engine)}: {wrong}.",
            "Restore the ledger and the archive that belong together; "
            f"{lost if anchor is None else newer}.",
        )


def stated(reason: str, otherwise: str) -> str:
    """A steward's reason, on one line.

    Raises
    ------
    RequestError
        If it is empty, with the words `otherwise`; or if it is not one line of text.
    """
    if not reason.strip():
        raise RequestError(otherwise, "State it with --reason.")
    with contextlib.suppress(ValueError):
        return one_line(reason.strip())
    raise RequestError("--reason: holds what is no text on one line.", "Write it plainly.")


def check_direction(dataset: str, now: Budget, asked: Budget, *, lower: bool) -> None:
    """Refuse a new budget that is not larger, or not smaller where `lower`, than the present one.

    Raises
    ------
    RequestError
        Showing the present one.
    """
    less, more = (asked, now) if lower else (now, asked)
    if asked == now or less.epsilon > more.epsilon or less.delta > more.delta:
        raise RequestError(
            f"The budget of '{dataset}' is epsilon {now.epsilon:g}, delta {now.delta:g}.",
            f"It can only be {'lowered with --lower' if lower else 'raised with --raise'}.",
        )


def check_delta(asked: Budget, rows: int) -> None:
    """Refuse a new budget under which a whole row may be given away.

    Raises
    ------
    RequestError
        If its delta is 1/rows or more.
    """
    if asked.delta >= 1 / rows:
        raise RequestError(
            f"delta must lie below 1/rows = {1 / rows:.3g}.",
            "Otherwise one row in the table may be given away.",
        )


def check_request(dataset: str, before: Charge | None, instead_of: str | None) -> None:
    """Refuse to charge a request twice, unless it is to replace what was spent or withdrawn.

    Raises
    ------
    SpentFailure
        If it was charged before, and that release is not the one that is paid for again.
    """
    again = before and before.state in {"spent", "withdrawn"}
    if before is not None and not (again and before.release == instead_of):
        raise unanswered(dataset, before)


def check_mark(dataset: str, release: str, now: str, state: str) -> None:
    """Refuse a state that a release cannot come to from the one it has now.

    Raises
    ------
    SpentFailure
        Naming both.
    """
    if now not in BEFORE[state]:
        raise SpentFailure(
            f"Release '{dataset}/{release}' was already {now}, and cannot be {state}.",
            "'gramercy budget' shows what became of it.",
        )


def admit(dataset: str, statement: Statement, asked: Guarantee) -> None:
    """Refuse a charge that does not fit.

    Raises
    ------
    BudgetRefused
        Showing asked, spent and remaining.
    """
    if statement.admits(asked):
        return
    budget, failures = statement.budget, statement.total.delta0
    pure = asked.pure < math.inf
    remaining = statement.remaining if pure else statement.remaining_gaussian
    of = f" for the data of {statement.window}" if statement.window else ""
    failing = ""
    if asked.delta0:
        failing = (
            f" Of delta, {budget.failures:.3g} is set aside for failures: asked "
            f"{asked.delta0:.3g}, spent {failures:.3g}."
        )
    raise BudgetRefused(
        f"The budget of '{dataset}'{of} (epsilon {budget.epsilon:g}, delta {budget.delta:g}) does "
        f"not hold this release: asked epsilon {asked.epsilon(budget.delta):.4g} at that delta "
        f"(mu {asked.mu:.4g}), spent {statement.spent:.4g} (mu {statement.total.mu:.4g}), "
        f"remaining {remaining:.4g} (mu {statement.left.mu:.4g}).{failing}",
        "Ask for a smaller epsilon (a tenth of the budget's delta is always set aside), or raise "
        "the budget with 'gramercy budget --raise'.",
    )


def unanswered(dataset: str, charge: Charge) -> SpentFailure:
    """What to say of a charge with nothing to show for it."""
    name, again = f"'{dataset}/{charge.release}'", "To pay for a new release of the same version, "
    if charge.state == "withdrawn":
        return SpentFailure(
            f"Release {name} was withdrawn: {charge.reason.rstrip('.')}. Its charge is spent.",
            again + "add --new-charge.",
        )
    return SpentFailure(
        f"Release {name} was charged (mu = {charge.guarantee.mu:.4g}) and then interrupted: the "
        "charge is spent, and no noise will be drawn for it again.",
        again + "add --new-charge.",
    )
