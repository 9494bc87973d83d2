"""Charges that a second person has to approve: whose signature counts, and for which charge."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gramercy.archive.seal.signing import (
    ANCHOR,
    APPROVAL,
    create_signing_key,
    sign,
    steward_key,
)
from gramercy.common.home import Home
from gramercy.ledger.entry import account
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish import approval
from gramercy.pipeline.publish.charging import publish
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas import families
from gramercy.schemas.model import canonical_json
from gramercy.schemas.problem import Notice
from tests.support.factories import (
    read_plan,
    read_registered,
    run_command,
    run_json,
    write_request,
)
from tests.support.problems import raises


@dataclass(frozen=True)
class Person:
    """Somebody with a home, and a key in it, of their own."""

    keys: Path

    @classmethod
    def at(cls, folder: Path) -> Person:
        create_signing_key(folder)
        return cls(folder)

    @property
    def public(self) -> Path:
        (path,) = self.keys.glob("*.pub")
        return path

    def signs(self, statement: str, purpose: bytes = APPROVAL) -> str:
        return sign(steward_key(self.keys), statement.encode(), purpose).decode()


@pytest.fixture
def anna(tmp_path: Path) -> Person:
    return Person.at(tmp_path / "anna" / "keys")


@pytest.fixture
def plan(tmp_path: Path, anna: Person) -> Plan:
    """A charge that anna may approve."""
    approval.register_approver(Home.default(), "anna", anna.public)
    return read_plan(write_request(tmp_path, approval="required"))


def signed(plan: Plan, **changes: Any) -> str:
    """The statement of a plan, or a changed one."""
    facts = json.loads(approval.statement(Context.default(), plan))
    return canonical_json(facts | changes)


def publish_with(plan: Plan, *lines: str) -> str:
    return publish(Context.default(), replace(plan, approvals=lines), accumulate(plan))


def was_charged() -> bool:
    return len(Context.default().ledger.entries()) > 1


def test_charge_has_both_names(
    tmp_path: Path, anna: Person, plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first line is for another step, as in a run that publishes several.
    name = publish_with(plan, anna.signs(signed(plan, version="v0")), anna.signs(signed(plan)))
    ledger = Context.default().ledger
    (charge,) = ledger.charges("toy")
    assert (charge.release, charge.by, charge.approved_by) == (name, account(), "anna")
    (entry,) = ledger.approved_charges()
    assert json.loads(entry.approved["statement"])["mechanism"]["epsilon"] == 1.0
    (timeline,) = run_json("history", "toy", capsys=capsys)
    assert timeline["events"][-1]["approved_by"] == "anna"
    page = tmp_path / "history.html"
    _, out, _ = run_command("history", "toy", "--page", page, capsys=capsys)
    assert all(f"{account()}, approved by anna" in text for text in (out, page.read_text()))
    assert publish_with(plan) == name  # again, at no charge
    assert len(ledger.charges("toy")) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"request": "0" * 64},
        {"instead_of": "v1-r1"},
        {"ledger": "0" * 32},
        {"dataset": "other"},
        {"version": "v2"},
        {"mechanism": {"name": "gaussian", "epsilon": 0.1, "delta": 1e-6}},
    ],
)
def test_signature_is_of_one_charge(anna: Person, plan: Plan, changes: dict[str, Any]) -> None:
    with raises(families.NOT_REGISTERED, release="toy, version v1"):
        publish_with(plan, anna.signs(signed(plan, **changes)))
    assert not was_charged()


def test_signature_of_another_request_or_charge(anna: Person, plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    mechanism = {"name": "gaussian", "epsilon": 0.5, "delta": 1e-6}
    path = write_request(tmp_path / "other", request={"mechanism": mechanism}, approval="required")
    for other in (read_plan(path), plan.with_new_charge("v1-r1")):
        with raises(families.NOT_REGISTERED, release="toy, version v1"):
            publish_with(plan, anna.signs(signed(other)))


def test_forged_signature(anna: Person, plan: Plan) -> None:
    line = anna.signs(signed(plan))
    flipped = line[:-2] + ("1" if line[-2] == "0" else "0") + "\n"
    for forged in ("", "ed25519 00 00\n", flipped, anna.signs(signed(plan), ANCHOR)):
        with raises(families.NOT_REGISTERED, release="toy, version v1"):
            publish_with(plan, forged)
    assert not was_charged()


def test_signers_who_may_not_approve(
    tmp_path: Path, anna: Person, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, stranger = Home.default(), Person.at(tmp_path / "stranger")
    own = Person.at(home.keys)
    with raises(families.NOT_REGISTERED, path=str(own.public)):
        approval.register_approver(home, "anna", own.public)
    # Nor if the file was put there by hand.
    (key,) = home.approvers.iterdir()
    key.with_name(f"ben.{own.public.stem}.pub").write_bytes(own.public.read_bytes())
    for person in (stranger, own):
        with raises(families.NOT_REGISTERED, signer=person.public.stem):
            publish_with(plan, person.signs(signed(plan)))
    for who in ("anna", "anna as gramercy", "gramercy as anna"):
        with monkeypatch.context() as patch, raises(families.NOT_REGISTERED, approver="anna"):
            patch.setattr("gramercy.pipeline.publish.approval.account", lambda who=who: who)
            publish_with(plan, anna.signs(signed(plan)))
    key.unlink()  # the right was taken away
    with raises(families.NOT_REGISTERED, signer=anna.public.stem):
        publish_with(plan, anna.signs(signed(plan)))
    assert not was_charged()


def test_registered_contract_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A request that names another file cannot do without an approval; nor does a command wait."""
    read_registered(write_request(tmp_path, approval="required"))
    path = write_request(tmp_path)
    assert read_plan(path).contract.approval is None
    with raises(families.NOT_REGISTERED, release="toy, version v1"):
        publish_with(read_plan(path))
    code, _, err = run_command("release", path, "--yes", capsys=capsys)
    assert (code, families.NOT_REGISTERED.code in err) == (2, True)
    assert not was_charged()


def test_approver_is_registered_by_a_command(
    anna: Person, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = run_json("keys", "approver", "anna", anna.public, capsys=capsys)
    assert (facts["approver"], facts["id"]) == ("anna", anna.public.stem)
    assert [*approval.approvers(Home(home)).values()] == ["anna"]
    assert run_json("keys", capsys=capsys) == []  # readers do not trust it
    for name in ("", "anna as ben", "../anna", "-"):
        with raises(families.USAGE):
            approval.register_approver(Home(home), name, anna.public)


def test_command_needs_a_key_of_another_home(
    plan: Plan, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused_with() -> list[bool]:
        _, _, err = run_command("approve", "0" * 32, "--yes", capsys=capsys)
        expected = (families.SETTING, families.PRIVATE_KEY, families.NOT_REGISTERED)
        return [each.code in err for each in expected]

    assert refused_with() == [True, False, False]
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    statements = {signed(plan): json.loads(signed(plan))}
    monkeypatch.setattr("gramercy.tasks.approval.statements_of", lambda run: statements)
    assert refused_with() == [False, True, False]
    create_signing_key(Home(home).keys)
    assert refused_with() == [False, False, True]


def test_audit_verifies_approvals(anna: Person, plan: Plan, tmp_path: Path) -> None:
    publish_with(plan, anna.signs(signed(plan)))
    context = Context.default()
    assert not make_audit(context).notes
    (key,) = context.home.approvers.iterdir()
    key.unlink()
    (note,) = make_audit(context).notes
    assert isinstance(note, Notice)
    assert note.facts["names"] == ("anna",)
    # A second charge with the approval of the first, and a third one without.
    (approved,) = context.ledger.approved_charges()
    for version, stated in (("v2", approved.approved), ("v3", None)):
        facts = (version, version, Guarantee(0.01), "")
        context.ledger.charge(plan.contract, *facts, approved=stated)
    audit = make_audit(context)
    found = [each.subject for each in audit.discrepancies if each.code == families.ENTRY.code]
    assert found == ["toy/v2-r1"]
    assert any("toy/v3-r1" in str(each) for each in audit.notes)
