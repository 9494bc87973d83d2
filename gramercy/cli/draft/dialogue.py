"""Questions to the steward on a terminal, about what the table does not state.

A proposal is shown as a list of parts: Enter accepts it, and the name of a part changes it.
"""

from __future__ import annotations

import contextlib
import getpass
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter
from rich.prompt import Confirm, InvalidResponse, PromptBase
from rich.text import Text

from gramercy.cli import terminal
from gramercy.cli.draft.drafting import Draft, default_delta
from gramercy.cli.draft.proposals import (
    LEVELS,
    NUMBERS,
    Column,
    person_columns,
    yaml_scalar,
)
from gramercy.common.disk import make_folder, write_atomically
from gramercy.common.home import Home
from gramercy.common.similar_names import most_similar_first
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.pipeline.plan.planning import rows_needed
from gramercy.schemas import families, wordings
from gramercy.schemas.budget import Budget
from gramercy.schemas.column import Column as Bounds
from gramercy.schemas.column import Levels
from gramercy.schemas.contract import Line
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.schemas.model import Model, digest, parse
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.request import Version
from gramercy.tables.formats.values import TEXT, TRUTH

T = TypeVar("T")
Columns = Mapping[str, Column]

_EPSILON = 3.0  # the proposed budget, in which three releases with epsilon 1 have room
_SKIP, _DONE, _NOBODY = "skip", "done", "none"
_MOST_LISTED = 8  # columns on a line
_LEAST_IN_RUN = 3
_PREFIX = re.compile(r"[^\W\d_]+(?:[ _.-]+|(?=[0-9]))")  # lab_ of lab_2, item of item2
_BETWEEN_NUMBERS = re.compile(r"\s*(?:,\s|;|\bto\b|\s)\s*")  # 0,5 may be half
_MOST_ROWS = 10**12
_MARKS = {".": "point", ",": "comma"}  # of decimals

_TEXTS = {
    "title": "Title of the data set",
    "curator": "Curator: who is responsible for it",
    "version": "Version: a public label of the data",
}


class _Texts(Model):
    """Answers that are texts, with the rules of contracts and requests."""

    title: Line = ""
    curator: Line = ""
    version: Version = ""


class Dialogue:
    """The questions about one draft; the answers are kept in a private file of the home.

    The file has the names of the columns and the answers, and no value of the data. The number of
    rows that were counted is proposed where the steward says that it is public.
    """

    def __init__(self, draft: Draft, home: Home, counted: int | None) -> None:
        self._draft, self._counted = draft, counted
        kinds = [[name, column.kind] for name, column in draft.columns.items()]
        facts = [str(Path.cwd()), draft.id, str(draft.source), kinds, draft.looked]
        self._file = home.drafts / f"{digest(facts)[:32]}.json"

    def ask(self) -> Draft:
        """The draft, completed with the steward's answers."""
        rows = "some rows" if self._draft.looked else "the number of rows"
        _show(
            f"Columns that can be published: {len(self._draft.candidates)}. Only names, types and "
            f"{rows} were read. Your answers become public: answer from knowledge of the field, "
            "not from the data. After an interruption, the same command continues here."
        )
        self._resume_or_propose()
        while True:
            parts = self._parts()
            _show("")
            for name, (text, _) in parts.items():
                _show(f"  {name:<10}{text or '(not answered yet)'}")
            question = f"Enter to accept, or a word to change: {', '.join(parts)}"
            word = _ask(question, _one_of(parts), "")
            asked = [word] if word else [name for name, (text, _) in parts.items() if not text]
            for name in asked:
                parts[name][1]()
            if asked:
                continue
            if self._draft.published:
                return self._draft
            _show(str(families.DRAFT("No column was chosen.", "Answer 'columns'.")))

    def forget(self) -> None:
        """Delete the file of answers."""
        self._file.unlink(missing_ok=True)

    def _answer(self, **changes: Any) -> None:
        """Change fields of the draft, and save it."""
        draft = replace(self._draft, **changes)
        suggested = default_delta(draft.persons or draft.rows or 1)
        delta = draft.delta or suggested
        self._draft = replace(draft, delta=delta, release_delta=min(suggested, delta) / 10)
        make_folder(self._file.parent, 0o700)
        write_atomically(self._file, TypeAdapter(Draft).dump_json(self._draft), 0o600)

    def _resume_or_propose(self) -> None:
        earlier: Draft | None = None
        account = None
        with contextlib.suppress(OSError, ValueError):
            earlier = TypeAdapter(Draft).validate_json(self._file.read_bytes())
        question = "Continue with your earlier answers?"
        if earlier is not None and Confirm.ask(question, console=terminal.err, default=True):
            is_exact = earlier.unit is None and earlier.neighbours.count_is_public
            counted = self._counted if is_exact else None  # the table may have grown
            self._draft = replace(earlier, rows=counted or earlier.rows)
            return
        with contextlib.suppress(OSError, KeyError, ImportError):
            account = getpass.getuser() or None
        lacking = {
            name: replace(each, left_out="text without levels", example="{levels: [A, B]}")
            for name, each in self._draft.published.items()
            if each.ways == (LEVELS,) and each.levels is None
        }
        self._draft = self._draft.with_columns(lacking)
        title = self._draft.id.replace("-", " ").capitalize()
        rows = None if self._draft.per else self._counted
        self._answer(title=title, curator=account, epsilon=_EPSILON, rows=rows)
        if self._draft.date_columns and self._draft.per is None:
            self._ask_growth()

    def _parts(self) -> dict[str, tuple[str, Callable[[], None]]]:
        """Each part's value in words, empty if it must be answered, and the question for it."""
        draft = self._draft
        budget = f"epsilon={draft.epsilon:g}, delta={draft.delta:g}, for all releases together"
        release = f"epsilon={draft.release_epsilon:g}, for the first release"
        if draft.per is not None:
            budget = budget.replace("together", f"of one {draft.per} of rows")
        if draft.dates is not None:
            release = f"epsilon={draft.release_epsilon:g}, for all weeks of a year together"

        def ask_release() -> None:
            default = f"{draft.release_epsilon:g}"
            valid = _number(float, "0.5, with a decimal point", 1e-4, draft.epsilon or 1e3)
            self._answer(release_epsilon=_ask("Epsilon of the first release", valid, default))

        asked = {  # in addition to what every table has
            "decimals": (_MARKS.get(draft.decimal or "", ""), self._ask_decimal),
            "grows": (_growth(draft), self._ask_growth),
            "protects": (_protection(draft), self._ask_unit),
        }
        if "decimal" not in draft.format:
            del asked["decimals"]
        if draft.per is not None and draft.dates is None:  # files of periods protect rows
            del asked["grows"], asked["protects"]
        return {
            **{
                key: (getattr(draft, key) or "", partial(self._ask_text, key, question))
                for key, question in _TEXTS.items()
                if key != "version" or draft.dates is None
            },
            **asked,
            "rows": (_rows(draft), self._ask_rows),
            "columns": (_columns_text(draft), self._ask_columns),
            "budget": (budget, self._ask_budget),
            "release": (release, ask_release),
        }

    def _ask_text(self, key: str, question: str) -> None:
        def valid(answer: str) -> str:
            parse(_Texts, {key: answer}, "The answer", RequestError)
            return answer

        self._answer(**{key: _ask(question, valid, getattr(self._draft, key))})

    def _ask_decimal(self) -> None:
        question = "Decimal mark of its numbers: point, as in 1.5, or comma, as in 1,5"
        default = None if self._draft.decimal is None else _MARKS[self._draft.decimal]
        answer = _ask(question, _one_of(_MARKS.values(), or_none=False), default)
        self._answer(decimal=next((mark for mark, word in _MARKS.items() if word == answer), None))

    def _ask_growth(self) -> None:
        """Whether rows are added all the time, and the column with their dates."""
        draft = self._draft
        question = (
            "Does the table grow? (Then every week can have a release of all rows so far, and one "
            "charge pays for a year of them)"
        )
        if not Confirm.ask(question, console=terminal.err, default=False):
            self._draft = draft if draft.dates is None else draft.not_growing()
            self._answer(rows=self._draft.rows or self._counted)
            return
        names = [*dict.fromkeys([*draft.date_columns, *draft.columns])]

        def valid(answer: str) -> Draft:
            if answer not in names:
                raise wordings.answer_not_a_column(answer, most_similar_first(answer, names))
            return draft.growing(answer)

        default = next(iter(draft.date_columns), None)
        question = "Column with the date of a row, which never changes"
        self._draft = _ask(question, valid, default)
        self._answer(delta=None)

    def _ask_unit(self) -> None:
        columns = [name for name, each in self._draft.columns.items() if each.ways]

        def valid(answer: str) -> str | None:
            if answer not in columns and answer != _NOBODY:
                raise wordings.answer_not_a_column(answer, most_similar_first(answer, columns))
            if answer in columns and len(columns) == 1:
                raise families.DRAFT(
                    "No other column is left to publish.",
                    "Answer 'none' to protect rows instead of persons.",
                )
            return answer if answer in columns else None

        question = "Column that identifies persons, if a person can have several rows"
        unit = _ask(question, valid, _NOBODY)
        persons, rows, public = None, self._counted, True
        if unit is not None:
            public = _ask_if_public("persons")
            persons = _ask(f"{'N' if public else 'Approximate n'}umber of persons", _count())
            rows = _ask("Approximate number of rows", _count(persons))
            self._draft = self._draft if self._draft.dates is None else self._draft.not_growing()
        elif self._draft.dates is not None:
            return
        neighbours = Neighbours.REPLACE_ONE if public else Neighbours.ADD_REMOVE
        self._answer(unit=unit, persons=persons, rows=rows, neighbours=neighbours, delta=None)

    def _ask_rows(self) -> None:
        draft, question = self._draft, "Approximate number of rows"
        if draft.per is not None:
            self._answer(rows=_ask(f"{question} in a {draft.per}", _count()))
        elif draft.unit is not None:
            self._answer(rows=_ask(question, _count(draft.persons or 1)))
        else:
            public = _ask_if_public("rows")
            default = None if self._counted is None or not public else str(self._counted)
            rows = _ask("Number of rows" if public else question, _count(), default)
            neighbours = Neighbours.REPLACE_ONE if public else Neighbours.ADD_REMOVE
            self._answer(rows=rows, neighbours=neighbours, delta=None)

    def _ask_budget(self) -> None:
        draft = self._draft

        def valid(answer: str) -> Budget:
            epsilon, delta = _two_numbers(answer, "3 1e-6")
            keys = {"epsilon": epsilon, "delta": delta}
            limit = 1 / (draft.persons or draft.rows or 1)
            if delta >= limit:
                raise wordings.delta_too_large("persons" if draft.persons else "rows", limit)
            return parse(Budget, keys, "budget", RequestError)

        default = f"{draft.epsilon:g} {draft.delta:g}"
        budget = _ask("Epsilon and delta of the budget, for all releases", valid, default)
        first = min(draft.release_epsilon, budget.epsilon)
        self._answer(epsilon=budget.epsilon, delta=budget.delta, release_epsilon=first)

    def _ask_columns(self) -> None:
        """Ask about the columns of a pattern together, or about one run after another."""
        columns = self._draft.candidates

        def chosen(answer: str) -> list[tuple[str, list[str]]]:
            if not answer:
                return _runs(columns)
            pattern = re.compile(re.escape(answer).replace(r"\*", ".*"), re.DOTALL)
            names = [name for name in columns if pattern.fullmatch(name)]
            if not names:
                raise wordings.answer_not_a_column(answer, most_similar_first(answer, columns))
            return [(answer, names)]

        found = _ask("A column or a pattern such as lab_*; Enter for one after another", chosen, "")
        for number, (label, names) in enumerate(found, 1):
            members = {name: columns[name] for name in names}
            kinds = [
                kind
                for kind in (NUMBERS, LEVELS)
                if all(kind in column.ways for column in members.values())
            ]
            ways = "; ".join(dict.fromkeys(map(_way, members.values())))
            counted = f", {len(names)} columns" if names[1:] else ""
            words = (*kinds, _SKIP, _DONE)
            answer = _ask(
                f"[{number}/{len(found)}] {label}{counted} ({ways}): {', '.join(words)}; Enter to "
                "keep it",
                _one_of(words),
                "",
            )
            if answer == _DONE:
                return
            if answer:
                changed = _ANSWERS[answer](members)
                self._answer(columns=self._draft.with_columns(changed).columns)


class _Prompt(PromptBase[str]):
    """A question that is repeated, with the reason, until its answer is valid."""

    def __init__(self, question: str, valid: Callable[[str], object], default: str | None) -> None:
        super().__init__(Text(question), console=terminal.err, show_default=bool(default))
        self._valid = valid

    def process_response(self, value: str) -> str:
        """The answer, if it is valid."""
        answer = value.strip()
        try:
            self._valid(answer)
        except GramercyError as error:
            raise InvalidResponse(Text(str(error))) from None
        return answer


def _ask(question: str, valid: Callable[[str], T], default: str | None = None) -> T:
    """Ask until `valid` accepts the answer, and return its result; Enter is the default."""
    prompt = _Prompt(question, valid, default)
    return valid(prompt() if default is None else prompt(default=default))


def _ask_if_public(counted: str) -> bool:
    question = f"Is the exact number of {counted} public? (If not, it is protected as well)"
    return Confirm.ask(question, console=terminal.err, default=True)


def _show(text: str) -> None:
    terminal.err.print(Text(text))


def _one_of(words: Collection[str], *, or_none: bool = True) -> Callable[[str], str]:
    """Accepts the first letters of a word, or nothing."""

    def valid(answer: str) -> str:
        matches = [word for word in words if answer and word.startswith(answer.lower())]
        if not matches and (answer or not or_none):
            raise families.DRAFT(
                "The answer must be one of: {choices}.",
                "The first letter is enough.",
                choices=tuple(words),
            )
        return matches[0] if matches else ""

    return valid


def _number(kind: type[Any], example: str, least: float, most: float) -> Callable[[str], Any]:
    """Accepts a number of a type between two others."""

    def valid(answer: str) -> Any:
        with contextlib.suppress(ValueError, OverflowError):
            number = kind(answer)
            if least <= number <= most:
                return number
        raise families.DRAFT(
            "The answer must be a {kind} from {least:g} to {most:g}.",
            "Write one such as {example}.",
            kind="whole number" if kind is int else "number",
            least=least,
            most=most,
            example=example,
        )

    return valid


def _count(least: int = 1) -> Callable[[str], Any]:
    example = f"{max(1000, least)}, in digits, without marks between them"
    return _number(int, example, least, _MOST_ROWS)


def _two_numbers(answer: str, example: str) -> tuple[float, float]:
    with contextlib.suppress(ValueError):
        first, second = map(float, _BETWEEN_NUMBERS.split(answer))
        if math.isfinite(first) and math.isfinite(second):
            return first, second
    raise families.DRAFT(
        "The answer must be two numbers.",
        "Write them such as {example}: with decimal points, and a blank between them.",
        example=example,
    )


def _ask_bounds(columns: Columns) -> dict[str, Column]:
    """The columns as numbers, with the bounds that are answered."""

    def valid(answer: str) -> Bounds:
        lower, upper = _two_numbers(answer, "0 100.5") if answer else (None, None)
        return parse(Bounds, {"lower": lower, "upper": upper}, "bounds", RequestError)

    bounds = _ask("    lower and upper bound, such as 0 100 (Enter: no bounds)", valid, "")
    numbers = Column(lower=bounds.lower, upper=bounds.upper)
    return {
        name: replace(numbers, kind=column.kind, ways=column.ways, missing=column.missing)
        for name, column in columns.items()
    }


def _ask_levels(columns: Columns) -> dict[str, Column]:
    """The columns as categories: with levels of text, unless all levels are numbers."""

    def valid(answer: str) -> dict[str, Column]:
        texts = [part.strip() for part in re.split(r"[,;]", answer) if part.strip()]
        words = answer.split()
        if len(texts) == 1 and all(_as_number(word) is not None for word in words):
            texts = words
        numbers = [_as_number(text) for text in texts]
        answered = {}
        for name, column in columns.items():
            levels = texts if column.kind == TEXT or None in numbers else numbers
            parsed = parse(Levels, {"levels": levels}, "levels", RequestError).levels
            answered[name] = replace(column, levels=parsed, left_out="", missing=(), choices=())
        return answered

    if all(column.kind == TRUTH for column in columns.values()):
        both: dict[str, Any] = {"levels": (True, False), "left_out": ""}
        return {name: replace(column, **both) for name, column in columns.items()}
    seen = {column.levels or column.choices for column in columns.values()}
    default = ", ".join(map(yaml_scalar, *seen)) if len(seen) == 1 else ""
    return _ask("    levels, separated by commas, such as low, high", valid, default or None)


def _as_number(text: str) -> float | None:
    """The text as a number; None if it is not one, or is not the usual spelling of it (007)."""
    with contextlib.suppress(ValueError):
        number = float(text)
        if math.isfinite(number) and format(number, ".17g") == text:
            return number
    return None


_ANSWERS: dict[str, Callable[[Columns], dict[str, Column]]] = {
    NUMBERS: _ask_bounds,
    LEVELS: _ask_levels,
    _SKIP: lambda columns: {
        name: replace(each, left_out=each.left_out or "by choice") for name, each in columns.items()
    },
}


def _growth(draft: Draft) -> str:
    if draft.dates is None:
        return "no"
    return f"a release every week, of all rows of the year so far; dates are in {draft.dates}"


def _protection(draft: Draft) -> str:
    if draft.unit is None:
        several = ", ".join(person_columns(draft.columns)[:3])
        hint = f" (if a person can have several, see {several}: answer 'protects')"
        return "each row" + hint * bool(several)
    exact = "exactly" if draft.neighbours.count_is_public else "about"
    return f"each person, by the column {draft.unit}; {exact} {draft.persons} persons"


def _rows(draft: Draft) -> str:
    if draft.rows is None:
        return ""
    if draft.per is not None:
        return f"about {draft.rows} in a {draft.per}; the exact number is private"
    if draft.unit is not None:
        return f"about {draft.rows}"
    if draft.neighbours.count_is_public:
        return f"{draft.rows}, exact and public"
    return f"about {draft.rows}; the exact number is private"


def _columns_text(draft: Draft) -> str:
    """How many columns are published in which way, on a line each."""
    columns = draft.candidates
    ways: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for label, names in _runs(columns):
        way = _way(columns[names[0]])
        ways.setdefault(way, []).append(f"{label} ({len(names)})" if names[1:] else label)
        counts[way] = counts.get(way, 0) + len(names)
    lines = []
    for way, labels in sorted(ways.items()):  # "as numbers" is before "left out"
        omitted = len(labels) - _MOST_LISTED
        rest = f", and {omitted} more" if omitted > 0 else ""
        lines.append(f"{counts[way]} {way}: {', '.join(labels[:_MOST_LISTED])}{rest}")
    published = draft.published.values()
    if any(column.levels is None and column.lower is None for column in published):
        width = sum(len(column.levels or [None]) for column in published)
        needed = rows_needed(width, gdp_mu(draft.release_epsilon, draft.release_delta))
        count = draft.persons or draft.rows or math.inf
        if needed > count:
            unit = "persons" if draft.unit else "rows"
            lines.append(
                f"Without bounds, about {needed} {unit} are needed, and there are {count}:"
            )
            lines.append("declare bounds, or leave columns out.")
    return ("\n" + " " * 12).join(lines)


def _way(column: Column) -> str:
    """How a column is published, in words."""
    if column.left_out:
        return f"left out ({column.left_out.partition(':')[0].partition(';')[0]})"
    codes = f", with {len(column.missing)} codes for missing values" * bool(column.missing)
    if column.levels is not None:
        return f"as levels {', '.join(map(yaml_scalar, column.levels))}"
    if column.choices:
        codes += f"; if they are codes, as levels {', '.join(map(yaml_scalar, column.choices))}"
    if column.lower is None or column.upper is None:
        return f"as numbers without bounds{codes}"
    return f"as numbers from {column.lower:g} to {column.upper:g}{codes}"


def _runs(columns: Columns) -> list[tuple[str, list[str]]]:
    """The columns in their order, with neighbours that share a prefix and an answer together."""

    def alike(name: str) -> tuple[str, Column]:
        prefix = _PREFIX.match(name)
        return (f"{prefix[0]}*" if prefix else "", columns[name])

    found = []
    for (label, _), members in groupby(columns, alike):
        names = list(members)
        if label and len(names) >= _LEAST_IN_RUN:
            found.append((label, names))
        else:
            found += [(name, [name]) for name in names]
    return found
