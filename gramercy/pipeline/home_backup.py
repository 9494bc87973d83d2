"""Back up a home, and restore it: its ledger, keys, contracts and records.

A backup is a folder: ``ledger.jsonl`` has all entries of the ledger from one snapshot, SQLite or
PostgreSQL, and ``SHA256SUMS`` the digest of every file. A restored ledger is a copy: it charges
nothing until ``gramercy budget --moved`` has brought it up to date (`Context.move_ledger`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from gramercy.common.disk import disk_errors, make_durable, make_folder, rename_folder
from gramercy.common.extras import publishing
from gramercy.pipeline.context import Context
from gramercy.schemas import families, wordings
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.problem import Wording

with publishing():
    from gramercy.ledger import Ledger
    from gramercy.ledger.entry import Entry

_LEDGER, _SUMS = "ledger.jsonl", "SHA256SUMS"
_FOLDERS = ("keys", "approvers", "contracts", "expectations", "drafts", "internal", "audits")

_exists = Wording(
    families.EXISTS,
    "{folder} exists, and is not replaced.",
    "Name a folder that does not exist. A home is GRAMERCY_HOME: move the old one away first.",
)


def back_up(context: Context, folder: Path) -> Anchor:
    """Back up a home to a folder, which must not exist; returns the ledger's last entry.

    Raises
    ------
    LedgerError
        If there is no ledger.
    ArchiveError
        If the folder exists, or a file cannot be read or written.
    """
    ledger = context.existing_ledger
    if ledger is None:
        raise wordings.no_ledger(str(context.home.ledger))
    with _new_folder(folder) as made:
        for name in _FOLDERS:
            for path in _files(context.home.root / name):
                with contextlib.suppress(FileNotFoundError):  # a record was replaced
                    _write(made / path.relative_to(context.home.root), path.read_bytes(), path)
        # The ledger last: it has the charges of all records.
        entries = ledger.entries()
        lines = "".join(json.dumps(asdict(each)) + "\n" for each in entries)
        _write(made / _LEDGER, lines.encode())
        _write(made / _SUMS, _sums(made, {each: each.read_bytes() for each in _files(made)}))
    last = entries[-1]
    return Anchor(ledger=entries[0].fact("ledger", str), seq=last.seq, hash=last.hash)


def restore(context: Context, folder: Path) -> Anchor:
    """Restore a home from a backup; returns the ledger's last entry in it.

    The home must not exist or be empty: it is there as a whole, or not at all. A database at
    ``$GRAMERCY_LEDGER_URL`` must have no ledger, or one that continues the backup.

    Raises
    ------
    UntrustedLedger
        If the backup is not as it was written, or is of another ledger than the database has.
    ArchiveError
        If there is a home, or a file cannot be read or written.
    """
    home = context.home
    with disk_errors(folder, reading=True):
        contents = {path: path.read_bytes() for path in _files(folder)}
    stated = contents.pop(folder / _SUMS, b"")
    if folder / _LEDGER not in contents or stated != _sums(folder, contents):
        raise families.UNTRUSTED(
            "{folder} is not a complete backup as 'gramercy backup' wrote it.",
            "Use another backup.",
            folder=str(folder),
        )
    lines = contents.pop(folder / _LEDGER).decode().splitlines()
    entries = [Entry(**json.loads(line)) for line in lines]
    last = entries[-1]
    with _new_folder(home.root, may_be_empty=True) as made:
        for path, content in contents.items():
            _write(made / path.relative_to(folder), content, path)
        if home.ledger_url is None:
            _restore_file(made / home.ledger.name, entries)
        else:
            ledger = Ledger(home.ledger_url, entries)
            if ledger.hash_of(last.seq) != last.hash:
                raise families.UNTRUSTED(
                    "{ledger}: the database has another ledger, or an older one.",
                    "Name a database that has no ledger in GRAMERCY_LEDGER_URL.",
                    ledger=ledger.location,
                )
    return Anchor(ledger=entries[0].fact("ledger", str), seq=last.seq, hash=last.hash)


def _restore_file(path: Path, entries: list[Entry]) -> None:
    """Write the ledger's file, which must not look as if it were the original."""
    places = [each.fact("place", str) for each in entries if each.kind in ("opened", "moved")]
    Ledger(path, entries)
    if places[-1].endswith(f"inode {path.stat().st_ino})"):  # freed, and used again
        other = path.with_name(uuid.uuid4().hex)
        _write(other, path.read_bytes())
        other.replace(path)


@contextlib.contextmanager
def _new_folder(folder: Path, *, may_be_empty: bool = False) -> Iterator[Path]:
    """A folder for the owner alone, or with the mode that it has, which appears when complete."""
    parent, mode = folder.absolute().parent, 0o700
    with disk_errors(folder):
        if folder.exists():
            if not may_be_empty or any(folder.iterdir()):
                raise _exists(str(folder))
            mode = stat.S_IMODE(folder.stat().st_mode)
        make_folder(parent, 0o700)
        made = parent / f".gramercy-{uuid.uuid4().hex}"
        made.mkdir(mode=0o700)
        try:
            yield made
            for path in (*made.rglob("*"), made):
                make_durable(path)
            made.chmod(mode)
            if not rename_folder(made, folder):
                raise _exists(str(folder))
            make_durable(parent)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _files(folder: Path) -> list[Path]:
    """The files below a folder, and those that links there lead to, without temporary files."""
    paths = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sorted(each for each in paths if each.name[0] != "." and each.is_file())


def _sums(folder: Path, contents: Mapping[Path, bytes]) -> bytes:
    """A line with digest and name for every file of a backup."""
    lines = (
        f"{sha256(content).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path, content in sorted(contents.items())
    )
    return "".join(lines).encode()


def _write(path: Path, content: bytes, like: Path | None = None) -> None:
    """Write a file that only its owner can read; it may have the time of another."""
    make_folder(path.parent, 0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
    if like is not None:
        facts = like.stat()
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
