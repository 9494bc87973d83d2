"""Numbers that are written as text, each cell independently of the others.

A cell is first compared, as a whole, with the one pattern of its notation. Only then are marks,
units and blanks dropped. What is left is a number as a computer writes it, which Arrow rounds
correctly to a double; a percent sign becomes the exponent -2. All of it is done on bytes, so that
text that is not UTF-8 cannot fail.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gramercy.schemas.notation import NumberNotation

# Text that Arrow casts to float64, except nan(...), which counts as missing.
_PLAIN = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)$"
_SOME = 100  # cells
_MINUS = "\u2212"
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_BLANKS = (" ", *_SPACES, "\u202f", "\u205f", "\u3000")  # all that Unicode calls separators
_SAME = {" ": _BLANKS, "'": ("'", "\u2019")}  # marks that stand for each other


def read_numbers(text: pa.Array, notation: NumberNotation) -> pa.Array:
    """Double-precision numbers; null where a cell is not a number."""
    text = pc.ascii_trim_whitespace(text)
    simple = text
    if notation.decimal == ",":  # a point may separate thousands: 1.500 is not one and a half
        has_point = pc.match_substring(text, ".")
        simple = pc.replace_substring(pc.if_else(has_point, None, text), ",", ".")
        if notation.thousands == "." and pc.any(has_point).as_py():
            return _doubles(plain_texts(text, notation))
    try:
        simple[:_SOME].cast(pa.float64())  # a cast that fails takes longer than all that follows
        return simple.cast(pa.float64())
    except pa.ArrowInvalid:  # at least one cell is not as simple as that
        pass
    if notation.is_plain:
        has_minus = _MINUS.encode() in _bytes_of(text)
        return _doubles(pc.replace_substring(text, _MINUS, "-") if has_minus else text)
    return _doubles(plain_texts(text, notation))


def _doubles(text: pa.Array) -> pa.Array:
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:
        is_number = pc.match_substring_regex(text, _PLAIN)
    return pc.if_else(is_number, text, None).cast(pa.float64())


def plain_texts(text: pa.Array, notation: NumberNotation) -> pa.Array:
    """Numbers as a computer writes them, still as text; null where a cell is not a number."""
    kind = pa.large_binary() if pa.types.is_large_string(text.type) else pa.binary()
    cells, written = text.cast(kind), _written(notation)
    cells = pc.if_else(pc.match_substring_regex(cells, written.pattern), cells, None)
    present = _bytes_of(cells)
    is_ascii = present.isascii()
    for old, new in written.replaced:
        if old.isascii() >= is_ascii and old.encode() in present:
            cells = pc.replace_substring(cells, old.encode(), new.encode())
    if notation.accounting:
        cells = pc.replace_substring_regex(cells, r"^(.*)-$", r"-\1")
    return cells.cast(text.type, safe=False)


def _bytes_of(cells: pa.Array) -> bytes:
    """All bytes of the cells, and possibly of cells around them."""
    data = cells.buffers()[2]
    return b"" if data is None else bytes(data.to_pybytes())


class _Written(NamedTuple):
    pattern: str  # of a whole cell
    replaced: tuple[tuple[str, str], ...]  # marks and what is put in their place, in order


@functools.cache
def _written(notation: NumberNotation) -> _Written:
    """What a notation is on bytes, where a character may be several of them."""
    marks = _SAME.get(notation.thousands or "", tuple(notation.thousands or ""))
    units = sorted(notation.units, key=len, reverse=True)  # a unit may contain a shorter one
    blanks, sign, point = f"{_any(_BLANKS)}*", _any("+-" + _MINUS), re.escape(notation.decimal)
    unit = f"(?:{_any(units)}{blanks})?" if units else ""
    whole = r"\d+"
    if marks:
        mark = _any(marks)
        groups = rf"(?:[1-9]\d?\d?(?:{mark}\d\d\d)+|[1-9]\d?(?:{mark}\d\d)+{mark}\d\d\d)"
        whole = rf"(?:{groups}|{whole})"
    number = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)"
    percent = f"|{blanks}%" if notation.percent else ""
    number += rf"(?:[eE]{sign}?\d+{percent})?{blanks}"
    forms = [rf"(?:{sign}{blanks}{unit}|{unit}(?:{sign}{blanks})?){number}{unit}"]
    if notation.accounting:
        minus = _any(f"-{_MINUS}")
        forms.append(rf"{unit}{number}{unit}{minus}{blanks}{unit}")
        forms.append(rf"{unit}\({blanks}{unit}{number}{unit}\){blanks}{unit}")
    dropped = [*units, *marks, *_BLANKS, ")"]
    replaced = {",": ".", _MINUS: "-", "%": "e-2", "(": "-"}
    pairs = (*dict.fromkeys(dropped, "").items(), *replaced.items())
    return _Written(f"^{blanks}(?:{'|'.join(forms)})$", pairs)


def _any(texts: Iterable[str]) -> str:
    """A pattern of any of some texts."""
    return f"(?:{'|'.join(map(re.escape, texts))})"
