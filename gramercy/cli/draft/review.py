"""One step of the questions: proposed values, of which the steward changes some or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gramercy.cli.draft.prompts import Back, ask_choice, ask_text, print_text, until_valid
from gramercy.cli.draft.session import Session
from gramercy.schemas.contract import Line
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import Model, parse
from gramercy.schemas.request import Version


@dataclass(frozen=True)
class Item:
    """A part of a step.

    Parameters
    ----------
    name
        The word that changes it.
    show
        Its present value in words; empty if it must be answered.
    ask
        Asks for it, and keeps the answer.
    """

    name: str
    show: Callable[[Session], str]
    ask: Callable[[Session], None]


def review(session: Session, heading: str, items: Sequence[Item], note: str = "") -> None:
    """Show the items of a step until they are accepted.

    Raises
    ------
    Back
        If the steward wants to return to the step before.
    """
    names = [item.name for item in items]
    while True:
        print_text(f"\n{heading}")
        for item in items:
            print_text(f"  {item.name:<10}{item.show(session) or '(not answered yet)'}")
        if note:
            print_text(note)
        answer = ask_choice(f"Enter to accept, or a word to change: {', '.join(names)}", names)
        chosen = [x for x in items if x.name == answer or not (answer or x.show(session))]
        try:
            for item in chosen:
                item.ask(session)
        except Back:
            continue
        if not answer:
            return


def ask_line(key: str, question: str) -> Callable[[Session], None]:
    """A question for a text, whose answer is the value of a key of the draft."""

    def ask_once(default: str | None) -> str:
        answer = ask_text(question, default)
        parse(_LINES[key], {key: answer}, "The answer", RequestError)
        return answer

    def ask_it(session: Session) -> None:
        default = getattr(session.draft, key)
        session.answer(**{key: until_valid(lambda: ask_once(default))})

    return ask_it


class _Title(Model):
    title: Line


class _Curator(Model):
    curator: Line


class _Version(Model):
    version: Version


_LINES: dict[str, type[Model]] = {"title": _Title, "curator": _Curator, "version": _Version}
