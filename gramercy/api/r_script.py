"""A script for R that reads the numbers of one release: base R and jsonlite are enough.

The numbers are in a file of JSON next to the script, because base R does not read Parquet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pandas as pd

from gramercy.api.analyses import ReleaseAnalyses
from gramercy.api.release import Release
from gramercy.schemas.errors import RequestError

_NUMBERS = "estimate, standard_error, lower, upper, caveat"
_HEAD = """\
# Numbers of the release {id}, published {published}: epsilon = {epsilon:.6g}, delta = {delta:.6g}.
# Intervals are at 95 % and cover noise and sampling; NA is a number that the noise hides.
# A caveat names what no interval covers: see the table `caveats`.
# Run it with Rscript or source(); it reads the numbers from a file in its own folder.

numbers <- {data}
sourced <- Find(Negate(is.null), lapply(sys.frames(), function(frame) frame$ofile), right = TRUE)
command <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
places <- file.path(dirname(c(sourced, gsub("~+~", " ", command, fixed = TRUE), numbers)), numbers)
published <- jsonlite::fromJSON(places[file.exists(places)][1])
table_of <- function(name)
  as.data.frame(published[[name]], stringsAsFactors = FALSE, check.names = FALSE)
"""
_MATRIX = """
# One value of all pairs as a symmetric matrix, such as matrix_of(correlations, "lower").
matrix_of <- function(pairs, value = "estimate") {
  names <- unique(pairs$row)
  found <- matrix(NA_real_, length(names), length(names), dimnames = list(names, names))
  found[cbind(pairs$row, pairs$column)] <- pairs[[value]]
  found[cbind(pairs$column, pairs$row)] <- pairs[[value]]
  found
}
correlation <- matrix_of(correlations)
"""


def script_and_data(release: Release, data: str) -> tuple[str, str]:
    """The text of a script for R, and the JSON that it reads.

    Parameters
    ----------
    release
        The release.
    data
        Name of the file of JSON, which is in the folder of the script.
    """
    tables, lines = dict[str, dict[str, list[Any]]](), list[str]()
    for name, words, table in _tables(release):
        if len(table):
            tables[name] = {str(key): _cells(column) for key, column in table.items()}
            lines.append(f'{name} <- table_of("{name}")  # {words}\n')
    facts, guarantee = release.manifest, release.guarantee
    head = _HEAD.format(
        id=release.id,
        published=facts.published,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        data=json.dumps(data),
    )
    shown = "".join(f"\nprint(head({name}))" for name in tables)
    matrix = _MATRIX if "correlations" in tables else ""
    text = "\n".join([head, "".join(lines)]) + matrix + shown + "\n"
    return text, json.dumps({"release": release.id, **tables}, indent=0, allow_nan=False)


def _tables(release: Release) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Each table that the release has, with its name and its columns in words."""
    yield from _numbers({"": release})
    yield from _numbers(dict(release.groups))
    if release.groups:
        words = "group, rows, standard_error by noise, share"
        yield "groups", words, release.groups.rows.reset_index()
    with suppress(RequestError):
        yield "histograms", "the bins of each column and their shares", release.marginals
    with suppress(RequestError):
        yield "quantiles", "column, probability, value, lower, upper", release.quantiles()
    with suppress(RequestError):
        yield "caveats", "what no interval covers, in words", release.warnings.table()


def _numbers(parts: dict[str, ReleaseAnalyses]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Means, standard deviations and correlations, of groups with a column for the group."""
    grouped = "" not in parts
    ways = {"means": "column", "standard_deviations": "column", "correlation": "row, column"}
    for name, labels in ways.items():
        frames = list[pd.DataFrame]()
        with suppress(RequestError):  # a release without means or without a matrix
            for group, part in parts.items():
                frame = getattr(part, name).listed()
                if name != "correlation":
                    frame = frame.rename_axis("column").reset_index()
                if grouped:
                    frame.insert(0, "group", group)
                frames.append(frame)
        if frames:
            words = f"{'group, ' * grouped}{labels}, {_NUMBERS}"
            table = "group_" * grouped + name + "s" * (name == "correlation")
            yield table, words, pd.concat(frames)


def _cells(column: pd.Series) -> list[Any]:
    """Cells as JSON has them: null for what is unknown."""
    cells = column.astype(object).tolist()
    return [None if isinstance(x, float) and not math.isfinite(x) else x for x in cells]
