"""What runs attach and emit: links that a browser can open, and the event of a publication."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.schemas import families
from gramercy.tasks import history
from tests.support.factories import read_plan, write_request
from tests.support.problems import raises


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Any, ...]]:
    """The artifacts that would be created, by key."""
    artifacts: dict[str, tuple[Any, ...]] = {}

    def link(address: str, text: str, *, key: str, description: str) -> None:
        artifacts[key] = ("link", address)

    def markdown(text: str, *, key: str, description: str) -> None:
        artifacts[key] = ("text", text)

    monkeypatch.setattr(history, "create_link_artifact", link)
    monkeypatch.setattr(history, "create_markdown_artifact", markdown)
    return artifacts


def test_links_only_where_the_archive_is_served(
    home: Path, attached: dict[str, tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Context(Home(home))
    page = context.archive.report("toy", "1-r1", "a") / "report.html"
    history.attach_report(context, "toy", "1-r1", "a")
    kind, text = attached["report-toy"]
    assert kind == "text"
    assert f"    {page}\n" in text
    monkeypatch.setenv("GRAMERCY_PUBLIC_URL", "https://example.org/archive/")
    history.attach_report(context, "toy", "1-r1", "a")
    address = "https://example.org/archive/toy/1-r1/reports/a/report.html"
    assert attached["report-toy"] == ("link", address)


def test_web_address_is_of_the_page_and_quoted() -> None:
    root = Path("/srv/archive")
    bundle = root / "toy" / "1-r1" / "release"
    address = history.web_address("http://host", root, bundle / history.RELEASE_PAGE)
    assert address == "http://host/toy/1-r1/index.html"
    assert history.web_address("http://host", root, root / "a b?c") == "http://host/a%20b%3Fc"


@pytest.mark.parametrize(
    "url", ["example.org/archive", "file:///srv/archive", "https://me:secret@host", "http://h/?k=v"]
)
def test_public_url_is_an_http_address_without_secrets(
    home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_PUBLIC_URL", url)
    with raises(families.SETTING):
        _ = Home(home).public_url


def test_event_names_the_release_and_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These names never change, because automations match on them."""
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "gramercy.tasks.history.emit_event",
        lambda event, **facts: sent.append({event: facts}),
    )
    plan, home = read_plan(write_request(tmp_path, request={"estimates": []})), Home.default()
    history.emit_published(home, plan, "v1-r1")
    resource = {
        "prefect.resource.id": "gramercy.release.toy/v1-r1",
        "prefect.resource.name": "toy/v1-r1",
        "gramercy.dataset": "toy",
        "gramercy.home": home.address,
    }
    payload = {"release": "toy/v1-r1", "estimates": []}
    assert sent == [{"release.published": {"resource": resource, "payload": payload}}]
