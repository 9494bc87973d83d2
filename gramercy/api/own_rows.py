"""Rows of an analyst's own, as a release reads rows: levels, bounds and derived columns."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.schemas import families, wordings
from gramercy.schemas.cells import DayCells
from gramercy.schemas.column import level_names
from gramercy.schemas.derived import Derivation, DerivedFacts, Input
from gramercy.schemas.errors import UnknownLevels
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.model import nfc

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OwnRows:
    """Reads rows as the release did with those of its table.

    Parameters
    ----------
    evidence
        The release.
    """

    evidence: Evidence

    def read(self, frame: pd.DataFrame, at: Sequence[int]) -> Array:
        """Cells of matrix columns, clamped to the bounds in use; shape (rows, columns).

        NaN where a number is missing, or a cell has a value that is not a level of its column; an
        `UnknownLevels` warning names the column. A derived column is computed from its inputs if
        `frame` has all of them, and else read by its name.

        Parameters
        ----------
        frame
            Has the columns of the table; a column of levels has its levels, or one column of zeros
            and ones for each level, such as ``sex=F``.
        at
            Indices of the matrix columns.

        Raises
        ------
        RequestError
            If a column is missing, is there twice, or has no numbers.
        """
        frame = frame.rename(columns=lambda name: nfc(name) if isinstance(name, str) else name)
        needed = list(dict.fromkeys(name for index in at for name in self._needed(frame, index)))
        if twice := [name for name in needed if list(frame.columns).count(name) > 1]:
            raise families.ANALYSIS(
                "The rows have several columns '{column}'.", "Keep one of them.", column=twice[0]
            )
        if missing := tuple(name for name in needed if name not in frame):
            raise wordings.rows_lack_columns(missing, tuple(needed))
        levels = {
            each.name: _level_numbers(frame[each.name], each)
            for each in dict.fromkeys(self.evidence.columns)
            if isinstance(each, LevelsFacts) and each.name in needed
        }
        cells = np.empty((len(frame), len(at)))
        for column, index in zip(cells.T, at, strict=True):
            facts = self.evidence.columns[index]
            if isinstance(facts, LevelsFacts):
                column[:] = self._level(frame, index, levels)
            elif facts is not None:
                column[:] = np.clip(self._numbers(frame, facts, levels), facts.lower, facts.upper)
        return cells

    def _needed(self, frame: pd.DataFrame, index: int) -> Iterator[str]:
        """The columns that rows need for a matrix column."""
        facts, name = self.evidence.columns[index], self.evidence.names[index]
        if isinstance(facts, LevelsFacts) and facts.name not in frame and name in frame:
            yield name
        elif isinstance(facts, ColumnFacts) and facts.derived is not None:
            inputs = list(self._sources(frame, facts.derived))
            by_name = name in frame and any(each not in frame for each in inputs)
            yield from [name] if by_name else inputs
        elif facts is not None:
            yield facts.name

    def _sources(self, frame: pd.DataFrame, derived: DerivedFacts) -> Iterator[str]:
        """The columns of rows that the inputs of a derived column are read from."""
        for name in derived.inputs:
            known = self._index(name)
            if known is not None:
                yield from self._needed(frame, known)
            else:
                yield name if name in frame else name.partition("=")[0]

    def _index(self, name: str) -> int | None:
        names = list(self.evidence.names)
        return names.index(name) if name in names else None

    def _level(
        self, frame: pd.DataFrame, index: int, levels: dict[str, NDArray[np.int64]]
    ) -> Array:
        """Whether cells have a level; NaN where they do not have any."""
        facts, name = self.evidence.columns[index], self.evidence.names[index]
        if facts is None or facts.name not in levels:
            return _numbers(frame[name])
        found, number = levels[facts.name], index - self.evidence.columns.index(facts)
        return np.where(found < 0, np.nan, found == number)

    def _numbers(
        self, frame: pd.DataFrame, facts: ColumnFacts, levels: dict[str, NDArray[np.int64]]
    ) -> Array:
        """The cells of a numeric column, which may be derived."""
        if facts.derived is None:
            return _numbers(frame[facts.name], facts.dates)
        if any(each not in frame for each in self._sources(frame, facts.derived)):
            return _numbers(frame[facts.name], facts.dates)
        function = facts.derived.function
        dates = DayCells() if function.reads_dates else None
        inputs, cells, unknown = list[Input](), list[Array](), np.zeros(len(frame), dtype=bool)
        for name in facts.derived.inputs:
            known = self._index(name)
            own = None if known is None else self.evidence.columns[known]
            limits, missing, unit = (-math.inf, math.inf), facts.derived.missing, None
            if known is not None and isinstance(own, LevelsFacts):
                values = self._level(frame, known, levels)
                unknown |= np.isnan(values)
            elif isinstance(own, ColumnFacts):
                limits, values = self._limits(known, own), _numbers(frame[name], own.dates)
                unit = function.unit_of(own.dates)
            elif name in levels:
                values = np.where(levels[name] < 0, np.nan, levels[name])
            elif name in frame:
                values = _numbers(frame[name], dates)
            else:  # a level of a column that is not published
                column, _, level = name.partition("=")
                values = _is_level(frame[column], level)
                unknown |= np.isnan(values)
            inputs.append(Input(name, None, limits, missing, unit=unit))
            cells.append(values)
        found = Derivation(tuple(inputs), function).apply(*cells)
        return np.where(unknown, np.nan, found)

    def _limits(self, index: int | None, facts: ColumnFacts) -> tuple[float, float]:
        """The bounds to which the cells of an input were clamped: those in the contract."""
        if index is None or len(self.evidence.bounds) <= index:
            return facts.lower, facts.upper
        return self.evidence.bounds[index] or (-math.inf, math.inf)


def _numbers(cells: pd.Series, dates: DayCells | None = None) -> Array:
    """Cells as numbers; dates in a unit, where numbers stand for them."""
    if dates is not None and not pd.api.types.is_numeric_dtype(cells):
        days = pd.to_datetime(cells, errors="coerce", utc=True).dt.floor("D")
        since = days - pd.Timestamp(dates.since, tz="UTC")
        cells = since / pd.Timedelta(days=dates.days)
    try:
        numbers: Array = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise families.ANALYSIS(
            "The column '{column}' of the rows must have numbers.",
            "Convert it by pandas.to_numeric.",
            column=str(cells.name),
        ) from None
    return numbers


def level_texts(cells: pd.Series) -> pd.Series:
    """Cells as levels are written: 1 for 1.0, and true for a truth value."""
    plain = cells.convert_dtypes()
    texts = plain.astype("string").map(nfc, na_action="ignore").astype("string")
    return texts.str.lower() if pd.api.types.is_bool_dtype(plain) else texts


def _is_level(cells: pd.Series, level: str) -> Array:
    """Whether cells have a level, by its name; NaN where they are missing."""
    texts = level_texts(cells)
    return np.where(texts.isna(), np.nan, (texts == level).fillna(False).astype(np.float64))


def _level_numbers(cells: pd.Series, column: LevelsFacts) -> NDArray[np.int64]:
    """The number of every cell's level; -1, with a warning, where it is not a level."""
    names = level_names(column.levels)
    texts = level_texts(cells)
    if not any(isinstance(each, str) for each in column.levels):
        numbers = pd.to_numeric(texts, errors="coerce")
        found = pd.Index([float(each) for each in column.levels]).get_indexer(numbers)
    else:
        found = pd.Index(names).get_indexer(texts)
    unknown = (found < 0) & texts.notna().to_numpy()
    if unknown.any():
        text = wordings.unknown_levels(column.name, int(unknown.sum()), tuple(names))
        warnings.warn(str(text), UnknownLevels, stacklevel=4)
    result: NDArray[np.int64] = found.astype(np.int64)
    return result
