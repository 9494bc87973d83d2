"""Verify a release from its own files: everything that follows from other facts is recomputed.

What does not follow from other facts (the noisy matrix, a title, the public constants of a column)
is protected by the seal, and by the ledger if it is available. An archive is compared with its
signed listing: bundles, and pages of the catalogue.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release, read_withdrawal
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.listing.contents import Contents, bundle_digests
from gramercy.archive.listing.signed_listing import PartMissingError, load_part, read_root
from gramercy.archive.seal.bundle import SUMS, check, file_digest, signer
from gramercy.archive.seal.signing import key_id
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import (
    CATALOGUE_LOCK,
    LISTING_FILE,
    PAGE_BYTES,
    is_page,
    release_page,
)
from gramercy.common.extras import INSTALL_PUBLISH
from gramercy.common.similar_names import most_similar_first
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.charged_steps import check_step
from gramercy.pipeline.verify.recomputation import (
    check_belongs,
    check_estimate,
    check_report,
    release_checks,
    source_checks,
)
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import (
    ArchiveError,
    BundleError,
    GramercyError,
    LedgerError,
    MissingPackages,
)
from gramercy.schemas.facts import BudgetFacts
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.listing import ListingEntry, ListingRoot
from gramercy.schemas.manifest import EstimateManifest, ReportManifest
from gramercy.schemas.problem import Notice

if TYPE_CHECKING:
    from gramercy.ledger import Charge, Ledger

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class VerificationResult:
    """The result of a successful verification."""

    release: str  # `<dataset>/<release>`
    checks: tuple[str, ...]  # what was verified, in words
    unchecked: tuple[Notice, ...]  # what could not be verified


def select_releases(
    archive: Archive, ledger: Ledger | None, names: list[str]
) -> list[tuple[str, str]]:
    """(data set, release) of the named releases and data sets; of all, if `names` is empty."""
    listed = Contents(archive).entries()
    releases = sorted({*archive.releases(), *listed, *(ledger.published() if ledger else ())})
    chosen = releases
    if names:
        chosen = [pair for n in names for pair in releases if n in (pair[0], "/".join(pair))]
        known_names = {n for pair in releases for n in (pair[0], "/".join(pair))}
        if unknown := [n for n in names if n not in known_names]:
            known = most_similar_first(unknown[0], sorted(known_names))
            raise wordings.unknown_name(archive.location, unknown[0], known)
    if not chosen:
        raise wordings.no_release(archive.location)
    return list(dict.fromkeys(chosen))


def verify_release(
    archive: Archive,
    dataset: str,
    release: str,
    ledger: Ledger | None,
    *,
    recompute_derived: bool = True,
) -> VerificationResult:
    """Verify a release and its estimates by recomputing them, and what its reports state.

    Parameters
    ----------
    recompute_derived
        Whether to recompute estimates, and verify reports; otherwise only their seals are.
    """
    with archive.rewrite_paths_in_errors():
        return _verify(archive, dataset, release, ledger, recompute_derived)


def _verify(
    archive: Archive, dataset: str, release: str, ledger: Ledger | None, recompute_derived: bool
) -> VerificationResult:
    place = archive.release(dataset, release)
    if not archive.contains(place):
        raise wordings.bundle_missing(archive.display_path(place))
    bundle = _run_check(place, read_release, place)
    archive.verify_signer(place)
    trust = ", which is trusted" if archive.trusted else "; no trusted key was given"
    checks = [
        "seal: the checksums of all files match",
        f"signature: by the key {key_id(signer(place))}{trust}",
    ]
    if bundle.manifest.publication.has_matrix:
        checks.append("formats: all files of a matrix have the same numbers")
    unchecked: list[Notice] = []
    if ledger is not None:  # first: what an auditor must know before other contradictions
        _run_check(place, check_guarantee, place, bundle, ledger)
    for words, check_release in release_checks(bundle.manifest).items():
        _run_check(place, check_release, place, bundle)
        checks.append(words)
    for check_sources in source_checks(bundle.manifest):
        words, notice = _run_check(place, check_sources, archive, place, bundle)
        checks += [words] if words else []
        unchecked += [notice] if notice else []
    for kind, names, place_of, check_numbers, manifest in (
        ("estimate", archive.estimates, archive.estimate, check_estimate, EstimateManifest),
        ("report", archive.reports, archive.report, check_report, ReportManifest),
    ):
        for name in names(dataset, release):
            path = place_of(dataset, release, name)
            check(path)
            archive.verify_signer(path)
            _run_check(path, check_belongs, path, bundle, manifest)
            if recompute_derived:
                words, notice = _run_check(path, check_numbers, archive, path, bundle)
                checks.append(f"{kind} {name}: {words}")
                unchecked += [notice] if notice else []
    if ledger is None:
        listed = check_listed(archive, dataset, release)
        checks += [listed] if listed else []
    else:  # which knows more than the listing
        _run_check(place, check_charge, place, bundle, ledger)
        unchecked += _run_check(place, check_recorded, archive, dataset, release, ledger)
        checks.append("ledger: this guarantee was charged, and these bundles published")
    return VerificationResult(f"{dataset}/{release}", tuple(checks), tuple(unchecked))


def _run_check(place: Path, check: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a check; any unexpected exception is reported as a forged bundle."""
    reason = ""
    try:
        with np.errstate(all="ignore"):  # what overflows fails a comparison
            return check(*args, **kwargs)
    except GramercyError:
        raise
    except Exception as caught:
        reason = type(caught).__name__
    raise families.CONTRADICTION(
        "{path} describes an impossible release ({reason}).",
        "Ask the curator for the bundle that was published.",
        path=str(place / DESCRIPTOR),
        reason=reason,
    )


def check_guarantee(place: Path, bundle: ReleaseBundle, ledger: Ledger) -> None:
    """Check that a release states the guarantee that was charged for it, if any was."""
    facts = bundle.manifest
    charge, stated = ledger.charge_of(facts.dataset.id, facts.release), facts.guarantee
    if charge is None:
        return
    pure = math.inf if stated.pure_epsilon is None else stated.pure_epsilon
    charged, own = charge.guarantee, Guarantee(stated.mu, stated.delta0, pure)
    if charge.series or facts.cumulative:
        check_step(place, bundle, charge, ledger)
    elif charged != own:
        raise families.CHARGE(
            "{path} states epsilon={epsilon:.4g} at delta={delta:g} (mu={mu:.4g}), but the ledger "
            "has charged epsilon={charged_epsilon:.4g} (mu={charged_mu:.4g}).",
            "Ask the curator for the bundle that was published.",
            path=str(place / DESCRIPTOR),
            epsilon=stated.epsilon,
            delta=stated.delta,
            mu=stated.mu,
            charged_epsilon=charged.epsilon(stated.delta),
            charged_mu=charged.mu,
        )


def check_charge(place: Path, bundle: ReleaseBundle, ledger: Ledger) -> None:
    """Check that a release is the one that was charged, under the ledger that it states."""
    facts = bundle.manifest
    charge = ledger.charge_of(facts.dataset.id, facts.release)
    if charge is None:
        raise families.CHARGE(
            "{path} was never charged in this ledger.",
            "If it was charged elsewhere, verify it there, or with '--archive', without the "
            "ledger.",
            path=str(place),
        )
    if not charge.state.was_published or charge.sha256 != bundle.sha256:
        raise wordings.bundle_replaced(str(place / SUMS))
    if facts.ledger is not None:
        ledger.verify_anchor(facts.ledger.anchor, f"{facts.dataset.id}/{facts.release}")
        budget = ledger.budget_at(facts.dataset.id, facts.ledger.seq)
        if budget is None or BudgetFacts.of(budget) != facts.ledger.budget:
            raise families.CONTRADICTION(
                "{path} states a budget that was not in use when the release was charged.",
                "Ask the curator for the bundle that was published.",
                path=str(place / DESCRIPTOR),
            )


def check_withdrawal(archive: Archive, dataset: str, charge: Charge) -> None:
    """Check that there is a notice of withdrawal if and only if the ledger records one."""
    place = archive.withdrawal(dataset, charge.release)
    if charge.state is not ChargeState.WITHDRAWN:
        if archive.contains(place):
            raise wordings.bundle_unexpected(archive.display_path(place), charge.state)
        return
    if not archive.contains(place):
        raise families.STATE(
            "{path} is missing, but in the ledger the release is withdrawn.",
            "Run 'gramercy withdraw' again: it writes the notice.",
            path=archive.display_path(place),
        )
    notice = read_withdrawal(place).manifest
    if (notice.release_sha256, notice.reason) != (charge.sha256, charge.reason):
        raise families.STATE(
            "{path} differs from the withdrawal in the ledger.",
            "Restore the notice from a copy.",
            path=archive.display_path(place),
        )


def check_recorded(
    archive: Archive, dataset: str, release: str, ledger: Ledger
) -> Iterator[Notice]:
    """Check that the archive has the notice, estimates and reports that the ledger has recorded.

    Yields a notice if it has other estimates or reports as well.
    """
    charge = ledger.charge_of(dataset, release)
    if charge is not None:
        check_withdrawal(archive, dataset, charge)
    recorded = ledger.derived(dataset, release)
    for (kind, name), sha256 in sorted(recorded.items()):
        place = (archive.estimate if kind == "estimate" else archive.report)(dataset, release, name)
        if not archive.contains(place):
            raise families.REPLACED(
                "{path} is missing, but the ledger has recorded it.",
                "Restore it from a copy, or make it again: 'gramercy estimate' makes estimates "
                "and reports.",
                path=archive.display_path(place),
            )
        if file_digest(place / SUMS) != sha256:
            raise families.REPLACED(
                "{path} is not the bundle that the ledger has recorded.",
                "Restore it from a copy.",
                path=archive.display_path(place / SUMS),
            )
    present = [("estimate", name) for name in archive.estimates(dataset, release)]
    present += [("report", name) for name in archive.reports(dataset, release)]
    if others := [name for kind, name in present if (kind, name) not in recorded]:
        yield families.NOT_RECORDED(
            "{release}: the ledger has no record of {names}.",
            "Repeat the command that made them: it records them.",
            release=f"{dataset}/{release}",
            names=tuple(others),
        )


def readable_ledger(context: Context) -> tuple[Ledger | None, str]:
    """The ledger of the home, or None; and the command that installs packages that are missing."""
    try:
        return context.existing_ledger, ""
    except MissingPackages:
        return None, INSTALL_PUBLISH


_ATTEMPTS = 3

Name = tuple[str, str]


def listing_problem(
    archive: Archive,
    releases: Collection[Name],
    ledger: Ledger | None = None,
    files: Collection[str] = (),
) -> GramercyError | None:
    """The first reason why an archive is not what its signed listing says; None if there is none.

    The listing is read first, then the bundles that it should name are looked for, and then the
    pages are compared with it. One cause often shows in all three, and is reported once.

    Parameters
    ----------
    releases
        (data set, release) of the intact releases to look at; other releases and other data sets,
        with their pages, are left out.
    ledger
        The ledger that has published them, if it is known. Then a listing that is missing or of
        another ledger is a problem, and so is a damaged part of any data set.
    files
        Names of files of the archive. A page among them that the listing does not name is a
        problem; the pages of `releases` are looked for in any case.
    """

    def first() -> GramercyError | None:
        try:
            path = f"{archive.location}/{LISTING_FILE}"
            read = _read_listing(archive, None if ledger else {dataset for dataset, _ in releases})
            if read is None:
                if ledger is None or not releases:
                    return None
                return families.LISTING(
                    "{path} is missing, although releases were published.",
                    "It was deleted, or a command was interrupted. As the steward, run "
                    "'gramercy site', which writes all pages and the listing again; as a "
                    "reader, ask the curator to.",
                    path=path,
                )
            root, entries = read
            if ledger is not None and not root.is_of(ledger.head().ledger):
                return families.LISTING(
                    "{path} is not the listing of the archive of this ledger.",
                    "It was copied from another archive, or written without the ledger. As "
                    "the steward, run 'gramercy site', which writes all pages and the listing "
                    "again; as a reader, ask the curator to.",
                    path=path,
                )
            found = _bundle_problem(archive, releases, entries, path)
            if found is None and (
                differing := tuple(_differing_pages(archive, releases, root, entries, files))
            ):
                found = families.LISTING(
                    "Pages of the archive are not those that {path} names: {pages}.",
                    "They were changed, or a command was interrupted while it wrote them. As "
                    "the steward, run 'gramercy site', which writes all pages and the listing "
                    "again; as a reader, ask the curator to.",
                    path=path,
                    pages=differing,
                )
            return found
        except BundleError as error:
            return error

    problem = first()
    if problem is not None and ledger is not None:
        # A command may just be writing; an auditor may lack the permission to wait for it.
        with suppress(LedgerError), ledger.lock(CATALOGUE_LOCK):
            problem = first()
    return problem


def _read_listing(
    archive: Archive, only: Collection[str] | None
) -> tuple[ListingRoot, dict[Name, ListingEntry]] | None:
    """The root, and the entries of all data sets or only of some; None if there is no listing."""
    for _ in range(_ATTEMPTS):
        signed = read_root(archive)
        if signed is None:
            return None
        listings = signed.root.datasets
        with suppress(PartMissingError):  # perhaps a newer listing was written in the meantime
            entries = {
                (dataset, each.facts.release): each
                for dataset, listing in listings.items()
                if only is None or dataset in only
                for digest in listing.parts
                for each in load_part(archive, dataset, digest).releases
            }
            return signed.root, entries
    raise families.LISTING(
        "{path} names a part of the listing that is missing.",
        "It was deleted, or the archive was copied incompletely. As the steward, run 'gramercy "
        "site', which writes all pages and the listing again; as a reader, ask the curator to.",
        path=f"{archive.location}/{LISTING_FILE}",
    )


def _bundle_problem(
    archive: Archive,
    releases: Collection[Name],
    entries: Mapping[Name, ListingEntry],
    path: str,
) -> GramercyError | None:
    """Whether the archive lacks bundles of these releases that are listed, or has others."""
    present: dict[Name, list[tuple[str, ...]]] = {name: [] for name in releases}
    for dataset in {dataset for dataset, _ in releases}:
        for names in archive.bundles(dataset):
            present.get((names[0], names[1]), []).append(names)
    unlisted = []
    for name in sorted(releases):
        listed = bundle_digests(name, entries[name]) if name in entries else {}
        for names in sorted(listed.keys() - present[name]):
            return wordings.listed_bundle_missing(
                archive.display_path(archive.root.joinpath(*names))
            )
        for names in present[name]:
            folder = archive.metadata_path(*names)
            if folder is not None and file_digest(folder / SUMS) != listed.get(names):
                unlisted.append("/".join(names))
    return (
        families.LISTING(
            "{path} does not name {names}.",
            "An older listing was put back, or a command was interrupted or is still "
            "running. As the steward, run 'gramercy site', which writes all pages and the "
            "listing again; as a reader, ask the curator to.",
            path=path,
            names=tuple(unlisted),
        )
        if unlisted
        else None
    )


def _differing_pages(
    archive: Archive,
    releases: Collection[Name],
    root: ListingRoot,
    entries: Mapping[Name, ListingEntry],
    files: Collection[str],
) -> Iterator[str]:
    """The pages that are not as the listing names them, and what is wrong with each."""
    listed: dict[str, str | None] = dict(root.pages)
    listed |= {release_page(*name): entry.page for name, entry in entries.items()}
    pages = {release_page(*name) for name in releases}
    folders = {"", *(dataset for dataset, _ in releases)}
    pages |= {name for name in root.pages if name.rpartition("/")[0] in folders}
    pages |= {name for name in files if is_page(name) and listed.get(name) is None}
    for name in sorted(pages):
        expected, found = listed.get(name), _page_digest(archive, name)
        if found != expected:
            state = "missing" if found is None else "changed" if expected else "not listed"
            yield f"{name} ({state})"


def _page_digest(archive: Archive, name: str) -> str | None:
    """The digest of a page; None if there is no such file, empty if it cannot be a page."""
    try:
        content = archive.read_file(name, PAGE_BYTES)
    except BundleError:  # not a regular file
        return ""
    except ArchiveError as error:
        if error.code != families.FILE_TOO_LARGE.code:
            raise
        return ""
    return None if content is None else hashlib.sha256(content).hexdigest()


def check_listed(archive: Archive, dataset: str, release: str) -> str | None:
    """Check that the bundles that the listing names are there, and are those that it names."""
    entry = Contents(archive).entry(dataset, release)
    if entry is None:
        return None
    for names, digest in bundle_digests((dataset, release), entry).items():
        folder = archive.metadata_path(*names)
        if folder is None:
            raise wordings.listed_bundle_missing(
                archive.display_path(archive.root.joinpath(*names))
            )
        if file_digest(folder / SUMS) != digest:
            raise wordings.not_as_listed(archive.display_path(archive.root.joinpath(*names)))
    return "listing: the signed listing of the archive names these bundles"


def missing_listing(archive: Archive) -> Notice | None:
    """A notice that an archive has no listing, without which a deleted bundle is not missed."""
    with suppress(BundleError):  # it has one, which is not valid
        if read_root(archive) is None:
            return families.NOT_CHECKED(
                "{path} is missing, so a deleted release or withdrawal would not be noticed.",
                "Ask the curator for the signed listing.",
                path=archive.display_path(archive.root / LISTING_FILE),
            )
    return None
