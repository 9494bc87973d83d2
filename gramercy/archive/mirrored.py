"""Archives at a URL, whose bundles are read through local copies."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from gramercy.archive.layout import STAGING
from gramercy.archive.mirror import BundleSource, Mirror
from gramercy.archive.protocol import Archive
from gramercy.archive.staging import StagingArea


@dataclass(frozen=True)
class MirroredArchive(Archive):
    """Sealed bundles at a URL; `root` is the folder of the local copies."""

    @property
    @abstractmethod
    def _source(self) -> BundleSource:
        """The files at the URL."""

    @property
    def location(self) -> str:
        return self._source.display_url()

    def display_path(self, place: Path) -> str:
        return self._mirror.url(place)

    def uri(self, place: Path) -> str:
        return self.display_path(place)

    def rewrite_paths_in_errors(self) -> AbstractContextManager[None]:
        return self._mirror.rewrite_paths_in_errors()

    @property
    def is_folder(self) -> bool:
        return False

    @property
    def _mirror(self) -> Mirror:
        return Mirror(self.root, self._source)

    @property
    def _staging(self) -> StagingArea:
        return StagingArea(self.root / STAGING)
