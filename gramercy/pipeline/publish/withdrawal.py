"""Withdraw a release: mark it in ledger and catalogue. It stays readable, and stays charged."""

from __future__ import annotations

import datetime
from pathlib import Path

from gramercy.archive.bundles.release_bundle import read_release
from gramercy.archive.bundles.withdrawal_notice import write_withdrawal
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.seal_once import seal_once
from gramercy.schemas import families
from gramercy.schemas.errors import RequestError
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.manifest import FORMAT, WithdrawalManifest
from gramercy.schemas.model import parse


def withdraw(context: Context, dataset: str, release: str, reason: str) -> Path:
    """Mark a published release as withdrawn; returns the path of the notice.

    The ledger is written first. After an interruption, the same command writes what is missing.

    Parameters
    ----------
    context
        The home in which the release was charged and published.
    dataset, release
        Ids of the data set and the release.
    reason
        Public reason; it must not reveal anything about the data.

    Raises
    ------
    RequestError
        If the reason is empty, or not a single line of text.
    SpentFailure
        If the release was never published.
    UntrustedLedger
        If the ledger is behind its anchor in the archive, or never charged the release.
    """
    ledger, archive = context.open_stores()
    bundle = read_release(archive.release(dataset, release))
    facts = {
        "format": FORMAT,
        "kind": "withdrawal",
        "dataset": bundle.manifest.dataset,
        "release": release,
        "release_sha256": bundle.sha256,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    with ledger.lock(dataset):
        charge = ledger.charge_of(dataset, release)
        if charge is None:
            raise families.UNTRUSTED(
                "{ledger}: '{release}' was not charged in this ledger.",
                "Withdraw the release where it was charged.",
                ledger=ledger.location,
                release=f"{dataset}/{release}",
            )
        if charge.state is ChargeState.SEALED:
            raise families.SPENT(
                "Publication of '{release}' was interrupted before its end.",
                "Repeat its request, which finishes the publication; then withdraw the release.",
                release=f"{dataset}/{release}",
            )
        if charge.state is ChargeState.WITHDRAWN:
            reason = charge.reason
        manifest = parse(
            WithdrawalManifest, facts | {"reason": reason.strip()}, "withdraw", RequestError
        )
        if charge.state is not ChargeState.WITHDRAWN:
            ledger.mark(dataset, release, ChargeState.WITHDRAWN, reason=manifest.reason)
            context.record_head(outside=True)
        place = archive.withdrawal(dataset, release)
        with seal_once(context, place) as staged:
            if staged is not None:
                write_withdrawal(staged, manifest)
    return place
