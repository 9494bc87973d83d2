"""The intercept is the default, and one of the terms of a data set."""

from __future__ import annotations

from pathlib import Path

from gramercy.schemas import families
from tests.support.factories import (
    contract_facts,
    read_plan,
    run_release,
    write_request,
    write_yaml,
)
from tests.support.problems import raises


def without_key(folder: Path, version: str) -> Path:
    """A request whose contract does not state the intercept."""
    request = write_request(folder, request={"version": version, "estimates": []})
    facts = contract_facts()
    del facts["intercept"]
    write_yaml(folder / "contract.yaml", facts)
    return request


def test_new_data_sets_have_an_intercept(tmp_path: Path) -> None:
    plan = read_plan(without_key(tmp_path, "v1"))
    assert plan.contract.intercept
    assert plan.columns == 4


def test_stated_intercept_that_differs_from_the_registered_one_is_refused(tmp_path: Path) -> None:
    run_release(write_request(tmp_path, intercept=False, request={"estimates": []}))
    with raises(families.TERMS, terms=("intercept",)):
        run_release(
            write_request(tmp_path, intercept=True, request={"version": "v2", "estimates": []})
        )
