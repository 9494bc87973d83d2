"""The catalogue for analysts: the releases of an archive by name, by data set and over time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from gramercy.api.notebook import html_table, paragraph
from gramercy.api.periods import Periods
from gramercy.api.release import Release
from gramercy.api.series import Series
from gramercy.archive.listing.contents import Contents, ListedRelease
from gramercy.archive.seal.signing import read_public_key
from gramercy.archive.store.opening import open_archive
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError, WithdrawnRelease

Keys = str | Path | Sequence[str | Path]


class Catalogue(Mapping[str, Release]):
    """The releases of an archive.

    Opening a withdrawn release by its name warns with `gramercy.WithdrawnRelease`.

    Parameters
    ----------
    path
        The archive's folder, or its URL, as ``s3://bucket/path`` or ``https://host/path``. At an
        HTTP address, and in an object store if it can, it is read by its signed listing.
    key
        The file of the curator's public key, or several files. Only bundles signed by these keys
        are read. None accepts any signature.

    Raises
    ------
    RequestError
        If the archive does not exist, or a file does not contain a public key.
    BundleError
        If the archive is at an HTTP address, and its listing is not signed by one of the keys.
    ArchiveError
        If the store or the server cannot be reached.

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
        files = [key] if isinstance(key, str | Path) else list(key or ())
        if key is not None and not files:
            raise families.KEY_FILE(
                "'key' must name at least one file.",
                "Give the file of the curator's public key, or leave 'key' out to accept any "
                "signature.",
            )
        trusted = frozenset(read_public_key(Path(file).expanduser()) for file in files)
        self._archive = open_archive(path, trusted=trusted)
        self._archive.check_exists()
        self._contents = Contents(self._archive)

    @property
    def datasets(self) -> list[str]:
        """Ids of the data sets that have a release."""
        return sorted({dataset for dataset, _ in self._contents.names()})

    def latest(self, dataset: str) -> Release:
        """The release of a data set that was published last and not withdrawn.

        Of a data set with periods this need not be the last period: see `periods`.

        Raises
        ------
        UnknownRelease
            If the data set has no release, or all of them were withdrawn.
        BundleError
            If it differs from what was sealed.
        """
        for name in reversed(self._contents.try_list(self._names(dataset))):
            if (release := Release(self._archive, *name)).withdrawn is None:
                return release
        raise families.UNKNOWN_RELEASE(
            "{archive}: all releases of '{dataset}' were withdrawn.",
            "Open one by its name to see why; .history() lists them.",
            archive=self._archive.location,
            dataset=dataset,
        )

    def history(self, dataset: str) -> pd.DataFrame:
        """The releases of a data set, in the order in which they were published.

        Returns
        -------
        DataFrame
            One row per release, indexed by name; for the columns see `search`.

        Raises
        ------
        UnknownRelease
            If the data set has no release.
        BundleError
            If one of them differs from what was sealed.
        """
        return _table(self._contents.list_all(self._names(dataset)))

    def periods(self, dataset: str) -> Periods:
        """The periods of a data set: their releases, their numbers over time, and their pool.

        Of a period with a cumulative series, its newest step; see `series` for all of them.

        Raises
        ------
        UnknownRelease
            If the data set has no release.
        RequestError
            If its releases are not of periods of its data.
        BundleError
            If one of them differs from what was sealed.
        """
        return Periods(self._archive, dataset, self._contents.list_all(self._names(dataset)))

    def series(self, dataset: str, window: str | None = None) -> Series:
        """The cumulative series of a data set: its steps, and their numbers over time.

        Parameters
        ----------
        dataset
            Id of the data set.
        window
            The period of the budget, such as ``2026``; by default, that of the newest step.

        Raises
        ------
        UnknownRelease
            If the data set has no release.
        RequestError
            If none of its releases is a step of a series.
        BundleError
            If one of them differs from what was sealed.
        """
        return Series(self._archive, self._contents.list_all(self._names(dataset)), window)

    def search(self, words: str = "") -> pd.DataFrame:
        """The releases whose id, title, curator, version, mechanism or columns contain words.

        Parameters
        ----------
        words
            Words that must all occur, ignoring case; empty for every release.

        Returns
        -------
        DataFrame
            ``dataset``, ``title``, ``version``, ``published``, ``kind``, ``mechanism``,
            ``columns``, ``rows``, ``epsilon``, ``delta``, ``mu`` and ``withdrawn``, indexed by
            name.

        Raises
        ------
        RequestError
            If `words` is not text.
        BundleError
            If a release differs from what was sealed.
        """
        if not isinstance(words, str):
            raise families.ESTIMATE(
                "'words' must be text, not {given}.",
                '"" finds all releases.',
                given=type(words).__name__,
            )
        return _table(each for each in self._contents.list_all() if each.matches(words))

    def _names(self, dataset: str) -> list[tuple[str, str]]:
        """The names of the releases of a data set; at least one."""
        if names := self._contents.names(dataset):
            return names
        releases = self._contents.names()
        if not releases:
            raise wordings.no_release(self._archive.location)
        datasets = sorted({name[0] for name in releases})
        raise families.UNKNOWN_RELEASE(
            "{archive} has no release of '{dataset}'.",
            "Data sets: {known}.",
            archive=self._archive.location,
            dataset=dataset,
            known=most_similar_first(dataset, datasets),
        )

    def __iter__(self) -> Iterator[str]:
        return (f"{dataset}/{release}" for dataset, release in self._contents.names())

    def __len__(self) -> int:
        return len(self._contents.names())

    def __repr__(self) -> str:
        return f"<Catalogue {self._archive.location}: {', '.join(self) or 'no release'}>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _repr_html_(self) -> str:
        names = self._contents.names()
        try:
            table = _table(self._contents.list_all(names[-_SHOWN:]))
        except GramercyError as error:  # a damaged release does not hide the others
            return paragraph(f"{self!r}; {error}")
        omitted = len(names) - len(table)
        more = f" The last {len(table)} are shown; see .search() for all." if omitted else ""
        heading = f"{self._archive.location}: releases ({len(names)}).{more}"
        return html_table(table[_BRIEF], heading)

    def __getitem__(self, name: str) -> Release:
        dataset, slash, release = str(name).partition("/")
        if not slash:
            known = most_similar_first(str(name), self)
            raise wordings.unknown_release(self._archive.location, str(name), known)
        opened = Release(self._archive, dataset, release)
        try:
            reason = opened.withdrawn
        except GramercyError:  # `release.withdrawn` raises it again
            reason = "its notice of withdrawal cannot be read."
        if reason is not None:
            notice = wordings.release_withdrawn(opened.id, reason)
            warnings.warn(str(notice), WithdrawnRelease, stacklevel=2)
        return opened


def _table(releases: Iterable[ListedRelease]) -> pd.DataFrame:
    rows = {}
    for release in releases:
        facts, guarantee = release.facts, release.facts.guarantee
        rows[release.name] = [
            *(facts.dataset.id, facts.dataset.title, facts.dataset.version, facts.published),
            *(facts.kind, facts.mechanism.name, len(facts.names), facts.rows.value),
            *(guarantee.epsilon, guarantee.delta, guarantee.mu, release.withdrawn),
        ]
    return pd.DataFrame.from_dict(rows, orient="index", columns=_COLUMNS)


_COLUMNS = [
    *("dataset", "title", "version", "published", "kind", "mechanism", "columns", "rows"),
    *("epsilon", "delta", "mu", "withdrawn"),
]


_BRIEF = ["title", "version", "published", "kind", "columns", "rows", "epsilon", "withdrawn"]
_SHOWN = 20  # releases in a notebook's output
