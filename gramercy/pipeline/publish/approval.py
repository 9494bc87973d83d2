"""Approval by a second person, before a release is charged.

A contract with ``approval: required`` is charged only with the signature of an approver, whose
public key the steward has registered in the home. It is of the ledger, the request and the charge
that it replaces: it can be used again for that charge, which happens once, and for no other.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from gramercy.archive.seal.signing import (
    APPROVAL,
    PublicKey,
    key_id,
    read_public_key,
    signer,
    trusted_keys,
)
from gramercy.common.disk import make_folder, write_atomically
from gramercy.common.home import Home
from gramercy.ledger.entry import Entry, account
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.request_files import read_contract
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.model import canonical_json

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


def is_required(home: Home, contract: Contract) -> bool:
    """Whether a contract, or the registered one of its data set, requires an approval."""
    registered = home.registered_contract(contract.id)
    stated = [contract, *([read_contract(registered)] if registered.is_file() else [])]
    return any(each.approval is not None for each in stated)


def statement(context: Context, plan: Plan) -> str:
    """What an approver signs for the charge of a plan: a line of JSON."""
    request = plan.request
    return canonical_json(
        {
            "ledger": context.ledger.head().ledger,
            "dataset": plan.contract.id,
            "version": request.version,
            "request": plan.key,
            "instead_of": request.new_charge,
            "mechanism": request.mechanism.non_default_keys(),  # for the approver to read
        }
    )


def verified(context: Context, plan: Plan) -> dict[str, str] | None:
    """The approval of a plan, as the ledger records it; None if none is required.

    Returns
    -------
    dict
        ``by`` (the approver), ``statement`` and ``signature``.

    Raises
    ------
    RequestError
        If the charge is not approved by somebody who may approve it.
    """
    home, name = context.home, f"{plan.contract.id}, version {plan.request.version}"
    if not is_required(home, plan.contract):
        return None
    signed = statement(context, plan)
    for line in plan.approvals:
        public = signer(line.encode(), signed.encode(), APPROVAL)
        if public is None:  # of another step of a series, of another request, or forged
            continue
        approver = approvers(home).get(public)
        if approver is None or public in trusted_keys(home.keys):
            raise families.NOT_REGISTERED(
                "{release}: the key {signer}, which has signed the approval, is not that of an "
                "approver of this home.",
                "Register the approver's key with 'gramercy keys approver NAME FILE', and start "
                "the run again.",
                release=name,
                signer=key_id(public),
            )
        if approver in account().split(" as "):
            raise families.NOT_REGISTERED(
                "{release}: the account {approver} cannot approve what it charges itself.",
                "Start the run again, and have it approved by somebody else.",
                release=name,
                approver=approver,
            )
        return {"by": approver, "statement": signed, "signature": line}
    raise families.NOT_REGISTERED(
        "{release}: the contract has 'approval: required', and no one has approved this charge.",
        "Start a run of its deployment, which waits until somebody else calls 'gramercy approve'.",
        release=name,
    )


def signer_of(entry: Entry, ledger: str) -> str | None:
    """The public key that signed the approval in an entry; None if it is not of its charge."""
    approval = entry.approved
    charged = {
        "ledger": ledger,
        "dataset": entry.dataset,
        "version": entry.fact("version", str),
        "request": entry.request,
    }
    with contextlib.suppress(ValueError, AttributeError):  # a statement that is not one
        if charged.items() <= json.loads(approval["statement"]).items():
            line, signed = approval["signature"].encode(), approval["statement"].encode()
            return signer(line, signed, APPROVAL)
    return None


def approvers(home: Home) -> Mapping[str, str]:
    """The names of the approvers, by their public keys in hexadecimal."""
    files = sorted(home.approvers.glob("*.*.pub"))
    return {read_public_key(each): each.name.removesuffix(".pub")[:-17] for each in files}


def register_approver(home: Home, name: str, file: Path) -> PublicKey:
    """Allow the owner of a public key to approve charges of this home.

    Parameters
    ----------
    name
        The account of its owner, who cannot approve what this account charges.
    """
    public = read_public_key(file)
    if not _NAME.fullmatch(name):
        raise families.USAGE(
            "NAME must be the name of the approver's account.",
            "Use letters without accents, digits, '.', '-' and '_'.",
        )
    if public in trusted_keys(home.keys):
        raise families.NOT_REGISTERED(
            "{path} is a key of this home, which charges: it cannot approve as well.",
            "Let the approver run 'gramercy keys new' in a home of their own.",
            path=str(file),
        )
    key = PublicKey(public, home.approvers / f"{name}.{key_id(public)}.pub")
    make_folder(home.approvers, 0o700)
    write_atomically(key.path, file.read_bytes(), 0o600)
    return key
