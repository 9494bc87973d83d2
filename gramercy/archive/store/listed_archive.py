"""Archives at an HTTP address: read only, and found by their signed listing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gramercy.archive.listing.signed_listing import read_root
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.archive.seal.contents import Contents, bundle_digests
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import LISTING_FILE
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError
from gramercy.schemas.ledger_history import Anchor


def _no_listing(url: str) -> RequestError:
    return families.NOT_AN_ARCHIVE(
        "{url} has no listing.json, without which an archive cannot be read over HTTP.",
        "Check the address; the curator writes the listing with 'gramercy site'.",
        url=url,
    )


@dataclass(frozen=True)
class ListedArchive(Archive):
    """Sealed bundles in a store that lists nothing; each must be the one that the listing names."""

    # The digests of bundles in the last root that was read.
    _listed: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, compare=False)
    _last_root: list[bytes] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def needs_listing(self) -> bool:
        return True

    def check_exists(self) -> None:
        try:
            read_root(self)
            return
        except RequestError:  # there is no listing
            pass
        self._refuse_address(_no_listing)

    def bundles(self, dataset: str | None = None) -> list[tuple[str, ...]]:
        return sorted(self._read_listing(dataset))

    def releases(self, dataset: str | None = None) -> list[tuple[str, str]]:
        return Contents(self).names(dataset)

    def anchor(self) -> Anchor | None:
        signed = read_root(self)
        return None if signed is None else signed.root.ledger

    def read_file(self, name: str, most: int) -> bytes | None:
        content = self.store.read(name, most)
        if name == LISTING_FILE:
            if content is None:
                raise _no_listing(self.location)
            if self._last_root != [content]:
                self._last_root[:] = [content]
                self._listed.clear()
        return content

    def _fetch(self, place: Path, *, description: bool = False) -> Path | None:
        names = place.relative_to(self.root).parts
        digest = self._digest(names)
        if digest is None:
            return None
        folder = self.store.fetch(place, description=description)
        if folder is None:
            raise wordings.listed_bundle_missing(self.display_path(place))
        if file_digest(folder / SUMS) != digest:
            raise wordings.not_as_listed(self.display_path(place))
        return folder

    def _ids(self, dataset: str, release: str, kind: str) -> list[str]:
        self._digest((dataset, release, "release"))
        return sorted(each[3] for each in self._listed if each[:3] == (dataset, release, kind))

    def _digest(self, names: tuple[str, ...]) -> str | None:
        """The digest of a bundle, as the listing names it; None if it does not."""
        if (*names[:2], "release") not in self._listed:
            self._read_listing(names[0])
        return self._listed.get(names)

    def _read_listing(self, dataset: str | None) -> dict[tuple[str, ...], str]:
        """The digests of all bundles in the listing, or of those of one data set."""
        listed: dict[tuple[str, ...], str] = {}
        for name, entry in Contents(self).entries(dataset).items():
            listed |= bundle_digests(name, entry)
        self._listed.update(listed)
        return listed
