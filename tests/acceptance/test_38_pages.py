"""Every kind of page can be read by everyone: structure, contrast, and axe-core in a browser.

The browser's checks need Chromium; those of axe-core also the file ``axe.min.js``, which
``GRAMERCY_AXE`` names (``npm pack axe-core`` has it).
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.cli.main import main
from gramercy.common.home import Home
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.internal_record import page_path
from tests.support.browser import Browser, needs_chromium, rendered
from tests.support.factories import run_pipeline, write_request
from tests.support.pages import Structure, check_ids, colour_schemes, contrast

_AXE = Path(os.environ.get("GRAMERCY_AXE", "absent"))
_WIDTHS, _SCHEMES = (400, 1200), ("light", "dark")
_PHONE = 400  # pixels
_NARROW = ((320, "screen"), (_PHONE, "screen"))
_PAPER = (680, "print")  # between the margins of A4, in pixels
_LISTS = ("catalogue", "data set")
_SCROLLING = """[...document.querySelectorAll('[aria-label^="Releases"]')]
  .filter(each => each.scrollWidth > each.clientWidth).map(each => each.ariaLabel)"""
_ON_PAPER = ("ink", "faint", "accent", "warm", "bad", "good")
_LEAST_CONTRAST = 4.5

needs_axe = pytest.mark.skipif(not _AXE.is_file(), reason="GRAMERCY_AXE names no axe.min.js")

_LEVELS = {"levels": ["north", "south", "east"]}
_ESTIMATES: list[dict[str, Any]] = [
    {"name": "graphical-lasso", "penalty": 0.002},
    {"name": "moments"},
    {"name": "regression", "outcome": "glucose at the third visit 2"},
    {"name": "pca"},
    {"name": "tables"},
    {"name": "synthetic", "rows": 20},
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """One page of every kind, by kind."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("GRAMERCY_HOME", str(folder / "home"))
        environ.setattr("gramercy.pipeline.plan.forecast._STEPS", 2)
        yield _made(folder)


def _made(folder: Path) -> dict[str, Path]:
    rng = np.random.default_rng(3)
    names = [f"glucose at the third visit {k}" for k in range(14)]
    values = rng.normal(size=(3000, 14)) + rng.normal(size=(3000, 1))
    table = pd.DataFrame(values, columns=names)
    for name in ("region", "ward"):
        table[name] = rng.choice(_LEVELS["levels"], 3000)
    table.to_csv(folder / "table.csv", index=False)
    columns: dict[str, Any] = {name: {"lower": -5.0, "upper": 5.0} for name in names}
    columns |= {"region": _LEVELS, "ward": _LEVELS}
    facts = {"rows": 3000, "columns": columns, "budget": {"epsilon": 90.0, "delta": 1e-5}}

    def publish(version: str, request: dict[str, Any], **changes: Any) -> tuple[Path, Path]:
        mechanism = {"name": "gaussian", "epsilon": 20.0, "delta": 1e-6}
        request = {"version": version, "mechanism": mechanism} | request
        place = write_request(folder, request=request, intercept=True, **facts | changes)
        return place, run_pipeline(place)

    clip = {"normalisation": {"kind": "clip", "radius": 6.0}}
    _, first = publish("v1", clip | {"estimates": _ESTIMATES})
    _, second = publish("v2", clip | {"estimates": []})
    counts = {"mechanism": {"name": "marginals", "epsilon": 1.0, "delta": 1e-6}}
    _, histograms = publish("v3", counts | {"estimates": []})
    later = folder / "later"
    later.mkdir()
    place = write_request(
        later, source=str(folder / "table.csv"), intercept=True, request={"version": "v4"}, **facts
    )
    home = Home.default()
    write_site(Context(home))
    made = home.root / "made"  # next to the archive, so that the pages link to the catalogue
    made.mkdir()
    compared = [f"toy/{each.name}" for each in (first, second)]
    for words in (
        ("plan", place, "--page", made / "plan.html"),
        ("plan", folder / "request.yaml", "--page", made / "counts.html"),
        ("history", "--page", made / "history.html"),
        ("compare", *compared, "--page", made / "change.html"),
        ("audit", "--output", made / "audit"),
    ):
        _run(*words)
    archive = home.archive
    return {
        "catalogue": archive / "index.html",
        "glossary": archive / "glossary.html",
        "data set": archive / "toy/index.html",
        "release": first / "index.html",
        "histograms": histograms / "index.html",
        "report": next((first / "reports").glob("*/report.html")),
        "histograms' report": next((histograms / "reports").glob("*/report.html")),
        "plan": made / "plan.html",
        "plan of histograms": made / "counts.html",
        "history": made / "history.html",
        "change": made / "change.html",
        "audit": made / "audit/audit.html",
        "internal": page_path(home, "toy", first.name),
    }


def _run(*words: object) -> None:
    """Run a command; a fixture of a module cannot use `capsys`."""
    with pytest.MonkeyPatch.context() as line, contextlib.redirect_stdout(io.StringIO()):
        line.setattr(sys, "argv", ["gramercy", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            main()
    assert not done.value.code, words


@pytest.mark.slow
def test_every_page_has_the_structure_that_readers_need(pages: dict[str, Path]) -> None:
    for kind, page in pages.items():
        text = page.read_text(encoding="utf-8")
        check_ids(text)
        assert Structure(text).faults == [], kind


@pytest.mark.slow
def test_links_between_pages_lead_somewhere(pages: dict[str, Path]) -> None:
    for kind, page in pages.items():
        for link in Structure(page.read_text(encoding="utf-8")).links:
            path, _, part = unquote(link).partition("#")
            target = page.parent / path if path else page
            assert target.is_file(), (kind, link)
            assert not part or f'id="{part}"' in target.read_text(encoding="utf-8"), (kind, link)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "places"),
    [
        (["report", "internal"], ["catalogue", "glossary", "data set", "release"]),
        (["release", "plan", "history", "change"], ["catalogue", "glossary", "data set"]),
        (["data set", "audit"], ["catalogue", "glossary"]),
    ],
)
def test_every_page_has_the_way_back_to_the_catalogue(
    pages: dict[str, Path], kinds: list[str], places: list[str]
) -> None:
    for kind in kinds:
        links = Structure(pages[kind].read_text(encoding="utf-8")).links
        targets = {(pages[kind].parent / link).resolve() for link in links}
        for place in places:
            assert pages[place].resolve() in targets, (kind, place)


@pytest.mark.slow
def test_every_page_names_product_and_place(pages: dict[str, Path]) -> None:
    for kind, page in pages.items():
        text = page.read_text(encoding="utf-8")
        (places,) = re.findall('<nav aria-label="Place in the catalogue">(.*?)</nav>', text)
        assert places.startswith("<b>Gramercy</b>"), kind
        assert places.count('aria-current="page"') == 1, kind


@pytest.mark.slow
def test_pages_write_symbols(pages: dict[str, Path]) -> None:
    """Names of parameters are in code or in quotes; the glossary spells them out."""
    for kind, page in pages.items():
        text = re.sub("<(style|script|code|pre)>.*?</\\1>", "", page.read_text(), flags=re.DOTALL)
        found = re.findall(r"(?<![\w'(-])(?:epsilon|delta|mu)\b", re.sub("<[^>]*>", "", text))
        assert found == [], kind


def test_colours_have_enough_contrast() -> None:
    sheet = Path(gramercy.__file__).parent / "reports/templates/style.css"
    schemes = colour_schemes(sheet.read_text(encoding="utf-8"))
    assert schemes["print"] == schemes["light"]
    for name, colours in schemes.items():
        papers = [
            colours[paper] for paper in ("paper", "raised", "goodpaper", "warnpaper", "badpaper")
        ]
        for paper in papers:
            for text in ("ink", "faint"):
                assert contrast(colours[text], paper) >= _LEAST_CONTRAST, (name, text)
        for text in _ON_PAPER:
            assert contrast(colours[text], colours["paper"]) >= _LEAST_CONTRAST, (name, text)


@pytest.mark.slow
@needs_chromium
def test_nothing_is_cut_off_on_a_narrow_screen(pages: dict[str, Path], tmp_path: Path) -> None:
    """Only regions that scroll may be wider than the screen; nothing is wider than paper.

    All details are open.

    A list of releases fits without scrolling: no guarantee is hidden.
    A window of Chromium has at least 500 pixels; a screen can have fewer.
    """
    opened = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
    with Browser(tmp_path) as browser:
        for width, medium in (*_NARROW, _PAPER):
            browser.show_on_screen(width)
            browser.send("Emulation.setEmulatedMedia", media=medium)
            for kind, page in pages.items():
                browser.open(page.as_uri())
                loaded = f"location.href == {json.dumps(page.as_uri())}"
                loaded += " && document.readyState == 'complete'"
                browser.wait_for(lambda script=loaded: browser.evaluate(script))
                browser.evaluate(opened)
                assert browser.evaluate("innerWidth") == width
                assert browser.evaluate("document.documentElement.scrollWidth") <= width, kind
                if kind in _LISTS and width >= _PHONE:
                    assert browser.evaluate(_SCROLLING) == [], kind


@pytest.mark.slow
@needs_chromium
@needs_axe
@pytest.mark.parametrize("width", _WIDTHS)
@pytest.mark.parametrize("scheme", _SCHEMES)
def test_axe_finds_no_serious_problem(
    pages: dict[str, Path], tmp_path: Path, scheme: str, width: int
) -> None:
    run = """
      document.querySelectorAll("details").forEach(each => each.open = true);
      axe.run().then(found => {
        const out = document.createElement("pre");
        out.id = "axe";
        out.textContent = JSON.stringify(found.violations.map(
          v => [v.impact, v.id, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))]));
        document.body.append(out);
      });
    """
    script = _AXE.read_text(encoding="utf-8") + run
    for kind, page in pages.items():
        shown = _with_script(page, script, tmp_path, scheme, width=width)
        (text,) = re.findall(r'<pre id="axe">(.*?)</pre>', shown, flags=re.DOTALL)
        found = json.loads(html.unescape(text))
        assert [each for each in found if each[0] in {"serious", "critical"}] == [], kind


def _with_script(
    page: Path, script: str, folder: Path, scheme: str = "light", *, width: int
) -> str:
    """A page with a script of the test, which its own policy would not run, in a browser."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    copy = folder / "page.html"
    copy.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return rendered(copy.as_uri(), folder, scheme, width=width)
