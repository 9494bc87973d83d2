"""The one per-user home: where the ledger, the archive and the steward's own records lie."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from gramercy.schemas.errors import RequestError
from gramercy.schemas.url import without_secrets


@dataclass(frozen=True)
class Home:
    """Folders and files of one installation.

    Parameters
    ----------
    root
        ``$GRAMERCY_HOME``, or ``.gramercy`` in the user's home folder; never the working
        directory, so that one data set cannot have two ledgers by accident.
    """

    root: Path

    @classmethod
    def default(cls) -> Home:
        """The home of this user."""
        named = os.environ.get("GRAMERCY_HOME")
        return cls((Path(named).expanduser() if named else Path.home() / ".gramercy").resolve())

    @property
    def address(self) -> str:
        """Which home this is, among those of several machines: the machine's name, and its path."""
        return f"{socket.gethostname()}:{self.root}"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.sqlite"

    @property
    def ledger_url(self) -> str | None:
        """A database that takes the place of `ledger`: ``$GRAMERCY_LEDGER_URL``."""
        return os.environ.get("GRAMERCY_LEDGER_URL") or None

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    @property
    def archive_url(self) -> str | None:
        """``$GRAMERCY_ARCHIVE_URL``: where the archive lies, unless it is the home's own folder."""
        return os.environ.get("GRAMERCY_ARCHIVE_URL") or None

    @property
    def keys(self) -> Path:
        """The key that signs bundles, and the public keys by which they are known."""
        return self.root / "keys"

    @property
    def staging(self) -> Path:
        """What is on its way to an archive elsewhere."""
        return self.root / "staging"

    @property
    def contracts(self) -> Path:
        return self.root / "contracts"

    @property
    def internal(self) -> Path:
        """The steward's own records. Not for publication: they are exact functions of the data."""
        return self.root / "internal"

    @property
    def audits(self) -> Path:
        return self.root / "audits"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    def contract(self, dataset: str) -> Path:
        """The contract's file, from the `dataset` key of a request.

        Raises
        ------
        RequestError
            If there is no such file.
        """
        named = self.contracts / f"{dataset}.yaml"
        path = Path(dataset) if dataset.endswith((".yaml", ".yml")) else named
        if not os.path.isfile(path):  # also of names that no path can have
            raise RequestError(
                f"key 'dataset': no contract at {without_secrets(str(path))}.",
                f"Name the contract's YAML file, or put it at {self.contracts}/<id>.yaml.",
            )
        return path
