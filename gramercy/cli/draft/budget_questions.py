"""The last step: the budget of the data set, and the first release's share of it."""

from __future__ import annotations

import math

from gramercy.cli.draft.prompts import ask_number, until_valid
from gramercy.cli.draft.review import Item, review
from gramercy.cli.draft.session import Session
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse

EPSILON = 3.0  # the proposed budget, in which three releases with epsilon 1 have room


def ask_budget(session: Session) -> None:
    """Ask for the budget of all releases, and for the epsilon of the first one.

    Raises
    ------
    Back
        If the steward wants to return to the step before.
    """
    if session.draft.delta is None:
        delta = _suggested(session)
        session.answer(delta=delta, release_delta=delta / 10)
    review(session, "Step 3 of 3: the privacy budget", _ITEMS)


def _ask_privacy(session: Session) -> None:
    """Ask for the budget's epsilon and delta."""
    draft = session.draft
    suggested = _suggested(session)

    def ask_once() -> None:
        epsilon = ask_number("Epsilon of the budget, for all releases", float, draft.epsilon)
        delta = ask_number("Delta of the budget", float, draft.delta or suggested)
        parse(Budget, {"epsilon": epsilon, "delta": delta}, "budget", RequestError)
        first = min(draft.release_epsilon, epsilon)
        release_delta = min(suggested, delta) / 10
        session.answer(
            epsilon=epsilon, delta=delta, release_epsilon=first, release_delta=release_delta
        )

    until_valid(ask_once)


def _ask_first_epsilon(session: Session) -> None:
    question, default = "Epsilon of the first release", session.draft.release_epsilon
    session.answer(release_epsilon=ask_number(question, float, default))


def default_delta(count: int) -> float:
    """A power of ten: at most 1e-6, and at most 1/(10 n) for n rows or persons."""
    return 10.0 ** -max(6, math.ceil(math.log10(count)) + 1)


def _suggested(session: Session) -> float:
    return default_delta(session.draft.persons or session.draft.rows or 1)


def _show_budget(session: Session) -> str:
    draft = session.draft
    return f"epsilon={draft.epsilon:g}, delta={draft.delta:g}, for all releases together"


def _show_first(session: Session) -> str:
    return f"epsilon={session.draft.release_epsilon:g}, for the first release"


_ITEMS = (
    Item("budget", _show_budget, _ask_privacy),
    Item("release", _show_first, _ask_first_epsilon),
)
