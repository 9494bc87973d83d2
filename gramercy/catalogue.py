"""What analysts see: a catalogue of releases, each verified before a number of it is used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd

from archive.bundle import signer
from archive.estimate import read_estimate
from archive.keys import read_public
from archive.package import DESCRIPTOR
from archive.release import (
    PAGE,
    ReleaseBundle,
    published_columns,
    read_release,
    read_report,
    rows_file,
)
from archive.remote import open_archive
from archive.rows import read_rows
from archive.signature import key_id
from archive.store import Archive
from archive.withdrawal import read_withdrawal
from schemas.errors import BundleError, GramercyError, RequestError, UnknownRelease
from schemas.evidence import Evidence
from schemas.manifest import GuaranteeFacts, ReleaseManifest
from schemas.noise import NoiseLaw

Keys = str | Path | Sequence[str | Path]


class Release:
    """One published second moment, verified when it was loaded.

    Its estimates and reports are verified before any of them is used. Where the archive names
    public keys to trust, all of them must be signed by one of those.

    Parameters
    ----------
    archive, dataset, release
        Where it lies.

    Attributes
    ----------
    id
        DATASET/RELEASE.
    path
        Its folder; of an archive at a URL, the copy on this machine.
    signed_by
        Id of the key that signed it: see ``gramercy keys``.

    Raises
    ------
    BundleError
        Naming the file that is not what was sealed.
    """

    def __init__(self, archive: Archive, dataset: str, release: str) -> None:
        self.id = f"{dataset}/{release}"
        self.path = archive.release(dataset, release)
        self._archive, self._dataset, self._release = archive, dataset, release
        if (dataset, release) not in archive.releases():
            raise UnknownRelease(
                f"{archive.where}: holds no release '{self.id}'.", "See 'gramercy list'."
            )
        with archive.naming():
            self._bundle: ReleaseBundle = read_release(self.path)
            archive.hold_to_key(self.path)
            self.signed_by = key_id(signer(self.path))
            # A genuine bundle in another one's place is signed, too.
            if (self.manifest.dataset.id, self.manifest.release) != (dataset, release):
                raise BundleError(
                    f"{self.path / DESCRIPTOR}: describes another release than its folder's."
                )

    @property
    def manifest(self) -> ReleaseManifest:
        """Every public fact of the release."""
        return self._bundle.manifest

    @property
    def guarantee(self) -> GuaranteeFacts:
        """What the release guarantees, exactly."""
        return self.manifest.guarantee

    @property
    def noise(self) -> NoiseLaw:
        """Noise law of `second_moment`."""
        return self.manifest.noise

    @property
    def second_moment(self) -> pd.DataFrame:
        """The second moment as released, noise included; shape (p, p), may be indefinite.

        Raises
        ------
        RequestError
            If the release is a precision matrix.
        """
        if self.manifest.kind == "precision":
            raise RequestError(f"'{self.id}' is a precision matrix.", "Use .precision.")
        return self._labelled(self._bundle.raw)

    @property
    def precision(self) -> pd.DataFrame:
        """The precision matrix as released, noise included; shape (p, p).

        Raises
        ------
        RequestError
            If the release is a second moment.
        """
        if self.manifest.kind != "precision":
            raise RequestError(f"'{self.id}' is a second moment.", "Use .estimates.")
        return self._labelled(self._bundle.raw)

    @property
    def projected(self) -> pd.DataFrame:
        """The nearest positive semidefinite matrix within the public trace; shape (p, p)."""
        return self._labelled(self._bundle.projected)

    @property
    def denoised(self) -> pd.DataFrame:
        """The matrix denoised: positive semidefinite, within the public trace; shape (p, p).

        Raises
        ------
        RequestError
            If there is no noise law to shrink by.
        """
        if self._bundle.denoised is None:
            raise RequestError(
                f"'{self.id}' has noise of the family {self.noise.family}, which is not denoised.",
                "Use .projected.",
            )
        return self._labelled(self._bundle.denoised)

    def rows(self) -> Iterator[pd.DataFrame]:
        """The published rows in batches, where rows were published; in the units of the rows.

        Raises
        ------
        RequestError
            If this release holds a matrix alone.
        """
        name = rows_file(self.manifest)
        if name is None:
            raise RequestError(f"'{self.id}' holds no rows.", "It holds a matrix alone.")
        columns, rows = published_columns(self.manifest), int(self.manifest.rows.value)
        for batch in read_rows(self.path / name, columns, rows):
            yield pd.DataFrame(batch.T, columns=columns)

    @cached_property
    def estimates(self) -> Mapping[str, Mapping[str, pd.DataFrame]]:
        """What was estimated from this release: by the id of the estimate, and by name.

        Matrices first, then tables; ``edges`` are the weights of its graph.
        """
        found = {}
        for name in self._archive.estimates(self._dataset, self._release):
            place = self._archive.estimate(self._dataset, self._release, name)
            with self._archive.naming():
                held = read_estimate(place)
                self._hold(place, held.manifest.release_sha256)
            frames = {key: self._labelled(matrix) for key, matrix in held.matrices.items()}
            if held.edges is not None:
                frames["edges"] = self._labelled(held.edges)
            found[name] = frames | dict(held.tables)
        return found

    @property
    def evidence(self) -> Evidence:
        """All that an estimator may look at."""
        return self._bundle.evidence

    @property
    def report(self) -> Path | None:
        """The page for people: the one that shows the most estimates. None before it is made."""
        ids = self._archive.reports(self._dataset, self._release)
        places = [self._archive.report(self._dataset, self._release, name) for name in ids]
        found: dict[int, Path] = {}
        for place in places:
            with contextlib.suppress(BundleError):  # a damaged one hides no other
                facts = read_report(place).manifest
                self._hold(place, facts.release_sha256)
                found[len(facts.estimates)] = place
        return found[max(found)] / PAGE if found else None

    @cached_property
    def withdrawn(self) -> str | None:
        """Why the curator has withdrawn this release; None where that has not happened.

        Raises
        ------
        BundleError
            If there is a notice, and it is not what was sealed, or not of this release.
        """
        place = self._archive.withdrawal(self._dataset, self._release)
        if not self._archive.holds(place):
            return None
        with self._archive.naming():
            facts = read_withdrawal(place).manifest
            self._hold(place, facts.release_sha256)
        return facts.reason

    def _hold(self, place: Path, release_sha256: str) -> None:
        """Refuse what lies beside this release and is of another, or signed by nobody trusted."""
        self._archive.hold_to_key(place)
        if release_sha256 != self._bundle.sha256:
            raise BundleError(f"{place / DESCRIPTOR}: is of another release than '{self.id}'.")

    @property
    def where(self) -> str:
        """Its folder or URL, for people."""
        return self.shown(self.path)

    def shown(self, path: Path) -> str:
        """The path or URL, for people, of what lies in the release or beside it."""
        return self._archive.shown(path)

    def _labelled(self, matrix: object) -> pd.DataFrame:
        return pd.DataFrame(matrix, index=self.manifest.names, columns=self.manifest.names)

    def __repr__(self) -> str:
        g, withdrawn = self.guarantee, ""
        try:
            withdrawn = f"; withdrawn: {self.withdrawn}" if self.withdrawn else ""
        except GramercyError:
            withdrawn = "; its notice of withdrawal cannot be read"
        told = f"epsilon {g.epsilon:g} at delta {g.delta:g}, mu {g.mu:.4g}{withdrawn}"
        return f"<Release {self.id}: {told}>"


class Catalogue(Mapping[str, Release]):
    """The releases of an archive.

    Parameters
    ----------
    path
        The archive's folder, or its URL, as ``s3://bucket/path``.
    key
        The curator's public key, or several: files that the curator has given you. Only what they
        signed is read. None: whatever is signed by anyone.

    Raises
    ------
    RequestError
        If there is no such archive, or a file holds no public key.
    ArchiveError
        If the store cannot be reached.

    Examples
    --------
    >>> import gramercy
    >>> catalogue = gramercy.open("s3://bucket/archive", key="curator.pub")  # doctest: +SKIP
    >>> catalogue["breast-cancer/1995-r1"].denoised  # doctest: +SKIP
    """

    def __init__(self, path: str | Path, key: Keys | None = None) -> None:
        self._archive = open_archive(path, trusted=_named(key))
        if not self._archive.there():
            raise RequestError(
                f"{self._archive.where}: is not an archive.", "Give the path of its folder."
            )

    def __iter__(self) -> Iterator[str]:
        return (f"{dataset}/{release}" for dataset, release in self._archive.releases())

    def __len__(self) -> int:
        return len(self._archive.releases())

    def __repr__(self) -> str:
        return f"<Catalogue {self._archive.where}: {', '.join(self) or 'no release'}>"

    def __getitem__(self, name: str) -> Release:
        dataset, _, release = str(name).partition("/")
        return Release(self._archive, dataset, release)


def _named(key: Keys | None) -> frozenset[str]:
    """Public keys from their files."""
    if key is None:
        return frozenset()
    files = [key] if isinstance(key, str | Path) else list(key)
    if not files:
        raise RequestError("key: names no file.", "Name the curator's, or leave it out.")
    return frozenset(read_public(Path(file).expanduser()) for file in files)
