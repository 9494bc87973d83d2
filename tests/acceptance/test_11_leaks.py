"""Fifty planted secrets never leak, not even in more than twenty provoked failures."""

from __future__ import annotations

import json
import logging
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.checking import check_table
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.validation.worker_process import WorkerProcess
from gramercy.schemas.errors import GramercyError
from gramercy.tasks.policy import SENTENCES
from tests.support.conformance import CASES
from tests.support.factories import at_scale, contract_facts, read_registered, write_request
from tests.support.leaks import object_texts, prefect_results, prefect_texts

pytestmark = pytest.mark.usefixtures("prefect_server")

ROWS = 60
NUMBERS = [round(1.618033988 + 0.010101013 * k, 9) for k in range(20)]  # inside the bounds
WILD = [271828182.8 + 314159.1 * k for k in range(10)]  # beyond them
WORDS = [f"Rosalind-{k:02d}-Canary" for k in range(20)]
BOUNDS = {"lower": -5.0, "upper": 5.0}


def needles() -> list[bytes]:
    """Spellings of the secrets: digits, and the eight bytes of a double in both orders."""
    spellings = [word.encode() for word in WORDS]
    for number in NUMBERS + WILD:
        digits = repr(number)
        spellings += [digits.encode(), digits.replace(".", "")[:9].encode()]
        spellings += [struct.pack("<d", number), struct.pack(">d", number)]
    return spellings


def table(folder: Path) -> pd.DataFrame:
    """Numbers in and out of bounds, words where numbers should be, and a column of names."""
    frame = pd.DataFrame(np.zeros((ROWS, 3)), columns=["c0", "c1", "c2"], dtype=object)
    frame["person"] = [WORDS[k % 10] for k in range(ROWS)]
    frame["kind"] = ["a", "b", WORDS[10]] * (ROWS // 3)
    frame.loc[: len(NUMBERS) - 1, "c0"] = NUMBERS
    frame.loc[20 : 20 + len(WILD) - 1, "c1"] = WILD
    frame.loc[30:38, "c2"] = WORDS[11:]
    frame.to_csv(folder / "table.csv", index=False)
    return frame


def write_secret_request(folder: Path, *, request: Any = None, **changes: Any) -> Path:
    """Write that table, with two malformed lines, a contract and a request."""
    table(folder)
    with (folder / "table.csv").open("a") as stream:
        stream.write(f'"{WORDS[0]},{NUMBERS[0]}\n{WORDS[1]}\n')
    columns = {name: BOUNDS for name in ("c0", "c1", "c2")} | {"kind": {"levels": ["a", "b"]}}
    facts = contract_facts(rows=ROWS + 2) | {"columns": columns, "intercept": True}
    budget = {"budget": {"epsilon": 30.0, "delta": 1e-4}}
    return write_request(folder, request=request, **facts | budget | changes)


class LeakyError(Exception):
    """An error as of a library: it quotes its input, and keeps a reference to it."""

    def __init__(self, *inputs: Any) -> None:
        super().__init__(f"cannot use {inputs}", *inputs)
        self.inputs = inputs
        self.add_note(f"input: {inputs}")


def failing_with(*inputs: Any) -> Any:
    def fails(*args: Any, **kwargs: Any) -> Any:
        try:
            raise KeyError(NUMBERS[0], WORDS[0])
        except KeyError as cause:
            raise LeakyError(*inputs, args, kwargs) from cause

    return fails


# Functions that are made to fail while they hold private values.
PLACES = [
    "gramercy.tables.sums.row_transform.repair",
    "gramercy.tables.sums.row_transform.normalise",
    "gramercy.tables.sums.row_transform.integer_rows",
    "gramercy.tables.sums.passes.cell_batches",
    "gramercy.tables.sums.exact_sums.ExactGram.add",
    "gramercy.tables.sums.exact_sums.ExactGram.matrix",
    "gramercy.pipeline.plan.checking._fits",
    "gramercy.pipeline.publish.private_table.open_source",
    "gramercy.pipeline.publish.private_table.streaming.accumulate",
    "gramercy.pipeline.publish.charging.sampler.self_test",
    "gramercy.pipeline.publish.charging.draw_into",
    "gramercy.pipeline.publish.charging.internal_record.error_against_truth",
    "gramercy.pipeline.publish.charging.internal_record.update_record",
    "gramercy.pipeline.publish.drawing.release_manifest",
    "gramercy.pipeline.publish.drawing.denoise",
    "gramercy.pipeline.publish.drawing.write_release",
    "gramercy.mechanisms.gaussian.Gaussian.perturb",
    "gramercy.mechanisms.sampling.sampler.rounded_gaussian",
    "gramercy.archive.store.archive.Archive.seal",
    "gramercy.archive.store.archive.Archive.preserve_sealed",
    "gramercy.archive.store.archive.Archive.commit",
    "gramercy.archive.store.archive.Archive.write_anchor",
    "gramercy.ledger.budget_ledger.Ledger.charge",
    "gramercy.ledger.budget_ledger.Ledger.mark",
]


def damage(change: Callable[[Path], Any]) -> Callable[[Path], Path]:
    """Write the inputs, then damage the table."""

    def made(folder: Path) -> Path:
        request = write_secret_request(folder)
        change(folder / "table.csv")
        return request

    return made


def as_parquet(path: Path) -> None:
    frame = pd.read_csv(path, on_bad_lines="skip", engine="python")
    frame.astype(str).to_parquet(path)
    path.rename(path.with_name("table.parquet"))


# Mistakes that a steward may make.
MISTAKES: dict[str, Callable[[Path], Path]] = {
    "rows": lambda folder: write_secret_request(folder, rows=ROWS),
    "no such column": lambda folder: write_secret_request(
        folder, columns={"c0": BOUNDS, "absent": BOUNDS}
    ),
    "no such file": damage(Path.unlink),
    "an empty file": damage(lambda path: path.write_bytes(path.read_bytes()[:0])),
    "no header": damage(lambda path: path.write_text(path.read_text().partition("\n")[2])),
    "utf-16": damage(lambda path: path.write_text(path.read_text(), encoding="utf-16")),
    "an open quote": damage(lambda path: path.write_text('"' + path.read_text())),
    "budget": lambda folder: write_secret_request(folder, budget={"epsilon": 0.1, "delta": 1e-4}),
}


@pytest.fixture(autouse=True)
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of a small table can be made to fail, regardless of what ran before."""
    monkeypatch.setattr("gramercy.tables.sums.row_transform.is_loaded", lambda _: False)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


def stored_contents(home: Path, logged: pytest.LogCaptureFixture) -> Iterator[tuple[str, bytes]]:
    """Every place to search, and its content."""
    for text in prefect_texts():
        yield "Prefect", text.encode("latin-1", "replace")
    for result in prefect_results():
        for text in object_texts(result):
            yield "stored results", text.encode()
    for file in home.rglob("*"):
        if file.is_file() and file.parent != home / "contracts":  # the steward's own text
            yield str(file), file.read_bytes()
    for record in logged.records:
        yield "logs", f"{record.getMessage()} {record.args} {record.exc_info}".encode()
    yield "log text", logged.text.encode()


def leaked(home: Path, logged: pytest.LogCaptureFixture) -> set[tuple[str, bytes]]:
    """The leaked secrets, and where they are."""
    spellings = needles()
    return {
        (where, needle)
        for where, content in stored_contents(home, logged)
        for needle in spellings
        if needle in content
    }


# Expectations of a steward that fail, or cannot be computed, because of cells.
EXPECTED = [
    ("expect_column_max_to_be_between", {"column": "c1", "max_value": 0}),
    ("expect_column_values_to_match_regex", {"column": "person", "regex": "^x$"}),
    ("expect_column_distinct_values_to_be_in_set", {"column": "person", "value_set": ["x"]}),
    ("expect_column_values_to_be_unique", {"column": "kind"}),
]


def add_failing_expectations(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Add them to the data set; returns the list of answers that Great Expectations will give."""
    answered: list[dict[str, Any]] = []
    ask = WorkerProcess.ask

    def asked(self: WorkerProcess, *question: Any) -> dict[str, Any]:
        answered.append(ask(self, *question))
        return answered[-1]

    monkeypatch.setattr(WorkerProcess, "ask", asked)
    path = Home.default().expectations("toy")
    path.parent.mkdir(parents=True)
    listed = [{"type": kind, "kwargs": arguments} for kind, arguments in EXPECTED]
    path.write_text(json.dumps({"expectations": listed}))
    return answered


def test_fifty_secrets_never_leak(
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    logged: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from gramercy.flows.audit import audit
    from gramercy.flows.estimate import estimate
    from gramercy.flows.release import release
    from gramercy.flows.report import report

    assert len({*NUMBERS, *WILD, *WORDS}) == 50
    request = read_registered(write_secret_request(tmp_path))
    answered = add_failing_expectations(monkeypatch)
    assert check_table(make_plan(Context.default(), request).contract).lines > ROWS
    (done,) = release(request)
    assert any(each.get("failed") for each in answered)
    assert not [w for w in needles() if w in json.dumps(answered).encode()]
    (run,) = (home / "internal" / "toy" / "runs").iterdir()  # is searched with the home
    assert len(json.loads(run.read_text())["expectations"]["failed"]) > len(EXPECTED)
    estimate(done, request.estimates)
    report(done, request.estimates)
    assert len(list((home / "archive").rglob("report.html"))) == 1
    audit()
    assert len(list((home / "audits").rglob("audit.html"))) == 1
    # The fingerprint of the files and the signing key are private, too.
    (pem,) = (home / "keys").glob("*.pem")
    private = [
        pem.read_bytes().splitlines()[1],
        Ledger.of(Home.default()).charges("toy")[0].fingerprint.encode(),
    ]
    places = {
        where
        for where, content in stored_contents(home, logged)
        if any(p in content for p in private)
    }
    assert places == {str(pem), str(home / "ledger.sqlite")}
    printed = "".join(capfd.readouterr()).encode()
    assert not [needle for needle in needles() if needle in printed]
    assert not leaked(home, logged)


@pytest.mark.parametrize("has_table", [True, False])
def test_a_log_in_json_has_public_facts_only(has_table: bool, tmp_path: Path, home: Path) -> None:
    request = write_secret_request(tmp_path)
    if not has_table:
        (tmp_path / "table.csv").write_text(f"c0,c1\n{NUMBERS[0]},{WORDS[0]}\n")
    command = ("release", str(request), "--yes", "--despite", "--log-format", "json", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "gramercy", *command], capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == has_table, done.stderr
    assert not [each for each in needles() if each in (done.stderr + done.stdout).encode()]
    assert json.loads(done.stdout)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert all(lines[0].keys() <= each.keys() for each in lines)
    assert lines[0].keys() == {"time", "level", "logger", "message"}
    assert any(each["level"] == "ERROR" for each in lines) != has_table
    of_steps = [each for each in lines if each["message"].startswith(SENTENCES["publish"])]
    assert len(of_steps) == 2 * has_table
    for each in of_steps:
        assert (each["dataset"], each["version"]) == ("toy", "v1")
        assert UUID(each["run"])


# Functions of the stages in a metric, of a release that has all of them.
STAGES = [
    "gramercy.pipeline.publish.drawing.sum_for_pilot",
    "gramercy.common.metric.Metric.rows",
    "gramercy.pipeline.publish.drawing.Metric.near",
    "gramercy.tables.counts.counting.length_histogram",
    "gramercy.tables.sums.row_transform.lost_rows",
]


def write_staged_request(folder: Path) -> Path:
    keys = {"name": "gaussian", "epsilon": 80.0, "delta": 1e-6}
    staged = {"scaling": "private", "mechanism": keys, "estimates": []}
    budget = {"epsilon": 100.0, "delta": 1e-4}
    return write_secret_request(folder, request=staged, budget=budget)


@pytest.mark.parametrize("place", [*PLACES[:: at_scale(2, 1)], *STAGES])
def test_failures_in_the_code_leak_nothing(
    place: str,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    logged: pytest.LogCaptureFixture,
) -> None:
    from gramercy.flows.release import release

    write = write_staged_request if place in STAGES else write_secret_request
    request = read_registered(write(tmp_path))
    monkeypatch.setattr(place, failing_with(NUMBERS, WILD, WORDS))
    with pytest.raises(GramercyError) as caught:
        release(request)
    error_contents = [*object_texts(caught.value.args), *object_texts(vars(caught.value))]
    assert not [w for w in needles() if w in "".join(error_contents).encode()]
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not leaked(home, logged)


def test_a_release_in_stages_leaks_nothing(
    tmp_path: Path,
    home: Path,
    logged: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from gramercy.flows.release import release

    release(read_registered(write_staged_request(tmp_path)))
    assert len(list((home / "archive").rglob("metric.npy"))) == 1
    printed = "".join(capfd.readouterr()).encode()
    assert not [needle for needle in needles() if needle in printed]
    assert not leaked(home, logged)


ROWWISE = [
    ("rows", None),
    ("local", None),
    ("rows", "gramercy.mechanisms.rows.Rows.randomize"),
    ("rows", "gramercy.pipeline.publish.drawing.integer_batches"),
    ("local", "gramercy.archive.bundles.number_files.RowWriter.write"),
    ("output", "gramercy.pipeline.publish.drawing.solve_within"),
]


@pytest.mark.parametrize(("name", "place"), ROWWISE, ids=str)
def test_mechanisms_that_reread_rows_leak_nothing(
    name: str,
    place: str | None,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    logged: pytest.LogCaptureFixture,
) -> None:
    from gramercy.flows.release import release

    mechanism = {"name": name, "epsilon": 4.0, "delta": 1e-6} | dict(CASES[name].keys)
    request_facts = {"mechanism": mechanism, "estimates": []}
    request = read_registered(write_secret_request(tmp_path, request=request_facts))
    if place is None:
        release(request)
    else:
        monkeypatch.setattr(place, failing_with(NUMBERS, WILD, WORDS))
        with pytest.raises(GramercyError) as caught:
            release(request)
        assert not [w for w in needles() if w in str(caught.value).encode()]
    assert not leaked(home, logged)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_steward_mistakes_leak_nothing(
    mistake: str, tmp_path: Path, home: Path, logged: pytest.LogCaptureFixture
) -> None:
    from gramercy.flows.release import release

    request = read_registered(MISTAKES[mistake](tmp_path))
    with pytest.raises(GramercyError) as caught:
        release(request)
    assert not [w for w in needles() if w in str(caught.value).encode()]
    assert not leaked(home, logged)


def test_leak_search_finds_planted_secrets(
    tmp_path: Path, home: Path, logged: pytest.LogCaptureFixture
) -> None:
    """The search covers every place: it finds deliberate leaks there."""
    from prefect import flow, get_run_logger, task

    @task(persist_result=True, result_storage_key="canary")
    def stores() -> Any:
        return {"deep": [LeakyError(WORDS[2])]}

    @flow
    def leaky(secret: float) -> None:
        get_run_logger().info("seen %s", WORDS[3])
        stores()

    leaky(NUMBERS[4])
    home.mkdir()
    np.save(home / "matrix.npy", np.array(NUMBERS[5]))
    leaks = leaked(home, logged)
    for where, needle in (
        ("stored results", WORDS[2].encode()),
        ("Prefect", WORDS[3].encode()),
        ("logs", WORDS[3].encode()),
        ("Prefect", repr(NUMBERS[4]).encode()),
        (str(home / "matrix.npy"), struct.pack("<d", NUMBERS[5])),
    ):
        assert (where, needle) in leaks
    remove_leaks()


def remove_leaks() -> None:
    """Remove the deliberate leaks from Prefect, for later tests."""
    import sqlite3

    from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL, get_current_settings

    for file in get_current_settings().results.local_storage_path.rglob("*canary*"):
        file.unlink()
    url = PREFECT_API_DATABASE_CONNECTION_URL.value()
    path = str(getattr(url, "get_secret_value", lambda: url)()).split("///")[1]
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM log WHERE message LIKE '%Canary%'")
        db.execute("DELETE FROM flow_run WHERE parameters LIKE '%secret%'")
        db.execute("DELETE FROM events WHERE payload LIKE '%secret%'")
