"""The canonical spelling of a name, and the compiled table that numbers names."""

from __future__ import annotations

import functools
import itertools
import pickle
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gramercy.common.machine import compiled
from gramercy.schemas import families
from gramercy.schemas.column import MISSING
from gramercy.tables.persons import name_table
from gramercy.tables.persons.name_table import NameDict, NameTable, TextBuffers, hashes
from gramercy.tables.persons.person_index import IndexedPersons, Persons, PersonSample
from gramercy.tables.persons.person_names import MAX_NAME_BYTES, are_canonical, canonical
from gramercy.tables.sums import row_transform
from tests.support.factories import at_scale
from tests.support.problems import raises

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


@pytest.mark.slow
def test_whitespace_separates_words_and_invisible_characters_vanish() -> None:
    """All of Unicode: white space separates words, control and format characters do not."""
    for character in characters():
        if character.isspace() or unicodedata.category(character) in {"Cc", "Cf"}:
            assert canonical(f"a{character}b") == ("a b" if character.isspace() else "ab")
            assert canonical(f"{character}a{character}") == "a"


@pytest.mark.slow
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


@pytest.mark.slow
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


NAMES = st.none() | st.sampled_from([b"", b"a", b"b", b"ab", b"\xff"]) | st.binary(max_size=20)
BATCHES = st.lists(st.lists(NAMES, max_size=12), max_size=6)

HASHES: dict[str, Callable[..., Any]] = {
    "siphash": hashes,
    "equal": lambda offsets, *_: np.zeros(len(offsets) - 1, np.uint64),
    "last": lambda offsets, *_: np.full(len(offsets) - 1, (1 << 64) - 1, np.uint64),
    "few": lambda offsets, *_: hashes(offsets, *_) & np.uint64((3 << 62) + 3),
}


def texts(names: list[bytes | None]) -> pa.LargeStringArray:
    return pa.array(names, pa.large_binary()).view(pa.large_string())


@pytest.mark.slow
@pytest.mark.parametrize("hashed", HASHES)
@pytest.mark.parametrize("slots", [np.uint32, np.uint64])
@given(batches=BATCHES)
@settings(max_examples=at_scale(10, 100))  # of each of eight tables
def test_table_equals_dictionary(hashed: str, slots: Any, batches: Any) -> None:
    """Few slots are made at first, so that the table grows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name_table, "hashes", HASHES[hashed])
        patch.setattr(name_table, "_FEWEST_SLOTS", 2)
        table, expected = NameTable(), NameDict()
        table._slots = np.zeros(2, slots)
        for batch in batches:
            names = texts([b"before", *batch])[1:]  # a slice has offsets that do not begin at zero
            np.testing.assert_array_equal(table.find(names), expected.find(names))
            np.testing.assert_array_equal(table.add(names), expected.add(names))
            np.testing.assert_array_equal(table.find(names), expected.find(names))
            assert len(table) == len(expected)
            assert table.texts().equals(expected.texts())
        patch.setattr(name_table, "hashes", hashes)  # as in another process, with another key
        copy = pickle.loads(pickle.dumps(table))
        names = texts([b"new", *itertools.chain(*batches), b"a"])
        np.testing.assert_array_equal(copy.find(names), expected.find(names))
        np.testing.assert_array_equal(copy.add(names), expected.add(names))
        assert copy.texts().equals(expected.texts())


def test_table_of_many_names_equals_dictionary() -> None:
    rng, table, expected = np.random.default_rng(0), NameTable(), NameDict()
    for most in (10, 1000, 100_000):
        names = texts([b"%d" % k for k in rng.integers(0, most, 20_000)])
        np.testing.assert_array_equal(table.add(names), expected.add(names))
    assert table.texts().equals(expected.texts())


def test_hash_is_that_of_python() -> None:
    """With the key zero, which Python uses if it is asked for hashes that do not vary."""
    if sys.hash_info.algorithm != "siphash13":
        pytest.skip("this Python has another hash")
    names = [bytes(range(1, length + 1)) for length in range(1, 40)] + [b"\xff" * 17]
    code = f"print(*map(hash, {names!r}))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    buffers = TextBuffers.of(texts(list(names)))
    ours = hashes(buffers.offsets, buffers.data, np.zeros(2, np.uint64)).view(np.int64)
    assert ours.tolist() == [int(word) for word in run.stdout.split()]


SPELLED = ["person 1", "7", "7.0", " person 1", "Zoë", "Zoe\u0308", None, "", "NA", "x" * 300]
BROKEN = pa.array([b"a\xff", b"", None, b"b\xe9", b"a\xff"], pa.binary())
COLUMNS = {
    "string": pa.array(SPELLED * 2),
    "large_string": pa.array(SPELLED, pa.large_string()),
    "string_view": pa.array(SPELLED, pa.string_view()),
    "slice": pa.array(["other", *SPELLED, "another"])[1:-1],
    "invalid": BROKEN.view(pa.string()),
    "dictionary": pa.DictionaryArray.from_arrays([3, 1, None, 1, 0], ["7.0", "b", "unused", "7"]),
    "slice of a dictionary": pa.array(SPELLED).dictionary_encode()[3:],
    "integers": pa.array([7, -7, 0, None, 2**62]),
    "dictionary of integers": pa.array([7, 8, None, 7]).dictionary_encode(),
    "nulls": pa.nulls(3),
    "no nulls": pa.array(["person 1", "Zoë", "a new person"]),
    "empty": pa.array([], pa.string()),
}


@pytest.mark.parametrize("order", [1, -1])
def test_large_index_equals_small_one(order: int) -> None:
    small, large = IndexedPersons(), IndexedPersons(large=True)
    assert isinstance(large.known, NameTable)
    for column in list(COLUMNS.values())[::order]:
        np.testing.assert_array_equal(large.indices(column), small.indices(column))
        assert large.names == small.names
    for index in (small, large):
        closed = IndexedPersons(index.known, closed=True, large=index.large)
        for column in COLUMNS.values():
            np.testing.assert_array_equal(closed.indices(column), small.indices(column))
        with raises(families.CHANGED):
            closed.indices(pa.array(["7", "7.00", "unknown"]))
        assert closed.names == small.names


def test_persons_are_numbered_in_the_order_of_rows() -> None:
    """Not in the order of a dictionary, which may have names that no row uses."""
    for large in (False, True):
        column = pa.DictionaryArray.from_arrays([2, 0, 2, 3], ["a person", "b", "c", " d "])
        index = IndexedPersons(large=large)
        assert index.indices(column).tolist() == [0, 1, 0, 2]
        assert index.names == ["c", "a person", "d"]


@pytest.mark.slow
def test_long_name_in_a_dictionary_is_not_repeated_in_memory() -> None:
    """In ten thousand rows it would need 160 GB."""
    column = pa.DictionaryArray.from_arrays(np.zeros(10_000, np.int32), ["x" * (16 << 20)])
    assert np.isnan(IndexedPersons().indices(column)).all()


def test_no_table_is_large_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then numpy and a dictionary take the same steps."""
    assert row_transform.is_large(1 << 20, 16)
    monkeypatch.setattr(row_transform, "can_compile", lambda: False)
    assert not row_transform.is_large(1 << 20, 16)


@pytest.mark.parametrize("kinds", [(True, True), (True, False), (False, True)])
def test_partitions_of_large_tables_are_added(kinds: tuple[bool, bool]) -> None:
    columns = [COLUMNS["string"], COLUMNS["no nulls"]]
    persons = [Persons(large=large) for large in kinds]
    samples = [PersonSample((9,), large=large) for large in kinds]
    for column, each, sample in zip(columns, persons, samples, strict=True):
        indices = each.indices(column)
        each.add(indices, np.arange(1.0, indices.size + 1))
        keys = np.stack([np.arange(indices.size), np.arange(indices.size)]).astype(np.uint64)
        sample.add(sample.indices(column), np.zeros((1, indices.size), np.uint16), keys)
    first, second = (pickle.loads(pickle.dumps(each)) for each in persons)
    total = first + second
    assert total.names == list(dict.fromkeys([*first.names, *second.names]))
    for name, squares, rows in zip(total.names, total.squares, total.rows, strict=True):
        parts = [(each, each.names.index(name)) for each in persons if name in each.names]
        assert squares == sum(each.squares[k] for each, k in parts)
        assert rows == sum(each.rows[k] for each, k in parts)
    sample = samples[0] + samples[1]
    assert sample.names == total.names
    assert sample.histograms()[0].tolist() == [len(total.names)] + [0] * 8
