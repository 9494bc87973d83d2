"""Any change to the signed listing or to a page of the catalogue is found, in one line.

The attacker may write to the archive, has kept everything that was ever in it, and does not have
the steward's key.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gramercy.archive.listing.signed_listing import read_part, read_root, write_root
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import LISTING_FILE
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.support.factories import (
    MECHANISM,
    at_scale,
    run_command,
    run_json,
    run_release,
    write_request,
)
from tests.support.servers import serve

LITTLE = MECHANISM | {"epsilon": 0.5}
PAGES = (
    "index.html",
    "glossary.html",
    "toy/index.html",
    "toy/v1-r1/index.html",
    "toy/v2-r1/index.html",
    "ward/index.html",
    "ward/v1-r1/index.html",
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home; next to it its archive, as it was after each of three publications and now."""
    folder = tmp_path_factory.mktemp("tampered")
    home = folder / "home"

    def publish(number: int, **changes: object) -> None:
        run_release(write_request(folder, **changes))
        if number == 3:
            withdraw(Context.default(), "toy", "v1-r1", "wrong bounds")
        write_site(Context.default())
        shutil.copytree(home / "archive", folder / str(number))

    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("GRAMERCY_HOME", str(home))
        publish(1, request={"mechanism": LITTLE})
        publish(2, request={"mechanism": LITTLE, "version": "v2"})
        publish(3, id="ward")
        shutil.copy(home / "ledger.sqlite", folder)
        environ.setenv("GRAMERCY_HOME", str(folder / "other"))
        shutil.copytree(home / "keys", folder / "other/keys")
        (folder / "more").mkdir()
        run_release(write_request(folder / "more"))
        write_site(Context.default())
    return home


@pytest.fixture
def root(published: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The intact archive of the home in use; the ledger's file stays the same one."""
    monkeypatch.setenv("GRAMERCY_HOME", str(published))
    (published / "ledger.sqlite").write_bytes((published.parent / "ledger.sqlite").read_bytes())
    shutil.rmtree(published / "archive")
    shutil.copytree(published.parent / "3", published / "archive")
    read_part.cache_clear()
    return published / "archive"


def deleted(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def edited(path: Path) -> None:
    """One digit becomes another one."""
    text = path.read_text()
    *_, last = re.finditer("[0-9]", text)
    digit = str((int(last[0]) + 1) % 10)
    path.write_text(f"{text[: last.start()]}{digit}{text[last.end() :]}")


def extended(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def linked(path: Path) -> None:
    """The same bytes, at a place outside of the archive that can change."""
    elsewhere = Path(os.environ["GRAMERCY_HOME"]) / f"elsewhere-{uuid.uuid4().hex}"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


def enlarged(path: Path) -> None:
    os.truncate(path, (1 << 26) + 1)


def older(number: int, name: str) -> Callable[[Path], None]:
    """A file as it was after an earlier publication."""
    return lambda root: void(shutil.copy(root.parents[1] / str(number) / name, root / name))


def older_whole(number: int) -> Callable[[Path], None]:
    """The listing with its parts and all pages, as they were after an earlier publication."""

    def replay(root: Path) -> None:
        kept = root.parents[1] / str(number)
        for path in _pages_and_listing(root):
            path.unlink()
        for path in _pages_and_listing(kept):
            shutil.copy(path, root / path.relative_to(kept))

    return replay


def _pages_and_listing(root: Path) -> list[Path]:
    sealed = {"release", "withdrawn", ".ledger"}
    files = [*root.rglob("*.html"), *root.rglob("listing*.json")]
    return [path for path in files if not sealed & {*path.relative_to(root).parts}]


def swapped(first: str, second: str) -> Callable[[Path], None]:
    def swap(root: Path) -> None:
        contents = [(root / name).read_bytes() for name in (second, first)]
        for name, content in zip((first, second), contents, strict=True):
            (root / name).write_bytes(content)

    return swap


def renamed(name: str, to: str) -> Callable[[Path], None]:
    return lambda root: void((root / name).rename(root / to))


def added(name: str) -> Callable[[Path], None]:
    def add(root: Path) -> None:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("<p>epsilon 0.1</p>")

    return add


def without_signature(root: Path) -> None:
    stated = (root / LISTING_FILE).read_bytes().partition(b"\n")[0]
    (root / LISTING_FILE).write_bytes(stated + b"\n")


def signature_of_an_older_root(root: Path) -> None:
    line = (root.parents[1] / "2" / LISTING_FILE).read_bytes().partition(b"\n")[2]
    without_signature(root)
    (root / LISTING_FILE).write_bytes((root / LISTING_FILE).read_bytes() + line)


def digest_of_a_changed_page(root: Path) -> None:
    """The attacker changes a page, and its digest in the root."""
    swapped("index.html", "glossary.html")(root)
    facts, _, line = (root / LISTING_FILE).read_bytes().partition(b"\n")
    pages = json.loads(facts)["pages"]
    one, two = pages["index.html"].encode(), pages["glossary.html"].encode()
    facts = facts.replace(one, b"-").replace(two, one).replace(b"-", two)
    (root / LISTING_FILE).write_bytes(facts + b"\n" + line)


def signed_by_a_stranger(root: Path) -> None:
    archive = open_archive(root, keys=root.parents[1] / "stranger")
    signed = read_root(archive)
    assert signed is not None
    write_root(archive, signed.root)


def of_another_archive(root: Path) -> None:
    """Of the same steward, whose other archive has a release of the same name."""
    other = root.parents[1] / "other/archive"
    for path in [other / LISTING_FILE, *(other / "toy").glob("listing-*.json")]:
        shutil.copy(path, root / path.relative_to(other))


def without_the_ledger(root: Path) -> None:
    archive = open_archive(root, keys=Home.default().keys)
    signed = read_root(archive)
    assert signed is not None
    write_root(archive, signed.root.model_copy(update={"ledger": None}))


def part(change: Callable[[Path], None], dataset: str = "toy") -> Callable[[Path], None]:
    """Change the part of the listing that the root names."""

    def change_part(root: Path) -> None:
        digest = json.loads((root / LISTING_FILE).read_bytes().partition(b"\n")[0])
        digest = digest["datasets"][dataset]["parts"][0]
        change(root / dataset / f"listing-{digest[:16]}.json")

    return change_part


def replaced_by_another_part(path: Path) -> None:
    (other,) = (path.parents[1] / "ward").glob("listing-*.json")
    path.write_bytes(other.read_bytes())


def void(_: object) -> None:
    """Forget a value."""


def at(name: str, change: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda root: change(root / name)


TOY, WARD = "toy/v2-r1", "ward/v1-r1"
# How a file is changed. In the reduced run some changes of some pages alone, so that every page and
# every change occurs; and every change of all pages, each of which the audit has to name.
CHANGES = (deleted, emptied, truncated, edited, extended, linked)
ALONE = [(change, name) for name in PAGES for change in CHANGES][:: at_scale(5, 1)]

# What is done, and the release whose verification finds it as well.
TAMPERS: dict[str, tuple[Callable[[Path], None], str | None]] = {
    **{
        f"{change.__name__} {name}": (
            at(name, change),
            "/".join(name.split("/")[:2]) if name.count("/") == 2 else name.split("/")[0],
        )
        for change, name in ALONE
    },
    "swapped pages of releases": (swapped("toy/v1-r1/index.html", "toy/v2-r1/index.html"), TOY),
    "swapped pages of data sets": (swapped("toy/index.html", "ward/index.html"), TOY),
    "swapped index and glossary": (swapped("index.html", "glossary.html"), TOY),
    **{
        f"older {name}": (older(2, name), "toy")
        for name in ("index.html", "toy/index.html", "toy/v1-r1/index.html")
    },
    "renamed page": (renamed("toy/index.html", "toy/releases-1.html"), "toy"),
    "renamed index": (renamed("index.html", "datasets-1.html"), TOY),
    "enlarged page": (at("toy/index.html", enlarged), TOY),
    "added page of data sets": (added("datasets-2.html"), None),
    "added page of releases": (added("toy/releases-1.html"), None),
    "added page of no release": (added("toy/v9-r1/index.html"), None),
    "added page of no data set": (added("poll/index.html"), None),
    "added other page": (added("toy/other.html"), None),
    **{
        f"{change.__name__} listing": (at(LISTING_FILE, change), TOY)
        for change in (deleted, emptied, truncated, edited, linked)
    },
    "listing without signature": (without_signature, TOY),
    "signature of an older root": (signature_of_an_older_root, TOY),
    "digest of a changed page": (digest_of_a_changed_page, TOY),
    "listing of a stranger": (signed_by_a_stranger, TOY),
    "listing of another archive": (of_another_archive, TOY),
    "listing without the ledger": (without_the_ledger, TOY),
    "root before the last publication": (older(2, LISTING_FILE), WARD),
    "root before that": (older(1, LISTING_FILE), TOY),
    "everything before the last publication": (older_whole(2), WARD),
    "everything before the withdrawal": (older_whole(2), "toy/v1-r1"),
    "everything before that": (older_whole(1), TOY),
    "deleted part": (part(deleted), TOY),
    "deleted part of ward": (part(deleted, "ward"), WARD),
    "edited part": (part(edited), TOY),
    "truncated part": (part(truncated), TOY),
    "emptied part": (part(emptied), TOY),
    "another part": (part(replaced_by_another_part), TOY),
}
OTHER_PROBLEMS = {
    "added other page": families.UNKNOWN_BUNDLE,
    "linked listing": families.SEAL,
    "listing of a stranger": families.SIGNER,
}


def found(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The codes of the discrepancies of ``gramercy audit``, whose exit code has to agree."""
    code, out, _ = run_command("audit", "--json", capsys=capsys)
    codes = [each["code"] for each in json.loads(out)["discrepancies"]]
    assert code == (2 if codes else 0)
    return codes


def verify(*words: object, capsys: pytest.CaptureFixture[str]) -> int:
    return run_command("verify", *words, capsys=capsys)[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", TAMPERS)
def test_tampered_listing_or_page_is_found(
    name: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper, release = TAMPERS[name]
    tamper(root)
    assert found(capsys) == [OTHER_PROBLEMS.get(name, families.LISTING).code]
    if release is None:
        assert verify(capsys=capsys) == 0
    elif not release.endswith(".html"):
        assert verify(release, capsys=capsys) == 2


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_every_changed_page_is_named(
    change: Callable[[Path], None], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in PAGES:
        change(root / name)
    (discrepancy,) = make_audit(Context.default()).discrepancies
    assert discrepancy.code == families.LISTING.code
    state = "missing" if change is deleted else "changed"
    pages = [f"{name} ({state})" for name in sorted(PAGES)]
    assert [*discrepancy.problem.facts["pages"]] == pages
    assert verify(capsys=capsys) == 2


def test_intact_archive_is_verified(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys) == []
    assert verify(capsys=capsys) == 0
    assert verify("--archive", root, capsys=capsys) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "tampers",
    [
        (at("toy/index.html", edited), at("index.html", linked), added("poll/index.html")),
        (at("ward/index.html", deleted), part(edited), at(LISTING_FILE, deleted)),
        (part(edited), signed_by_a_stranger),
        (of_another_archive,),
        (older_whole(1),),
    ],
    ids=["pages", "no listing", "a stranger", "another archive", "everything before"],
)
def test_site_writes_what_was_changed_again(
    tampers: tuple[Callable[[Path], None], ...], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for tamper in tampers:
        tamper(root)
    assert run_json("site", capsys=capsys)["releases"] == 3
    assert found(capsys) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        (at("index.html", edited), families.LISTING),
        (older(2, "toy/index.html"), families.LISTING),
        (part(edited), families.LISTING),
        (signed_by_a_stranger, families.SIGNER),
    ],
)
def test_readers_over_http_find_it_too(
    tamper: Callable[[Path], None],
    problem: Family[Any],
    root: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (key,) = (root.parent / "keys").glob("*.pub")
    with serve(root) as url:
        assert verify("--archive", url, "--key", key, capsys=capsys) == 0
        tamper(root)
        read_part.cache_clear()
        exit_code, out, err = run_command("verify", "--archive", url, "--key", key, capsys=capsys)
    assert exit_code == 2
    assert problem.code in out + err


@pytest.mark.slow
def test_crash_while_pages_are_written_is_repaired_by_site(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The release is reported as not listed, until its pages and the listing are written again."""
    done = run_release(write_request(tmp_path, id="ward", request={"version": "v2"}))
    shutil.copytree(root, tmp_path / "before")
    write_file, left = Archive.write_file, [0]

    def write_or_crash(self: Archive, name: str, content: bytes) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        write_file(self, name, content)

    monkeypatch.setattr(Archive, "write_file", write_or_crash)
    # Four pages, the part, the root; in the reduced run not between two other pages.
    for writes in (0, 1, 4, 5, 2, 3)[: at_scale(4, 6)]:
        shutil.rmtree(root)
        shutil.copytree(tmp_path / "before", root)
        left[0] = writes
        with pytest.raises(KeyboardInterrupt):
            write_site(Context.default(), ("ward", done))
        (discrepancy,) = make_audit(Context.default()).discrepancies
        assert discrepancy.code == families.LISTING.code
        assert discrepancy.problem.facts["names"] == (f"ward/{done}/release",)
    left[0] = 100
    run_json("site", capsys=capsys)
    assert found(capsys) == []


def test_audit_waits_for_a_command_that_writes(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = root / "toy/index.html"
    content = page.read_bytes()
    page.write_bytes(b"half")
    lock = Ledger.lock

    @contextlib.contextmanager
    def finish(self: Ledger, name: str) -> Iterator[object]:
        with lock(self, name) as held:
            page.write_bytes(content)  # the command that held the lock has written it
            yield held

    monkeypatch.setattr(Ledger, "lock", finish)
    assert found(capsys) == []
