"""The analysts' catalogue: the releases of an archive, by name, by data set and over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from gramercy.api.release import Release
from gramercy.archive.listing import Listed, listing
from gramercy.archive.open import open_archive
from gramercy.archive.signing_keys import read_public
from gramercy.schemas.errors import RequestError, UnknownRelease

Keys = str | Path | Sequence[str | Path]


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
    >>> catalogue = gramercy.open(archive)  # a folder, or a URL
    >>> list(catalogue)
    ['toy/v1-r1']
    >>> release = catalogue["toy/v1-r1"]  # verified here
    >>> release.guarantee.epsilon, release.guarantee.delta
    (1.0, 1e-06)
    >>> release.denoised.shape
    (3, 3)
    """

    def __init__(self, path: str | Path, key: Keys | None = None) -> None:
        self._archive = open_archive(path, trusted=_named(key))
        if not self._archive.there():
            raise RequestError(
                f"{self._archive.where}: is not an archive.", "Give the path of its folder."
            )

    @property
    def datasets(self) -> list[str]:
        """Ids of the data sets that have a release."""
        return sorted({dataset for dataset, _ in self._archive.releases()})

    def latest(self, dataset: str) -> Release:
        """The newest release of a data set that was not withdrawn.

        Raises
        ------
        UnknownRelease
            If there is none.
        BundleError
            If it is not what was sealed.
        """
        for each in reversed(self._of(dataset)):
            if (found := Release(self._archive, *each)).withdrawn is None:
                return found
        raise self._unknown(f"no release of '{dataset}' that was not withdrawn")

    def history(self, dataset: str) -> pd.DataFrame:
        """The releases of a data set, in the order in which they were published.

        Returns
        -------
        DataFrame
            A line for each, by its name: see `search`.

        Raises
        ------
        UnknownRelease
            If there is none.
        BundleError
            If one of them is not what was sealed.
        """
        if dataset not in self.datasets:
            raise self._unknown(f"no release of '{dataset}'")
        return _table(listing(self._archive, self._of(dataset)))

    def search(self, words: str = "") -> pd.DataFrame:
        """The releases whose data set, title, curator, version, mechanism or columns have words.

        Parameters
        ----------
        words
            All have to be there, small or capital; none: every release.

        Returns
        -------
        DataFrame
            ``dataset``, ``title``, ``version``, ``published``, ``kind``, ``mechanism``,
            ``columns``, ``rows``, ``epsilon``, ``delta``, ``mu`` and ``withdrawn`` of each, by its
            name.

        Raises
        ------
        BundleError
            If a release is not what was sealed.
        """
        return _table(each for each in listing(self._archive) if each.has(words))

    def _unknown(self, what: str) -> UnknownRelease:
        known = ", ".join(self.datasets) or "none"
        return UnknownRelease(f"{self._archive.where}: holds {what}.", f"Data sets: {known}.")

    def _of(self, dataset: str) -> list[tuple[str, str]]:
        """The releases of a data set, oldest first."""
        return [each for each in self._archive.releases() if each[0] == dataset]

    def __iter__(self) -> Iterator[str]:
        return (f"{dataset}/{release}" for dataset, release in self._archive.releases())

    def __len__(self) -> int:
        return len(self._archive.releases())

    def __repr__(self) -> str:
        return f"<Catalogue {self._archive.where}: {', '.join(self) or 'no release'}>"

    def __getitem__(self, name: str) -> Release:
        dataset, _, release = str(name).partition("/")
        return Release(self._archive, dataset, release)


def _table(found: Iterable[Listed]) -> pd.DataFrame:
    lines = {each.name: _line(each) for each in found}
    return pd.DataFrame.from_dict(lines, orient="index", columns=_COLUMNS)


_COLUMNS = [
    *("dataset", "title", "version", "published", "kind", "mechanism", "columns", "rows"),
    *("epsilon", "delta", "mu", "withdrawn"),
]


def _line(each: Listed) -> list[object]:
    facts, of, promised = each.facts, each.facts.dataset, each.facts.guarantee
    what = [of.id, of.title, of.version, facts.published, facts.kind, facts.mechanism["name"]]
    counts = [len(facts.names), facts.rows.value]
    return [*what, *counts, promised.epsilon, promised.delta, promised.mu, each.withdrawn]


def _named(key: Keys | None) -> frozenset[str]:
    """Public keys from their files."""
    if key is None:
        return frozenset()
    files = [key] if isinstance(key, str | Path) else list(key)
    if not files:
        raise RequestError("key: names no file.", "Name the curator's, or leave it out.")
    return frozenset(read_public(Path(file).expanduser()) for file in files)
