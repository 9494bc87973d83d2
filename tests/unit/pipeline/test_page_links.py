"""Links from pages that are written anywhere to the catalogue."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.page_links import archive_links

SERVED = "https://example.org/data"


@pytest.fixture
def context(home: Path) -> Context:
    """The context of a home whose archive has a catalogue and the page of one data set."""
    for name in ("index.html", "toy/index.html"):
        open_archive(home / "archive").write_page(name, "<p>page</p>")
    return Context(Home(home))


@pytest.mark.parametrize("folder", ["home", "home/audits/now", "home/archive", "home/archive/toy"])
def test_links_are_relative_next_to_the_archive(
    folder: str, tmp_path: Path, context: Context
) -> None:
    link = archive_links(context, tmp_path / folder / "page.html")
    for name in ("index.html", "toy/index.html"):
        assert not link(name).startswith("/")
        target = os.path.normpath(tmp_path / folder / link(name))
        assert Path(target) == context.archive.root / name
    assert link("glossary.html") == link("other/index.html") == ""


def test_there_are_no_links_elsewhere(tmp_path: Path, context: Context) -> None:
    link = archive_links(context, tmp_path / "page.html")
    assert link("index.html") == link("toy/index.html") == ""


def test_a_served_archive_is_linked_from_elsewhere(
    tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_PUBLIC_URL", f"{SERVED}/")
    link = archive_links(context, tmp_path / "page.html")
    assert link("toy/index.html") == f"{SERVED}/toy/index.html"
    assert link("other/index.html") == ""
    inside = archive_links(context, context.home.root / "page.html")
    assert inside("index.html") == "archive/index.html"


def test_remote_archive_is_linked_where_it_is_served(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"memory://{tmp_path.name}"
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", url)
    context = Context(Home(home))
    context.archive.write_page("index.html", "<p>page</p>")
    page = home / "page.html"
    assert archive_links(context, page)("index.html") == ""
    monkeypatch.setenv("GRAMERCY_PUBLIC_URL", SERVED)
    link = archive_links(context, page)
    assert link("index.html") == f"{SERVED}/index.html"
    assert link("toy/index.html") == ""
