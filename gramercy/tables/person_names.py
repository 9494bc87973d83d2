"""The one spelling of a person's name, whatever files and programs have done to it.

A person under two names would have their rows scaled apart and count twice, which breaks the
guarantee; two persons under one name only cost accuracy. So nothing counts that programs are known
to add, drop or rewrite.
"""

from __future__ import annotations

import re
import unicodedata

from gramercy.schemas.column import MISSING

LONGEST = 256  # bytes of a name; a longer one is left out
# NFKC makes no text more than six times shorter: a character has at most four bytes and becomes at
# least one, and a character that is composed of several has a byte for every 1.5 of them. What is
# longer would also take long, since sorting accents takes quadratic time.
_NORMALISED = 6 * LONGEST

# What cannot be seen: control and format characters, others that Unicode lets fonts ignore, and
# what stands for bytes that are not text. Control characters that are blanks are not among them.
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891"
    "\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffd\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]+"
)
_QUOTES = (  # and Excel's ="7"
    "\"'`=\u00ab\u00b4\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a"
)
_AROUND = _QUOTES + "".join(filter(str.isspace, map(chr, range(0x3001))))  # and all blanks
_DASHES = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
)
_NUMBER = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")


def canonical(name: str) -> str | None:
    """The one spelling of a person's name.

    Parameters
    ----------
    name
        As a file holds it, of any length.

    Returns
    -------
    str or None
        The name without invisible characters and without blanks and quotes around it. A run of
        blanks inside is one blank, compatible characters are the same (NFKC), and a number is
        written in one way (``7``, ``-7``, ``7.5``, ``7e999``). Leading zeros count: ``007`` is not
        ``7``. None where nothing is left, where the name is longer than 256 bytes, and where it
        stands for a missing cell.
    """
    name = _single_blanks(_INVISIBLE.sub("", name))
    if len(name.encode()) > _NORMALISED:
        return None
    if not name.isascii():
        name = _single_blanks(unicodedata.normalize("NFKC", name.translate(_DASHES)))
    if len(name) > LONGEST:  # before the digits of an exponent are looked at
        return None
    number = _NUMBER.fullmatch(name)
    if number:
        name = _number(*number.groups(""))
    return None if name in MISSING or len(name.encode()) > LONGEST else name


def _single_blanks(name: str) -> str:
    """Without blanks and quotes around it, and with one blank for each run of them inside."""
    # With more blanks than that it is too long, and not worth the memory of its words.
    return " ".join(name.strip(_AROUND).split(maxsplit=_NORMALISED))


def _number(sign: str, whole: str, fraction: str, exponent: str) -> str:
    """A decimal number, by its digits alone: the exponent may be of any size."""
    leading = "0" * (len(whole) - max(1, len(whole.lstrip("0"))))
    digits = (whole + fraction).strip("0")
    if not digits:
        return f"{leading}0"
    trailing = len(whole + fraction) - len((whole + fraction).rstrip("0"))
    power = int(exponent or "0") - len(fraction) + trailing  # of ten, for the last digit
    point = len(digits) + power
    start = ("-" if sign == "-" else "") + leading
    if abs(power) > LONGEST or abs(point) > LONGEST:
        return f"{start}{digits}e{power}"
    if power >= 0:
        return f"{start}{digits}{'0' * power}"
    if point > 0:
        return f"{start}{digits[:point]}.{digits[point:]}"
    return f"{start}0.{'0' * -point}{digits}"
