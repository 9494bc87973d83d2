"""What Great Expectations found of a table, and what changed since an earlier version. Private."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gramercy.common.home import Home
from gramercy.pipeline.plan.checking import percentage
from gramercy.pipeline.validation.suite import SCHEMA, Job, invalid_suite
from gramercy.pipeline.validation.worker_process import SECONDS, WorkerProcess
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.problem import Notice

_LISTED = 5  # in a notice
_MOVED = 0.01  # share of the rows: by less, the missing cells of a column have not changed


@dataclass(repr=False)
class Outcome:
    """The answers of a worker about a table, as far as they came. Private."""

    job: Job
    columns: dict[str, Any] = field(default_factory=dict)  # see `worker.validate_columns`
    cells: dict[str, Any] = field(default_factory=dict)  # see `worker.validate_cells`

    def ask_columns(self, process: WorkerProcess) -> None:
        """Let names and types of the columns of all files be validated, of which no row is read."""
        self.columns = process.ask("columns", self.job)

    def ask_cells(self, process: WorkerProcess) -> None:
        """Let a sample of the rows be validated, unless the worker has failed before."""
        if self.columns:
            self.cells = process.ask("cells", self.job, 2 * SECONDS)

    def ask_all(self, process: WorkerProcess) -> None:
        """Let a table be validated where nothing waits for its columns alone."""
        self.ask_columns(process)
        self.ask_cells(process)

    def error(self, home: Home) -> GramercyError | None:
        """Why a release is refused: the steward's file, or names and types alone, decide it."""
        path = home.expectations(self.job.contract.id)
        for each in self.columns.get("unusable", ()):
            similar = ", ".join(each["similar"])
            return invalid_suite(
                path,
                f"Great Expectations {'has no' if similar else 'does not accept the arguments of'} "
                f"'{each['type']}' (expectation {each['number']})",
                f"Write its 'type' as in a saved suite. Most similar: {similar}."
                if similar
                else "Correct its 'kwargs' as in the documentation of it, or remove it.",
            )
        refusing = [x for x in self.columns.get("failed", ()) if x["severity"] == SCHEMA]
        if not refusing:
            return None
        file = refusing[0]["files"][0]
        failed = [each for each in refusing if file in each["files"]]
        numbers = [str(each["number"]) for each in failed if each["number"]]
        return families.TABLE_COLUMNS(
            "{file}: its columns or their types are not as expected: {columns}.",
            "{remedy}",
            file=file,
            columns=tuple(map(_in_words, failed)),
            remedy=f"Correct the file; or, if it is right, correct expectation "
            f"{', '.join(numbers)} in {path}, or give it the severity 'warning'."
            if numbers
            else "Correct the file, or 'columns' in the contract.",
        )

    def facts(self) -> dict[str, Any]:
        """The outcome as plain data, for the internal record."""
        added = sum(each.number > 0 for each in self.job.expectations)
        return {
            "expectations": {
                "of_contract": len(self.job.expectations) - added,
                "of_steward": added,
                "files": self.columns.get("files"),
                "sampled_files": self.cells.get("sampled_files"),
                "sampled_rows": self.cells.get("sampled_rows", 0),
                "failed": [*self.columns.get("failed", ()), *self.cells.get("failed", ())],
                "not_run": self.cells.get("not_run", []),
            },
            "types": self.columns.get("types", {}),
            "levels": self.cells.get("levels", {}),
            "mistakes": self.cells.get("mistakes", []),
        }


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, str]]:
    """What differs between the internal records of two versions.

    Returns
    -------
    list of dict
        Each with ``column``, ``what``, and what it was ``before`` and is ``now``.
    """
    found = list[tuple[str, str, str, str]]()
    old, new = before.get("types", {}), now.get("types", {})
    for name in old | new if old and new else ():
        was, stated = old.get(name, "none"), new.get(name, "none")
        if was != stated:
            found.append((name, "column" if "none" in (was, stated) else "type", was, stated))
    earlier, later = _missing_shares(before), _missing_shares(now)
    for name, share in later.items():
        if name in earlier and abs(share - earlier[name]) >= _MOVED:
            shares = (percentage(earlier[name]), percentage(share))
            found.append((name, "missing or invalid cells", *shares))
    seen = before.get("levels", {})
    for name, levels in now.get("levels", {}).items():
        unseen = [each for each in levels if name in seen and each not in seen[name]]
        found += [(name, f"level {each}", "no cell", "some cells") for each in unseen]
    if "expectations" in before and "expectations" in now:
        known = {_in_words(each) for each in before["expectations"]["failed"]}
        for each in now["expectations"]["failed"]:
            if _in_words(each) not in known:
                found.append((each["column"], _expected(each), "passed", "failed"))
    return [dict(zip(("column", "what", "before", "now"), each, strict=True)) for each in found]


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
    if changed := record.get("changes"):
        yield families.MANY_CELLS(
            "The table differs from that of {before}: {changes}.",
            "If it should not, find out what changed where the table is made.",
            before=record["changes_since"],
            changes=_some(
                (f"{x['column']} ({x['what']}: {x['before']}, now {x['now']})" for x in changed),
                "; ",
            ),
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
    if added := [_in_words(each) for each in found["failed"] if each["number"]]:
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
    """What an expectation expects of which column, such as ``age (values to be between)``."""
    return f"{facts['column']} ({_expected(facts)})" if facts["column"] else _expected(facts)


def _expected(facts: Mapping[str, Any]) -> str:
    kind: str = facts["type"]
    return kind.removeprefix("expect_").removeprefix("column_").replace("_", " ")


def _some(sentences: Iterable[str], between: str) -> str:
    listed = [*sentences]
    others = len(listed) - _LISTED
    return between.join(listed[:_LISTED]) + (f" and {others} more" if others > 0 else "")
