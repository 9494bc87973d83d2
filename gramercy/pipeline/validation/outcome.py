"""What Great Expectations found of a table, and what changed since an earlier version. Private."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gramercy.common.home import Home
from gramercy.pipeline.plan.checking import percentage
from gramercy.pipeline.validation.suite import Expectation, Job, invalid_suite
from gramercy.pipeline.validation.worker_process import WorkerProcess
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.problem import Notice
from gramercy.tables.formats.reader import schema_of
from gramercy.tables.formats.source import open_source

_LISTED = 5  # in a notice
_LISTED_FILES = 10  # of an expectation
_MOVED = 0.01  # share of the rows: by less, the missing cells of a column have not changed
_IN_SET = "expect_column_values_to_be_in_set"


@dataclass(repr=False)
class Outcome:
    """The answers of a worker to a job, as far as it came. Private."""

    job: Job
    types: Mapping[str, str]  # the columns of the table, as in `tables.formats.reader.schema_of`
    # unusable, failed, not_run: expectations that Great Expectations refuses, with similar names;
    # those that failed, with the files, where they are known; and those that cannot be computed
    unusable: dict[int, list[str]] = field(default_factory=dict)
    failed: dict[int, list[str]] = field(default_factory=dict)
    not_run: set[int] = field(default_factory=set)
    files: int | None = None  # whose columns and types were validated; None if it did not come
    sampled: int | None = None  # files of which some rows were; None if it did not come to the end
    rows: int = 0  # at most so many rows of each of them
    mistakes: list[dict[str, Any]] = field(default_factory=list)  # see `validation.mistakes`

    def add(self, answer: Mapping[str, Any]) -> None:
        """Take up an answer of `validation.worker`."""
        if "unusable" in answer:
            self.unusable[answer["unusable"]] = answer["why"]
        elif "schema" in answer:
            for number in answer["failed"] + answer["not_run"]:
                self.failed.setdefault(number, []).append(answer["schema"])
        elif "sample" in answer:
            self.not_run.update(answer["not_run"])
            for number in answer["failed"]:
                known = self.failed.setdefault(number, [])
                known += [answer["sample"]] if answer["sample"] else []
        elif "mistakes" in answer:
            self.mistakes = answer["mistakes"]
        elif "files" in answer:
            self.files = answer["files"]
        else:
            self.sampled, self.rows = answer["sampled"], answer["rows"]

    def error(self, home: Home) -> GramercyError | None:
        """Why a release is refused: the steward's file, or names and types alone, decide it."""
        path = home.expectations(self.job.contract.id)
        for number, similar in self.unusable.items():
            each = self.job.expectations[number]
            if similar:
                return invalid_suite(
                    path,
                    f"Great Expectations has no '{each.type}' (expectation {each.number})",
                    f"Write its 'type' as in a saved suite. Most similar: {', '.join(similar)}.",
                )
            return invalid_suite(
                path,
                f"Great Expectations does not accept the arguments of expectation {each.number}, "
                f"'{each.type}'",
                "Correct its 'kwargs' as in the documentation of this expectation, or remove it.",
            )
        refusing = [k for k in self.failed if self.job.expectations[k].is_critical]
        if not refusing:
            return None
        file = self.failed[refusing[0]][0]
        failed = [self.job.expectations[k] for k in refusing if file in self.failed[k]]
        numbers = [str(each.number) for each in failed if each.number]
        return families.TABLE_COLUMNS(
            "{file}: its columns or their types are not as expected: {columns}.",
            "{remedy}",
            file=file,
            columns=tuple(each.in_words for each in failed),
            remedy=f"Correct the file; or, if it is right, correct expectation "
            f"{', '.join(numbers)} in {path}, or give it the severity 'warning'."
            if numbers
            else "Correct the file, or 'columns' in the contract.",
        )

    def facts(self) -> dict[str, Any]:
        """The outcome as plain data, for the internal record."""
        expectations = self.job.expectations
        added = sum(each.number > 0 for each in expectations)
        return {
            "expectations": {
                "of_contract": len(expectations) - added,
                "of_steward": added,
                "files": self.files,
                "sampled_files": self.sampled,
                "sampled_rows": self.rows,
                "failed": [
                    _facts(expectations[k]) | {"files": files[:_LISTED_FILES]}
                    for k, files in sorted(self.failed.items())
                ],
                "not_run": [_facts(expectations[k]) for k in sorted(self.not_run)],
            },
            "types": dict(self.types),
            "mistakes": self.mistakes,
        }


def _facts(expectation: Expectation) -> dict[str, Any]:
    return {
        "type": expectation.type,
        "column": expectation.column,
        "severity": expectation.severity,
        "of_steward": expectation.number > 0,
    }


def validate_table(job: Job, process: WorkerProcess) -> Outcome:
    """Let Great Expectations validate a table. A failure of a worker is in the outcome."""
    outcome = Outcome(job, job.types or schema_of(open_source(job.contract.source)))
    for answer in process.answers(job):
        outcome.add(answer)
    return outcome


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What differs between the internal records of two versions; empty where nothing does.

    Returns
    -------
    dict
        ``new_columns``, ``gone_columns``, ``types`` (before and now), ``missing`` (shares of the
        rows, before and now), ``new_levels`` (columns with cells of levels that are not declared,
        which had no such cell), ``failed`` (expectations that fail now and did not).
    """
    old, new = before.get("types"), now.get("types")
    found: dict[str, Any] = {}
    if old is not None and new is not None:
        found["new_columns"] = [name for name in new if name not in old]
        found["gone_columns"] = [name for name in old if name not in new]
        found["types"] = {
            name: [old[name], new[name]] for name in old if old[name] != new.get(name, old[name])
        }
    earlier, later = _missing_shares(before), _missing_shares(now)
    found["missing"] = {
        name: [earlier[name], share]
        for name, share in later.items()
        if name in earlier and abs(share - earlier[name]) >= _MOVED
    }
    if "expectations" in before and "expectations" in now:
        known = {_key(each) for each in before["expectations"]["failed"]}
        failed = [each for each in now["expectations"]["failed"] if _key(each) not in known]
        found["new_levels"] = [x["column"] for x in failed if x["type"] == _IN_SET]
        found["failed"] = failed
    return {name: each for name, each in found.items() if each}


def _key(failed: Mapping[str, Any]) -> tuple[str, str]:
    return failed["type"], failed["column"]


def _missing_shares(record: Mapping[str, Any]) -> dict[str, float]:
    rows = record.get("rows", 0) - record.get("malformed_rows", 0)
    cells = record.get("filled_cells", {})
    return {name: count / rows for name, count in cells.items()} if rows > 0 else {}


def in_words(found: Mapping[str, Any]) -> str:
    """The expectations of an internal record in a sentence."""
    total = found["of_contract"] + found["of_steward"]
    failed = _some([_in_words(each) for each in found["failed"]], ", ")
    return f"Great Expectations: {total:,} expectations, failed: {failed or 'none'}."


def validation_notices(record: Mapping[str, Any]) -> Iterator[Notice]:
    """What the steward should know of an internal record: what failed, and what changed.

    What the contract declares of cells is left out: the cells of all rows are counted elsewhere.
    """
    found = record.get("expectations")
    if found is not None:
        yield from _outcome_notices(found)
    yield from (Notice(**each) for each in record.get("mistakes", ()))
    changed, before = record.get("changes", {}), record.get("changes_since", "")
    said = [
        *(f"new column {name}" for name in changed.get("new_columns", ())),
        *(f"{name} is gone" for name in changed.get("gone_columns", ())),
        *(f"{name} is {now}, was {was}" for name, (was, now) in changed.get("types", {}).items()),
        *(f"new undeclared levels in {name}" for name in changed.get("new_levels", ())),
        *(
            f"{name} is missing in {percentage(now)} of the rows, before in {percentage(was)}"
            for name, (was, now) in changed.get("missing", {}).items()
        ),
    ]
    if said:
        yield families.MANY_CELLS(
            "The table differs from that of {before}: {changes}.",
            "If it should not, find out what changed where the table is made.",
            before=before,
            changes=_some(said, "; "),
        )


def _outcome_notices(found: Mapping[str, Any]) -> Iterator[Notice]:
    if found["sampled_files"] is None:
        yield families.NOT_CHECKED(
            "Great Expectations ended early, or took too long: {checked}.",
            "Columns and types were compared with the contract without it. If it happens again, "
            "look for an expectation that takes long, or free some memory.",
            checked="no expectation was validated"
            if found["files"] is None
            else "expectations on cells were not all validated",
        )
    if added := [_in_words(each) for each in found["failed"] if each["of_steward"]]:
        yield families.MANY_CELLS(
            "Expectations that you have added and that failed on a sample of the rows: "
            "{expectations}.",
            "Look at these columns. No release depends on it.",
            expectations=_some(added, ", "),
        )
    if not_run := [_in_words(each) for each in found["not_run"]]:
        yield families.NOT_CHECKED(
            "Expectations that cannot be computed on a sample of this table: {expectations}.",
            "Compare their columns and arguments with the table. The copy of a database's table "
            "has the columns of the contract only.",
            expectations=_some(not_run, ", "),
        )


def _in_words(facts: Mapping[str, Any]) -> str:
    return Expectation(facts["type"], {"column": facts["column"]}).in_words


def _some(sentences: Sequence[str] | Iterable[str], between: str) -> str:
    listed = [*sentences]
    others = len(listed) - _LISTED
    return between.join(listed[:_LISTED]) + (f" and {others} more" if others > 0 else "")
