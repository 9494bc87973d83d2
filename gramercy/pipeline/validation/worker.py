"""Great Expectations as a program: ``python -P -m gramercy.pipeline.validation.worker``.

It imports Great Expectations at once and waits for questions on its standard input. So the import,
of seconds, runs while Prefect starts and the table is read; and what Great Expectations logs or
keeps, which quotes cells, is never in the process that holds the private sums.

An answer is a line of JSON. Columns and types are validated on data frames without rows, so that no
cell can change that answer. The answer about cells has no cell: it has which expectations failed in
which file, which declared levels occur, and likely mistakes, which may name a repeated number.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import pickle
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from gramercy.common.similar_names import most_similar_first
from gramercy.pipeline.plan.checking import required_columns
from gramercy.pipeline.validation.frames import empty_frames, exact_types, value_frame
from gramercy.pipeline.validation.mistakes import (
    SampledTable,
    described,
    find_mistakes,
    sample_of,
)
from gramercy.pipeline.validation.suite import OF_ALL_ROWS, TYPES, Expectation, Job
from gramercy.pipeline.validation.worker_process import LENGTH_BYTES, SECONDS
from gramercy.schemas.column import level_names
from gramercy.schemas.contract import Contract
from gramercy.tables.formats.reader import PARTIAL, column_types, schema_of
from gramercy.tables.formats.source import open_source
from gramercy.tables.formats.values import ANY

_MOST_NARROWED = 200  # failures that are looked for in every file
_LISTED_FILES = 10  # of a failure
_AT_ONCE = 40  # expectations: each is compared with all others of a suite


def main() -> None:
    """Answer until standard input ends: the process that asks closes it, or has ended."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what others print goes nowhere
    with contextlib.suppress(OSError):  # on Linux, this process ends first if memory runs out
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, questions), daemon=True).start()
    validate = _great_expectations()
    while True:
        question, job = pickle.loads(questions.get())  # noqa: S301  of the process that started it
        # The system ends it, also where an expectation keeps the thread above from running.
        signal.alarm(2 * SECONDS)
        answers.write(json.dumps(QUESTIONS[question](job, validate)) + "\n")
        answers.flush()
        signal.alarm(0)


def _receive(stream: BinaryIO, questions: queue.SimpleQueue[bytes]) -> None:
    """Read questions; at the end of the stream the process ends, also while it answers."""
    while True:
        size = int.from_bytes(stream.read(LENGTH_BYTES), "big")
        content = stream.read(size)
        if not size or len(content) < size:
            os._exit(0)
        questions.put(content)


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
        self._known = {*list_registered_expectation_implementations()}

    def problem_of(self, expectation: Expectation) -> tuple[str, ...] | None:
        """The types that may be meant, if there is none of this name; none of wrong arguments."""
        if expectation.type not in self._known:
            return most_similar_first(expectation.type, sorted(self._known))[:3]
        with contextlib.suppress(Exception):
            self._suite_of([expectation])
            return None
        return ()

    def __call__(
        self, table: pd.DataFrame, expectations: Sequence[Expectation]
    ) -> list[bool | None]:
        """The success of every expectation about a table; None where it cannot be computed."""
        success: list[bool | None] = [None] * len(expectations)
        for start in range(0, len(expectations), _AT_ONCE):
            some = expectations[start : start + _AT_ONCE]
            names = {each.column for each in some}
            # Those of a contract are about one column each: the others need not be looked through.
            is_narrow = all(each.column and not each.number for each in some)
            frame = table[[x for x in table if x in names]] if is_narrow else table
            try:
                batch = self._batches.get_batch({"dataframe": frame})
                done = batch.validate(self._suite_of(some), result_format="BOOLEAN_ONLY")
            except Exception:  # one of them fails, on which no other should depend
                if len(some) > 1:
                    success[start : start + len(some)] = [self(table, [x])[0] for x in some]
                continue
            for each in done.results:
                place = start + each.expectation_config.meta["place"]
                raised = _has_raised(each.exception_info)
                success[place] = None if raised else bool(each.success)  # it may be NumPy's
        return success

    def _suite_of(self, expectations: Sequence[Expectation]) -> Any:
        saved = [each.saved() | {"meta": {"place": k}} for k, each in enumerate(expectations)]
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


def validate_columns(job: Job, validate: Validator) -> dict[str, Any]:
    """Validate names and types of columns in every file; no row is read."""
    problems = [(each, validate.problem_of(each)) for each in job.expectations if each.number]
    usable = [each for each in _usable(job, validate) if each.is_about_schema]
    source, schemas = open_source(job.contract.source), set[str]()
    failed = list[tuple[Expectation, str]]()
    for file in source.files:
        types = job.types or column_types(file)
        exact = {} if job.types else exact_types(file, types)
        if (schema := repr((types, exact))) not in schemas:  # thousands of files have one
            schemas.add(schema)
            wrong = _wrong_columns(usable, types, exact, validate)
            failed += [(each, file.display_name) for each in wrong]
    return {
        "unusable": [each.facts | {"similar": why} for each, why in problems if why is not None],
        "failed": _by_expectation(failed),
        "files": len(source.files),
        "types": job.types or schema_of(source),
    }


def _wrong_columns(
    expectations: Sequence[Expectation],
    types: Mapping[str, str],
    exact: dict[str, Any],
    validate: Validator,
) -> list[Expectation]:
    """The expectations that no data frame of a file fulfils; the contract's are about the first."""
    failed = list[Expectation]()
    left = [x for x in expectations if x.type not in TYPES or types.get(x.column) != ANY]
    for frame in empty_frames(types, exact):
        success = validate(frame, left)
        missed = [each for each, passed in zip(left, success, strict=True) if not passed]
        failed += [each for each in missed if not each.number]
        left = [each for each in missed if each.number]
    return failed + left


def validate_cells(job: Job, validate: Validator) -> dict[str, Any]:
    """Validate a sample of the rows, and look for likely mistakes in it."""
    source, usable = open_source(job.contract.source), _usable(job, validate)
    asked = {*required_columns(job.contract), *(x for each in usable for x in each.columns)}
    stored = schema_of(source)  # a copy lacks columns that no release reads
    names = sorted(each for each in asked if stored.get(each, PARTIAL) != PARTIAL)
    samples = sample_of(source, names) if names else []
    notation = source.files[0].notation
    frames = {each.file: value_frame(job.contract, each, notation) for each in samples}
    whole = pd.concat([*frames.values()] or [pd.DataFrame()], ignore_index=True)
    of_cells = [x for x in usable if not x.is_about_schema and x.type not in OF_ALL_ROWS]
    not_run = [each for each in usable if each.type in OF_ALL_ROWS]
    success = [*zip(of_cells, validate(whole, of_cells), strict=True)]
    not_run += [each for each, passed in success if passed is None]
    failed = [each for each, passed in success if passed is False]
    files = [(each, "".join(frames) if len(frames) == 1 else "") for each in failed]
    if len(frames) > 1 and len(frames) * len(failed) <= _MOST_NARROWED:
        for file, frame in frames.items():
            of_file = zip(failed, validate(frame, failed), strict=True)
            files += [(each, file) for each, passed in of_file if passed is False]
    mistakes = find_mistakes(SampledTable(job.contract, samples)) if job.looks_for_mistakes else []
    return {
        "failed": _by_expectation(files),
        "not_run": [each.facts for each in not_run],
        "sampled_files": len(frames),
        "sampled_rows": len(whole),
        "levels": _levels_seen(job.contract, whole),
        "mistakes": described(mistakes),
    }


def _usable(job: Job, validate: Validator) -> list[Expectation]:
    return [x for x in job.expectations if not x.number or validate.problem_of(x) is None]


def _by_expectation(failed: Iterable[tuple[Expectation, str]]) -> list[dict[str, Any]]:
    """What a record says of failed expectations, each with the first of its files."""
    found = dict[int, dict[str, Any]]()
    for each, file in failed:
        files = found.setdefault(id(each), each.facts | {"files": list[str]()})["files"]
        if file and len(files) < _LISTED_FILES:
            files.append(file)
    return [*found.values()]


def _levels_seen(contract: Contract, sample: pd.DataFrame) -> dict[str, list[str]]:
    """The declared levels that occur, by column."""
    seen = dict[str, list[str]]()
    for name, declared in contract.table_columns.items():
        if declared.categories is not None and name in sample:
            cells = {*sample[name].unique()}
            seen[name] = level_names(level for level in declared.categories if level in cells)
    return seen


QUESTIONS = {"columns": validate_columns, "cells": validate_cells}


if __name__ == "__main__":
    main()
