"""The canonical spelling of a person's name.

A person under two names would be scaled separately and count twice, which breaks the guarantee; two
persons under one name only cost accuracy. So differences that programs are known to introduce are
ignored.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.column import MISSING
from gramercy.tables.formats.values import MAX_NAME_BYTES

# NFKC shortens text at most sixfold: a character has at most four bytes and becomes at least one,
# and a composed character has a byte for every 1.5 characters that it replaces. Longer text is not
# normalised, also because sorting accents takes quadratic time.
_MAX_NORMALISED = 6 * MAX_NAME_BYTES

# Invisible characters: control and format characters, others that fonts may ignore, and substitutes
# for bytes that are not text; but not the control characters that are white space.
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891"
    "\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffd\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]+"
)
_QUOTES = (  # includes the marks in Excel's ="7"
    "\"'`=\u00ab\u00b4\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a"
)
_AROUND = _QUOTES + "".join(filter(str.isspace, map(chr, range(0x3001))))  # also all white space
_DASHES = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
)
_NUMBER = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")

_LONGEST_MISSING = max(len(missing.encode()) for missing in MISSING)


def canonical(name: str) -> str | None:
    """The canonical spelling of a person's name.

    Returns
    -------
    str or None
        The name without invisible characters and without blanks and quotes around it. A run of
        blanks becomes one blank, compatible characters are unified (NFKC), and a number has one
        form (``7``, ``-7``, ``7.5``, ``7e999``). Leading zeros are kept: ``007`` is not ``7``.
        None if nothing is left, if the name is longer than 256 bytes, or if it stands for a
        missing cell.
    """
    name = _single_blanks(_INVISIBLE.sub("", name))
    if len(name.encode()) > _MAX_NORMALISED:
        return None
    if not name.isascii():
        name = _single_blanks(unicodedata.normalize("NFKC", name.translate(_DASHES)))
    if len(name) > MAX_NAME_BYTES:  # before parsing an exponent, which may have millions of digits
        return None
    number = _NUMBER.fullmatch(name)
    if number:
        name = _number(*number.groups(""))
    return None if name in MISSING or len(name.encode()) > MAX_NAME_BYTES else name


def _single_blanks(name: str) -> str:
    """The name without blanks and quotes around it, and with one blank for each run of them."""
    # A name with more words than that is too long anyway, and splitting it would waste memory.
    return " ".join(name.strip(_AROUND).split(maxsplit=_MAX_NORMALISED))


def _number(sign: str, whole: str, fraction: str, exponent: str) -> str:
    """The canonical form of a decimal number, by string operations: exponents may be huge."""
    leading = "0" * (len(whole) - max(1, len(whole.lstrip("0"))))
    digits = (whole + fraction).strip("0")
    if not digits:
        return f"{leading}0"
    trailing = len(whole + fraction) - len((whole + fraction).rstrip("0"))
    power = int(exponent or "0") - len(fraction) + trailing  # exponent of ten of the last digit
    point = len(digits) + power
    start = ("-" if sign == "-" else "") + leading
    if abs(power) > MAX_NAME_BYTES or abs(point) > MAX_NAME_BYTES:
        return f"{start}{digits}e{power}"
    if power >= 0:
        return f"{start}{digits}{'0' * power}"
    if point > 0:
        return f"{start}{digits[:point]}.{digits[point:]}"
    return f"{start}0.{'0' * -point}{digits}"


def are_canonical(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether each name is certainly in its canonical spelling; for numba.

    Those are names of printable ASCII characters, without quotes around them, and with single
    blanks inside, which are too long for a missing cell and cannot be numbers; and strings of
    digits. Other names may also be in their canonical spelling.
    """
    result = np.zeros(len(offsets) - 1, np.bool_)
    for k in range(len(result)):
        begin, end = offsets[k], offsets[k + 1]
        if not 0 < end - begin <= MAX_NAME_BYTES:
            continue
        before, digits, others, printable = 32, 0, 0, True
        for j in range(begin, end):
            code = data[j]
            is_digit = 48 <= code <= 57
            digits += is_digit
            # Numbers may also have these: + - . E e
            in_number = is_digit or code in (43, 45, 46, 69, 101)
            others += not in_number
            printable = printable and 32 <= code <= 126 and not code == before == 32
            before = code
        if not printable or before == 32:
            continue
        first, last = data[begin], data[end - 1]
        # The quotes in ASCII: " ' = `
        quoted = first in (34, 39, 61, 96) or last in (34, 39, 61, 96)
        is_word = others > 0 and end - begin > _LONGEST_MISSING and not quoted
        result[k] = is_word or digits == end - begin
    return result
