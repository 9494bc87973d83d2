"""Columns that the settings of an estimate name are checked before Prefect starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gramercy.cli import flow_runner
from gramercy.pipeline.context import Context
from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.support.factories import run_command, write_yaml
from tests.support.survey import survey_release, survey_request

CASES = [
    ("regression", {"formula": "income ~ aeg"}, families.ANALYSIS, "age"),
    ("regression", {"outcome": "age", "predictors": ["incom"]}, families.ANALYSIS, "income"),
    ("tables", {"rows": "wart"}, families.ANALYSIS, "ward"),
    ("moments", {"by": "sx"}, families.ANALYSIS, "sex"),
    ("synthetic", {"integers": ["agge"]}, families.ANALYSIS, "age"),
    ("pca", {"columns": ["hour"]}, families.ANALYSIS, "hours"),
    ("discriminant", {"classes": "wart"}, families.ESTIMATE, "ward"),
]
IDS = [f"{name}-{next(iter(settings))}" for name, settings, *_ in CASES]


@pytest.fixture(autouse=True)
def _without_prefect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_runner, "start_prefect", None)  # would fail if it was called


@pytest.mark.slow
def test_estimate_refuses_unknown_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = f"toy/{survey_release(tmp_path, rows=500)}"
    for name, settings, problem, meant in CASES:
        texts = {key: ",".join(v) if isinstance(v, list) else v for key, v in settings.items()}
        pairs = [word for key, value in texts.items() for word in ("--set", f"{key}={value}")]
        words = ("estimate", release, "--estimator", name, *pairs)
        assert_refused(run_command(*words, capsys=capsys), problem, meant)
    assert not Context.default().archive.estimates(*release.split("/"))


@pytest.mark.parametrize(
    ("command", "name", "settings", "problem", "meant"),
    [("release --yes", *CASES[0]), *(("plan", *case) for case in CASES)],
    ids=["release", *IDS],
)
def test_requests_with_unknown_columns_are_refused(
    command: str,
    name: str,
    settings: dict[str, Any],
    problem: Family[Any],
    meant: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = survey_request(tmp_path, rows=200)
    with_estimate(request, {"name": name, **settings})
    first, *options = command.split()
    assert_refused(run_command(first, request, *options, capsys=capsys), problem, meant)
    assert Context.default().existing_ledger is None


def with_estimate(request: Path, estimate: dict[str, Any]) -> None:
    facts = YAML(typ="safe", pure=True).load(request)
    write_yaml(request, facts | {"estimates": [estimate]})


def assert_refused(done: tuple[int, str, str], problem: Family[Any], meant: str) -> None:
    """The code is 2, and the first suggestion is the name that was meant."""
    code, out, err = done
    assert (code, out) == (2, "")
    assert problem.code in err
    assert f"most similar first: {meant}" in " ".join(err.split())
