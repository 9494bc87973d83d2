"""The event of a publication, on which deployments and automations match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramercy.common.home import Home
from gramercy.tasks.run_artifacts import emit_published
from tests.support.factories import read_plan, write_request


def test_event_names_the_release_and_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These names never change, because automations match on them."""
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "gramercy.tasks.run_artifacts.emit_event",
        lambda event, **facts: sent.append({event: facts}),
    )
    plan, home = read_plan(write_request(tmp_path, request={"estimates": []})), Home.default()
    emit_published(home, plan, "v1-r1")
    resource = {
        "prefect.resource.id": "gramercy.release.toy/v1-r1",
        "prefect.resource.name": "toy/v1-r1",
        "gramercy.dataset": "toy",
        "gramercy.home": home.address,
    }
    payload = {"release": "toy/v1-r1", "estimates": []}
    assert sent == [{"release.published": {"resource": resource, "payload": payload}}]
