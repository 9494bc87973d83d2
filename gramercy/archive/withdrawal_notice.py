"""Writing and reading the notice that a release was withdrawn; the release itself stays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramercy.archive.bundle import check
from gramercy.archive.package import descriptor, read_descriptor, read_manifest, write_descriptor
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import WithdrawalManifest

NOTICE = "NOTICE.md"


@dataclass(frozen=True)
class WithdrawalBundle:
    """A notice as read back: its seal holds, and its text says what its manifest says."""

    manifest: WithdrawalManifest
    sha256: str


def write_withdrawal(folder: Path, manifest: WithdrawalManifest) -> None:
    """Fill an empty folder with a notice."""
    (folder / NOTICE).write_text(notice(manifest), encoding="utf-8", newline="\n")
    write_descriptor(folder, withdrawal_descriptor(folder, manifest))


def withdrawal_descriptor(folder: Path, manifest: WithdrawalManifest) -> dict[str, Any]:
    """What datapackage.json says of a notice."""
    name = f"{manifest.dataset.id}-{manifest.release}-withdrawn"
    return descriptor(folder, name, f"{manifest.dataset.title}: withdrawn", [NOTICE], manifest)


def read_withdrawal(folder: Path) -> WithdrawalBundle:
    """Read a notice, verified.

    Raises
    ------
    BundleError
        Naming the file that is not what was sealed, or does not follow from the manifest.
    """
    sha256 = check(folder)
    manifest = read_manifest(folder, WithdrawalManifest)
    try:
        told = (folder / NOTICE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        told = ""
    if told != notice(manifest):
        raise BundleError(f"{folder / NOTICE}: does not say what the manifest says.")
    if read_descriptor(folder) != withdrawal_descriptor(folder, manifest):
        raise BundleError(f"{folder / 'datapackage.json'}: does not follow from its manifest.")
    return WithdrawalBundle(manifest, sha256)


def notice(manifest: WithdrawalManifest) -> str:
    """The notice as a page, for whoever opens the folder."""
    facts = manifest.dataset
    return "\n".join(
        [
            f"# Withdrawn: {facts.title}, version {facts.version}",
            "",
            f"{facts.curator} has withdrawn the release `{facts.id}/{manifest.release}` on "
            f"{manifest.on}. Please use it no longer, nor what was estimated from it.",
            "",
            f"> {manifest.reason}",
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
