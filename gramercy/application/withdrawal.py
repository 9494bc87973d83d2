"""Withdraw a release: marked in the ledger and in the catalogue, readable still, never refunded."""

from __future__ import annotations

import datetime
from pathlib import Path

from gramercy.application.context import Context
from gramercy.application.seal_once import sealed_once
from gramercy.archive.release_bundle import read_release
from gramercy.archive.withdrawal_notice import write_withdrawal
from gramercy.schemas.errors import RequestError, SpentFailure, UntrustedLedger
from gramercy.schemas.manifest import FORMAT, WithdrawalManifest
from gramercy.schemas.model import parse


def withdraw(context: Context, dataset: str, release: str, reason: str) -> Path:
    """Mark a published release as withdrawn; returns where the notice lies.

    The ledger is told first. Interrupted in between, the same command writes what is missing.

    Parameters
    ----------
    context
        Where it was charged and published.
    dataset, release
        Which.
    reason
        For everybody to read. It must say nothing that only the data can tell.

    Raises
    ------
    RequestError
        If no reason is given, or it cannot be shown.
    SpentFailure
        If the release was never published.
    UntrustedLedger
        If the archive has seen more of the ledger than there is.
    """
    ledger, archive = context.books()
    bundle = read_release(archive.release(dataset, release))
    facts = {
        "format": FORMAT,
        "kind": "withdrawal",
        "dataset": bundle.manifest.dataset,
        "release": release,
        "release_sha256": bundle.sha256,
        "on": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    with ledger.alone(dataset):
        charge = ledger.charge_of(dataset, release)
        if charge is None:
            raise UntrustedLedger(
                f"{ledger.where}: does not know '{dataset}/{release}'.",
                "Withdraw it where it was charged.",
            )
        if charge.state == "sealed":
            raise SpentFailure(
                f"Release '{dataset}/{release}' lacks the last mark of its charge.",
                "Give its request again, which finishes it; then withdraw it.",
            )
        if charge.state == "withdrawn":
            reason = charge.reason
        manifest = parse(
            WithdrawalManifest, facts | {"reason": reason.strip()}, "withdraw", RequestError
        )
        if charge.state != "withdrawn":
            ledger.mark(dataset, release, "withdrawn", reason=manifest.reason)
            archive.write_anchor(ledger.head())
        place = archive.withdrawal(dataset, release)
        with sealed_once(context, place) as staged:
            if staged is not None:
                write_withdrawal(staged, manifest)
    return place
