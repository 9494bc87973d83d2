"""Great Expectations as a program: ``python -P -m gramercy.pipeline.validation.worker``.

It imports Great Expectations at once and waits for a `Job` on its standard input. So the import,
of seconds, runs while Prefect starts and the table is read; and what Great Expectations logs or
keeps, which quotes cells, is never in the process that holds the private sums.

An answer is a line of JSON: numbers of expectations in the job, whether they failed, and the name
of the file. No cell, and nothing that is computed from cells but success, is in it; only likely
mistakes name a number that is repeated, for the internal record. Answers about names and types come
first, and are made of data frames without rows: no cell can change them.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import pickle
import queue
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramercy.common.similar_names import most_similar_first
from gramercy.pipeline.plan.checking import required_columns
from gramercy.pipeline.validation.mistakes import described, find_mistakes
from gramercy.pipeline.validation.suite import OF_ALL_ROWS, TYPES, Expectation, Job
from gramercy.pipeline.validation.worker_process import LENGTH_BYTES
from gramercy.schemas.contract import Contract
from gramercy.schemas.model import nfc
from gramercy.schemas.notation import NumberNotation
from gramercy.tables.formats.parquet_format import ParquetTables, open_parquet
from gramercy.tables.formats.raw_sample import MOST_FILES, MOST_ROWS, RawSample, raw_samples
from gramercy.tables.formats.reader import column_types
from gramercy.tables.formats.source import Source, open_source
from gramercy.tables.formats.table_format import SourceFile
from gramercy.tables.formats.values import ANY, DOUBLE, TEXT, TRUTH, WHOLE, coding_of

if TYPE_CHECKING:
    import pandas as pd

Numbered = tuple[int, Expectation]  # an expectation, and its place in a job

_SAMPLED_ROWS = 20_000  # of all files together
_SAMPLED_CELLS = 2_000_000
_MOST_NARROWED = 200  # failures that are looked for in every file
_AT_ONCE = 60  # expectations: each is compared with all others of a suite
# Types of columns as a file states them, and data frames' types for which expectations decide the
# same. A CSV file states none: expectations on types have nothing to contradict.
_FRAME_TYPES = {WHOLE: "int64", DOUBLE: "float64", TRUTH: "bool", TEXT: "string", ANY: "object"}
_NO_LEVEL = "\ufffd"  # in place of a cell that is not a declared level


def main() -> None:
    """Do jobs until standard input ends: the process that gives them closes it, or has ended."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what others print goes nowhere
    with contextlib.suppress(OSError):  # on Linux, this process ends first if memory runs out
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, jobs), daemon=True).start()
    validate = _great_expectations()
    while True:
        job: Job = pickle.loads(jobs.get())  # noqa: S301  of the process that has started this one
        for answer in _answers(job, validate):
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def _receive(stream: BinaryIO, jobs: queue.SimpleQueue[bytes]) -> None:
    """Read jobs; at the end of the stream the process ends, also in the middle of a job."""
    while True:
        size = int.from_bytes(stream.read(LENGTH_BYTES), "big")
        content = stream.read(size)
        if not size or len(content) < size:
            os._exit(0)
        jobs.put(content)


class Validator:
    """Great Expectations, without files, statistics or a data source."""

    def __init__(self) -> None:
        import great_expectations as gx
        from great_expectations.data_context.types.base import ProgressBarsConfig
        from great_expectations.expectations.registry import (
            list_registered_expectation_implementations,
        )

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        asset = context.data_sources.add_pandas("table").add_dataframe_asset("table")
        self._batches = asset.add_batch_definition_whole_dataframe("whole")
        self._suite = gx.ExpectationSuite
        self.known = {*list_registered_expectation_implementations()}

    def problem_of(self, expectation: Expectation) -> tuple[str, ...] | None:
        """The types that may be meant, if there is none of this name; none of wrong arguments."""
        if expectation.type not in self.known:
            return most_similar_first(expectation.type, sorted(self.known))[:3]
        with contextlib.suppress(Exception):
            self._suite_of([(0, expectation)])
            return None
        return ()

    def __call__(
        self, table: pd.DataFrame, expectations: Sequence[tuple[int, Expectation]]
    ) -> dict[int, bool | None]:
        """The success of every expectation about a table; None where it cannot be computed."""
        found = dict[int, bool | None]()
        for start in range(0, len(expectations), _AT_ONCE):
            some = expectations[start : start + _AT_ONCE]
            try:
                batch = self._batches.get_batch({"dataframe": table})
                done = batch.validate(self._suite_of(some), result_format="BOOLEAN_ONLY")
            except Exception:
                found |= dict.fromkeys((number for number, _ in some), None)
                continue
            for each in done.results:
                number = each.expectation_config.meta["number"]
                found[number] = None if _has_raised(each.exception_info) else bool(each.success)
        return found

    def _suite_of(self, expectations: Sequence[tuple[int, Expectation]]) -> Any:
        saved = [each.saved() | {"meta": {"number": k}} for k, each in expectations]
        return self._suite(name="table", expectations=saved)


def _has_raised(facts: Any) -> bool:
    """Whether an expectation could not be computed, by the facts of one or of several metrics."""
    if "raised_exception" in facts:
        return bool(facts["raised_exception"])
    return any(bool(each.get("raised_exception")) for each in facts.values())


def _great_expectations() -> Validator:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.modules["sqlalchemy"] = None  # type: ignore[assignment]  # no table here is in a database
    gc.disable()  # the imports make a million objects, which stay
    validator = Validator()
    gc.freeze()
    gc.enable()
    return validator


def _answers(job: Job, validate: Validator) -> Iterator[dict[str, Any]]:
    """The answers to a job, the last of which says that it is done."""
    usable = list[Numbered]()
    for number, each in enumerate(job.expectations):
        if each.number and (why := validate.problem_of(each)) is not None:
            yield {"unusable": number, "why": why}
        else:
            usable.append((number, each))
    source = open_source(job.contract.source)
    of_schema = [each for each in usable if each[1].is_about_schema]
    schemas, common = set[str](), set[str]()
    for file in source.files:
        frames = EmptyFrames.of(file, job.types)
        if frames.schema in schemas:  # thousands of files have one schema
            continue
        schemas.add(frames.schema)
        common = common & set(frames.types) if common else set(frames.types)
        yield {"schema": file.display_name, **_split(frames.success(of_schema, validate))}
    yield {"files": len(source.files), "schemas": len(schemas)}
    yield from _value_answers(job, source, common, usable, validate)


def _value_answers(
    job: Job, source: Source, common: set[str], usable: Sequence[Numbered], validate: Validator
) -> Iterator[dict[str, Any]]:
    """The answers about cells of a sample; the only ones for which rows are read."""
    import pandas as pd

    of_values = [each for each in usable if not each[1].is_about_schema]
    of_rows = [number for number, each in of_values if each.type in OF_ALL_ROWS]
    of_values = [each for each in of_values if each[0] not in of_rows]
    stored = set(column_types(source.files[0]))  # a copy lacks columns that no release reads
    asked = {
        *required_columns(job.contract),
        *(name for _, each in usable for name in each.columns),
    }
    names = sorted(asked & common & stored)
    files = min(len(source.files), MOST_FILES)
    rows = max(1, min(MOST_ROWS, _SAMPLED_ROWS // files, _SAMPLED_CELLS // (len(names) or 1)))
    notation = source.files[0].notation
    samples = [*raw_samples(source, names, rows)] if names else []
    frames = {each.file: _value_frame(job.contract, each, notation) for each in samples}
    whole = pd.concat([*frames.values()]) if frames else pd.DataFrame()
    success = validate(whole.reset_index(drop=True), of_values)
    failed = [each for each in of_values if success[each[0]] is False]
    not_run = of_rows + [number for number, each in success.items() if each is None]
    only = next(iter(frames)) if len(frames) == 1 else ""
    yield {"sample": only, "failed": [number for number, _ in failed], "not_run": not_run}
    if len(frames) > 1 and len(frames) * len(failed) <= _MOST_NARROWED:
        for file, frame in frames.items():
            yield {"sample": file, **_split(validate(frame, failed))}
    yield {"mistakes": described(find_mistakes(job.contract, samples))}
    yield {"done": True, "sampled": len(frames), "rows": rows}


def _split(success: Mapping[int, bool | None]) -> dict[str, list[int]]:
    return {
        "failed": [number for number, each in success.items() if each is False],
        "not_run": [number for number, each in success.items() if each is None],
    }


@dataclass(frozen=True)
class EmptyFrames:
    """Data frames with the names and types of a file and without rows."""

    types: Mapping[str, str]  # as in `tables.formats.reader`
    frames: Sequence[pd.DataFrame]  # the first for the contract; for a steward any may do
    schema: str  # what distinguishes the frames of two files

    @classmethod
    def of(cls, file: SourceFile, types: Mapping[str, str] | None) -> EmptyFrames:
        """Those of a file, or of these types.

        A contract knows whole numbers, numbers and text; a steward may write the exact types of a
        Parquet file as pandas has them, of which text has two.
        """
        import pandas as pd

        known = types or column_types(file)
        plain = pd.DataFrame({name: pd.Series(dtype=_of_frame(known[name])) for name in known})
        if types is not None or not isinstance(file.format, ParquetTables):
            exact = plain
        else:
            with file.redacted_errors(), open_parquet(file) as table:
                read = table.schema_arrow.empty_table().to_pandas(ignore_metadata=True)
            exact = plain.assign(**{n: read[k] for k in read if known[n := nfc(str(k))] != TEXT})
        other_text = exact.astype({name: "str" for name in known if known[name] == TEXT})
        stated = [(name, known[name], str(exact[name].dtype)) for name in known]
        return cls(known, [plain, exact, other_text], repr(stated))

    def success(
        self, expectations: Sequence[Numbered], validate: Validator
    ) -> dict[int, bool | None]:
        """Whether names and types are as expected."""
        contract = [each for each in expectations if not each[1].number]
        found = validate(self.frames[0], contract)
        steward = [each for each in expectations if each[1].number and not self._states_none(each)]
        for frame in self.frames[1:]:
            missing = [each for each in steward if not found.get(each[0])]
            found |= validate(frame, missing)
        return found

    def _states_none(self, expectation: Numbered) -> bool:
        """Whether an expectation is about a type, and the file states none."""
        each = expectation[1]
        return each.type in TYPES and self.types.get(each.column) == ANY


def _of_frame(stated: str) -> str:
    """The type of a column of a data frame for which expectations decide as for one of a file."""
    is_time = stated.lower().startswith(("date", "timestamp"))
    return _FRAME_TYPES.get(stated, "datetime64[ns]" if is_time else "binary[pyarrow]")


def _value_frame(contract: Contract, sample: RawSample, notation: NumberNotation) -> pd.DataFrame:
    """The cells of a sample as a release reads them; other columns as they are stored."""
    import pandas as pd

    columns, known = dict[str, Any](), contract.table_columns
    for name in sample.cells.column_names:
        cells, declared = sample.cells[name].combine_chunks(), known.get(name)
        if declared is None:
            columns[name] = _as_stored(cells)
            continue
        numbers = coding_of(declared.coding, notation).floats(cells).astype(float)
        numbers[~np.isfinite(numbers) | np.isin(numbers, declared.missing_codes)] = np.nan
        if declared.categories is not None:
            columns[name] = _levels(numbers, declared.categories, cells, notation)
        else:
            columns[name] = numbers
    return pd.DataFrame(columns)


def _levels(
    indices: NDArray[np.float64], levels: Sequence[Any], cells: pa.Array, notation: NumberNotation
) -> Any:
    """The level of every cell; a missing cell differs from one that is not a level."""
    if all(isinstance(each, float | int) and not isinstance(each, bool) for each in levels):
        others = coding_of(None, notation).floats(cells)
        return np.where(np.isnan(indices), others, np.append(levels, np.nan)[_index(indices)])
    named = np.array([*levels, None], object)[_index(indices)]
    is_null = np.asarray(cells.is_null().to_numpy(zero_copy_only=False))
    named[np.isnan(indices) & ~is_null] = _NO_LEVEL
    return named


def _index(indices: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices of levels, with -1 for none."""
    return np.where(np.isnan(indices), -1, indices).astype(np.int64)


def _as_stored(cells: pa.Array) -> Any:
    """A column that no contract declares: numbers, if all of its texts are numbers."""
    import pandas as pd

    stored = cells.to_pandas()
    with contextlib.suppress(ValueError, TypeError):
        if not pd.api.types.is_datetime64_any_dtype(stored):
            return pd.to_numeric(stored)
    return stored


if __name__ == "__main__":
    main()
