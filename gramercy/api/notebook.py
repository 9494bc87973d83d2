"""HTML for notebooks: small, self-contained, escaped, readable on light and dark pages."""

from __future__ import annotations

import html
import math
import numbers
from collections.abc import Mapping
from typing import Any

import pandas as pd

# Colours are those of the page: only lines are drawn, in the colour of the text.
_CELL = "padding:.2em .7em;text-align:left;border-bottom:1px solid;border-color:inherit"
_TABLE = "border-collapse:collapse;border-color:rgba(128,128,128,.4);font-size:90%"


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{html.escape(text)}</p>"


def html_table(table: pd.DataFrame, caption: str) -> str:
    """A table with its index, under a caption; empty cells for missing values."""
    head = "".join(f'<th style="{_CELL}">{html.escape(str(name))}</th>' for name in table.columns)
    rows = "".join(
        f'<tr><th style="{_CELL}">{html.escape(str(name))}</th>'
        + "".join(f'<td style="{_CELL}">{html.escape(_cell(each))}</td>' for each in row)
        + "</tr>"
        for name, row in zip(table.index, table.to_numpy(dtype=object), strict=True)
    )
    return (
        f'<div>{paragraph(caption)}<table style="{_TABLE}">'
        f'<thead><tr><th style="{_CELL}"></th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def html_list(caption: str, facts: Mapping[str, Any]) -> str:
    """A table of names and values, under a caption."""
    rows = "".join(
        f'<tr><th style="{_CELL}">{html.escape(name)}</th>'
        f'<td style="{_CELL}">{html.escape(_cell(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f'<div>{paragraph(caption)}<table style="{_TABLE}"><tbody>{rows}</tbody></table></div>'


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return f"{float(value):g}"
    return str(value)


def shortened(names: list[str], most: int = 12) -> str:
    """The first names, and how many there are."""
    more = f", ... ({len(names)})" if len(names) > most else ""
    return ", ".join(names[:most]) + more
