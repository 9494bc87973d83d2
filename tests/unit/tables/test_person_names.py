"""The canonical spelling of a name: changes that programs make do not create a second person."""

from __future__ import annotations

import functools
import sys
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gramercy.common.machine import compiled
from gramercy.schemas.column import MISSING
from gramercy.tables.persons.name_table import TextBuffers
from gramercy.tables.persons.person_names import MAX_NAME_BYTES, are_canonical, canonical

MIB = 1 << 20


@functools.cache
def characters() -> list[str]:
    """All of Unicode."""
    return [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]


@pytest.mark.slow
@given(st.text(max_size=8) | st.from_regex(r'[" 0-9.eE+-]{0,8}', fullmatch=True))
@example("1" * MAX_NAME_BYTES + "e-300")
@example("." + "1" * 255)
@example("0.0e5")
@example("-000.10e-1")
@example("\u00a8\ufeff e\u200b\u0301")
def test_canonical_name_is_idempotent(name: str) -> None:
    """So a known name need not be canonicalised again."""
    spelling = canonical(name)
    assert spelling is None or canonical(spelling) == spelling
    assert spelling is None or 0 < len(spelling.encode()) <= MAX_NAME_BYTES


SPELLINGS = {
    "7": [
        *('"7"', "7 ", " 7", '"7" ', ' " "7" " ', "\t7\n", "\u00a07\u3000", "\u20287"),
        *("+7", "7.", "7.0", "7.00", "7e0", "7E+00", "70e-1", "0.7e1", ".7e1", "+7.0e0", "7e-0"),
        *("\ufeff7", "7\u200b", "\u200e7\u200f", "7\u00ad", "\x007\x1a", "7\ufe0f", "7\U000e0020"),
        *("'7", '="7"', "=7"),
        *("７", "＋７．０", "\U0001d7d5", "⁷", "\ufeff+\u200b7 "),
    ],
    "0": ["-0", "+0", "-0.0", "0e5", ".0", "0e-999999999", "-0e9"],
    "-7": ["-7.0", "－7", "-70e-1", "\u22127", "\u20117"],
    "ann": ["'ann'", "\u201cann\u201d", "\u2018ann\u2019", "\u00abann\u00bb", "`ann`"],
    "a-b": ["a\u2010b", "a\u2013b"],
    "007": ["007.0", "+007", "0070e-1"],
    "7.5": ["7.50", "75e-1", "+7.5"],
    "0.5": [".5", "5e-1", "0.50"],
    "100000": ["1e5", "1E+05", "100000.0"],
    "1e999999999": ["1e999999999", "10e999999998", "+1.0e999999999", "1e0999999999"],
    "Ann Lee": ["Ann\u00a0Lee", "Ann  Lee", "Ann \t\u2003Lee", " Ann\nLee", "A\u200dnn Lee\ufffd"],
    "é": ["e\u0301", " é\u00a0", "e\u200b\u0301", "e\u034f\u0301"],
    "ﬁn".replace("ﬁ", "fi"): ["ﬁn"],
}


@pytest.mark.parametrize(
    ("spelled", "name"), [(spelled, name) for name in SPELLINGS for spelled in SPELLINGS[name]]
)
def test_spellings_share_one_canonical_name(spelled: str, name: str) -> None:
    assert canonical(name) == name
    assert canonical(spelled) == name


def test_distinct_names_stay_distinct() -> None:
    names = [
        "7",
        "07",
        "007",
        "7.5",
        "-7",
        "70",
        "a",
        "A",
        "x.0",
        "1.0.0",
        "7e",
        "e7",
        "1_0",
        "0x7",
    ]
    assert [canonical(name) for name in names] == names


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        '""',
        "NA",
        " ＮＡ",
        "\ufeff",
        "\u200b-",
        "\x1a\x1a",
        "x" * 257,
        "é" * 129,
        "\ufdfa" * 9,
    ],
)
def test_missing_names_have_no_canonical_form(name: str) -> None:
    assert canonical(name) is None


def test_whitespace_separates_words_and_invisible_characters_vanish() -> None:
    """All of Unicode: white space separates words, control and format characters do not."""
    for character in characters():
        if character.isspace() or unicodedata.category(character) in {"Cc", "Cf"}:
            assert canonical(f"a{character}b") == ("a b" if character.isspace() else "ab")
            assert canonical(f"{character}a{character}") == "a"


def test_unicode_normalisation_shortens_names_at_most_sixfold() -> None:
    """So a long name can be refused before the slow normalisation."""
    ratios = (
        len(unicodedata.normalize("NFD", character)) / len(character.encode())
        for character in characters()
    )
    assert max(ratios) * 4 <= 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a" + ' "' * 2 * MIB + "b", None),
        (' "' * 2 * MIB + "b", "b"),
        ("\u200b" * MIB + "b", "b"),
        ("a" + " " * 4 * MIB + "b", "a b"),
        ("a" + "\u0300\u0327" * MIB, None),  # sorting the accents would take days
        ("\ufdfa" * MIB, None),
        ("1e" + "9" * 4 * MIB, None),
        ("0." + "0" * 4 * MIB, None),
        ("a " * 2 * MIB, None),
    ],
    ids=range(9),
)
def test_very_long_names_take_linear_time(name: str, expected: str | None) -> None:
    assert canonical(name) == expected


def certainly_canonical(names: list[str]) -> list[bool]:
    buffers = TextBuffers.of(pa.array(names, pa.large_string()))
    found: list[bool] = compiled(are_canonical)(buffers.offsets, buffers.data).tolist()
    return found


# Characters that matter to one of the rules, and any others.
NAME = st.text(st.sampled_from("0123456789+-.eE \"'`=anNAul/?\x1f\x7f\u00e9\uff17"), max_size=9)


@given(
    NAME | st.text(max_size=9) | st.from_regex(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?", fullmatch=True)
)
@example("0" * MAX_NAME_BYTES)
@example("1" + "0" * (MAX_NAME_BYTES - 1))
@example("1" * MAX_NAME_BYTES)
@example("9" * (MAX_NAME_BYTES + 1))
@example("x" * (MAX_NAME_BYTES + 1))
@example("-0000")
@example("a  b c")
@example("abcde ")
def test_quick_check_accepts_only_canonical_names(name: str) -> None:
    """Otherwise a person could have two names."""
    for each in (name, name * 3, f"{name}abcd", f"abcd{name}", f"ab{name}cd"):
        assert not certainly_canonical([each])[0] or canonical(each) == each


def test_quick_check_of_every_short_ascii_name() -> None:
    characters_ = [chr(code) for code in range(128)]
    names = [a + b for a in characters_ for b in ["", *characters_]] + list(MISSING)
    names += [a + "bcd" + b for a in characters_ for b in characters_]
    for name, accepted in zip(names, certainly_canonical(names), strict=True):
        assert not accepted or canonical(name) == name


def test_quick_check_accepts_usual_names() -> None:
    usual = ["person-00000001", "7", "007", "0", "000", "Ann Lee", "d41d8cd9-8f00", "a@b.org"]
    assert certainly_canonical([*usual, "x" * MAX_NAME_BYTES, "1" * MAX_NAME_BYTES]) == [True] * 10
    assert certainly_canonical(["1e5", "-7", "7.0", "'Ann'", " 7", "", "NaN"]) == [False] * 7
