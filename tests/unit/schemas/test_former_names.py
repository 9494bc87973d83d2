"""Names of one version ago are accepted with a warning; sealed manifests keep theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gramercy.application.request_model import Request
from gramercy.schemas.contract import Contract
from gramercy.schemas.engine import LocalEngine
from gramercy.schemas.errors import FormerName
from gramercy.schemas.manifest_formats import with_present_names, with_stated_names
from gramercy.schemas.problems.keys import key_unknown
from gramercy.schemas.problems.warnings import former_name
from tests.support.factories import contract_facts, run_command, write_request
from tests.support.problems import raises

SEALED: dict[str, Any] = {
    "format": 6,
    "unit": "row",
    "trace": 1.0,
    "rows": {"value": 2.0, "seen": 2.0, "unit": "not renamed here"},
    "fold_rows": [{"value": 1.0, "seen": 0.5}],
    "budget": {"delta": 1e-6, "failures": 1e-7},
    "calibration": {"lattice": {"bits": 16, "shrink": 0.9}, "constants": {"on": 1.0}},
    "guarantee": {"pure": None, "curve": {"1": 0.1}},
    "card": {"loss": {"pure": None}},
}


def test_former_key_of_a_contract_is_accepted_with_a_warning() -> None:
    facts = contract_facts("t.csv") | {"unit": "person_id", "persons": 3}
    with pytest.warns(FormerName) as caught:
        contract = Contract.model_validate(facts)
    assert contract.privacy_unit == "person_id"
    assert str(caught[0].message) == str(former_name("unit", "privacy_unit"))


def test_former_key_next_to_its_present_name_is_refused() -> None:
    with raises(key_unknown):
        Contract.model_validate(contract_facts("t.csv") | {"unit": "row", "privacy_unit": "row"})


@pytest.mark.parametrize("engine", ["here", {"kind": "here"}])
def test_former_engine_is_accepted_with_a_warning(engine: Any) -> None:
    mechanism = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}
    facts = {"dataset": "c.yaml", "version": "1", "mechanism": mechanism, "engine": engine}
    with pytest.warns(FormerName):
        assert Request.model_validate(facts).engine == LocalEngine()


@pytest.mark.filterwarnings("always::gramercy.schemas.errors.FormerName")
def test_command_shows_the_warning_with_its_code(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path)
    path = tmp_path / "contract.yaml"
    facts = YAML(typ="safe", pure=True).load(path)
    with path.open("w") as file:
        YAML().dump(facts | {"unit": "row"}, file)
    code, _, err = run_command("plan", request, capsys=capsys)
    assert code == 0
    assert former_name.code in err


def test_manifest_of_an_earlier_format_is_read_under_the_present_names() -> None:
    present = with_present_names(SEALED)
    assert present["privacy_unit"] == "row"
    assert present["trace_bound"] == 1.0
    assert present["rows"] == {"value": 2.0, "observed": 2.0, "unit": "not renamed here"}
    assert present["fold_rows"] == [{"value": 1.0, "observed": 0.5}]
    assert present["budget"]["failure_share"] == 1e-7
    assert present["calibration"]["lattice"] == {"bits": 16, "shrinkage": 0.9}
    assert present["calibration"]["constants"] == {"on": 1.0}
    assert present["guarantee"] == {"pure_epsilon": None, "profile": {"1": 0.1}}
    assert present["card"] == SEALED["card"]


def test_manifest_of_an_earlier_format_is_described_under_its_own_names() -> None:
    assert with_stated_names(with_present_names(SEALED)) == SEALED
    present = with_present_names(SEALED) | {"format": 7}
    assert with_stated_names(present) == with_present_names(present) == present
