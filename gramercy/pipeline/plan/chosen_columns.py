"""The columns of a release: patterns in a contract, and names that readers can distinguish.

Names of columns are public, and so is what a pattern stands for: plan, manifest and ledger hold the
names, never the patterns. The first release fixes them. The order follows from the names alone, so
that a file whose columns are in another order gives the same matrix.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from gramercy.common.similar_names import most_similar_first
from gramercy.pipeline.context import Context
from gramercy.schemas import families, wordings
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import InvalidValue
from gramercy.tables.formats.csv_format import look_like_data
from gramercy.tables.formats.reader import schema_of
from gramercy.tables.formats.source import Source, open_source

ANY = "*"  # all columns that no other entry stands for


def with_columns_of_table(contract: Contract, path: Path) -> Contract:
    """The contract with the table's columns in place of patterns; reads headers, but no row.

    Parameters
    ----------
    contract
        The contract of one version; without patterns, it is returned as it is, and the table is
        not opened.
    """
    if not any(ANY in name for name in contract.columns):
        return contract
    table = open_source(contract.source)
    try:
        return contract.with_columns(_resolve(contract, table))
    except InvalidValue as error:
        failure = wordings.contract_not_valid(str(path))
        failure.details = (_at(error.key or "columns", error.without_history()),)
    raise failure


def resolve_columns(contract: Contract, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The columns of a table for which each name in `columns` stands, in the order of the matrix.

    A name of a column stands for that column only, and takes precedence. Any other name with ``*``
    stands for the columns that it matches, in natural order, apart from excluded ones and those
    that identify persons or state the period of a row.
    """
    known = set(names)
    for name in contract.exclude:
        if not (name in known or any(map(_matcher(name), known))):
            raise _matches_nothing("exclude", name, known)
    patterns = [name for name in contract.columns if ANY in name and name not in known]
    declared = contract.columns.keys() - set(patterns)
    free = sorted(known - declared - set(_left_out(contract, known)), key=_natural)
    matched = _matches(patterns, free)
    for pattern, columns in matched.items():
        if not columns and pattern != ANY:
            raise _matches_nothing(f"columns.{pattern}", pattern, known)
    return {name: tuple(matched.get(name, (name,))) for name in contract.columns}


def _resolve(contract: Contract, table: Source) -> dict[str, tuple[str, ...]]:
    names = schema_of(table)
    patterns = [name for name in contract.columns if ANY in name and name not in names]
    if patterns and not table.states_names and look_like_data(names):  # errors would quote cells
        raise _at(
            "columns",
            families.COLUMNS(
                "'{pattern}' may match cells: a name in the first line of the table is a number, a "
                "date, a time or a mark for a missing value.",
                "Add a first line with names; or, if these are names, list them instead of the "
                "pattern.",
                pattern=patterns[0],
            ),
        )
    return resolve_columns(contract, names)


def _left_out(contract: Contract, names: set[str]) -> Iterator[str]:
    """The columns that no pattern stands for."""
    if contract.person_column is not None:
        yield contract.person_column
    if contract.period is not None:
        yield contract.period.column
    for excluded in contract.exclude:
        yield from [excluded] if excluded in names else filter(_matcher(excluded), names)


def _matches(patterns: Iterable[str], names: Iterable[str]) -> Mapping[str, list[str]]:
    """The columns for which each pattern stands, in order."""
    matched: dict[str, list[str]] = {pattern: [] for pattern in patterns}
    matchers = {pattern: _matcher(pattern) for pattern in matched if pattern != ANY}
    for name in names:
        found = [pattern for pattern, matches in matchers.items() if matches(name)]
        if len(found) > 1:
            overlap = families.COLUMNS(
                "Two patterns match the column '{column}': '{first}' and '{second}'.",
                "Declare the column by its name, which takes precedence over "
                "patterns, or exclude it.",
                column=name,
                first=found[0],
                second=found[1],
            )
            raise _at(f"columns.{found[1]}", overlap)
        if found or ANY in matched:
            matched[found[0] if found else ANY].append(name)
    return matched


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a name matches a pattern, in which only ``*`` is special."""
    compiled = re.compile(".*".join(map(re.escape, pattern.split(ANY))), re.DOTALL)
    return lambda name: compiled.fullmatch(name) is not None


def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """A key that sorts lab_2 before lab_10."""
    parts = [part.lstrip("0") for part in re.split(r"([0-9]+)", name)]
    return [(len(part) if k % 2 else 0, part) for k, part in enumerate(parts)], name


def _matches_nothing(key: str, name: str, known: Iterable[str]) -> InvalidValue:
    similar = most_similar_first(name.replace(ANY, ""), sorted(known, key=_natural))
    return _at(
        key,
        families.COLUMNS(
            "'{pattern}' does not match any column of the table that is not listed.",
            "It has columns such as: {similar}.",
            pattern=name,
            similar=similar,
        ),
    )


def _at(key: str, error: InvalidValue) -> InvalidValue:
    error.key = key
    return error


# A bundle repeats the names in descriptions, CSV headers and Parquet footers, each of which readers
# bound: a release with longer names could be published, but not read.
MOST_NAME_BYTES, MOST_NAMES_BYTES = 16_384, 500_000
_MOST_REPORTED_BYTES = 10_000_000  # reports have a column for every pair of names
_START = 40  # characters of a long name that its error quotes


def check_names(context: Context, contract: Contract, *, in_pairs: bool = False) -> None:
    """Refuse names that are too long, look like others, or are partly invisible.

    The names of registered data sets are fixed, so they are not checked.

    Parameters
    ----------
    in_pairs
        Whether each column of the release is named by a pair of columns, as in reports.
    """
    names = [x for n in contract.names for x in contract.columns[n].matrix_names(n)]
    sizes = [len(name.encode()) for name in names]
    of_pairs = _MOST_REPORTED_BYTES // (len(names) + 2)
    most = min(of_pairs, MOST_NAMES_BYTES) if in_pairs else MOST_NAMES_BYTES
    is_short = max(sizes) <= MOST_NAME_BYTES and sum(sizes) <= most
    if is_short and all(name.isascii() for name in names):
        return
    ledger = context.existing_ledger
    if ledger is not None and contract.id in ledger.datasets():
        return
    for name, size in zip(names, sizes, strict=True):
        if size > MOST_NAME_BYTES:
            raise families.CONTRACT_USE(
                "The name of the column '{start}...' has {bytes} bytes; a name may have {most}.",
                "Rename the column in the table, or shorten the level.",
                start=name[:_START],
                bytes=size,
                most=MOST_NAME_BYTES,
            )
    if not is_short:
        raise families.CONTRACT_USE(
            "The names of the columns have {bytes} bytes together; they may have {most}.",
            "Use shorter names or fewer columns.",
            bytes=sum(sizes),
            most=most,
        )
    seen: dict[str, str] = {}
    for name in names:
        if has_hidden(name):
            raise families.CONTRACT_USE(
                "The name of the column '{name}' has invisible characters, or ones that break or "
                "reverse its line.",
                "Rename the column in the table.",
                name=name,
            )
        other = seen.setdefault(skeleton(name), name)
        if other != name:
            raise families.CONTRACT_USE(
                "The names of the columns '{first}' and '{second}' look the same.",
                "Rename one of them in the table.",
                first=other,
                second=name,
            )


# Letters of other scripts, and the Latin letters that they look like. The rule follows Unicode's
# technical standard 39 for the scripts that are most often mixed: Latin, Greek, Cyrillic, Armenian.
_LOOKALIKES = str.maketrans(
    "\u0131\u0184\u0251\u0261\u028f\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1"
    "\u03c4\u03c5\u03c7\u03f2\u03f9\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u042c"
    "\u0430\u0435\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0475\u04ae\u04af\u04bb\u04bd\u0501\u051b\u051d\u0570\u0578\u057d\u0581\u0585",
    "ibagYABEZHIKMNOPTYXaikvoptuxcCSIJABEKMHOPCTYXbaeopctyxsijvYyhedqwhnugo",
)
_DASHES = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
)
_FORMS = {"<wide>", "<narrow>", "<font>", "<noBreak>"}  # other forms of the same character
_JOINERS = "\u200c\u200d"  # words of some scripts need them
_IGNORABLE = re.compile(
    "[\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_HIDDEN = {"Cf", "Zl", "Zp"}  # format characters, such as those that reverse the direction; breaks


def has_hidden(name: str) -> bool:
    """Whether a name has invisible characters, or ones that break or reverse its line.

    Joiners and the variants of the character before are allowed.
    """
    return any(unicodedata.category(x) in _HIDDEN and x not in _JOINERS for x in name)


def skeleton(name: str) -> str:
    """A text that is equal for two names that look the same.

    Examples
    --------
    >>> skeleton("c\u043est") == skeleton("cost"), skeleton("Cost") == skeleton("cost")
    (True, False)
    """
    visible = _IGNORABLE.sub("", name).translate(_DASHES)
    usual = "".join(map(_usual_form, unicodedata.normalize("NFD", visible)))
    return " ".join(unicodedata.normalize("NFC", usual.translate(_LOOKALIKES)).split())


def _usual_form(character: str) -> str:
    form = unicodedata.decomposition(character).partition(" ")[0]
    return unicodedata.normalize("NFKC", character) if form in _FORMS else character
