"""Questions about columns: all at once, some by name or pattern, or one after another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gramercy.cli.draft.column_answers import Columns, ask_bounds, ask_levels
from gramercy.cli.draft.drafting import LEVELS, NUMBERS, Column
from gramercy.cli.draft.prompts import BACK, Back, ask_choice, ask_text, print_text, until_valid
from gramercy.cli.draft.proposals import Run, propose, runs, summary
from gramercy.cli.draft.session import Session
from gramercy.common.similar_names import most_similar_first
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.pipeline.plan.scaling_plan import rows_needed
from gramercy.schemas import families, wordings

_EACH, _ABOVE, _SKIP, _DONE = "each", "above", "skip", "done"
_MOST_LISTED = 8


def ask_columns(session: Session) -> None:
    """Ask which columns to publish, and how; `Column.published` has the answers.

    Raises
    ------
    Back
        If the steward wants to return to the step before.
    """
    while True:
        if session.progress.column is not None:
            _ask_one_by_one(session)
        print_text("\nStep 2 of 3: columns (bounds are optional)")
        _show(session)
        if until_valid(lambda: _choose(session)):
            return


def _show(session: Session) -> None:
    """Print how many columns are published in which way."""
    columns, ways = session.candidates, dict[str, list[Run]]()
    found = runs(columns)
    for run in sorted(found, key=lambda each: not columns[each.names[0]].published):
        ways.setdefault(summary(columns[run.names[0]]), []).append(run)
    for way, alike in ways.items():
        labels = [f"{x.label} ({len(x.names)})" if x.names[1:] else x.label for x in alike]
        omitted = len(labels) - _MOST_LISTED
        rest = f", and {omitted} more" if omitted > 0 else ""
        count = sum(len(run.names) for run in alike)
        print_text(f"  {count} {way}: {', '.join(labels[:_MOST_LISTED])}{rest}")
    rows, needed = session.draft.persons or session.draft.rows or 1, _rows_needed(session)
    if needed > rows:
        print_text(
            f"  Without bounds, about {needed} {'persons' if session.draft.unit else 'rows'} are "
            f"needed, and there are {rows}: declare bounds, or leave columns out."
        )


def _rows_needed(session: Session) -> int:
    """Number of rows or persons from which releases can estimate the constants of columns."""
    published = [column for column in session.candidates.values() if column.published]
    if all(column.levels is not None or column.lower is not None for column in published):
        return 0
    draft = session.draft
    width = sum(len(column.levels or [None]) for column in published)
    return rows_needed(width, gdp_mu(draft.release_epsilon, draft.release_delta))


def _choose(session: Session) -> bool:
    """Whether the steward accepts the columns; otherwise ask about those that are named."""
    answer = ask_text(
        f"Enter to accept; a column or a pattern such as lab_* to change it; '{_EACH}' for one "
        "after another",
        "",
    )
    columns = session.candidates
    if not answer:
        if not any(column.published for column in columns.values()):
            raise families.DRAFT(
                "No column was chosen.",
                "Give at least one column bounds or levels.",
            )
        return True
    names = _matching(answer, list(columns))
    if not names and _EACH.startswith(answer):
        session.update(column=next(iter(columns)), split=())
    elif not names:
        raise wordings.answer_not_a_column(answer, most_similar_first(answer, columns))
    else:
        _ask_named(session, answer, names)
    return False


def _matching(answer: str, names: Sequence[str]) -> list[str]:
    if answer in names:
        return [answer]
    pattern = re.compile(".*".join(map(re.escape, answer.split("*"))), re.DOTALL)
    return [name for name in names if pattern.fullmatch(name)]


def _ask_named(session: Session, label: str, names: Sequence[str]) -> None:
    columns = {name: session.candidates[name] for name in names}
    kinds = _kinds(columns)
    counted = f" ({len(names)} columns)" if names[1:] else ""
    try:
        answer = ask_choice(f"{label}{counted}: {_listed((*kinds, _SKIP, BACK))}?", (*kinds, _SKIP))
        _record(session, answer, columns)
    except Back:
        return


def _ask_one_by_one(session: Session) -> None:
    """Ask about one run of columns after another; each answer is kept."""
    print_text(
        "\nEnter keeps what is in parentheses, 'above' repeats the last answer, and 'done' keeps "
        "all\nthat follow. The first letter is enough."
    )
    while (current := session.progress.column) is not None:
        columns = session.candidates
        found = _runs(session)
        index = next((k for k, run in enumerate(found) if current in run.names), len(found) - 1)
        run, before = found[index], found[index - 1] if index else None
        try:
            answer = _ask_run(run, columns, before)
        except Back:
            session.update(column=before.names[0] if before else None)
            continue
        if answer == _EACH:
            session.update(split=(*session.progress.split, *run.names))
            continue
        following = found[index + 1].names[0] if found[index + 1 :] else None
        try:
            members = {name: columns[name] for name in run.names}
            _record(session, answer, members, columns[before.names[-1]] if before else None)
        except Back:
            continue
        session.update(column=None if answer == _DONE else following)


def _ask_run(run: Run, columns: Columns, before: Run | None) -> str:
    members = {name: columns[name] for name in run.names}
    kinds = _kinds(members)
    choices = [*kinds, _SKIP]
    if before is not None and _can_repeat(columns[before.names[-1]], kinds):
        choices.append(_ABOVE)
    if run.names[1:]:
        choices.append(_EACH)
    choices.append(_DONE)
    counted = f", {len(run.names)} columns" if run.names[1:] else ""
    ways = {summary(column): None for column in members.values()}
    return ask_choice(
        f"[{run.positions}/{len(columns)}] {run.label}{counted} ({'; '.join(ways)}): "
        f"{_listed((*choices, BACK))}?",
        choices,
    )


def _record(session: Session, answer: str, columns: Columns, before: Column | None = None) -> None:
    """Ask for bounds or levels if the answer needs them, and keep the answer."""
    if answer == NUMBERS:
        changed = ask_bounds(columns)
    elif answer == LEVELS:
        changed = ask_levels(columns)
    elif answer == _SKIP:
        changed = {name: replace(column, published=False) for name, column in columns.items()}
    elif answer == _ABOVE and before is not None:
        changed = {name: replace(before, kind=column.kind) for name, column in columns.items()}
    else:
        return
    session.answer(columns={**session.draft.columns, **changed})


def _kinds(columns: Columns) -> list[str]:
    """The ways in which all of the columns can be published."""
    return [
        kind
        for kind in (NUMBERS, LEVELS)
        if all(kind in column.publishable_as for column in columns.values())
    ]


def _can_repeat(column: Column, kinds: Sequence[str]) -> bool:
    return not column.published or (NUMBERS if column.levels is None else LEVELS) in kinds


def _runs(session: Session) -> list[Run]:
    """The columns that are asked about together; answers do not change them, but proposals do."""
    unanswered = {name: Column(column.kind) for name, column in session.candidates.items()}
    return runs(propose(unanswered), session.progress.split)


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
