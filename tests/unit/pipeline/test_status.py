"""``gramercy status``: what needs a person, as text, JSON, an exit code and numbers."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gramercy.archive.seal.signing import STEWARD, create_signing_key
from gramercy.archive.store.opening import Witness
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.status.scheduled_runs import Service
from gramercy.pipeline.verify.auditing import make_audit, new_audit_folder, write_audit
from gramercy.schemas import families
from gramercy.schemas.ledger_history import ChargeState
from tests.support.factories import run_command, run_json
from tests.support.ledgers import TENTH, charge, contract
from tests.support.problems import raises

NOW = datetime.datetime.now(datetime.UTC)
BUDGET = {"epsilon": 3.0, "delta": 1e-5}


def facts_of(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    """The facts by subject, also where something needs a person."""
    code, out, err = run_command("status", "--json", capsys=capsys)
    facts = {each["subject"]: each for each in json.loads(out)}
    assert code == (0 if all(each["well"] for each in facts.values()) else 1), err
    return facts


def publish(version: str, guarantee: Guarantee = TENTH) -> str:
    """A published charge, without a bundle, which a status does not read."""
    context = Context.default()
    release = charge(context.ledger, version, guarantee)
    for state in (ChargeState.DRAWN, ChargeState.SEALED, ChargeState.PUBLISHED):
        facts = {"sha256": "0" * 64} if state is ChargeState.SEALED else {}
        context.ledger.mark("toy", release, state, **facts)
    context.record_head(outside=True)
    return release


def at(**shift: float) -> str:
    return (NOW + datetime.timedelta(**shift)).isoformat()


def run(state: str, when: str, *, deployment: str = "1", name: str = "") -> dict[str, Any]:
    return {
        "id": f"{state} {when}",
        "state_type": state,
        "state_name": name or state.capitalize(),
        "expected_start_time": when,
        "deployment_id": deployment,
    }


def _time(run: dict[str, Any]) -> datetime.datetime:
    return datetime.datetime.fromisoformat(run["expected_start_time"])


@contextlib.contextmanager
def answering(*, planned: list[Any], begun: list[Any], worker: str = "ONLINE") -> Iterator[None]:
    """A server that answers as Prefect's does, and its address in the environment."""
    deployments = [
        {"id": "1", "entrypoint": "gramercy.flows.release.release", "tags": ["dataset:toy"]},
        {"id": "2", "entrypoint": "gramercy.flows.audit.audit", "tags": []},
    ]

    # Times are relative to the start of the tests, which may have been a while ago.
    since = datetime.datetime.now(datetime.UTC) - NOW
    begun = [each | {"expected_start_time": (_time(each) + since).isoformat()} for each in begun]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(422)  # no protection against forged requests is set

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer: Any = {"/api/deployments/filter": deployments}.get(self.path)
            if self.path.endswith("/workers/filter"):
                answer = [{"status": worker}]
            if self.path == "/api/flow_runs/filter":
                times = body["flow_runs"]["expected_start_time"]
                answer = [
                    run
                    for run in (planned if "state" in body["flow_runs"] else begun)
                    if times["after_"] < run["expected_start_time"] < times["before_"]
                    and run["deployment_id"] in body["deployments"]["id"]["any_"]
                ]
            if "offset" in body:
                answer = answer[body["offset"] :][: body["limit"]]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged."""

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server,
        pytest.MonkeyPatch.context() as environ,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environ.setenv("PREFECT_API_URL", f"http://127.0.0.1:{server.server_address[1]}/api")
        yield
        server.shutdown()


def test_a_new_home_is_well_and_stays_empty(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert all(each["well"] for each in run_json("status", capsys=capsys))
    assert not (home / "ledger.sqlite").exists()


@pytest.mark.usefixtures("home")
def test_releases_and_budgets_of_a_schedule_that_works(
    capsys: pytest.CaptureFixture[str],
) -> None:
    release = publish("v1")
    weekly = [run("SCHEDULED", at(days=7 * week)) for week in range(1, 9)]
    with answering(planned=weekly, begun=[run("COMPLETED", at(hours=-1))]):
        facts = facts_of(capsys)
        assert all(each["well"] for each in facts.values()), facts
        assert release in facts["release"]["text"]
        due = datetime.datetime.fromisoformat(at(days=7)).timestamp()
        assert facts["release"]["next_release_timestamp_seconds"] == due
        assert facts["budget"]["budget_releases_left"] == 99
        assert facts["worker"]["workers_online"] == 1
        code, out, _ = run_command("status", capsys=capsys)
        assert (code, out.count("✗")) == (0, 0)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("begun", "subject"),
    [
        ([run("FAILED", at(hours=-1))], "release"),
        ([run("CRASHED", at(hours=-1)), run("COMPLETED", at(days=-7))], "release"),
        ([run("CANCELLED", at(hours=-1)), run("FAILED", at(hours=-2))], "release"),
        ([run("SCHEDULED", at(hours=-1), name="Late")], "release"),
        ([run("PAUSED", at(hours=-1))], "release"),
        ([run("FAILED", at(hours=-1), deployment="2")], "audit"),
        ([run("COMPLETED", at(hours=-1)), run("FAILED", at(days=-7))], None),
        ([run("SCHEDULED", at(minutes=-2), name="Late")], None),
        ([run("RUNNING", at(hours=-13)), run("COMPLETED", at(days=-7))], "release"),
        ([run("RUNNING", at(hours=-11))], None),
        # More than a page of runs that say nothing.
        ([*[run("CANCELLED", at(hours=-1))] * 250, run("FAILED", at(hours=-2))], "release"),
        ([run("FAILED", at(hours=-1), deployment="of another home")], None),
    ],
)
def test_the_newest_run_of_every_deployment_counts(
    begun: list[Any], subject: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = [run("SCHEDULED", at(days=7))]
    with answering(planned=planned, begun=begun):
        Ledger.of(Home.default())
        unwell = {name for name, each in facts_of(capsys).items() if not each["well"]}
    assert unwell == ({subject} if subject else set())


@pytest.mark.usefixtures("home")
def test_a_due_release_that_nothing_was_planned_for_is_missed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    weekly = [run("SCHEDULED", at(days=days)) for days in (3, 10, 17)]  # due four days ago as well
    for begun, well in ((-11, False), (-4, True), (-60, True)):
        with answering(planned=weekly, begun=[run("COMPLETED", at(days=begun))]):
            Ledger.of(Home.default())
            assert facts_of(capsys)["release"]["well"] is well
    publish("v1")  # by hand
    with answering(planned=weekly, begun=[run("COMPLETED", at(days=-11))]):
        assert facts_of(capsys)["release"]["well"]


@pytest.mark.usefixtures("home")
def test_a_run_that_was_approved_late_is_not_late(capsys: pytest.CaptureFixture[str]) -> None:
    begun = run("RUNNING", at(days=-2)) | {"state": {"timestamp": at(minutes=-5)}}
    with answering(planned=[run("SCHEDULED", at(days=7))], begun=[begun]):
        Ledger.of(Home.default())
        assert facts_of(capsys)["release"]["well"]


@pytest.mark.usefixtures("home")
def test_a_release_by_hand_answers_a_failed_run(capsys: pytest.CaptureFixture[str]) -> None:
    publish("v1")
    with answering(planned=[run("SCHEDULED", at(days=7))], begun=[run("FAILED", at(hours=-1))]):
        assert facts_of(capsys)["release"]["well"]


@pytest.mark.usefixtures("home")
def test_a_budget_is_nearly_spent_if_the_next_30_days_do_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    third = Guarantee(TENTH.mu * 33**0.5)  # three of them fit
    publish("v1", third)
    weekly = [run("SCHEDULED", at(days=7 * week)) for week in range(1, 9)]
    for planned, well in ((weekly, False), (weekly[:2], True), ([], True)):
        with answering(planned=planned, begun=[]):
            budget = facts_of(capsys)["budget"]
        assert (budget["well"], budget["budget_releases_left"]) == (well, 2)


@pytest.mark.usefixtures("home")
def test_a_budget_per_period_is_for_what_is_due_in_that_period(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ledger, half = Ledger.of(Home.default()), Guarantee(TENTH.mu * 50**0.5)
    tomorrow, later = run("SCHEDULED", at(days=1)), run("SCHEDULED", at(days=2))
    per_day = contract(source="{year}-{month}-{day}.csv", budget=BUDGET | {"per": "day"})
    day = at(days=1)[:10]
    charge(ledger, day, half, per_day)
    for planned, well in (([tomorrow, tomorrow], False), ([tomorrow], True), ([], True)):
        with answering(planned=[*planned, later, later, later], begun=[]):
            budget = facts_of(capsys)["budget"]
        assert (budget["well"], budget["budget_releases_left"]) == (well, 1)
        assert day in budget["text"]


def test_a_key_is_due_to_be_changed_after_three_years(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish("v1")
    for days, well in ((1, True), (1060, True), (1070, False), (2000, False)):
        made = (NOW - datetime.timedelta(days=days)).timestamp()
        os.utime(home / "keys" / STEWARD, (made, made))
        key = facts_of(capsys)["key"]
        assert (key["well"], key["key_timestamp_seconds"]) == (well, pytest.approx(made))
    create_signing_key(home / "keys")
    assert facts_of(capsys)["key"]["well"]


def test_no_worker_and_no_server(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(planned=[], begun=[], worker="OFFLINE"):
        assert not facts_of(capsys)["worker"]["well"]
    Ledger.of(Home(home))
    Service(schedules={"toy": "'0 6 * * 1' (UTC)"}, api="http://127.0.0.1:1/api").record(Home(home))
    facts = facts_of(capsys)
    assert not facts["worker"]["well"]
    assert not facts["release"]["well"]
    assert "0 6 * * 1" in facts["release"]["text"]


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_a_charge_that_was_spent_or_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    context = Context.default()
    release = charge(context.ledger, "v1")
    context.record_head()
    assert facts_of(capsys)["release"]["well"]  # it may be running
    with monkeypatch.context() as later:
        later.setattr("gramercy.pipeline.status.facts.LONGEST", datetime.timedelta(0))
        assert not facts_of(capsys)["release"]["well"]
    context.ledger.mark("toy", release, ChargeState.SPENT, reason="interrupted")
    assert not facts_of(capsys)["release"]["well"]
    publish("v2")
    assert facts_of(capsys)["release"]["well"]


@pytest.mark.slow
def test_a_ledger_that_would_not_charge(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy, one behind its anchor in the archive, and one behind its witness."""
    monkeypatch.setenv("GRAMERCY_WITNESS_URL", str(tmp_path / "witness"))
    publish("v1")
    shutil.copy(home / "ledger.sqlite", tmp_path / "older.sqlite")
    publish("v2")
    assert all(each["well"] for each in facts_of(capsys).values())
    witness = Witness.of(Home(home))
    assert witness is not None
    newest = witness.newest()
    assert newest is not None
    assert facts_of(capsys)["witness"]["witness_entry"] == newest.seq
    # Its bytes, in the same file: not a copy.
    (home / "ledger.sqlite").write_bytes((tmp_path / "older.sqlite").read_bytes())
    facts = facts_of(capsys)
    assert not facts["ledger"]["well"]
    assert families.UNTRUSTED.code in facts["ledger"]["text"]
    assert not facts["witness"]["well"]
    os.replace(tmp_path / "older.sqlite", home / "ledger.sqlite")
    assert not facts_of(capsys)["ledger"]["well"]


@pytest.mark.slow
def test_the_last_audit(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish("v1")  # there is no bundle: one discrepancy
    context = Context.default()
    page = write_audit(context, make_audit(context), new_audit_folder(context.home))
    facts = facts_of(capsys)["audit"]
    assert not facts["well"]
    assert facts["audit_discrepancies"] > 0
    found = json.loads(page.with_name("audit.json").read_text())
    page.with_name("audit.json").write_text(json.dumps(found | {"discrepancies": []}))
    assert facts_of(capsys)["audit"]["well"]
    old = found | {"discrepancies": [], "at": at(days=-20)}
    page.with_name("audit.json").write_text(json.dumps(old))
    assert facts_of(capsys)["audit"]["well"]  # nothing is scheduled here
    Service().record(Home(home))
    assert not facts_of(capsys)["audit"]["well"]


def test_a_full_disk(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert facts_of(capsys)["disk"]["disk_free_bytes"] == pytest.approx(
        shutil.disk_usage(home.parent).free, rel=0.5
    )
    monkeypatch.setattr("gramercy.pipeline.status.facts._LEAST_FREE", 10**18)
    assert not facts_of(capsys)["disk"]["well"]


@pytest.mark.usefixtures("home")
def test_metrics_for_prometheus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish("v1")
    file = tmp_path / "gramercy.prom"
    file.write_text("older")
    with answering(planned=[], begun=[], worker="OFFLINE"):
        assert run_command("status", "--metrics", file, capsys=capsys)[0] == 1
    assert list(tmp_path.glob(".*")) == []
    assert file.stat().st_mode & 0o777 == 0o644
    lines = file.read_text().splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(samples['gramercy_well{subject="worker"}']) == 0
    assert float(samples['gramercy_well{subject="budget",dataset="toy"}']) == 1
    assert float(samples['gramercy_budget_releases_left{dataset="toy"}']) == 99
    assert float(samples["gramercy_status_timestamp_seconds"]) >= NOW.timestamp()
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert {name.partition("{")[0] for name in samples} == set(typed)
    assert len(typed) == len(set(typed))


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_one_screen_for_many_data_sets(capsys: pytest.CaptureFixture[str]) -> None:
    publish("v1")
    ledger, names = Ledger.of(Home.default()), [f"toy-{number}" for number in range(30)]
    for name in names:
        charge(ledger, "v1", terms=contract(id=name))
    ledger.mark(names[7], "v1-r1", ChargeState.SPENT, reason="interrupted")
    code, out, _ = run_command("status", capsys=capsys)
    assert code == 1
    assert len(out.splitlines()) < 24
    assert names[7] in out
    assert names[8] not in out


@pytest.mark.slow
@pytest.mark.usefixtures("home", "prefect_server")
def test_the_scheduled_status_fails_if_something_needs_a_person() -> None:
    from gramercy.flows.status import status

    publish("v1")
    assert status() > 0
    ledger = Context.default().ledger
    ledger.mark("toy", charge(ledger, "v2"), ChargeState.SPENT, reason="interrupted")
    with raises(families.DISCREPANCIES, count=1):
        status()
