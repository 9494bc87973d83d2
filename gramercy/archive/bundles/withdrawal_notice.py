"""Writing and reading notices of withdrawal; the withdrawn release itself stays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramercy.archive.bundles.escaped_texts import markdown_text
from gramercy.archive.bundles.package import (
    DESCRIPTOR,
    descriptor,
    read_descriptor,
    read_manifest,
    write_descriptor,
)
from gramercy.archive.seal.bundle import check
from gramercy.schemas import families
from gramercy.schemas.manifest import WithdrawalManifest

NOTICE = "NOTICE.md"


@dataclass(frozen=True)
class WithdrawalBundle:
    """A notice as read from disk; its seal is valid, and its text follows from its manifest."""

    manifest: WithdrawalManifest
    sha256: str


def write_withdrawal(folder: Path, manifest: WithdrawalManifest) -> None:
    """Fill an empty folder with a notice."""
    (folder / NOTICE).write_text(notice_text(manifest), encoding="utf-8", newline="\n")
    write_descriptor(folder, withdrawal_descriptor(folder, manifest))


def withdrawal_descriptor(folder: Path, manifest: WithdrawalManifest) -> dict[str, Any]:
    """The content of datapackage.json for a notice."""
    name = f"{manifest.dataset.id}-{manifest.release}-withdrawn"
    return descriptor(folder, name, f"{manifest.dataset.title}: withdrawn", [NOTICE], manifest)


def read_withdrawal(folder: Path) -> WithdrawalBundle:
    """Read a notice, verified.

    Raises
    ------
    BundleError
        Naming the file that differs from what was sealed, or does not follow from the manifest.
    """
    sha256 = check(folder)
    manifest = read_manifest(folder, WithdrawalManifest)
    try:
        text = (folder / NOTICE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    if text != notice_text(manifest):
        raise families.DESCRIPTION(
            "{path} contradicts its manifest.",
            "Fetch the bundle again from its curator.",
            path=str(folder / NOTICE),
        )
    if read_descriptor(folder) != withdrawal_descriptor(folder, manifest):
        raise families.DESCRIPTION(
            "{path} contradicts its manifest.",
            "Fetch the bundle again from its curator.",
            path=str(folder / DESCRIPTOR),
        )
    return WithdrawalBundle(manifest, sha256)


def notice_text(manifest: WithdrawalManifest) -> str:
    """The text of NOTICE.md; fixed, because reading a notice compares it with this text."""
    facts = manifest.dataset
    return "\n".join(
        [
            f"# Withdrawn: {markdown_text(facts.title)}, version {facts.version}",
            "",
            f"{markdown_text(facts.curator)} has withdrawn the release "
            f"`{facts.id}/{manifest.release}` on {manifest.date}. "
            "Please use it no longer, nor what was estimated from it.",
            "",
            f"> {markdown_text(manifest.reason)}",
            "",
            "The release stays where it is, so that work that used it can be checked. The privacy "
            "budget that it cost stays spent: what was published cannot be taken back.",
            "",
            "The SHA256SUMS of the release has the SHA-256",
            "",
            f"    {manifest.release_sha256}",
            "",
        ]
    )
