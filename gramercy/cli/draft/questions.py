"""Questions to the steward on a terminal, about what the table does not state.

Each of three steps shows what is proposed: Enter accepts it, a word changes a part of it, and
``back`` returns to the step before.
"""

from __future__ import annotations

import contextlib
import getpass

from gramercy.cli.draft.budget_questions import EPSILON, ask_budget
from gramercy.cli.draft.column_questions import ask_columns
from gramercy.cli.draft.description_questions import ask_description
from gramercy.cli.draft.drafting import Draft
from gramercy.cli.draft.prompts import Back, ask_yes, print_text
from gramercy.cli.draft.proposals import propose
from gramercy.cli.draft.session import Session


def ask(session: Session) -> Draft:
    """Complete a draft with the steward's answers, which are kept until `Session.forget`.

    Raises
    ------
    RequestError
        If the file of answers cannot be written.
    """
    _introduce(session)
    _resume_or_propose(session)
    steps = (ask_description, ask_columns, ask_budget)
    while (step := session.progress.step) < len(steps):
        try:
            steps[step](session)
        except Back:
            session.update(step=max(0, step - 1))
        else:
            session.update(step=step + 1)
    return session.draft.with_published_columns()


def _introduce(session: Session) -> None:
    print_text(
        f"Columns that can be published: {len(session.draft.columns)}. Only names, types and the "
        "number of rows were read.\nYour answers become public: answer from knowledge of the "
        "field, not from the data. 'back' returns\nto the question before. After an interruption, "
        "the same command continues here."
    )


def _resume_or_propose(session: Session) -> None:
    draft = session.draft
    if earlier := session.earlier():
        question = f"Continue with your answers, at step {earlier.step + 1} of 3?"
        with contextlib.suppress(Back):
            if ask_yes(question, default=True):
                session.update(**vars(earlier))
                return
    session.answer(
        title=draft.id.replace("-", " ").capitalize(),
        curator=_account(),
        columns=propose(draft.columns),
        epsilon=EPSILON,
    )


def _account() -> str | None:
    with contextlib.suppress(OSError, KeyError, ImportError):
        return getpass.getuser() or None
    return None
