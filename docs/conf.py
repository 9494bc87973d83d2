"""The documentation site: ``make docs`` builds it in build/site and fails on a broken link.

The pages are plain Markdown and read well on a code host, too. The navigation follows the lists of
links in the index pages, so that a page is listed in one place.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

project = "Gramercy"
html_title = "Gramercy"
extensions = ["myst_parser"]
root_doc = "docs/README"
INDEXES = {root_doc, "docs/mechanisms/README", "docs/reference/README", "docs/results"}
include_patterns = ["*.md", "docs/**.md", "benchmarks/**.md"]
exclude_patterns = [".*", "build", "estimators", "flows", "gramercy", "schemas", "tasks", "tests"]
nitpicky = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
smartquotes = False  # --option must stay as it is
html_theme = "furo"
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_show_copyright = False

LINK = re.compile(r"\]\(([^)#:\s]+)\.md\)")
HOME = '<!doctype html><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">{1}</a>\n'


def add_navigation(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add the pages that an index page lists to the navigation, under its headings."""
    if docname not in INDEXES:
        return
    sections = listed_pages(docname, source[0])
    if docname == root_doc:
        texts = {
            index: Path(app.srcdir, f"{index}.md").read_text(encoding="utf-8")
            for index in INDEXES - {root_doc}
        }
        nested = {
            page
            for index, text in texts.items()
            for pages in listed_pages(index, text).values()
            for page in pages
        }
        sections = {
            title: dict.fromkeys(page for page in pages if page not in nested)
            for title, pages in sections.items()
        }
    for title, pages in sections.items():
        caption = f":caption: {title}\n" if docname == root_doc else ""
        source[0] += "\n\n```{toctree}\n:hidden:\n" + caption + "\n".join(pages) + "\n```\n"


def listed_pages(index: str, text: str) -> dict[str, dict[str, None]]:
    """Pages in the lists and tables of an index, by heading; of a nested one, those below it."""
    sections: dict[str, dict[str, None]] = defaultdict(dict)
    title, folder = "", posixpath.dirname(index)
    below = index.removesuffix("README").rstrip("/") + "/"
    for line in text.splitlines():
        if line.startswith("## ") and index == root_doc:
            title = line.removeprefix("## ")
        for target in LINK.findall(line) if line.startswith(("* ", "- ", "| ")) else ():
            page = posixpath.normpath(posixpath.join(folder, target))
            if index == root_doc or page.startswith(below):
                sections[title][f"/{page}"] = None
    return sections


def show_formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """A formula as MathML, which browsers show without a script."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    translator.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def add_files(app: Sphinx, exception: Exception | None) -> None:
    """Add the start page, and the pictures that README.md names in HTML."""
    if exception is None:
        start = f"{PurePosixPath(root_doc)}.html"
        Path(app.outdir, "index.html").write_text(HOME.format(start, project), encoding="utf-8")
        for picture in Path(app.srcdir, "docs").glob("*.png"):
            shutil.copy(picture, Path(app.outdir, "docs"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the functions above."""
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_files)
    app.add_html_math_renderer("mathml", (show_formula, None), (show_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
