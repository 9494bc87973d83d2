"""The signed listing of an archive: ``listing.json``, and a file for each part of a data set.

The root is one line of JSON and a line with the signature of a steward's key, in one file, so that
readers never combine the one with an older version of the other. It names each part by its digest,
and the name of a part, ``<dataset>/listing-<16 digits>.json``, begins with that digest: a part
never changes, and a reader of an older root finds the parts of that root, or knows that they are
gone.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from gramercy.archive.seal.signing import LISTING, key_id, sign, signer, steward_key
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import LISTING_FILE, part_name
from gramercy.common.home import Home
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import BundleError, InvalidValue
from gramercy.schemas.listing import (
    LISTING_FORMAT,
    DatasetListing,
    ListingEntry,
    ListingPart,
    ListingRoot,
    Names,
    ReleaseTable,
)
from gramercy.schemas.model import Model, canonical_json


def _not_a_listing(path: str, reason: str) -> BundleError:
    return families.LISTING(
        "{path} is not a listing of an archive ({reason}).",
        "As the steward, run 'gramercy site', which writes all pages and the listing again; as a "
        "reader, ask the curator to.",
        path=path,
        reason=reason,
    )


NEWEST = 10  # releases of each data set in the root
PART = 200  # releases in a part
_MOST_BYTES = 1 << 24  # of a file of the listing
_MOST_VALUES = 500_000  # JSON values in such a file; each takes about 100 bytes of memory
_SIGNATURE = 1 << 10  # bytes left for the signature of the root, at least
_CACHED_ROOTS = 4
_CACHED_PARTS = 256  # a part never changes
_RETURN = b"\n"

M = TypeVar("M", bound=Model)


class PartMissingError(Exception):
    """A part of the listing is missing: perhaps it belongs to an older root."""


@dataclass(frozen=True)
class SignedRoot:
    """A root whose signature is valid."""

    root: ListingRoot  # The root
    signed_by: str  # The public key that signed it, in hexadecimal


def read_root(archive: Archive) -> SignedRoot | None:
    """The root of an archive's listing, or None if there is not one."""
    path = f"{archive.location}/{LISTING_FILE}"
    content = archive.read_file(LISTING_FILE, _MOST_BYTES)
    if content is None:
        return None
    stated, end, line = content.partition(_RETURN)
    public = signer(line, stated + end, LISTING)
    if public is None:
        raise families.LISTING(
            "{path} has no valid signature.",
            "As the steward, run 'gramercy site', which writes all pages and the listing again; "
            "as a reader, ask the curator to.",
            path=path,
        )
    if archive.trusted and public not in archive.trusted:
        trusted = tuple(sorted(map(key_id, archive.trusted)))
        raise wordings.untrusted_signer(path, key_id(public), trusted)
    return SignedRoot(_parsed_root(stated, path), public)


@functools.lru_cache(_CACHED_ROOTS)
def _parsed_root(content: bytes, path: str) -> ListingRoot:
    return _parsed(ListingRoot, content, path)


@functools.lru_cache(_CACHED_PARTS)
def read_part(archive: Archive, dataset: str, digest: str) -> tuple[ListingEntry, ...]:
    """The releases in a part, each with the names of its columns; raises as `load_part` does."""
    return with_names(load_part(archive, dataset, digest))


def load_part(archive: Archive, dataset: str, digest: str) -> ListingPart:
    """A part that the root names; it is not cached."""
    name = part_name(dataset, digest)
    content = archive.read_file(name, _MOST_BYTES)
    if content is None:
        raise PartMissingError
    path = f"{archive.location}/{name}"
    if hashlib.sha256(content).hexdigest() != digest:
        raise families.LISTING(
            "{path} is not the part that the signed listing of the archive names.",
            "It was changed or damaged. As the steward, run 'gramercy site', which writes all "
            "pages and the listing again; as a reader, ask the curator to.",
            path=path,
        )
    part = _parsed(ListingPart, content, path)
    if {dataset} != {part.dataset, *(each.facts.dataset.id for each in part.releases)}:
        raise _not_a_listing(path, "it is of another data set")
    return part


def write_dataset(
    archive: Archive,
    dataset: str,
    entries: Sequence[ListingEntry],
    before: DatasetListing | None = None,
) -> DatasetListing:
    """Write the parts of a data set; returns its entry in the root, which names them."""
    digests = []
    for start in range(0, len(entries), PART):
        table = _table(entries[start : start + PART])
        part = {"format": LISTING_FORMAT, "dataset": dataset, **table}
        content = canonical_json(part).encode() + _RETURN
        digests.append(hashlib.sha256(content).hexdigest())
        archive.write_file(part_name(dataset, digests[-1]), content)
    newest = ReleaseTable.model_validate(_table(entries[-NEWEST:]))
    superseded = set(before.parts if before else ()).difference(digests)
    return DatasetListing(
        parts=tuple(digests),
        releases=len(entries),
        newest=newest,
        superseded=tuple(sorted(superseded)),
    )


def write_root(archive: Archive, root: ListingRoot) -> None:
    """Sign and write the root; raises `ArchiveError` if it cannot be written.

    Of thousands of data sets it has fewer of the newest releases, so that readers accept its size.
    """
    newest, stated = NEWEST, _stated(root)
    while newest and (len(stated) > _MOST_BYTES - _SIGNATURE or _values(stated) > _MOST_VALUES):
        newest //= 2
        datasets = {}
        for name, listing in root.datasets.items():
            named = with_names(listing.newest)
            table = ReleaseTable.model_validate(_table(named[max(0, len(named) - newest) :]))
            datasets[name] = listing.model_copy(update={"newest": table})
        stated = _stated(root.model_copy(update={"datasets": datasets}))
    key = steward_key(archive.keys or Home.default().keys)
    archive.write_file(LISTING_FILE, stated + sign(key, stated, LISTING))


def _stated(root: ListingRoot) -> bytes:
    return canonical_json(root.model_dump(mode="json")).encode() + _RETURN


def with_names(table: ReleaseTable) -> tuple[ListingEntry, ...]:
    """The releases of a table, each with the names of its columns."""
    return tuple(
        each.model_copy(
            update={"facts": each.facts.model_copy(update={"names": table.columns[each.columns]})}
        )
        for each in table.releases
    )


def _table(entries: Sequence[ListingEntry]) -> dict[str, Any]:
    """Releases as plain data, in which the names of columns are stated once."""
    columns: dict[Names, int] = {}
    releases = []
    for each in entries:
        facts = each.model_dump(mode="json")
        facts["facts"].pop("names")
        facts["columns"] = columns.setdefault(each.facts.names, len(columns))
        releases.append(facts)
    return {"columns": [list(names) for names in columns], "releases": releases}


def _values(content: bytes) -> int:
    """About the number of JSON values, at most."""
    return sum(map(content.count, (b",", b"[", b"{")))


def _parsed(model: type[M], content: bytes, path: str) -> M:
    """A file of a listing; what a hostile one can cost is bounded before it is parsed."""
    reason = ""
    if _values(content) > _MOST_VALUES:
        raise _not_a_listing(path, "it has too many entries")
    try:
        return model.model_validate(json.loads(content))
    except (InvalidValue, ValidationError):
        reason = "a key is missing or invalid"
    except (ValueError, RecursionError):
        reason = "it is not JSON"
    raise _not_a_listing(path, reason)
