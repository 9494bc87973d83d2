"""Single questions on a terminal; an invalid answer is explained, and asked for again."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import TypeVar

import typer

from gramercy.cli.output.terminal import wrapped
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError, RequestError


def _answer_not_a_number() -> RequestError:
    return families.DRAFT(
        "The answer must be a finite number.",
        "Write one, with a decimal point: 0.5.",
    )


T = TypeVar("T")
N = TypeVar("N", int, float)

BACK = "back"


class Back(Exception):
    """The steward wants to return to the question before."""


def print_text(text: str) -> None:
    """Show a text between questions."""
    typer.echo(wrapped(text), err=True)


def until_valid(question: Callable[[], T]) -> T:
    """Ask until the answer is valid; print what is wrong with each invalid answer."""
    while True:
        try:
            return question()
        except GramercyError as error:
            print_text(str(error))


def ask_text(question: str, default: str | None = None) -> str:
    """A text; with a default, Enter is an answer.

    Raises
    ------
    Back
        If the answer is ``back``, as for all questions.
    """
    suffix = " " if question.endswith("?") and not default else ": "
    shown = wrapped(question, room=len(f" [{default}]: "))
    answer = typer.prompt(
        shown, default=default, show_default=bool(default), prompt_suffix=suffix, err=True
    )
    if (text := str(answer).strip()) == BACK:
        raise Back
    return text


def ask_number(
    question: str, kind: type[N], default: N | None = None, least: int | None = None
) -> N:
    """A finite number, at least `least`."""

    def ask_once() -> N:
        shown = None if default is None else format(default, "g" if kind is float else "d")
        try:
            number = kind(ask_text(question, shown))
        except (ValueError, OverflowError):
            raise _answer_not_a_number() from None
        if not math.isfinite(number):
            raise _answer_not_a_number()
        if least is not None and number < least:
            raise families.DRAFT(
                "The answer must be {least} or more.",
                "Write a larger number.",
                least=least,
            )
        return number

    return until_valid(ask_once)


def ask_choice(question: str, choices: Collection[str]) -> str:
    """One of a few words, by its first letters; empty if Enter accepts what is shown."""

    def ask_once() -> str:
        answer = ask_text(question, "").lower()
        matches = [choice for choice in choices if choice.startswith(answer)]
        if answer and not matches:
            raise families.DRAFT(
                "The answer must be one of: {choices}.",
                "The first letter is enough.",
                choices=(*choices, BACK),
            )
        return matches[0] if answer else ""

    return until_valid(ask_once)


def ask_yes(question: str, *, default: bool) -> bool:
    """Yes or no."""
    answer = ask_choice(f"{question} [{'Y/n' if default else 'y/N'}]", ("yes", "no"))
    return default if not answer else answer == "yes"


def ask_column(question: str, names: Collection[str], none: str) -> str | None:
    """The name of a column; None for the default word `none`."""

    def ask_once() -> str | None:
        answer = ask_text(question, none)
        if answer not in names and answer != none:
            raise wordings.answer_not_a_column(answer, most_similar_first(answer, names))
        return answer if answer in names else None

    return until_valid(ask_once)
