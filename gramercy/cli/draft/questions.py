"""Ask a steward, on a terminal, what only somebody who knows the field can say."""

from __future__ import annotations

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

T = TypeVar("T")
N = TypeVar("N", int, float)

_SKIP, _DONE = "skip", "done"


def ask(made: Draft) -> Draft:
    """Complete a draft by questions; nothing is read, and Enter takes what stands in brackets.

    Raises
    ------
    RequestError
        If no column was chosen.
    """
    typer.echo(
        f"Columns that can be published: {len(made.columns)}. What is asked for here becomes\n"
        "public, and is what somebody knows who knows the field: no row was read.\n",
        err=True,
    )
    made = replace(made, title=_text("Title of the data set"))
    made = replace(made, curator=_text("Curator, who answers for it"))
    made = _rows(made)
    made = replace(made, columns=_columns(made))
    made = _budget(made)
    return replace(made, version=_text("Version, a public label of the data", made.version))


def _rows(made: Draft) -> Draft:
    unit = _one_of(
        "Column that says whose a row is, if a person has several rows",
        made.columns,
        default="none",
    )
    persons = None
    if unit is not None:
        made = replace(made, columns={n: c for n, c in made.columns.items() if n != unit})
        if not made.columns:
            raise RequestError("No other column is left to publish.", "Answer none.")
    of = "rows" if unit is None else "persons"
    words = f"Is the exact number of {of} public? (if not, it is protected, too)"
    known = typer.confirm(words, default=True, err=True)
    if unit is not None:
        persons = _number("Number of persons" + ("" if known else ", about"), int, least=1)
    guess = "" if known and unit is None else ", about"
    rows = _number(f"Number of rows{guess}", int, least=persons or 1)
    neighbours: Neighbours = "replace-one" if known else "add-remove"
    return replace(made, rows=rows, persons=persons, unit=unit, neighbours=neighbours)


def _columns(made: Draft) -> dict[str, Column]:
    """Column by column; those that are skipped will never be read."""
    typer.echo(
        "\nColumn by column: bounds or levels that somebody knows, not read off the data. The\n"
        "first letter will do; Enter skips a column, 'done' all that follow.",
        err=True,
    )
    chosen: dict[str, Column] = {}
    for place, (name, column) in enumerate(made.columns.items(), start=1):
        words = f"[{place}/{len(made.columns)}] {name}: {', '.join(column.offers)}, skip or done?"
        answer = _choice(words, (*column.offers, _SKIP, _DONE))
        if answer == _DONE:
            break
        if answer == NUMBERS:
            chosen[name] = _bounds(column)
        elif answer == LEVELS:
            chosen[name] = _levels(column)
    if not chosen:
        raise RequestError("No column was chosen.", "Give at least one of them bounds or levels.")
    return chosen


def _bounds(column: Column) -> Column:
    def both(lower: float) -> Column:
        upper = _number("    upper bound", float)
        parse(Bounds, {"lower": lower, "upper": upper}, "    bounds", RequestError)
        return replace(column, lower=lower, upper=upper)

    return _again(lambda: both(_number("    lower bound, in the column's units", float)))


def _levels(column: Column) -> Column:
    def named(answer: str) -> Column:
        texts = [each.strip() for each in answer.split(",") if each.strip()]
        numbers = [_as_number(each) for each in texts]
        as_texts = column.kind == "text" or None in numbers
        told = {"levels": texts if as_texts else numbers}
        return replace(column, levels=parse(Levels, told, "    levels", RequestError).levels)

    return _again(lambda: named(_text("    levels, separated by commas")))


def _as_number(text: str) -> float | None:
    """A level that is a number, unless it would lose its spelling: 007 is a text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and format(number, ".17g") == text else None


def _budget(made: Draft) -> Draft:
    typer.echo("\nThe budget holds all releases of this data set together, ever.", err=True)
    delta = usual_delta(made.persons or made.rows or 1)

    def asked() -> Draft:
        epsilon = _number("Epsilon of the budget", float, default=3.0)
        spent = _number("Delta of the budget", float, default=delta)
        parse(Budget, {"epsilon": epsilon, "delta": spent}, "    budget", RequestError)
        return replace(made, epsilon=epsilon, delta=spent, asked_delta=min(delta, spent) / 10)

    made = _again(asked)
    first = min(1.0, made.epsilon or 1.0)
    return replace(made, asked_epsilon=_number("Epsilon of the first release", float, first))


def usual_delta(count: int) -> float:
    """A power of ten, well below one over the number of rows or persons."""
    return 10.0 ** -max(6, math.ceil(math.log10(count)) + 1)


def _again(asked: Callable[[], T]) -> T:
    """Ask until the answer is sound; what is wrong is said."""
    while True:
        try:
            return asked()
        except GramercyError as error:
            typer.echo(str(error), err=True)


def _text(words: str, default: str | None = None) -> str:
    return str(typer.prompt(words, default=default, err=True)).strip()


def _number(words: str, kind: type[N], default: N | None = None, least: int | None = None) -> N:
    while True:
        number: N = typer.prompt(words, default=default, type=kind, err=True)
        if math.isfinite(number) and (least is None or number >= least):
            return number
        typer.echo(f"Error: write a number{f' of {least} or more' if least else ''}.", err=True)


def _choice(words: str, known: tuple[str, ...]) -> str:
    """One of some words, by its beginning; the one to skip by default."""
    while True:
        answer = _text(words, _SKIP).lower()
        found = [each for each in known if answer and each.startswith(answer)]
        if found:
            return found[0]
        typer.echo(f"Error: write one of {', '.join(known)}.", err=True)


def _one_of(words: str, names: Collection[str], default: str) -> str | None:
    while True:
        answer = str(typer.prompt(words, default=default, err=True))
        if answer in names:
            return answer
        if answer == default:
            return None
        typer.echo(f"Error: '{answer}' is no column that can be named.", err=True)
