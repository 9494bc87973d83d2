"""The first step: title, curator, version, and what the guarantee protects."""

from __future__ import annotations

from gramercy.cli.draft.prompts import ask_column, ask_number, ask_yes, until_valid
from gramercy.cli.draft.proposals import person_columns
from gramercy.cli.draft.review import Item, ask_line, review
from gramercy.cli.draft.session import Session
from gramercy.schemas import families


def ask_description(session: Session) -> None:
    """Ask what the data set is, and what is protected.

    Raises
    ------
    Back
        If the steward wants to return to the step before.
    """
    identifying = ", ".join(person_columns(session.draft.columns)[:3])
    note = f"If a person can have several rows (see {identifying}), answer 'protects'."
    shows_note = identifying and session.draft.unit is None
    review(session, "Step 1 of 3: the data set", _ITEMS, note if shows_note else "")
    session.answer(rows=_rows(session))


def _show_unit(session: Session) -> str:
    draft = session.draft
    if draft.unit is None:
        return "each row"
    exact = "exactly" if draft.neighbours == "replace-one" else "about"
    return f"each person, by the column {draft.unit}; {exact} {draft.persons} persons"


def _ask_unit(session: Session) -> None:
    def ask_once() -> str | None:
        question = "Column that identifies persons, if a person can have several rows"
        columns = session.draft.columns
        unit = ask_column(question, columns, none="none")
        if unit is not None and len(columns) == 1:
            raise families.DRAFT(
                "No other column is left to publish.",
                "Answer 'none' to protect rows instead of persons.",
            )
        return unit

    unit = until_valid(ask_once)
    if unit is None:
        session.answer(unit=None, persons=None, rows=None, neighbours="replace-one", delta=None)
        return
    public = _is_public("persons")
    persons = ask_number(f"{'N' if public else 'Approximate n'}umber of persons", int, least=1)
    rows = ask_number("Approximate number of rows", int, least=persons)
    neighbours = "replace-one" if public else "add-remove"
    session.answer(unit=unit, persons=persons, rows=rows, neighbours=neighbours, delta=None)


def _show_rows(session: Session) -> str:
    draft, rows = session.draft, _rows(session)
    if rows is None:
        return ""
    if draft.unit is not None:
        return f"about {rows}"
    public = draft.neighbours == "replace-one"
    return f"{rows}, exact and public" if public else f"about {rows}; the exact number is private"


def _rows(session: Session) -> int | None:
    """The number of rows; if it is public and not answered yet, as it was counted."""
    draft = session.draft
    exact = draft.unit is None and draft.neighbours == "replace-one"
    return draft.rows if draft.rows is not None or not exact else session.counted


def _ask_rows(session: Session) -> None:
    draft = session.draft
    if draft.unit is not None:
        rows = ask_number("Approximate number of rows", int, least=draft.persons)
        session.answer(rows=rows)
        return
    if _is_public("rows"):
        rows = ask_number("Number of rows", int, session.counted, least=1)
        session.answer(rows=rows, neighbours="replace-one", delta=None)
    else:
        rows = ask_number("Approximate number of rows", int, least=1)
        session.answer(rows=rows, neighbours="add-remove", delta=None)


def _is_public(counted: str) -> bool:
    question = f"Is the exact number of {counted} public? (If not, it is protected as well)"
    return ask_yes(question, default=True)


_ITEMS = (
    Item("title", lambda s: s.draft.title or "", ask_line("title", "Title of the data set")),
    Item(
        "curator",
        lambda s: s.draft.curator or "",
        ask_line("curator", "Curator: who is responsible for it"),
    ),
    Item(
        "version",
        lambda s: s.draft.version,
        ask_line("version", "Version: a public label of the data"),
    ),
    Item("protects", _show_unit, _ask_unit),
    Item("rows", _show_rows, _ask_rows),
)
