"""Small tables, contracts and requests, and the steps of a release without Prefect."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.cli.main import main
from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_files import read_request, register, registered_request
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.publish.attachments import make_estimate, make_report
from gramercy.pipeline.publish.charging import publish, replay
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas.facts import LedgerFacts
from gramercy.tasks.policy import typed_errors_only
from tests.support.ledgers import FACTS
from tests.support.scratch import SCRATCH

FULL = os.environ.get("GRAMERCY_FULL") == "1"

MECHANISM = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}


def at_scale(reduced: int, full: int) -> int:
    """The size of a test: `full` in ``make acceptance``, `reduced` in ``make test``."""
    return full if FULL else reduced


def crossed(cases: Sequence[Any], others: Sequence[Any]) -> list[tuple[Any, Any]]:
    """All pairs; in the reduced run one of each case, with the others in turn."""
    pairs = product(cases, others)
    in_turn = [(case, others[k % len(others)]) for k, case in enumerate(cases)]
    return list(pairs) if FULL else in_turn


@contextmanager
def home_at(path: Path) -> Iterator[Path]:
    """Use another home, as the fixtures of a module do."""
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("GRAMERCY_HOME", str(path))
        yield path


def write_table(path: Path, rows: int = 40, p: int = 3, seed: int = 7) -> Path:
    """Write a CSV of random numbers."""
    values = np.random.default_rng(seed).normal(size=(rows, p))
    pd.DataFrame(values, columns=[f"c{i}" for i in range(p)]).to_csv(path, index=False)
    return path


def contract_facts(source: Path | str = "table.csv", rows: int = 40, p: int = 3) -> dict[str, Any]:
    columns = {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(p)}
    return FACTS | {"source": str(source), "rows": rows, "columns": columns}


def write_yaml(path: Path, facts: dict[str, Any]) -> Path:
    yaml = YAML(typ="safe")  # in C: hundreds of tests write such files
    yaml.sort_base_mapping_type_on_output = False  # the order of columns matters
    with path.open("w") as stream:
        yaml.dump(facts, stream)
    return path


def write_request(folder: Path, *, request: Any = None, **changes: Any) -> Path:
    """Write a table (unless there is one), a contract and a request; return the request's path."""
    if not (folder / "table.csv").exists():
        write_table(folder / "table.csv")
    write_yaml(folder / "contract.yaml", contract_facts() | changes)
    defaults = {"dataset": "contract.yaml", "version": "v1", "mechanism": MECHANISM}
    return write_yaml(folder / "request.yaml", defaults | (request or {}))


def read_registered(request: Path) -> Request:
    """Register the contract of a request, as it is now; return the request that names its id."""
    home, stated = Home.default(), read_request(request)
    register(home, home.contract(stated.dataset), replace=True)
    return registered_request(home, stated)


@dataclass
class RoundRobin:
    """Assigns rows to folds by position, which would be unsafe in a release."""

    folds: int
    position: int = 0

    def __call__(self, rows: int) -> Any:
        folds = np.arange(self.position, self.position + rows) % self.folds
        self.position += rows
        return folds


def read_plan(request: Path) -> Plan:
    return make_plan(Context.default(), read_request(request))


def run_release(request: Path) -> str:
    """Replay, or accumulate and publish, like the release flow; return the release id."""
    plan = read_plan(request)
    replayed = as_flow_step(replay)(Context.default(), plan)
    return replayed or as_flow_step(publish)(
        Context.default(), plan, as_flow_step(accumulate)(plan)
    )


def as_flow_step(step: Any) -> Any:
    """Wrap a step as in a flow: errors with private values are replaced. Without Prefect."""
    return typed_errors_only(step)


def run_pipeline(request: Path) -> Path:
    """Publish, estimate and report without Prefect; return the folder of the release."""
    release = run_release(request)
    context, plan = Context.default(), read_plan(request)
    dataset, requested = plan.contract.id, plan.request.estimates
    estimates = [
        make_estimate(context, dataset, release, each).manifest.estimate for each in requested
    ]
    make_report(context, dataset, release, estimates)
    return context.archive.release(dataset, release).parent


_PUBLISHED: dict[tuple[Any, str], Path] = {}


def from_copy(publish: Callable[..., tuple[Path, Any]], **changes: Any) -> tuple[Path, Any]:
    """A release that `publish` made once in this process, in a copy of its home, and its bundle.

    For tests that read or forge its files; they cannot charge the ledger, which is a copy.
    """
    key = publish, repr(changes)
    if key not in _PUBLISHED:
        folder = SCRATCH.session_folder("published")
        with home_at(folder / "home"):
            _PUBLISHED[key] = publish(folder, **changes)[0]
    made, home = _PUBLISHED[key], Home.default().root
    shutil.copytree(made.parents[3], home)
    place = home / made.relative_to(made.parents[3])
    return place, read_release(place)


def without_salts(patch: pytest.MonkeyPatch) -> None:
    """Equal releases state equal heads of their ledgers, whose entries are salted otherwise."""
    constant = {"ledger": "0" * 32, "hash": "0" * 64}
    patch.setattr(
        "gramercy.pipeline.publish.charging.LedgerFacts",
        lambda **facts: LedgerFacts(**facts | constant),
    )


def bundle_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def edit_json(path: Path, change: Any) -> None:
    """Change a sealed JSON file in place."""
    facts = json.loads(path.read_text())
    change(facts)
    path.chmod(0o644)
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def run_command(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run a ``gramercy`` command; return its exit code, output and errors."""
    with pytest.MonkeyPatch.context() as line:
        line.setattr(sys, "argv", ["gramercy", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            main()
    captured = capsys.readouterr()
    return int(done.value.code or 0), captured.out, captured.err


def run_json(*words: object, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command with ``--json``; return what it prints."""
    code, out, err = run_command(*words, "--json", capsys=capsys)
    assert code == 0, err
    return json.loads(out)
