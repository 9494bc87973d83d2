"""Logs as JSON, one object a line: of commands, and of Prefect's servers, workers and runs.

They have the same messages as logs in text, and so no private fact either.
"""

from __future__ import annotations

import datetime
import io
import json
import logging
import os
import sys
from types import MappingProxyType
from typing import TextIO

from gramercy.schemas.errors import GramercyError

# Of Prefect, which reads them when it is imported; child processes inherit them.
SETTINGS = MappingProxyType(
    {
        "PREFECT_LOGGING_FORMATTERS_JSON_CLASS": "gramercy.common.log_lines.JsonFormatter",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER": "json",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_STREAM": "ext://sys.__stderr__",
        "PREFECT_LOGGING_COLORS": "false",
    }
)
subjects: dict[str, dict[str, str]] = {}  # data set and version, by the id of a run
_LEVELS = {"Warning": "WARNING", "Error": "ERROR", "Refused": "ERROR", "Interrupted": "ERROR"}


def use_json(*names: str) -> None:
    """Log as JSON from now on, also what is written to these streams of `sys`."""
    os.environ |= SETTINGS
    for name in names:
        setattr(sys, name, _LinesOfText(getattr(sys, name)))


def _line(at: float, level: str, logger: str, message: str, run: str = "", error: str = "") -> str:
    time = datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="seconds")
    facts = {"time": time, "level": level, "logger": logger, "message": message}
    facts |= {"run": run, **subjects.get(run, {})} if run else {}
    return json.dumps(facts | ({"error": error} if error else {}))


class JsonFormatter(logging.Formatter):
    """Time, level, logger and message of a record; and its run, data set and version, if any.

    Of exceptions that are not Gramercy's, whose texts may quote anything, only the type is stated.
    """

    def __init__(self, *_: object) -> None:
        super().__init__()
        logging.captureWarnings(True)  # they would be lines of text

    def format(self, record: logging.LogRecord) -> str:
        """The record as a JSON object."""
        run, error = str(getattr(record, "flow_run_id", "") or ""), ""
        if record.exc_info and (caught := record.exc_info[1]) is not None:
            error = str(caught) if isinstance(caught, GramercyError) else type(caught).__name__
        message = record.getMessage()
        return _line(record.created, record.levelname, record.name, message, run, error)


class _LinesOfText(io.TextIOBase):
    """A stream that writes each line of text to another stream as a JSON object."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._begun = to, ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        now = datetime.datetime.now().timestamp()
        for line in filter(str.strip, lines):
            level = _LEVELS.get(line.split()[0], "INFO")
            self._to.write(_line(now, level, "gramercy", line) + "\n")
        self._to.flush()
        return len(text)

    def fileno(self) -> int:
        return self._to.fileno()  # of a child's output
