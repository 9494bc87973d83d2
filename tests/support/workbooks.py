"""Excel workbooks, written part by part, so that their cells can be anything."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pandas as pd

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
# The formats of the styles 0, 1, 2, ...: general, date, time of day, own formats.
STYLES = f"""<styleSheet xmlns="{MAIN}"><numFmts count="3">
<numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd hh:mm"/>
<numFmt numFmtId="165" formatCode="0.00&quot; days&quot;;[Red]-0.00"/>
<numFmt numFmtId="166" formatCode="[$-407]d/m/yy;@"/></numFmts>
<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf/><xf numFmtId="164"/><xf numFmtId="165"/>
<xf numFmtId="166"/></cellXfs></styleSheet>"""


def workbook(
    path: Path,
    rows: Iterable[str] | Mapping[str, Iterable[str]],
    *,
    strings: str | None = None,
    book: str = "",
    states: Mapping[str, str] | None = None,
    parts: Mapping[str, str | bytes] | None = None,
) -> Path:
    """Write a workbook.

    Parameters
    ----------
    path
        The new file.
    rows
        The XML of the rows of its sheet, or of several sheets by their names.
    strings
        The XML of the shared strings.
    book
        XML before the sheets.
    states
        Sheets that are hidden.
    parts
        Other parts, or in place of those that are written here.
    """
    sheets = rows if isinstance(rows, Mapping) else {"Sheet1": rows}
    related = {f"s{k}": ("worksheet", f"worksheets/sheet{k}.xml") for k in range(len(sheets))}
    related |= {"f": ("styles", "/xl/styles.xml")}
    if strings is not None:
        related |= {"t": ("sharedStrings", "sharedStrings.xml")}
    listed = "".join(
        f'<sheet name="{name}" sheetId="{k + 1}" r:id="s{k}"'
        f' state="{(states or {}).get(name, "visible")}"/>'
        for k, name in enumerate(sheets)
    )
    written: dict[str, str | bytes] = {
        "_rels/.rels": relations({"d": ("officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">{book}'
        f"<sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(related),
        "xl/styles.xml": STYLES,
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{strings or ""}</sst>',
    }
    for k, body in enumerate(sheets.values()):
        written[f"xl/worksheets/sheet{k}.xml"] = sheet("".join(body))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (written | dict(parts or {})).items():
            archive.writestr(name, content)
    return path


def sheet(rows: str) -> str:
    """The XML of a sheet."""
    return f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData><pageMargins/></worksheet>'


def relations(related: Mapping[str, tuple[str, str]]) -> str:
    """The XML of what a part refers to."""
    listed = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for key, (kind, target) in related.items()
    )
    return f'<Relationships xmlns="{PACKAGE}">{listed}</Relationships>'


def row(number: int | None, *cells: str) -> str:
    """The XML of a row of cells in their XML; an empty cell is left out."""
    place = "" if number is None else f' r="{number}"'
    return f"<row{place}>{''.join(cells)}</row>"


def cell(place: str, value: Any) -> str:
    """The XML of a cell: a truth value, a number, a text, or nothing."""
    if pd.isna(value):
        return ""
    if isinstance(value, str):
        text = escape(value)
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'


def written_rows(table: pd.DataFrame) -> list[str]:
    """The XML of the rows of a table, the names of its columns first."""
    letters = [chr(ord("A") + k) for k in range(len(table.columns))]
    values = [list(table.columns), *table.astype(object).to_numpy().tolist()]
    return [
        row(k, *(cell(f"{x}{k}", each) for x, each in zip(letters, line, strict=True)))
        for k, line in enumerate(values, start=1)
    ]
