"""Small tables, contracts and requests, and the steps of a release without Prefect around them."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

from gramercy.application.accumulation import accumulate
from gramercy.application.estimating import make_estimate
from gramercy.application.planning import Plan, make_plan
from gramercy.application.publishing import publish, replay
from gramercy.application.reporting import make_report
from gramercy.application.request_model import read_request
from gramercy.archive.store import Archive
from gramercy.cli.main import main
from gramercy.common.home import Home
from gramercy.tasks.policy import sealed
from tests.support.table_writers import FACTS

FULL = os.environ.get("GRAMERCY_FULL") == "1"

MECHANISM = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}


def at_scale(reduced: int, full: int) -> int:
    """The size of a test: `full` in ``make acceptance``, `reduced` in ``make test``."""
    return full if FULL else reduced


def table(path: Path, rows: int = 40, p: int = 3, seed: int = 7) -> Path:
    """Write a CSV of made-up numbers."""
    values = np.random.default_rng(seed).normal(size=(rows, p))
    pd.DataFrame(values, columns=[f"c{i}" for i in range(p)]).to_csv(path, index=False)
    return path


def contract_facts(source: Path | str = "table.csv", rows: int = 40, p: int = 3) -> dict[str, Any]:
    columns = {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(p)}
    return FACTS | {"source": str(source), "rows": rows, "columns": columns}


def write(path: Path, facts: dict[str, Any]) -> Path:
    yaml = YAML(typ="safe", pure=True)
    yaml.sort_base_mapping_type_on_output = False  # the order of the columns is the matrix's
    with path.open("w") as stream:
        yaml.dump(facts, stream)
    return path


def scene(folder: Path, *, request: Any = None, **changes: Any) -> Path:
    """A folder with table, contract and request; returns the request's path."""
    if not (folder / "table.csv").exists():
        table(folder / "table.csv")
    write(folder / "contract.yaml", contract_facts() | changes)
    asked = {"dataset": "contract.yaml", "version": "v1", "mechanism": MECHANISM}
    return write(folder / "request.yaml", asked | (request or {}))


@dataclass
class InTurn:
    """Assigns rows to folds by their place, as nothing may that is published."""

    parts: int
    place: int = 0

    def __call__(self, rows: int) -> Any:
        found = np.arange(self.place, self.place + rows) % self.parts
        self.place += rows
        return found


def plan_of(request: Path) -> Plan:
    return make_plan(read_request(request))


def run_steps(request: Path) -> str:
    """Replay, accumulate and publish, as the release flow does; returns the release id."""
    plan = plan_of(request)
    done = alone(replay)(plan)
    return done or alone(publish)(plan, alone(accumulate)(plan))


def alone(step: Any) -> Any:
    """A step, sealed as in a flow, without Prefect."""
    return sealed(step)


def run_all(request: Path) -> Path:
    """Release, estimates and report, without Prefect; returns the release's folder."""
    done = run_steps(request)
    asked, archive = read_request(request), Archive.of(Home.default())
    dataset = plan_of(request).contract.id
    made = [make_estimate(archive, dataset, done, e).manifest.estimate for e in asked.estimates]
    make_report(archive, dataset, done, made)
    return archive.release(dataset, done).parent


def bundle_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def edit_json(path: Path, change: Any) -> None:
    """Change a sealed JSON file in place."""
    facts = json.loads(path.read_text())
    change(facts)
    path.chmod(0o644)
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def run(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a ``gramercy`` command."""
    with pytest.MonkeyPatch.context() as line:
        line.setattr(sys, "argv", ["gramercy", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            main()
    captured = capsys.readouterr()
    return int(done.value.code or 0), captured.out, captured.err


def answer(*words: object, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command prints with ``--json``."""
    code, out, err = run(*words, "--json", capsys=capsys)
    assert code == 0, err
    return json.loads(out)
