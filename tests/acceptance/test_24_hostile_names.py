"""A thousand hostile names: nothing leaves the archive's root, and nothing that is written breaks.

Names of columns and levels are the table's own, so that most are legal, whatever they look like: as
in the contract they stand in every file. A CSV holds them as data; a spreadsheet that is told to
open one may take a name that begins with '=', '+', '-' or '@' for a formula. They are not changed,
because a file is verified against its manifest, and a changed name would be another.
"""

from __future__ import annotations

import csv
import html.parser
import os
import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gramercy
from gramercy.application.verification import verify_release
from gramercy.archive.estimate_bundle import read_estimate
from gramercy.archive.release_bundle import read_release
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.contract import Contract, read_contract
from gramercy.schemas.errors import (
    ArchiveError,
    BundleError,
    ContractError,
    GramercyError,
    Invalid,
    UnknownRelease,
)
from tests.acceptance.hostile.names import hostile_names
from tests.support.factories import (
    at_scale,
    contract_facts,
    plan_of,
    run,
    run_all,
    run_steps,
    scene,
    write,
)

COUNT = 1000
ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


@pytest.fixture
def names(outside: Path) -> list[str]:
    found = hostile_names(str(outside / "planted"), COUNT)
    assert len(found) == COUNT
    return found


def sample(names: list[str], count: int) -> list[str]:
    return names[:: len(names) // count]


def everything(folder: Path) -> dict[str, Any]:
    """All that lies in a folder; of files the bytes, of links where they lead."""
    return {
        str(path.relative_to(folder)): path.readlink()
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, beside home and scene: nothing may be made or changed in it.

    Nor elsewhere, but for the home's own files and a release's folder in the archive.
    """
    away = tmp_path / "outside"
    (away / "victim/release").mkdir(parents=True)
    (away / "victim/release/kept").write_text("kept")
    (away / "toy.left").mkdir()
    (away / "toy.left/kept").write_text("kept")
    (tmp_path / "scene").mkdir()
    before = everything(away)
    monkeypatch.chdir(away)
    yield away
    assert everything(away) == before
    assert {path.name for path in tmp_path.iterdir()} <= {"outside", "scene", "home"}
    own = r"archive|audits|contracts|internal|keys|locks|ledger\.sqlite.*"
    assert all(re.fullmatch(own, path.name) for path in home.glob("*"))
    for path in (home / "archive").glob("*/*/*"):
        if path.resolve().is_relative_to(home.resolve()):  # no link that a test has put there
            dataset, release, kind = path.relative_to(home / "archive").parts
            if dataset not in {".staging", ".ledger"}:
                assert FOLDER.fullmatch(dataset)
                assert FOLDER.fullmatch(release)
                assert kind in {"release", "estimates", "reports"}


def quoted(name: str) -> str:
    """In YAML's double quotes, every letter but the plainest by its number."""
    plain = set("abcdefghijklmnopqrstuvwxyz0123456789")
    return '"' + "".join(x if x in plain else f"\\U{ord(x):08x}" for x in name) + '"'


def with_name(path: Path, key: str, name: str) -> None:
    """Give a YAML file another value of one key; as it stands, and escaped."""
    text = re.sub(rf"(?m)^{key}: .*$", lambda _: f"{key}: {quoted(name)}", path.read_text())
    path.write_text(text)


def test_ids_of_data_sets(names: list[str], tmp_path: Path) -> None:
    request = scene(tmp_path / "scene")
    for name in names:
        with_name(tmp_path / "scene/contract.yaml", "id", name)
        if ID.fullmatch(name):
            assert plan_of(request).contract.id == name
            continue
        with pytest.raises(ContractError, match=r"contract\.yaml: key 'id'"):
            plan_of(request)


def test_versions(names: list[str], tmp_path: Path) -> None:
    request = scene(tmp_path / "scene")
    for name in names:
        with_name(request, "version", name)
        if LABEL.fullmatch(name):
            assert plan_of(request).request.version == name
            continue
        with pytest.raises(Invalid, match=r"request\.yaml: key 'version'"):
            plan_of(request)


def test_contracts_named_by_requests(names: list[str], tmp_path: Path) -> None:
    """A name leads to a contract or to nothing, and only its own id gets into the archive."""
    request = scene(tmp_path / "scene")
    for name in names:
        with_name(request, "dataset", name)
        with pytest.raises(Invalid) as caught:
            plan_of(request)
        str(caught.value).encode()  # can be printed


def test_legal_names_stay_inside(names: list[str], home: Path, tmp_path: Path) -> None:
    """What is legal by its letters, such as names of devices elsewhere, is a folder here."""
    both = [name for name in names if ID.fullmatch(name) and LABEL.fullmatch(name)]
    assert "con" in both
    for name in both[:5]:
        folder = tmp_path / "scene" / name
        folder.mkdir()
        release = run_steps(scene(folder, id=name, request={"version": name}))
        assert (home / "archive" / name / release / "release").is_dir()


def test_titles(names: list[str], tmp_path: Path, home: Path) -> None:
    """What cannot be written is refused before anything is charged."""
    taken = []
    for name in names:
        for key in ("title", "curator"):
            facts = contract_facts() | {key: name}
            try:
                taken.append(getattr(Contract.model_validate(facts), key))
            except ValueError:
                continue
    for title in taken:
        title.encode()
        assert title == title.strip()
        assert not {unicodedata.category(x) for x in title} & {"Cc", "Cs", "Cn", "Zl", "Zp"}
    chosen = next(t for t in taken if "<script>" in t)
    folder = run_all(scene(tmp_path / "scene", title=chosen, curator=chosen))
    for page in folder.rglob("*.html"):
        Page(page.read_text())


def test_releases_in_the_archive(names: list[str], tmp_path: Path, home: Path) -> None:
    run_steps(scene(tmp_path / "scene"))
    archive = Archive(home / "archive")
    catalogue = gramercy.open(str(home / "archive"))
    for name in names:
        for place in (
            lambda name=name: archive.release(name, "v1-r1"),
            lambda name=name: archive.release("toy", name),
            lambda name=name: archive.estimate("toy", "v1-r1", name),
            lambda name=name: archive.report("toy", "v1-r1", name),
        ):
            if FOLDER.fullmatch(name):
                assert place().resolve().is_relative_to(archive.root.resolve())
                continue
            with pytest.raises(UnknownRelease):
                place()
        for wanted in (name, f"{name}/v1-r1", f"toy/{name}"):
            if wanted == "toy/v1-r1":
                continue
            assert wanted not in catalogue
            with pytest.raises(UnknownRelease) as caught:
                catalogue[wanted]
            str(caught.value).encode()


def test_commands(names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = scene(tmp_path / "scene")
    run_steps(request)
    for name in sample(names, at_scale(25, 60)):
        for words in (
            ("show", "--", name),
            ("show", "--", f"toy/{name}"),
            ("verify", "--", name),
            ("verify", "--json", "--", f"{name}/v1-r1"),
            ("estimate", "--", f"{name}/v1-r1"),
            ("estimate", "--estimator", f"x{name}", "--", "toy/v1-r1"),
            ("budget", "--", name),
        ):
            if "v1-r1" in name or name in {"toy", ""}:
                continue
            code, out, err = run(*words, capsys=capsys)
            assert code == 2, (words, out, err)
            assert "Traceback" not in out + err
    for name in sample(names, at_scale(25, 60)):
        with_name(request, "version", name)
        code, out, err = run("plan", request, capsys=capsys)
        assert code == (0 if LABEL.fullmatch(name) else 2), (name, out, err)
        with_name(request, "version", "v1")
        with_name(request, "dataset", name)
        assert run("plan", request, capsys=capsys)[0] == 2
        with_name(request, "dataset", "contract.yaml")


class Page(html.parser.HTMLParser):
    """A page, which holds no element and no attribute that could run anything."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "iframe", "object", "embed", "form", "base", "img"}
        for key, value in attrs:
            assert not key.startswith("on")
            assert key not in {"src", "action", "srcdoc"}
            fixed = (value or "").startswith(("#", "https:", "data:,", "data:image/png;base64,"))
            assert key not in {"href", "xlink:href"} or fixed
        if tag not in {"meta", "br", "link"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in {"meta", "br", "link"}:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag and self.open[-1] in {"p", "li", "td", "th", "tr"}:
            self.open.pop()
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def legal(names: list[str], as_levels: bool) -> list[str]:
    """Those that a contract takes, each by itself."""
    found = []
    for name in names:
        columns: Any = {"s": {"levels": [name]}} if as_levels else {name: {"lower": 0, "upper": 1}}
        try:
            Contract.model_validate(contract_facts() | {"columns": columns})
        except ValueError:
            continue
        found.append(name)
    return found


ESTIMATES = [{"name": "ridge"}, {"name": "discoveries"}, {"name": "graphical-lasso"}]


def check_bundles(release: Path, expected: list[str]) -> None:
    """Every file is read back by its own format, and holds the names as they are."""
    archive, home = Archive(release.parents[1]), Home.default()
    assert release.is_relative_to(home.archive)
    bundle = read_release(release / "release")
    assert bundle.manifest.names == expected
    for file in [*release.rglob("second_moment*.csv"), *release.rglob("precision*.csv")]:
        with file.open(newline="", encoding="utf-8") as stream:
            header, *lines = csv.reader(stream)
        assert header[1:] == expected
        assert [line[0] for line in lines] == expected
    graphs = list(release.rglob("*.graphml"))
    assert graphs
    for file in graphs:
        graph = nx.read_graphml(file)
        assert set(graph) == set(expected)
        read_estimate(file.parent)
    pages = list(release.rglob("*.html"))
    assert pages
    words = "".join(Page(page.read_text(encoding="utf-8")).words for page in pages)
    assert "49" not in expected
    assert any(name.strip() in words for name in expected)
    verify_release(archive, release.parent.name, release.name, Ledger(home.ledger))
    with sqlite3.connect(home.ledger) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tables = {
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
        assert {"entries", "head"} <= tables


def test_columns(names: list[str], tmp_path: Path) -> None:
    taken = legal(names, as_levels=False)
    assert len(taken) > COUNT // 2
    rng = np.random.default_rng(24)
    taken = taken[:: at_scale(9, 1)]
    size = at_scale(100, 250)
    for start in range(0, len(taken), size):
        part = taken[start : start + size]
        folder = tmp_path / "scene" / str(start)
        folder.mkdir()
        rows = [rng.normal(size=400) for _ in part]
        pq.write_table(pa.table(rows, names=part), folder / "t.parquet")
        columns = {name: {"lower": -3, "upper": 3} for name in part}
        facts = {"source": "t.parquet", "rows": 400, "columns": columns, "id": f"toy{start}"}
        release = run_all(scene(folder, request={"estimates": ESTIMATES}, **facts))
        check_bundles(release, part)


def test_columns_of_text(names: list[str], tmp_path: Path) -> None:
    """The same in a header of a CSV, which has to be quoted."""
    taken = legal(names, as_levels=False)
    with (tmp_path / "scene/table.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([taken, *[[k % 5] * len(taken) for k in range(40)]])
    columns = {name: {"lower": -3, "upper": 9} for name in taken}
    run_steps(scene(tmp_path / "scene", columns=columns))


def test_levels(names: list[str], tmp_path: Path) -> None:
    taken = legal(names, as_levels=True)
    assert len(taken) > COUNT // 2
    rng = np.random.default_rng(42)
    part = taken[: 300 : at_scale(5, 1)]
    cells = rng.choice(np.array(part, dtype=object), 500)
    table = pa.table({"s": pa.array(list(cells)), "k": rng.normal(size=500)})
    pq.write_table(table, tmp_path / "scene/t.parquet")
    columns = {"s": {"levels": part}, "k": {"lower": -3, "upper": 3}}
    facts = {"source": "t.parquet", "rows": 500, "columns": columns, "intercept": True}
    release = run_all(scene(tmp_path / "scene", request={"estimates": ESTIMATES}, **facts))
    check_bundles(release, ["(intercept)", *(f"s={level}" for level in part), "k"])


@pytest.mark.parametrize("where", ["toy", "toy/v1-r1", "toy/v1-r1/release"])
def test_releases_that_lie_elsewhere(
    where: str, tmp_path: Path, home: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link in the archive is no release, however good what it leads to."""
    run_all(scene(tmp_path / "scene"))
    moved = tmp_path / "scene/moved"
    (home / "archive" / where).rename(moved)
    (home / "archive" / where).symlink_to(moved)
    archive = Archive(home / "archive")
    assert archive.releases() == []
    for reach in (
        lambda: archive.release("toy", "v1-r1"),
        lambda: gramercy.open(str(home / "archive"))["toy/v1-r1"],
    ):
        with pytest.raises(UnknownRelease):
            reach()
    for command in ("show", "verify", "estimate"):
        code, out, err = run(command, "toy/v1-r1", capsys=capsys)
        assert code == 2, out + err
    before = everything(moved)
    for version in ("v1", "v2"):
        request = scene(tmp_path / "scene", request={"version": version})
        if where != "toy" and version == "v2":
            run_steps(request)  # beside the link
            continue
        with pytest.raises(GramercyError):
            run_steps(request)
    assert everything(moved) == before


@pytest.mark.parametrize("kind", ["estimates", "reports"])
def test_what_lies_beside_a_release_elsewhere(kind: str, tmp_path: Path, home: Path) -> None:
    place = run_all(scene(tmp_path / "scene")) / kind
    moved = tmp_path / "scene/moved"
    one, *more = sorted(place.iterdir())
    one.rename(moved)
    one.symlink_to(moved)
    archive = Archive(home / "archive")
    listed = archive.estimates if kind == "estimates" else archive.reports
    assert listed("toy", "v1-r1") == [path.name for path in more]


def test_staging_that_lies_elsewhere(tmp_path: Path, home: Path, outside: Path) -> None:
    """Nothing is written or swept through a link, and nothing is charged."""
    (home / "archive").mkdir(parents=True)
    (home / "archive/.staging").symlink_to(outside)
    with pytest.raises(ArchiveError, match="staging"):
        run_steps(scene(tmp_path / "scene"))
    Archive(home / "archive").sweep("toy")
    with sqlite3.connect(home / "ledger.sqlite") as db:
        charged = "SELECT count(*) FROM entries WHERE kind = 'reserved'"
        assert db.execute(charged).fetchone() == (0,)


def test_a_data_set_that_lies_elsewhere_is_not_charged(
    tmp_path: Path, home: Path, outside: Path
) -> None:
    (home / "archive").mkdir(parents=True)
    (home / "archive/toy").symlink_to(outside / "victim")
    with pytest.raises(GramercyError):
        run_steps(scene(tmp_path / "scene"))
    with sqlite3.connect(home / "ledger.sqlite") as db:
        charged = "SELECT count(*) FROM entries WHERE kind = 'reserved'"
        assert db.execute(charged).fetchone() == (0,)


@pytest.mark.parametrize("name", ["CARD.md", "SHA256SUMS", "second_moment.npy"])
def test_files_of_a_release_that_never_end(name: str, tmp_path: Path, home: Path) -> None:
    place = run_all(scene(tmp_path / "scene")) / "release"
    (place / name).unlink()
    (place / name).symlink_to("/dev/zero")
    with pytest.raises(BundleError, match=rf"{name}: is no file"):
        read_release(place)
    (place / name).unlink()
    os.mkfifo(place / name)
    with pytest.raises(BundleError, match=rf"{name}: is no file"):
        read_release(place)


def test_an_archive_may_be_reached_by_a_link(tmp_path: Path, home: Path) -> None:
    run_steps(scene(tmp_path / "scene"))
    (tmp_path / "scene/link").symlink_to(home / "archive")
    assert list(gramercy.open(str(tmp_path / "scene/link"))) == ["toy/v1-r1"]


def test_names_are_as_they_are_written(tmp_path: Path) -> None:
    """The helper above hands a reader the very letters."""
    write(tmp_path / "scene/contract.yaml", contract_facts())
    for name in ("a\u0301", "\U0001f4a9", "x\\y", '"'):
        with_name(tmp_path / "scene/contract.yaml", "title", name)
        assert read_contract(tmp_path / "scene/contract.yaml").title == name
