"""Write the pictures of the documentation: ``python docs/pictures.py``.

They are the figures of reports, as files of their own: in the colours of the reader's screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gramercy.reports import figures

FOLDER = Path(__file__).parent
_SHEET = FOLDER.parent / "gramercy/reports/templates/style.css"


def pictures() -> Iterator[tuple[str, str]]:
    """The path of each picture below this folder, and its text."""
    yield "how-to/changed-rows.svg", standalone(figures.changed_rows(52, "week"))


def standalone(drawing: str) -> str:
    """A figure of a page as a file of its own, with the colours of the style sheet of pages."""
    sheet = _SHEET.read_text(encoding="utf-8")
    colours = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)[:2]
    light, dark = (" ".join(each.split()) for each in colours)
    style = (
        f"<style>:root {{ {light} font-family: system-ui, sans-serif; }} "
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}</style>"
    )
    opening, rest = drawing.split(">", 1)
    size = re.sub(r' style="[^"]*"', "", opening)
    return f'{size} xmlns="http://www.w3.org/2000/svg">{style}{rest}\n'


if __name__ == "__main__":
    for name, text in pictures():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"Written: {FOLDER / name}")
