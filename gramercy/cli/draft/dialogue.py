"""Questions to the steward on a terminal, about what the table does not state.

A proposal is shown as a list of parts: Enter accepts it, and the name of a part changes it. A part
is what is shown of a draft, and the questions whose answers make another draft of it.
"""

from __future__ import annotations

import contextlib
import getpass
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter
from rich.prompt import InvalidResponse, PromptBase
from rich.text import Text

from gramercy.cli import terminal
from gramercy.cli.draft.drafting import Draft, default_delta
from gramercy.cli.draft.proposals import LEVELS, NUMBERS, Column, person_columns
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
from gramercy.schemas.corrections import as_yaml
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


class Dialogue:
    """The questions about one draft; the answers are kept in a private file of the home.

    The file has the names of the columns and the answers, and no value of the data. The number of
    rows that were counted is proposed where the steward says that it is public.
    """

    def __init__(self, draft: Draft, home: Home) -> None:
        self._draft = draft
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
            shown = {k: x.shown(self._draft) for k, x in PARTS.items() if x.applies(self._draft)}
            _show("")
            for name, text in shown.items():
                _show(f"  {name:<10}{text or '(not answered yet)'}")
            question = f"Enter to accept, or a word to change: {', '.join(shown)}"
            word = _ask(question, _one_of(("", *shown)), "")
            asked = [word] if word else [name for name, text in shown.items() if not text]
            for name in asked:
                self._change(PARTS[name])
            if not asked and self._draft.published:
                return self._draft
            if not asked:
                _show(str(families.DRAFT("No column was chosen.", "Answer 'columns'.")))

    def forget(self) -> None:
        """Delete the file of answers."""
        self._file.unlink(missing_ok=True)

    def _change(self, part: _Part) -> None:
        for draft in part.ask(self._draft):
            self._keep(draft)

    def _keep(self, draft: Draft) -> None:
        """Save a draft, with a delta for its number of rows or persons."""
        suggested = default_delta(draft.persons or draft.rows or 1)
        delta = draft.delta or suggested
        self._draft = replace(draft, delta=delta, release_delta=min(suggested, delta) / 10)
        make_folder(self._file.parent, 0o700)
        text = TypeAdapter(Draft).dump_json(self._draft, exclude={"counted"})
        write_atomically(self._file, text, 0o600)

    def _resume_or_propose(self) -> None:
        draft, account, earlier = self._draft, None, None
        with contextlib.suppress(OSError, ValueError):
            earlier = TypeAdapter(Draft).validate_json(self._file.read_bytes())
        if earlier is not None and ask_yes("Continue with your earlier answers?", default=True):
            is_exact = earlier.unit is None and earlier.neighbours.count_is_public
            rows = draft.counted if is_exact else None  # the table may have grown
            self._draft = replace(earlier, rows=rows or earlier.rows, counted=draft.counted)
            return
        with contextlib.suppress(OSError, KeyError, ImportError):
            account = getpass.getuser() or None
        lacking = {
            name: replace(each, left_out="text without levels", example="{levels: [A, B]}")
            for name, each in draft.published.items()
            if each.ways == (LEVELS,) and each.levels is None
        }
        title = draft.id.replace("-", " ").capitalize()
        made = replace(draft.with_columns(lacking), title=title, curator=account)
        self._keep(replace(made, epsilon=_EPSILON, rows=draft.counted))
        if draft.date_columns and draft.per is None:
            self._change(PARTS["grows"])


# A question: its text, what makes a value of an answer, and the answer that Enter gives.


class _Prompt(PromptBase[Any]):
    """A question that is repeated, with the reason, until its answer is valid."""

    def __init__(self, text: str, parsed: Callable[[str], Any], default: str | None) -> None:
        shown = Text.assemble(text, (f" ({default})" if default else "", "prompt.default"))
        super().__init__(shown, console=terminal.err)
        self._parsed, self._default = parsed, default or ""

    def process_response(self, value: str) -> Any:
        """The value of an answer, if it is valid."""
        try:
            return self._parsed(value.strip() if value else self._default)
        except GramercyError as error:
            raise InvalidResponse(Text(str(error))) from None


def _ask(text: str, parsed: Callable[[str], T], default: str | None = None) -> T:
    value: T = _Prompt(text, parsed, default)()
    return value


def ask_yes(text: str, *, default: bool) -> bool:
    """Ask a question whose answer is yes or no."""
    return _ask(f"{text} [y/n]", _one_of(("yes", "no")), "yes" if default else "no") == "yes"


def _show(text: str) -> None:
    terminal.err.print(Text(text))


def _one_of(words: Collection[str]) -> Callable[[str], str]:
    """Accepts the first letters of a word; nothing, if that is one of the words."""

    def parsed(answer: str) -> str:
        for word in words:
            if word.startswith(answer.lower()) and (answer or not word):
                return word
        raise families.DRAFT(
            "The answer must be one of: {choices}.",
            "The first letter is enough.",
            choices=tuple(filter(None, words)),
        )

    return parsed


def _name_of(columns: Collection[str], *others: str) -> Callable[[str], str]:
    """Accepts the name of a column."""

    def parsed(answer: str) -> str:
        if answer not in columns and answer not in others:
            raise wordings.answer_not_a_column(answer, most_similar_first(answer, columns))
        return answer

    return parsed


def _number(answer: str, kind: type[Any], example: str, least: float, most: float) -> Any:
    """A number of a type between two others."""
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


def _ask_count(text: str, least: int = 1, default: int | None = None) -> int:
    example = f"{max(1000, least)}, in digits, without marks between them"
    parsed = partial(_number, kind=int, example=example, least=least, most=_MOST_ROWS)
    count: int = _ask(text, parsed, None if default is None else str(default))
    return count


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


def _ask_relation(counted: str) -> Neighbours:
    """The relation under which a number of rows or persons is public, or protected as well."""
    text = f"Is the exact number of {counted} public? (If not, it is protected as well)"
    return Neighbours.REPLACE_ONE if ask_yes(text, default=True) else Neighbours.ADD_REMOVE


# The parts of a proposal.


@dataclass(frozen=True)
class _Part:
    """A part of a proposal."""

    shown: Callable[[Draft], str]  # its value in words; empty if it must be answered
    ask: Callable[[Draft], Iterator[Draft]]  # the draft after each answer
    applies: Callable[[Draft], bool] = lambda draft: True


def _question(
    text: str, parsed: Callable[[Draft, str], Draft], default: Callable[[Draft], str | None]
) -> Callable[[Draft], Iterator[Draft]]:
    """The questions of a part that has one, whose answer makes a draft."""
    return lambda draft: iter([_ask(text, partial(parsed, draft), default(draft))])


class _Texts(Model):
    """Answers that are texts, with the rules of contracts and requests."""

    title: Line = ""
    curator: Line = ""
    version: Version = ""


def _text(key: str, text: str) -> _Part:
    def parsed(draft: Draft, answer: str) -> Draft:
        changed: dict[str, Any] = {key: answer}
        parse(_Texts, changed, "The answer", RequestError)
        return replace(draft, **changed)

    def shown(draft: Draft) -> str:
        return getattr(draft, key) or ""

    return _Part(shown, _question(text, parsed, shown))


def _decimals(draft: Draft) -> str:
    return {".": "point", ",": "comma"}.get(draft.decimal or "", "")


def _with_decimals(draft: Draft, answer: str) -> Draft:
    is_point = _one_of(("point", "comma"))(answer) == "point"
    return replace(draft, decimal="." if is_point else ",")


def _growth(draft: Draft) -> str:
    if draft.dates is None:
        return "no"
    return f"a release every week, of all rows of the year so far; dates are in {draft.dates}"


def _ask_growth(draft: Draft) -> Iterator[Draft]:
    """Whether rows are added all the time, and the column with their dates."""
    question = (
        "Does the table grow? (Then every week can have a release of all rows so far, and one "
        "charge pays for a year of them)"
    )
    if ask_yes(question, default=False):
        names = [*dict.fromkeys([*draft.date_columns, *draft.columns])]
        yield _ask(
            "Column with the date of a row, which never changes",
            lambda answer: replace(draft.growing(_name_of(names)(answer)), delta=None),
            next(iter(draft.date_columns), None),
        )
    elif draft.dates is not None:
        yield draft.not_growing()


def _protection(draft: Draft) -> str:
    if draft.unit is None:
        several = ", ".join(person_columns(draft.columns)[:3])
        hint = f" (if a person can have several, see {several}: answer 'protects')"
        return "each row" + hint * bool(several)
    exact = "exactly" if draft.neighbours.count_is_public else "about"
    return f"each person, by the column {draft.unit}; {exact} {draft.persons} persons"


def _ask_unit(draft: Draft) -> Iterator[Draft]:
    columns = [name for name, each in draft.columns.items() if each.ways]

    def parsed(answer: str) -> str:
        unit = _name_of(columns, _NOBODY)(answer)
        if [unit] == columns:
            raise families.DRAFT(
                "No other column is left to publish.",
                "Answer 'none' to protect rows instead of persons.",
            )
        return unit

    question = "Column that identifies persons, if a person can have several rows"
    unit = _ask(question, parsed, _NOBODY)
    if unit in columns:
        relation = _ask_relation("persons")
        about = "Number" if relation.count_is_public else "Approximate number"
        persons = _ask_count(f"{about} of persons")
        rows = _ask_count("Approximate number of rows", persons)
        answers: dict[str, Any] = {"unit": unit, "persons": persons, "rows": rows}
        yield replace(draft.not_growing(), neighbours=relation, delta=None, **answers)
    elif draft.dates is None:
        yield replace(draft.not_growing(), unit=None, persons=None, delta=None)


def _rows(draft: Draft) -> str:
    if draft.rows is None:
        return ""
    if draft.unit is not None:
        return f"about {draft.rows}"
    if draft.neighbours.count_is_public:
        return f"{draft.rows}, exact and public"
    place = f" in a {draft.per}" if draft.per is not None else ""
    return f"about {draft.rows}{place}; the exact number is private"


def _ask_rows(draft: Draft) -> Iterator[Draft]:
    question = "Approximate number of rows"
    if draft.per is not None:
        yield replace(draft, rows=_ask_count(f"{question} in a {draft.per}"))
    elif draft.unit is not None:
        yield replace(draft, rows=_ask_count(question, draft.persons or 1))
    else:
        relation = _ask_relation("rows")
        is_public = relation.count_is_public
        rows = _ask_count("Number of rows", 1, draft.counted) if is_public else _ask_count(question)
        yield replace(draft, rows=rows, neighbours=relation, delta=None)


def _columns(draft: Draft) -> str:
    """How many columns are published in which way, on a line each."""
    ways: dict[str, list[tuple[str, int]]] = {}
    for label, names in _runs(draft.candidates):
        ways.setdefault(draft.columns[names[0]].in_words, []).append((label, len(names)))
    lines = []
    for way, runs in sorted(ways.items()):  # "as numbers" is before "left out"
        labels = [f"{label} ({size})" if size > 1 else label for label, size in runs]
        omitted = len(runs) - _MOST_LISTED
        rest = f", and {omitted} more" if omitted > 0 else ""
        number = sum(size for _, size in runs)
        lines.append(f"{number} {way}: {', '.join(labels[:_MOST_LISTED])}{rest}")
    if any(each.levels is None and each.lower is None for each in draft.published.values()):
        needed = rows_needed(draft.width, gdp_mu(draft.release_epsilon, draft.release_delta))
        count, unit = draft.persons or draft.rows, "persons" if draft.unit else "rows"
        if count is not None and needed > count:
            counted = f"about {needed} {unit} are needed, and there are {count}:"
            lines += [f"Without bounds, {counted}", "declare bounds, or leave columns out."]
    return ("\n" + " " * 12).join(lines)


def _ask_columns(draft: Draft) -> Iterator[Draft]:
    """Ask about the columns of a pattern together, or about one run after another."""
    columns = draft.candidates

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
        ways = "; ".join(dict.fromkeys(each.in_words for each in members.values()))
        kinds = [way for way in (NUMBERS, LEVELS) if all(way in x.ways for x in members.values())]
        words = ("", *kinds, _SKIP, _DONE)
        counted = f", {len(names)} columns" if names[1:] else ""
        question = f"[{number}/{len(found)}] {label}{counted} ({ways}): {', '.join(words[1:])}"
        answer = _ask(f"{question}; Enter to keep it", _one_of(words), "")
        if answer == _DONE:
            return
        if answer:
            draft = draft.with_columns(_ANSWERS[answer](members))
            yield draft


def _ask_bounds(columns: Columns) -> dict[str, Column]:
    """The columns as numbers, with the bounds that are answered."""

    def parsed(answer: str) -> Bounds:
        lower, upper = _two_numbers(answer, "0 100.5") if answer else (None, None)
        return parse(Bounds, {"lower": lower, "upper": upper}, "bounds", RequestError)

    bounds = _ask("    lower and upper bound, such as 0 100 (Enter: no bounds)", parsed, "")
    numbers = Column(lower=bounds.lower, upper=bounds.upper)
    return {
        name: replace(numbers, kind=each.kind, ways=each.ways, missing=each.missing)
        for name, each in columns.items()
    }


def _ask_levels(columns: Columns) -> dict[str, Column]:
    """The columns as categories: with levels of text, unless all levels are numbers."""

    def parsed(answer: str) -> dict[str, Column]:
        texts = [part.strip() for part in re.split(r"[,;]", answer) if part.strip()]
        words = answer.split()
        if len(texts) == 1 and all(_as_number(word) is not None for word in words):
            texts = words
        numbers = [_as_number(text) for text in texts]
        answered = {}
        for name, column in columns.items():
            levels = texts if column.kind == TEXT or None in numbers else numbers
            declared = parse(Levels, {"levels": levels}, "levels", RequestError).levels
            spellings = column.spellings if declared == column.levels else ()
            answered[name] = Column(
                column.kind, column.ways, levels=declared, seen=column.seen, spellings=spellings
            )
        return answered

    if all(column.kind == TRUTH for column in columns.values()):
        return {k: Column(x.kind, x.ways, levels=(True, False)) for k, x in columns.items()}
    seen = {column.levels or column.choices for column in columns.values()}
    default = as_yaml(*seen)[1:-1] if len(seen) == 1 else ""
    return _ask("    levels, separated by commas, such as low, high", parsed, default or None)


def _leave_out(columns: Columns) -> dict[str, Column]:
    return {k: replace(x, left_out=x.left_out or "by choice") for k, x in columns.items()}


_ANSWERS: dict[str, Callable[[Columns], dict[str, Column]]] = {
    NUMBERS: _ask_bounds,
    LEVELS: _ask_levels,
    _SKIP: _leave_out,
}


def _as_number(text: str) -> float | None:
    """The text as a number; None if it is not one, or is not the usual spelling of it (007)."""
    with contextlib.suppress(ValueError):
        number = float(text)
        if math.isfinite(number) and format(number, ".17g") == text:
            return number
    return None


def _runs(columns: Columns) -> list[tuple[str, list[str]]]:
    """The columns in their order, with neighbours that share a prefix and an answer together."""

    def alike(name: str) -> tuple[str, Column]:
        prefix = _PREFIX.match(name)
        return (f"{prefix[0]}*" if prefix else "", columns[name])

    found = []
    for (label, _), members in groupby(columns, alike):
        names = list(members)
        together = bool(label) and len(names) >= _LEAST_IN_RUN
        found += [(label, names)] if together else [(name, [name]) for name in names]
    return found


def _budget(draft: Draft) -> str:
    place = f"of one {draft.per} of rows" if draft.per is not None else "together"
    return f"epsilon={draft.epsilon:g}, delta={draft.delta:g}, for all releases {place}"


def _with_budget(draft: Draft, answer: str) -> Draft:
    epsilon, delta = _two_numbers(answer, "3 1e-6")
    limit = 1 / (draft.persons or draft.rows or 1)
    if delta >= limit:
        raise wordings.delta_too_large("persons" if draft.persons else "rows", limit)
    parse(Budget, {"epsilon": epsilon, "delta": delta}, "budget", RequestError)
    first = min(draft.release_epsilon, epsilon)
    return replace(draft, epsilon=epsilon, delta=delta, release_epsilon=first)


def _release(draft: Draft) -> str:
    place = "the first release" if draft.dates is None else "all weeks of a year together"
    return f"epsilon={draft.release_epsilon:g}, for {place}"


def _with_release(draft: Draft, answer: str) -> Draft:
    most, example = draft.epsilon or 1e3, "0.5, with a decimal point"
    return replace(draft, release_epsilon=_number(answer, float, example, 1e-4, most))


PARTS = {
    "title": _text("title", "Title of the data set"),
    "curator": _text("curator", "Curator: who is responsible for it"),
    "version": replace(
        _text("version", "Version: a public label of the data"),
        applies=lambda draft: draft.dates is None,
    ),
    "decimals": _Part(
        _decimals,
        _question("Decimal mark: point, as in 1.5, or comma, as in 1,5", _with_decimals, _decimals),
        applies=lambda draft: "decimal" in draft.format,
    ),
    "grows": _Part(_growth, _ask_growth, lambda draft: not draft.is_series),
    "protects": _Part(_protection, _ask_unit, lambda draft: not draft.is_series),
    "rows": _Part(_rows, _ask_rows),
    "columns": _Part(_columns, _ask_columns),
    "budget": _Part(
        _budget,
        _question(
            "Epsilon and delta of the budget, for all releases",
            _with_budget,
            lambda draft: f"{draft.epsilon:g} {draft.delta:g}",
        ),
    ),
    "release": _Part(
        _release,
        _question(
            "Epsilon of the first release",
            _with_release,
            lambda draft: f"{draft.release_epsilon:g}",
        ),
    ),
}
