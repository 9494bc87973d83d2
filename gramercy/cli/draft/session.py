"""A conversation with the steward: its answers so far, kept in a private file until it ends."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gramercy.cli.draft.drafting import Column, Draft
from gramercy.common.disk import make_folder, write_atomically
from gramercy.common.home import Home
from gramercy.schemas.model import digest

_FORMAT = 1
_KEYS = (  # what the steward answers, apart from columns
    *("title", "curator", "version", "unit", "persons", "rows", "neighbours"),
    *("epsilon", "delta", "release_epsilon", "release_delta"),
)


@dataclass(frozen=True)
class Progress:
    """The answers so far, and where the questions continue.

    Parameters
    ----------
    draft
        The draft with the answers. `Column.published` tells which columns it will have.
    step
        Index of the step.
    column
        The column at which the questions about one column after another continue; None outside
        them.
    split
        Columns of groups that are asked about one by one.
    """

    draft: Draft
    step: int = 0
    column: str | None = None
    split: tuple[str, ...] = ()


class Session:
    """The progress, saved after every answer.

    Parameters
    ----------
    draft
        The draft before any answer.
    file
        Where answers are kept. Only the steward can read it; it has the names of the columns and
        what the steward answered, and no value of the data.
    counted
        Number of rows of the table, to be proposed where the steward says that it is public.
    """

    def __init__(self, draft: Draft, file: Path, counted: int | None = None) -> None:
        self.progress = Progress(draft)
        self.counted = counted
        self._file = file

    @property
    def draft(self) -> Draft:
        return self.progress.draft

    def update(self, **changes: Any) -> None:
        """Change fields of the progress, and save it."""
        self.progress = replace(self.progress, **changes)
        make_folder(self._file.parent, 0o700)
        data = json.dumps({"table": _table(self.draft), **_answers(self.progress)})
        write_atomically(self._file, data.encode(), 0o600)

    @property
    def candidates(self) -> dict[str, Column]:
        """The columns that can be published: not the one that identifies persons."""
        return {name: x for name, x in self.draft.columns.items() if name != self.draft.unit}

    def answer(self, **changes: Any) -> None:
        """Change fields of the draft, and save it."""
        self.update(draft=replace(self.draft, **changes))

    def earlier(self) -> Progress | None:
        """The progress of an interrupted conversation; None if the table's columns differ."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            saved = json.loads(self._file.read_bytes())
            if saved.pop("table") == _table(self.draft):
                return _progress(saved, self.draft)
        return None

    def forget(self) -> None:
        """Delete the saved answers."""
        self._file.unlink(missing_ok=True)


def answers_file(home: Home, draft: Draft) -> Path:
    """The file for the answers to questions about a draft in this folder."""
    facts = [str(Path.cwd()), draft.id, str(draft.source), list(draft.columns)]
    return home.drafts / f"{digest(facts)[:32]}.json"


def _table(draft: Draft) -> str:
    """A digest of the facts that must not have changed since the answers were given."""
    kinds = [[name, column.kind] for name, column in draft.columns.items()]
    return digest([_FORMAT, kinds, dict(draft.left_out)])


def _answers(progress: Progress) -> dict[str, Any]:
    draft = progress.draft
    return {
        "draft": {key: getattr(draft, key) for key in _KEYS},
        "columns": {name: asdict(column) for name, column in draft.columns.items()},
        "at": {"step": progress.step, "column": progress.column, "split": progress.split},
    }


def _progress(saved: dict[str, Any], draft: Draft) -> Progress:
    columns = {name: _column(facts) for name, facts in saved["columns"].items()}
    answered = replace(draft, columns=columns, **saved["draft"])
    return Progress(answered, **{**saved["at"], "split": tuple(saved["at"]["split"])})


def _column(facts: dict[str, Any]) -> Column:
    levels = facts.pop("levels")
    return Column(levels=None if levels is None else tuple(levels), **facts)
