"""A thousand hostile names: files stay inside the archive, and every written file is well-formed.

Most names of columns and levels are legal, because the table determines them. Every file contains
them as the contract states them, except that CSV files have an apostrophe before a name that a
spreadsheet program could execute.
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
from gramercy.archive.bundles.bundle_kinds import read_estimate, read_release
from gramercy.archive.bundles.package import not_a_formula
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.plan.planning import has_hidden, skeleton
from gramercy.pipeline.plan.request_files import read_contract
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import GramercyError, Invalid, UnknownRelease
from tests.acceptance.hostile.names import hostile_names
from tests.support.factories import (
    at_scale,
    contract_facts,
    read_plan,
    run_command,
    run_pipeline,
    run_release,
    write_request,
    write_yaml,
)
from tests.support.problems import raises

COUNT = 1000
ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


@pytest.fixture
def names(outside: Path) -> list[str]:
    generated = hostile_names(str(outside / "planted"), COUNT)
    assert len(generated) == COUNT
    return generated


def sample(names: list[str], count: int) -> list[str]:
    return names[:: len(names) // count]


def folder_contents(folder: Path) -> dict[str, Any]:
    """The content of a folder: bytes of files, targets of links."""
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
    """The working directory, in which tests must not create or change files.

    Files may appear only in the home and in the folders of releases in the archive.
    """
    directory = tmp_path / "outside"
    (directory / "victim/release").mkdir(parents=True)
    (directory / "victim/release/kept").write_text("kept")
    (directory / "toy.left").mkdir()
    (directory / "toy.left/kept").write_text("kept")
    (tmp_path / "inputs").mkdir()
    before = folder_contents(directory)
    monkeypatch.chdir(directory)
    yield directory
    assert folder_contents(directory) == before
    assert {path.name for path in tmp_path.iterdir()} <= {"outside", "inputs", "home"}
    own_files = r"archive|audits|contracts|internal|keys|locks|ledger\.sqlite.*"
    assert all(re.fullmatch(own_files, path.name) for path in home.glob("*"))
    for path in (home / "archive").glob("*/*/*"):
        if path.resolve().is_relative_to(home.resolve()):  # not a link that a test created
            dataset, release, kind = path.relative_to(home / "archive").parts
            if dataset not in {".staging", ".ledger"}:
                assert FOLDER.fullmatch(dataset)
                assert FOLDER.fullmatch(release)
                assert kind in {"release", "estimates", "reports"}


def quoted(name: str) -> str:
    """A name in YAML's double quotes, with most characters escaped."""
    plain = set("abcdefghijklmnopqrstuvwxyz0123456789")
    return '"' + "".join(x if x in plain else f"\\U{ord(x):08x}" for x in name) + '"'


def set_value(path: Path, key: str, name: str) -> None:
    """Replace the value of one key of a YAML file."""
    text = re.sub(rf"(?m)^{key}: .*$", lambda _: f"{key}: {quoted(name)}", path.read_text())
    path.write_text(text)


@pytest.mark.parametrize(
    ("file", "key", "legal", "problem"),
    [
        ("contract", "id", ID, families.CONTRACT_FILE),
        ("request", "version", LABEL, families.REQUEST_FILE),
    ],
)
def test_hostile_data_set_ids_and_versions(
    file: str, key: str, legal: re.Pattern[str], problem: Any, names: list[str], tmp_path: Path
) -> None:
    request = write_request(tmp_path / "inputs")
    for name in sample(names, at_scale(250, COUNT)):
        set_value(tmp_path / "inputs" / f"{file}.yaml", key, name)
        if legal.fullmatch(name):
            assert getattr(getattr(read_plan(request), file), key) == name
            continue
        with raises(problem) as raised:
            read_plan(request)
        assert [detail.key for detail in raised.value.details] == [key]


def test_hostile_contract_names_in_requests(names: list[str], tmp_path: Path) -> None:
    """A name refers to a contract or is refused; only the contract's id is used in the archive."""
    request = write_request(tmp_path / "inputs")
    for name in sample(names, at_scale(250, COUNT)):
        set_value(request, "dataset", name)
        with pytest.raises(Invalid) as caught:
            read_plan(request)
        str(caught.value).encode()  # printable


def test_legal_names_stay_inside_the_archive(names: list[str], home: Path, tmp_path: Path) -> None:
    """Legal names, such as device names of other systems, are ordinary folders."""
    legal = [name for name in names if ID.fullmatch(name) and LABEL.fullmatch(name)]
    assert "con" in legal
    for name in legal[:3]:
        folder = tmp_path / "inputs" / name
        folder.mkdir()
        release = run_release(write_request(folder, id=name, request={"version": name}))
        assert (home / "archive" / name / release / "release").is_dir()


def test_hostile_titles_and_curators(names: list[str], tmp_path: Path, home: Path) -> None:
    """Titles that cannot be written are refused before anything is charged."""
    accepted = []
    for name in sample(names, at_scale(250, COUNT)):
        for key in ("title", "curator"):
            facts = contract_facts() | {key: name}
            try:
                accepted.append(getattr(Contract.model_validate(facts), key))
            except ValueError:
                continue
    for title in accepted:
        title.encode()
        assert title == title.strip()
        assert not {unicodedata.category(x) for x in title} & {"Cc", "Cs", "Cn", "Zl", "Zp"}
    chosen = next(t for t in accepted if "<script>" in t)
    folder = run_pipeline(write_request(tmp_path / "inputs", title=chosen, curator=chosen))
    for page in folder.rglob("*.html"):
        Page(page.read_text())


def test_hostile_release_names(names: list[str], tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path / "inputs"))
    archive = open_archive(home / "archive")
    catalogue = gramercy.open(str(home / "archive"))
    for name in sample(names, at_scale(250, COUNT)):
        for locate in (
            lambda name=name: archive.release(name, "v1-r1"),
            lambda name=name: archive.release("toy", name),
            lambda name=name: archive.estimate("toy", "v1-r1", name),
            lambda name=name: archive.report("toy", "v1-r1", name),
        ):
            if FOLDER.fullmatch(name):
                assert locate().resolve().is_relative_to(archive.root.resolve())
                continue
            with pytest.raises(UnknownRelease):
                locate()
        for key in (name, f"{name}/v1-r1", f"toy/{name}"):
            if key == "toy/v1-r1":
                continue
            assert key not in catalogue
            with pytest.raises(UnknownRelease) as caught:
                catalogue[key]
            str(caught.value).encode()


def test_hostile_command_arguments(
    names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path / "inputs")
    run_release(request)
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
            code, out, err = run_command(*words, capsys=capsys)
            assert code == 2, (words, out, err)
            assert "Traceback" not in out + err
    for name in sample(names, at_scale(25, 60)):
        set_value(request, "version", name)
        code, out, err = run_command("plan", request, capsys=capsys)
        assert code == (0 if LABEL.fullmatch(name) else 2), (name, out, err)
        set_value(request, "version", "v1")
        set_value(request, "dataset", name)
        assert run_command("plan", request, capsys=capsys)[0] == 2
        set_value(request, "dataset", "contract.yaml")


NAVIGATION = re.compile(r"(\.\./)+(index|glossary)\.html(#[a-z-]+)?")  # within the catalogue


class Page(html.parser.HTMLParser):
    """Checks that a page has no element or attribute that could run code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
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
            fixed = fixed or NAVIGATION.fullmatch(value or "") is not None
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
        self.words.append(data)


def legal_names(names: list[str], as_levels: bool) -> list[str]:
    """The names that a new data set may have together."""
    accepted, seen = [], set()
    for name in names:
        columns: Any = {"s": {"levels": [name]}} if as_levels else {name: {"lower": 0, "upper": 1}}
        try:
            Contract.model_validate(contract_facts() | {"columns": columns})
        except ValueError:
            continue
        if not has_hidden(name) and skeleton(name) not in seen:
            seen.add(skeleton(name))
            accepted.append(name)
    return accepted


ESTIMATES = [{"name": "ridge"}, {"name": "discoveries"}, {"name": "graphical-lasso"}]


def check_bundles(release: Path, expected: list[str]) -> None:
    """Read every file back in its format, and check that the names are unchanged."""
    archive, home = open_archive(release.parents[1]), Home.default()
    assert release.is_relative_to(home.archive)
    bundle = read_release(release / "release")
    assert bundle.manifest.names == expected
    for file in [*release.rglob("second_moment*.csv"), *release.rglob("precision*.csv")]:
        with file.open(newline="", encoding="utf-8") as stream:
            header, *lines = csv.reader(stream)
        assert header[1:] == [not_a_formula(name) for name in expected]
        assert [line[0] for line in lines] == header[1:]
    graphs = list(release.rglob("*.graphml"))
    assert graphs
    for file in graphs:
        graph = nx.read_graphml(file)
        assert set(graph) == set(expected)
        read_estimate(file.parent)
    pages = list(release.rglob("*.html"))
    assert pages
    words = "".join(word for each in pages for word in Page(each.read_text("utf-8")).words)
    assert "49" not in expected
    assert any(name.strip() in words for name in expected)
    verify_release(archive, release.parent.name, release.name, Ledger(home.ledger))
    with sqlite3.connect(home.ledger) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tables = {
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
        assert {"entries", "head"} <= tables


def test_hostile_column_names(names: list[str], tmp_path: Path) -> None:
    accepted = legal_names(names, as_levels=False)
    assert len(accepted) > COUNT // 2
    rng = np.random.default_rng(24)
    accepted = accepted[:: at_scale(9, 1)]
    size = at_scale(100, 250)
    for start in range(0, len(accepted), size):
        part = accepted[start : start + size]
        folder = tmp_path / "inputs" / str(start)
        folder.mkdir()
        rows = [rng.normal(size=400) for _ in part]
        pq.write_table(pa.table(rows, names=part), folder / "t.parquet")
        columns = {name: {"lower": -3, "upper": 3} for name in part}
        facts = {"source": "t.parquet", "rows": 400, "columns": columns, "id": f"toy{start}"}
        release = run_pipeline(write_request(folder, request={"estimates": ESTIMATES}, **facts))
        check_bundles(release, part)


def test_hostile_column_names_in_a_csv_header(names: list[str], tmp_path: Path) -> None:
    """The same names in the quoted header of a CSV."""
    accepted = legal_names(names, as_levels=False)[:: at_scale(3, 1)]
    with (tmp_path / "inputs/table.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([accepted, *[[k % 5] * len(accepted) for k in range(40)]])
    columns = {name: {"lower": -3, "upper": 9} for name in accepted}
    release = run_release(write_request(tmp_path / "inputs", columns=columns))
    bundle = read_release(Home.default().archive / "toy" / release / "release")
    assert bundle.manifest.names == accepted


def test_hostile_level_names(names: list[str], tmp_path: Path) -> None:
    accepted = legal_names(names, as_levels=True)
    assert len(accepted) > COUNT // 2
    rng = np.random.default_rng(42)
    part = accepted[: 300 : at_scale(12, 1)]
    cells = rng.choice(np.array(part, dtype=object), 500)
    table = pa.table({"s": pa.array(list(cells)), "k": rng.normal(size=500)})
    pq.write_table(table, tmp_path / "inputs/t.parquet")
    columns = {"s": {"levels": part}, "k": {"lower": -3, "upper": 3}}
    facts = {"source": "t.parquet", "rows": 500, "columns": columns, "intercept": True}
    release = run_pipeline(
        write_request(tmp_path / "inputs", request={"estimates": ESTIMATES}, **facts)
    )
    check_bundles(release, ["(intercept)", *(f"s={level}" for level in part), "k"])


@pytest.mark.parametrize("where", ["toy", "toy/v1-r1", "toy/v1-r1/release"])
def test_linked_releases_are_not_listed(
    where: str, tmp_path: Path, home: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link in the archive is not a release, even if its target is one."""
    run_pipeline(write_request(tmp_path / "inputs"))
    target = tmp_path / "inputs/moved"
    (home / "archive" / where).rename(target)
    (home / "archive" / where).symlink_to(target)
    archive = open_archive(home / "archive")
    assert archive.releases() == []
    for open_release in (
        lambda: archive.release("toy", "v1-r1"),
        lambda: gramercy.open(str(home / "archive"))["toy/v1-r1"],
    ):
        with pytest.raises(UnknownRelease):
            open_release()
    for command in ("show", "verify", "estimate"):
        code, out, err = run_command(command, "toy/v1-r1", capsys=capsys)
        assert code == 2, out + err
    before = folder_contents(target)
    for version in ("v1", "v2"):
        request = write_request(tmp_path / "inputs", request={"version": version})
        if where != "toy" and version == "v2":
            run_release(request)  # next to the link
            continue
        with pytest.raises(GramercyError):
            run_release(request)
    assert folder_contents(target) == before


@pytest.mark.parametrize("kind", ["estimates", "reports"])
def test_linked_estimates_and_reports_are_not_listed(kind: str, tmp_path: Path, home: Path) -> None:
    folder = run_pipeline(write_request(tmp_path / "inputs")) / kind
    target = tmp_path / "inputs/moved"
    linked, *remaining = sorted(folder.iterdir())
    linked.rename(target)
    linked.symlink_to(target)
    archive = open_archive(home / "archive")
    listed = archive.estimates if kind == "estimates" else archive.reports
    assert listed("toy", "v1-r1") == [path.name for path in remaining]


@pytest.mark.parametrize(("name", "target"), [(".staging", ""), ("toy", "victim")])
def test_linked_folder_is_refused_without_a_charge(
    name: str, target: str, tmp_path: Path, home: Path, outside: Path
) -> None:
    """No file is written or removed through a link."""
    (home / "archive").mkdir(parents=True)
    (home / "archive" / name).symlink_to(outside / target)
    with pytest.raises(GramercyError) as refused:
        run_release(write_request(tmp_path / "inputs"))
    if name == ".staging":
        assert refused.value.code == families.STORE.code
        assert refused.value.facts["path"] == str(home / "archive/.staging")
    open_archive(home / "archive").sweep("toy")
    with sqlite3.connect(home / "ledger.sqlite") as db:
        charged = "SELECT count(*) FROM entries WHERE kind = 'reserved'"
        assert db.execute(charged).fetchone() == (0,)


def test_endless_files_in_a_release_are_refused(tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path / "inputs"))
    bundle = home / "archive/toy/v1-r1/release"
    for name in ("CARD.md", "SHA256SUMS", "second_moment.npy"):
        path = bundle / name
        kept = path.rename(tmp_path / "inputs" / name)
        for make in (lambda path: path.symlink_to("/dev/zero"), os.mkfifo):
            make(path)
            with raises(families.SEAL, path=str(path)):
                read_release(bundle)
            path.unlink()
        kept.rename(path)
        read_release(bundle)


def test_archive_may_be_reached_through_a_link(tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path / "inputs"))
    (tmp_path / "inputs/link").symlink_to(home / "archive")
    assert list(gramercy.open(str(tmp_path / "inputs/link"))) == ["toy/v1-r1"]


def test_yaml_helper_preserves_every_character(tmp_path: Path) -> None:
    """`set_value` passes every character; contracts have the composed form of letters."""
    write_yaml(tmp_path / "inputs/contract.yaml", contract_facts())
    for name in ("a\u0301", "\U0001f4a9", "x\\y", '"'):
        set_value(tmp_path / "inputs/contract.yaml", "title", name)
        assert read_contract(tmp_path / "inputs/contract.yaml").title == unicodedata.normalize(
            "NFC", name
        )
