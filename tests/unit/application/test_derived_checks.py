"""Estimates of an earlier method are verified up to their numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gramercy.application.context import Context
from gramercy.application.estimating import make_estimate
from gramercy.application.verification import verify_release
from gramercy.archive.bundle import seal
from gramercy.archive.opening import archive_of
from gramercy.common.home import Home
from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.ridge import Ridge
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.manifest import FORMAT
from gramercy.schemas.problems.verification import (
    estimate_by_former_method,
    fact_contradicts,
)
from tests.support.factories import edit_json, run_release, write_request
from tests.support.problems import raises

FORGERIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dataset": lambda facts: facts["dp"]["dataset"].update(title="Another"),
    "release": lambda facts: facts["dp"].update(release="v9-r9"),
    "estimate": lambda facts: facts["dp"]["estimator"].update(rate=0.1),
}


@pytest.fixture
def former(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An estimate by a method that the next manifest format replaces."""
    run_release(write_request(tmp_path))
    made = make_estimate(Context.default(), "toy", "v1-r1", Discoveries())
    monkeypatch.setattr(Discoveries, "method_since", FORMAT + 1)
    return archive_of(Home.default()).estimate("toy", "v1-r1", made.manifest.estimate)


def reseal(place: Path) -> None:
    for path in place.iterdir():
        path.chmod(0o644)
    seal(place)


def contradicted() -> object:
    """The key at which verification fails."""
    with raises(fact_contradicts) as raised:
        verify_release(archive_of(Home.default()), "toy", "v1-r1", None)
    assert isinstance(raised.value, GramercyError)
    return raised.value.facts["key"]


def test_numbers_of_a_former_method_are_reported_as_not_recomputed(former: Path) -> None:
    result = verify_release(archive_of(Home.default()), "toy", "v1-r1", None)
    assert f"estimate {former.name}: names this release" in result.checks
    (notice,) = result.unchecked
    assert notice.code == estimate_by_former_method.code
    assert notice.facts["estimate"] == former.name


@pytest.mark.parametrize("key", FORGERIES)
def test_forged_facts_of_a_former_method_are_refused(former: Path, key: str) -> None:
    edit_json(former / "datapackage.json", FORGERIES[key])
    reseal(former)
    assert contradicted() == key


def test_extra_facts_of_a_former_method_are_refused(former: Path) -> None:
    edit_json(former / "datapackage.json", lambda facts: facts.update(title="Another"))
    reseal(former)
    assert contradicted() == "title"


@pytest.mark.parametrize("intercept", [True, False])
def test_a_method_that_changed_for_releases_with_an_intercept(
    intercept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_release(write_request(tmp_path, intercept=intercept))
    make_estimate(Context.default(), "toy", "v1-r1", Ridge())
    monkeypatch.setattr(Ridge, "intercept_since", FORMAT + 1)
    unchecked = verify_release(archive_of(Home.default()), "toy", "v1-r1", None).unchecked
    assert (estimate_by_former_method.code in {note.code for note in unchecked}) == intercept
