"""Questions to the steward on a terminal, about what the table does not state."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar

import typer

from gramercy.cli.draft.drafting import LEVELS, NUMBERS, Column, Draft
from gramercy.schemas.budget import Budget
from gramercy.schemas.column import Column as Bounds
from gramercy.schemas.column import Levels
from gramercy.schemas.contract import Neighbours
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.schemas.model import parse
from gramercy.schemas.problems import command_line as problems

T = TypeVar("T")
N = TypeVar("N", int, float)

_SKIP, _DONE, _NO_BOUNDS = "skip", "done", "none"


def ask(draft: Draft) -> Draft:
    """Complete a draft with the steward's answers; Enter accepts the default in brackets.

    Raises
    ------
    RequestError
        If no column was chosen.
    """
    typer.echo(
        f"Columns that can be published: {len(draft.columns)}. Your answers become public. Answer\n"
        "from knowledge of the field, not from the data: no row was read.\n",
        err=True,
    )
    draft = replace(draft, title=_ask_text("Title of the data set"))
    draft = replace(draft, curator=_ask_text("Curator: who is responsible for it"))
    draft = _ask_rows(draft)
    draft = replace(draft, columns=_ask_columns(draft))
    draft = _ask_budget(draft)
    return replace(draft, version=_ask_text("Version: a public label of the data", draft.version))


def _ask_rows(draft: Draft) -> Draft:
    unit = _ask_column(
        "Column that identifies persons, if a person can have several rows",
        draft.columns,
        default="none",
    )
    persons = None
    if unit is not None:
        draft = replace(draft, columns={n: c for n, c in draft.columns.items() if n != unit})
        if not draft.columns:
            raise problems.only_person_column()
    counted = "rows" if unit is None else "persons"
    question = f"Is the exact number of {counted} public? (If not, it is protected as well)"
    public = typer.confirm(question, default=True, err=True)
    if unit is not None:
        persons = _ask_number(
            f"{'Number' if public else 'Approximate number'} of persons", int, least=1
        )
    exact = public and unit is None
    rows = _ask_number(
        f"{'Number' if exact else 'Approximate number'} of rows", int, least=persons or 1
    )
    neighbours: Neighbours = "replace-one" if public else "add-remove"
    return replace(draft, rows=rows, persons=persons, unit=unit, neighbours=neighbours)


def _ask_columns(draft: Draft) -> dict[str, Column]:
    """Ask about each column; a skipped column is not published, and never read."""
    typer.echo(
        "\nColumn by column: bounds or levels from knowledge of the field, not from the data. The\n"
        "first letter is enough; Enter skips a column, 'done' skips all that follow.",
        err=True,
    )
    chosen: dict[str, Column] = {}
    for number, (name, column) in enumerate(draft.columns.items(), start=1):
        kinds = column.publishable_as
        question = f"[{number}/{len(draft.columns)}] {name}: {', '.join(kinds)}, skip or done?"
        answer = _ask_choice(question, (*kinds, _SKIP, _DONE))
        if answer == _DONE:
            break
        if answer == NUMBERS:
            chosen[name] = _ask_bounds(column)
        elif answer == LEVELS:
            chosen[name] = _ask_levels(column)
    if not chosen:
        raise problems.no_column_chosen()
    return chosen


def _ask_bounds(column: Column) -> Column:
    def ask_once() -> Column:
        lower = _ask_bound("    lower bound, in the column's units (none: no bounds)")
        upper = None if lower is None else _ask_number("    upper bound", float)
        parse(Bounds, {"lower": lower, "upper": upper}, "bounds", RequestError)
        return replace(column, lower=lower, upper=upper)

    return _until_valid(ask_once)


def _ask_bound(question: str) -> float | None:
    def ask_once() -> float | None:
        answer = _ask_text(question, _NO_BOUNDS)
        if answer == _NO_BOUNDS:
            return None
        with contextlib.suppress(ValueError):
            if math.isfinite(number := float(answer)):
                return number
        raise problems.answer_not_a_number()

    return _until_valid(ask_once)


def _ask_levels(column: Column) -> Column:
    def ask_once() -> Column:
        answer = _ask_text("    levels, separated by commas")
        texts = [each.strip() for each in answer.split(",") if each.strip()]
        numbers = [_as_number(text) for text in texts]
        levels = texts if column.kind == "text" or None in numbers else numbers
        parsed = parse(Levels, {"levels": levels}, "levels", RequestError)
        return replace(column, levels=parsed.levels)

    return _until_valid(ask_once)


def _as_number(text: str) -> float | None:
    """The text as a number; None if it is not one, or is not the usual spelling of it (007)."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and format(number, ".17g") == text else None


def _ask_budget(draft: Draft) -> Draft:
    typer.echo("\nThe budget limits all releases of this data set together.", err=True)
    suggested = default_delta(draft.persons or draft.rows or 1)

    def ask_once() -> Draft:
        epsilon = _ask_number("Epsilon of the budget", float, default=3.0)
        delta = _ask_number("Delta of the budget", float, default=suggested)
        parse(Budget, {"epsilon": epsilon, "delta": delta}, "budget", RequestError)
        release_delta = min(suggested, delta) / 10
        return replace(draft, epsilon=epsilon, delta=delta, release_delta=release_delta)

    draft = _until_valid(ask_once)
    default = min(1.0, draft.epsilon or 1.0)
    return replace(
        draft, release_epsilon=_ask_number("Epsilon of the first release", float, default)
    )


def default_delta(count: int) -> float:
    """A power of ten: at most 1e-6, and at most 1/(10 n) for n rows or persons."""
    return 10.0 ** -max(6, math.ceil(math.log10(count)) + 1)


def _until_valid(question: Callable[[], T]) -> T:
    """Ask until the answer is valid; print what is wrong with each invalid answer."""
    while True:
        try:
            return question()
        except GramercyError as error:
            typer.echo(str(error), err=True)


def _ask_text(question: str, default: str | None = None) -> str:
    return str(typer.prompt(question, default=default, err=True)).strip()


def _ask_number(
    question: str, kind: type[N], default: N | None = None, least: int | None = None
) -> N:
    def ask_once() -> N:
        number: N = typer.prompt(question, default=default, type=kind, err=True)
        if not math.isfinite(number):
            raise problems.answer_not_a_number()
        if least is not None and number < least:
            raise problems.answer_too_small(least)
        return number

    return _until_valid(ask_once)


def _ask_choice(question: str, choices: tuple[str, ...]) -> str:
    """Ask for one of these choices, by its first letters; the default is skip."""

    def ask_once() -> str:
        answer = _ask_text(question, _SKIP).lower()
        matches = [choice for choice in choices if answer and choice.startswith(answer)]
        if not matches:
            raise problems.answer_not_a_choice(choices)
        return matches[0]

    return _until_valid(ask_once)


def _ask_column(question: str, names: Collection[str], default: str) -> str | None:
    def ask_once() -> str | None:
        answer = str(typer.prompt(question, default=default, err=True))
        if answer not in names and answer != default:
            raise problems.answer_not_a_column(answer)
        return answer if answer in names else None

    return _until_valid(ask_once)
