"""The steward's home: the folder of the ledger, the archive and the internal records."""

from __future__ import annotations

import contextlib
import math
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families
from gramercy.schemas.url import has_secrets, without_secrets


@dataclass(frozen=True)
class Home:
    """Folders and files of one installation.

    Parameters
    ----------
    root
        ``$GRAMERCY_HOME``, or ``.gramercy`` in the user's home folder. It is never the working
        directory, so that a data set cannot have two ledgers by accident.
    """

    root: Path

    @classmethod
    def default(cls) -> Home:
        """The home of the current user."""
        path = os.environ.get("GRAMERCY_HOME")
        return cls((Path(path).expanduser() if path else Path.home() / ".gramercy").resolve())

    @property
    def address(self) -> str:
        """The machine's name and the path, to tell the homes of several machines apart."""
        return f"{socket.gethostname()}:{self.root}"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.sqlite"

    @property
    def ledger_url(self) -> str | None:
        """``$GRAMERCY_LEDGER_URL``: a database to use instead of the file `ledger`."""
        return os.environ.get("GRAMERCY_LEDGER_URL") or None

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    @property
    def archive_url(self) -> str | None:
        """``$GRAMERCY_ARCHIVE_URL``: an archive to use instead of the folder `archive`."""
        return os.environ.get("GRAMERCY_ARCHIVE_URL") or None

    @property
    def public_url(self) -> str | None:
        """``$GRAMERCY_PUBLIC_URL``: the web address at which the archive is served, if it is.

        Raises
        ------
        RequestError
            If it is not an HTTP address, or contains a secret.
        """
        url = (os.environ.get("GRAMERCY_PUBLIC_URL") or "").rstrip("/")
        if url and (not url.startswith(("https://", "http://")) or has_secrets(url)):
            raise families.SETTING(
                "GRAMERCY_PUBLIC_URL must be an HTTP address without a user, a query or a "
                "fragment.",
                "Write the address at which the archive's folder is served, such as "
                "https://example.org/archive.",
            )
        return url or None

    @property
    def witness_url(self) -> str | None:
        """``$GRAMERCY_WITNESS_URL``: a folder or URL that keeps an anchor of every charge."""
        return os.environ.get("GRAMERCY_WITNESS_URL") or None

    @property
    def alerts_url(self) -> str | None:
        """``$GRAMERCY_ALERTS_URL``: where alerts are sent, as addresses of Apprise. Secret."""
        return os.environ.get("GRAMERCY_ALERTS_URL") or None

    @property
    def keys(self) -> Path:
        """The key that signs bundles, and the trusted public keys."""
        return self.root / "keys"

    @property
    def approvers(self) -> Path:
        """The public keys of those who may approve charges."""
        return self.root / "approvers"

    @property
    def staging(self) -> Path:
        """The staging area for uploads to a remote archive."""
        return self.root / "staging"

    @property
    def tables(self) -> Path:
        """Private copies of databases' tables, while a release reads them."""
        return self.root / "tables"

    @property
    def contracts(self) -> Path:
        return self.root / "contracts"

    @property
    def drafts(self) -> Path:
        """Answers to the questions of ``gramercy new``, until the contract is written."""
        return self.root / "drafts"

    @property
    def internal(self) -> Path:
        """Internal records (do not publish): they are exact functions of the private data."""
        return self.root / "internal"

    def expectations(self, dataset: str) -> Path:
        """Path of the expectations that the steward adds to a data set."""
        return self.root / "expectations" / f"{dataset}.json"

    @property
    def audits(self) -> Path:
        return self.root / "audits"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    def registered_contract(self, dataset: str) -> Path:
        """Path of the contract with an id that the steward has registered, or may register."""
        return self.contracts / f"{dataset}.yaml"

    def contract(self, dataset: str) -> Path:
        """Path of the contract that the key `dataset` of a request names.

        Raises
        ------
        RequestError
            If the file does not exist.
        """
        is_path = dataset.endswith((".yaml", ".yml"))
        path = Path(dataset) if is_path else self.registered_contract(dataset)
        if not os.path.isfile(path):  # False also for names that are not valid paths
            ids = sorted(each.stem for each in self.contracts.glob("*.yaml"))
            known = most_similar_first(dataset, ids)
            raise families.REQUEST_FILE(
                "key 'dataset': no contract at {path}.",
                "Name the contract's YAML file, or put it at {folder}/<id>.yaml. Ids there, most "
                "similar first: {known}.",
                path=without_secrets(str(path)),
                folder=str(self.contracts),
                known=known,
            )
        return path


def minutes_stated(variable: str, usual: float, *, or_zero: bool = False) -> float:
    """The minutes that an environment variable states, else the usual ones; a positive number."""
    with contextlib.suppress(ValueError):
        minutes = float(os.environ.get(variable, usual))
        if 0 < minutes < math.inf or (or_zero and minutes == 0):
            return minutes
    raise families.SETTING(
        "{variable} must be a {allowed} number.",
        "Write a number such as {usual:g}, or unset it.",
        variable=variable,
        allowed="non-negative" if or_zero else "positive",
        usual=usual,
    )
