"""A home that many tests only read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.factories import home_at, run_pipeline, write_request


@pytest.fixture(scope="session")
def published_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a release, its estimates and its report, which no test changes."""
    folder = tmp_path_factory.mktemp("published")
    with home_at(folder / "home") as home:
        run_pipeline(write_request(folder))
    return home


@pytest.fixture
def published(published_home: Path) -> Path:
    """The folder of that release."""
    return published_home / "archive/toy/v1-r1"
