"""Cells that look like numbers in another notation than the contract states.

Every notation that a contract can state is tried by the code that reads a release, so the line that
is proposed reads these cells. Cells are shown by their shapes: digits as 9, and letters as a.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramercy.schemas.errors import GramercyError
from gramercy.schemas.notation import NumberNotation
from gramercy.schemas.source import AnySource, Files, notation_of
from gramercy.tables.formats.values import Numbers

Mask = NDArray[np.bool_]

_MOST_TEXTS = 1000  # different cells of a column: so many that are read, and that are not
_LEAST_CELLS, _LEAST_SHARE = 3, 5e-4
_LONGEST_SHAPE, _MOST_SHAPES = 16, 3
_MOST_UNITS, _LONGEST_UNIT, _SHARE_OF_UNIT = 3, 8, 0.2
_WITHOUT_MARK = 0.02  # share of cells, so that those with a mark seem to be the large ones

# Cells that can have only this mark before their decimals, and those that can have either.
_DECIMALS = {
    ".": re.compile(r"\d{1,3}(,\d{3})+\.\d+|\d+\.(\d{1,2}|\d{4,})|0\.\d+"),
    ",": re.compile(r"\d{1,3}(\.\d{3})+,\d+|\d+,(\d{1,2}|\d{4,})|0,\d+"),
}
_EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_GROUPED = re.compile(r"[1-9]\d{0,2}([.,])\d{3}(\1\d{3})*")
_NO_UNITS = {"", "%", "<", ">", "<=", ">=", "≤", "≥", "~", "*"}
_MARKED = re.compile(r"([<>≤≥]=?|[~≈]|)\s*[^<>≤≥~≈*†‡]*?\s*([*†‡]*)")
SHEET_ERROR = re.compile(r"#[A-Z/0]+[!?]?")
_MOSTLY = 0.9
_LARGE = re.compile(r"[1-9]\d{3,}([.,]\d{1,2})?")
_AROUND = re.compile(r"([^\d+(.,-]*)[\s+(-]*[\d.,][\d.,'’\s]*[\s)-]*([^\d)-]*)")
_BLANKS = " \t\u00a0\u202f\u2009"
_ALIKE = {" ": set(_BLANKS), "'": set("'’")}  # marks between thousands that stand for each other


@dataclass(frozen=True, repr=False)
class Texts:
    """The texts of a numeric column, and how often each occurs. Private."""

    column: str
    texts: Sequence[str] = field(repr=False)
    counts: NDArray[np.float64] = field(repr=False)

    @classmethod
    def of(cls, column: str, cells: pa.Array, declared: NumberNotation) -> Texts:
        """Those of an array of text; of many different ones some, which stand for all."""
        found = cells.drop_null().value_counts()
        texts, counts = found.field("values"), found.field("counts").to_numpy().astype(float)
        unread = np.isnan(Numbers(declared).floats(texts))
        kept = list[int]()
        for which in (np.flatnonzero(unread), np.flatnonzero(~unread)):
            some = which[:_MOST_TEXTS]
            counts[some] *= counts[which].sum() / max(counts[some].sum(), 1.0)
            kept += some.tolist()
        return cls(column, texts.take(pa.array(kept, pa.int64())).to_pylist(), counts[kept])

    def read(self, notation: NumberNotation) -> Mask:
        """Which texts a notation reads as numbers."""
        read: Mask = ~np.isnan(Numbers(notation).floats(pa.array(self.texts, pa.string())))
        return read

    def matching(self, pattern: re.Pattern[str]) -> Mask:
        """Which texts are of a form, without signs and blanks around them."""
        return np.array(
            [pattern.fullmatch(each.strip(_BLANKS + "+-")) is not None for each in self.texts]
        )

    def having(self, characters: str) -> Mask:
        """Which texts have any of some characters."""
        return np.array([not set(characters).isdisjoint(each) for each in self.texts], bool)

    def cells(self, which: Mask) -> int:
        """The number of cells with some of the texts."""
        return round(float(self.counts[which].sum()))

    def share(self, which: Mask) -> float:
        """The share of the cells with some of the texts."""
        return self.cells(which) / int(self.counts.sum())

    def are_many(self, which: Mask) -> bool:
        """Whether the cells with some of the texts are worth a warning."""
        return self.cells(which) >= max(_LEAST_CELLS, _LEAST_SHARE * int(self.counts.sum()))

    def has_large_without_marks(self) -> bool:
        """Whether cells of four digits have no mark between them."""
        return self.share(self.matching(_LARGE)) >= _WITHOUT_MARK

    def shapes(self, which: Mask) -> tuple[str, ...]:
        """The commonest shapes of some texts."""
        counted = Counter[str]()
        for k in np.flatnonzero(which).tolist():
            counted[shape_of(self.texts[k])] += int(self.counts[k])
        return tuple(shape for shape, _ in counted.most_common(_MOST_SHAPES))


def shape_of(text: str) -> str:
    """A text with 9 for every digit and a for every letter."""
    shape = re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text[:_LONGEST_SHAPE]))
    return shape + ("..." if len(text) > _LONGEST_SHAPE else "")


@dataclass(frozen=True, repr=False)
class Misread:
    """Columns with cells that are numbers in another notation. Private."""

    columns: tuple[str, ...]
    share: float  # of such cells, the largest one of a column
    shapes: tuple[str, ...]
    # The keys of the source that read them; None if there are none that read all, or that may.
    keys: Mapping[str, Any] | None
    # Whether cells are numbers now, which another notation reads as other numbers.
    ambiguous: bool = False
    # Whether the keys drop marks that say that a number is another one, or uncertain.
    qualified: bool = False


def misread(columns: Iterable[Texts], source: AnySource) -> Iterator[Misread]:
    """What the notation of a source does not read, or may read wrongly, and the keys that do."""
    declared = notation_of(source)
    shown = [each for each in columns if len(each.texts)]
    mixed = [
        each for each in shown if all(each.are_many(each.matching(x)) for x in _DECIMALS.values())
    ]
    for each in mixed:
        share = each.share(each.matching(_EITHER))
        yield Misread((each.column,), share, each.shapes(each.having(".,")), None, ambiguous=True)
    others = [each for each in shown if each not in mixed]
    best = _best(others, declared, source)
    gained = [(each, each.read(best) & ~each.read(declared)) for each in others]
    gained = [(each, which) for each, which in gained if each.are_many(which)]
    if gained:
        worst, which = max(gained, key=lambda each: each[0].share(each[1]))
        names = tuple(each.column for each, _ in gained)
        keys = {key: getattr(best, key) for key in _changed(best, declared)}
        doubtful = "thousands" in keys and any(each.has_large_without_marks() for each, _ in gained)
        yield Misread(names, worst.share(which), worst.shapes(which), keys, ambiguous=doubtful)
        return
    for each in others:
        yield from _groups_read_as_decimals(each, declared, source)
        unread = ~each.read(declared) & np.array([any(map(str.isdigit, x)) for x in each.texts])
        unread &= ~each.matching(SHEET_ERROR)
        if each.are_many(unread):
            facts = ((each.column,), each.share(unread), each.shapes(unread))
            without = _marks(each, unread, declared, source)
            yield Misread(*facts, without, qualified=without is not None)


def _marks(
    texts: Texts, unread: Mask, declared: NumberNotation, source: AnySource
) -> dict[str, Any] | None:
    """Keys that drop marks such as those of limits and footnotes; None if they read too little."""
    found = Counter[str]()
    for k in np.flatnonzero(unread).tolist():
        if (around := _MARKED.fullmatch(texts.texts[k].strip(_BLANKS))) is not None:
            found.update(filter(None, around.groups()))
    if not found:
        return None
    keys = {"units": (*declared.units, *sorted(found))}
    notation = _with_keys(source, keys)
    read = unread if notation is None else texts.read(notation) & unread
    if notation is None or texts.cells(read) < _MOSTLY * texts.cells(unread):
        return None
    return keys


def _groups_read_as_decimals(
    texts: Texts, declared: NumberNotation, source: AnySource
) -> Iterator[Misread]:
    """Where 1.234 is read as a number near one, and may be a thousand: there is no larger cell.

    All cells with a mark have three digits after it, and others are below a thousand.
    """
    read = texts.read(declared)
    marked = read & texts.having(declared.decimal)
    grouped = marked & texts.matching(_GROUPED)
    plain = read & ~marked
    if (
        texts.are_many(grouped)
        and (grouped == marked).all()
        and not texts.has_large_without_marks()
        and texts.share(plain) >= _WITHOUT_MARK
        and grouped.sum() > _LEAST_CELLS
    ):
        other = "." if declared.decimal == "," else ","
        keys = {"decimal": other, "thousands": declared.decimal}
        if _with_keys(source, keys) is None:
            keys = {"thousands": declared.decimal}
        yield Misread(
            (texts.column,), texts.share(grouped), texts.shapes(grouped), keys, ambiguous=True
        )


def _best(columns: Sequence[Texts], declared: NumberNotation, source: AnySource) -> NumberNotation:
    """The notation of fewest changed keys that reads most cells."""
    unread = [(each, ~each.read(declared)) for each in columns]
    unread = [(each, which) for each, which in unread if each.are_many(which)]
    if not unread:
        return declared
    best, best_score = declared, sum(each.cells(each.read(declared)) for each in columns)
    for notation in _notations(declared, source, unread):
        score = sum(each.cells(each.read(notation)) for each in columns)
        score -= _grouping_contradicted(columns, notation, declared)
        if score >= best_score + _LEAST_CELLS:
            best, best_score = notation, score
    return best


def _grouping_contradicted(
    columns: Sequence[Texts], notation: NumberNotation, declared: NumberNotation
) -> int:
    """Cells that speak for groups of digits where a notation has decimals."""
    cells = 0
    for each in columns if notation.decimal != declared.decimal else ():
        marked = each.having(notation.decimal)
        grouped = marked & each.matching(_GROUPED)
        if (grouped == marked).all():  # every mark is before three digits
            cells += 2 * each.cells(grouped & ~each.read(declared))
    return cells


def _notations(
    declared: NumberNotation, source: AnySource, unread: Sequence[tuple[Texts, Mask]]
) -> list[NumberNotation]:
    """The notations that a source can state, of marks that are in texts that are not read.

    Those with few changed keys come first.
    """
    texts = (each.texts[k] for each, which in unread for k in np.flatnonzero(which).tolist())
    seen = set().union(*texts)
    choices: dict[str, tuple[Any, ...]] = {
        "decimal": (declared.decimal, *(".," if seen & set(".,") else "")),
        "thousands": (None, declared.thousands, *(x for x in ",. '" if seen & _ALIKE.get(x, {x}))),
        "percent": (declared.percent, declared.percent or "%" in seen),
        "accounting": (declared.accounting, declared.accounting or not seen.isdisjoint("()-−")),
        "units": (declared.units, tuple(dict.fromkeys([*declared.units, *_units(unread)]))),
    }
    stated = (
        _with_keys(source, dict(zip(choices, values, strict=True)))
        for values in itertools.product(*map(dict.fromkeys, choices.values()))
    )
    found = dict.fromkeys(each for each in stated if each not in (None, declared))
    return sorted(found, key=lambda each: len(_changed(each, declared)))


def _changed(notation: NumberNotation, declared: NumberNotation) -> list[str]:
    keys = NumberNotation.model_fields
    return [key for key in keys if getattr(notation, key) != getattr(declared, key)]


def _with_keys(source: AnySource, keys: Mapping[str, Any]) -> NumberNotation | None:
    """The notation of a source with these keys; None if they contradict each other."""
    stated = Files(path=source) if isinstance(source, str) else source
    if isinstance(stated, NumberNotation):
        with contextlib.suppress(GramercyError, ValueError):
            keys = {**stated.model_dump(exclude_unset=True), **keys}
            return type(stated).model_validate(keys).notation
    return None


def _units(unread: Iterable[tuple[Texts, Mask]]) -> list[str]:
    """Short texts before and after many of the numbers that are not read."""
    counted, total = Counter[str](), 0
    for each, which in unread:
        for k in np.flatnonzero(which).tolist():
            if (around := _AROUND.fullmatch(each.texts[k].strip(_BLANKS))) is None:
                continue
            total += int(each.counts[k])
            for text in {x.strip(_BLANKS) for x in around.groups()} - _NO_UNITS:
                if len(text) <= _LONGEST_UNIT and not SHEET_ERROR.fullmatch(each.texts[k]):
                    counted[text] += int(each.counts[k])
    least = max(_LEAST_CELLS, _SHARE_OF_UNIT * total)
    return [text for text, cells in counted.most_common(_MOST_UNITS) if cells >= least]
