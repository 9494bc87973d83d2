"""The catalogue's pages: contents, links from anywhere, and search in a browser."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from gramercy.api.release import Release
from gramercy.archive.listing.contents import Contents
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import LISTING_FILE
from gramercy.archive.store.object_store import UrlStore
from gramercy.archive.store.opening import archive_of, open_archive
from gramercy.common.home import Home
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.table_comparison import change, comparable
from gramercy.mechanisms import registry
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.page_links import archive_links
from gramercy.pipeline.publish.attachments import make_estimate, withdraw
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.reports import catalogue_page
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import BundleError
from gramercy.schemas.model import digest as digest_of
from tests.support.archives import unknown_files
from tests.support.browser import needs_chromium, rendered
from tests.support.factories import (
    MECHANISM,
    home_at,
    run_command,
    run_json,
    run_pipeline,
    run_release,
    write_request,
)
from tests.support.pages import check_ids
from tests.support.problems import raises

LITTLE = MECHANISM | {"epsilon": 0.5}
TITLE = 'Ward <b>7</b> & "friends"'


class Page(HTMLParser):
    """Collects a page's links and the rows of its search."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.rows: list[dict[str, str | None]] = []
        self.foreign: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "a":
            self.links.append(str(known["href"]))
        if "id" in known:
            self.ids.add(str(known["id"]))
        if "data-text" in known:
            self.rows.append(known)
        for key in ("src", "href", "action", "srcset"):
            if (known.get(key) or "").startswith(("http", "//")):
                self.foreign.append(str(known[key]))


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a catalogue, which no test changes.

    It has four releases of one data set, the first withdrawn, and one of another.
    """
    folder = tmp_path_factory.mktemp("catalogue")
    little = {"mechanism": LITTLE, "estimates": [{"name": "graphical-lasso"}]}
    with home_at(folder / "home") as home:
        run_pipeline(write_request(folder, request=little))
        for version in ("v2", "v3", "v4"):
            run_release(write_request(folder, request=little | {"version": version}))
        withdraw(Context.default(), "toy", "v1-r1", "wrong & bounds")
        run_release(write_request(folder, id="ward", title=TITLE))
        assert write_site(Context.default()) == 5
    return home


@pytest.mark.slow
def test_no_page_has_two_elements_of_one_id(catalogue: Path) -> None:
    """Of the catalogue; other pages are checked with their contents."""
    pages = [*catalogue.rglob("*.html")]
    assert {page.name for page in pages} >= {"index.html", "glossary.html", "report.html"}
    assert any(page.is_relative_to(catalogue / "internal") for page in pages)
    for page in pages:
        check_ids(page.read_text())


@pytest.mark.slow
def test_catalogue_links_resolve(catalogue: Path) -> None:
    root = catalogue / "archive"
    pages = {path: Page(path.read_text()) for path in root.rglob("index.html")}
    pages[root / "glossary.html"] = Page((root / "glossary.html").read_text())
    assert len(pages) == 1 + 2 + 5 + 1
    visited, todo = set(), [root / "index.html"]
    while todo:
        path = todo.pop()
        if path in visited:
            continue
        visited.add(path)
        assert not pages[path].foreign
        for link in pages[path].links:
            place, _, part = link.partition("#")
            target = (path.parent / unquote(place)).resolve()
            assert target.is_file(), f"{path}: {link}"
            assert target.is_relative_to(root.resolve())
            if part:
                assert part in pages[target].ids
            if target in pages:
                todo.append(target)
    assert visited == pages.keys()  # every page is reachable from the first one


@pytest.mark.slow
def test_catalogue_page_contents(catalogue: Path) -> None:
    root = catalogue / "archive"
    index = (root / "index.html").read_text()
    assert "5 releases of 2 data sets" in index
    assert "Ward &lt;b&gt;7&lt;/b&gt; &amp; &#34;friends&#34;" in index
    assert "<b>7</b>" not in index
    dataset = (root / "toy/index.html").read_text()
    assert dataset.count('<b class="bad">withdrawn</b>') == 1
    assert "What changed" in dataset
    assert "spent (δ = " in dataset
    release = root / "toy/v1-r1/index.html"
    text = release.read_text()
    assert "wrong &amp; bounds" in text
    files = re.findall(
        r'href="((?:release|estimates)/[^"]+)" download.*?hash">([0-9a-f]{64})<', text
    )
    assert len(files) > 20
    for name, digest in files:
        assert hashlib.sha256((release.parent / name).read_bytes()).hexdigest() == digest
    for name in registry:
        assert f'<dt id="{name}">' in (root / "glossary.html").read_text()


@pytest.mark.slow
def test_page_of_500_releases_shows_the_newest_and_folds_the_others(
    catalogue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(catalogue))
    listed = Contents(Context.default().archive).list_all()[-1]
    releases = [
        replace(listed, facts=listed.facts.model_copy(update={"release": f"v{k}-r1"}))
        for k in range(500)
    ]
    folded = catalogue_page.DatasetPage("toy", releases)
    page = catalogue_page.dataset_page(folded)
    at_once = re.sub("<details>.*?</details>", "", page, flags=re.DOTALL)
    assert {f"v{k}-r1/index.html" for k in range(488, 500)} < {*Page(at_once).links}
    assert len(Page(at_once).links) < 25
    numbers = range(1, folded.older_pages + 1)
    older = [catalogue_page.older_releases_page(folded, number) for number in numbers]
    links = {link for text in (page, *older) for link in Page(text).links}
    assert {f"v{k}-r1/index.html" for k in range(500)} < links
    assert {f"releases-{number}.html" for number in numbers} < links


@pytest.mark.slow
def test_publishing_rewrites_only_affected_pages(tmp_path: Path) -> None:
    root = Home.default().archive
    done = run_release(write_request(tmp_path))
    write_site(Context.default(), ("toy", done))
    first = (root / "toy" / done / "index.html").stat().st_mtime_ns
    later = run_pipeline(write_request(tmp_path, request={"version": "v2"}))
    write_site(Context.default(), ("toy", later.name))
    assert len(Page((root / "index.html").read_text()).rows) == 2
    # Two releases, and two links of the navigation.
    assert len(Page((root / "toy/index.html").read_text()).links) == 2 + 2
    assert (root / "toy" / done / "index.html").stat().st_mtime_ns == first
    assert "Read the full report" in (later / "index.html").read_text()


@pytest.mark.slow
def test_one_call_writes_the_pages_of_all_releases_that_changed(tmp_path: Path) -> None:
    """As after several steps of a series, or a run that ended before it wrote its pages."""
    root = Home.default().archive
    names = [
        run_release(write_request(tmp_path, request={"version": each, "mechanism": LITTLE}))
        for each in ("v1", "v2", "v3")
    ]
    assert write_site(Context.default(), ("toy", names[-1])) == 3
    pages = [root / "toy" / name / "index.html" for name in names]
    before = [page.stat().st_mtime_ns for page in pages]
    ridge = Ridge(name="ridge")
    make_estimate(Context.default(), "toy", names[0], ridge)
    assert write_site(Context.default(), ("toy", names[-1])) == 2
    assert ridge.id in pages[0].read_text()
    assert pages[1].stat().st_mtime_ns == before[1]
    assert write_site(Context.default(), ("toy", names[-1])) == 1


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["deleted", "edited"])
def test_publishing_without_a_listing_writes_the_pages_of_all_data_sets(
    tmp_path: Path, damage: str
) -> None:
    """Their entries are made again, so that nothing else says which pages they have."""
    run_release(write_request(tmp_path, request={"mechanism": LITTLE}))
    run_release(write_request(tmp_path, request={"version": "v2", "mechanism": LITTLE}))
    done = run_release(write_request(tmp_path, id="ward"))
    write_site(Context.default())
    root = Home.default().archive
    listing = root / LISTING_FILE
    if damage == "deleted":
        listing.unlink()
    else:
        listing.write_bytes(listing.read_bytes().replace(b"toy", b"coy"))
    assert write_site(Context.default(), ("ward", done)) == 3
    assert make_audit(Context.default()).discrepancies == []
    assert write_site(Context.default(), ("ward", done)) == 1


@pytest.mark.slow
def test_data_sets_are_listed_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramercy.reports.catalogue_page.DATASETS_ON_PAGE", 1)
    root = Home.default().archive
    run_release(write_request(tmp_path, id="b", title="Second"))
    write_site(Context.default())
    assert not (root / "datasets-2.html").exists()
    run_release(write_request(tmp_path, id="a", title="First"))
    write_site(Context.default())
    first, second = ((root / name).read_text() for name in ("index.html", "datasets-2.html"))
    for text in (first, second):
        assert "2 releases of 2 data sets" in text
        assert {"index.html", "datasets-2.html"} & {*Page(text).links}
    # A page lists its own data sets; the first one also finds the others.
    assert {"a/v1-r1/index.html", "b/index.html", "datasets-2.html"} <= {*Page(first).links}
    assert "b/v1-r1/index.html" not in Page(first).links
    assert [str(row["data-text"]).split()[0] for row in Page(first).rows] == ["a/v1-r1", "b/v1-r1"]
    assert "b/v1-r1/index.html" in Page(second).links
    assert "<script" not in second
    assert unknown_files(archive_of(Home.default())) == []
    # A withdrawal of the one changes no page of the other; what is not listed any more is removed.
    before = (root / "datasets-2.html").stat().st_mtime_ns
    withdraw(Context.default(), "a", "v1-r1", "wrong")
    write_site(Context.default(), ("a", "v1-r1"))
    assert "withdrawn" in (root / "index.html").read_text()
    assert (root / "datasets-2.html").stat().st_mtime_ns == before
    monkeypatch.setattr("gramercy.reports.catalogue_page.DATASETS_ON_PAGE", 2)
    write_site(Context.default(), ("a", "v1-r1"))
    assert not (root / "datasets-2.html").exists()
    assert make_audit(Context.default()).discrepancies == []


@pytest.mark.slow
def test_changed_page_is_found_and_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home.default()
    run_release(write_request(tmp_path))
    archive, root = archive_of(home), home.archive
    assert write_site(Context(home)) == 1
    assert unknown_files(archive) == []
    assert len(archive.releases()) == 1
    (root / "index.html").write_text("changed")
    assert run_command("audit", capsys=capsys)[0] == 2
    assert run_json("site", capsys=capsys) == {"releases": 1, "page": str(root / "index.html")}
    assert "1 release of 1 data set," in (root / "index.html").read_text()
    assert run_command("audit", capsys=capsys)[0] == 0
    (root / "other.html").write_text("")
    assert unknown_files(archive) == ["other.html"]


@pytest.mark.slow
def test_site_makes_only_pages_that_are_not_as_they_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    kind_of = {"release_page": "release", "dataset_page": "data set"}
    for name, kind in kind_of.items():
        drawn = getattr(catalogue_page, name)
        monkeypatch.setattr(
            f"gramercy.reports.catalogue_page.{name}",
            lambda *args, drawn=drawn, kind=kind: made.append(kind) or drawn(*args),
        )

    def site() -> list[str]:
        made.clear()
        write_site(Context.default())
        assert make_audit(Context.default()).discrepancies == []
        return sorted(made)

    root, little = Home.default().archive, {"mechanism": LITTLE}
    for version in ("v1", "v2"):
        done = run_release(write_request(tmp_path, request=little | {"version": version}))
        write_site(Context.default(), ("toy", done))
    run_release(write_request(tmp_path, id="ward"))
    assert site() == ["data set", "release"]
    assert site() == []
    pages = [root / "toy/v1-r1/index.html", root / "toy/index.html", root / "index.html"]
    before = [page.read_bytes() for page in pages]
    for page, expected in zip(pages, (["release"], ["data set"], []), strict=True):
        page.write_bytes(page.read_bytes().replace(b"toy", b"coy"))
        assert site() == expected
    pages[0].unlink()
    assert site() == ["release"]
    assert [page.read_bytes() for page in pages] == before
    make_estimate(Context.default(), "toy", "v1-r1", Ridge())
    assert site() == ["data set", "release"]
    withdraw(Context.default(), "toy", "v2-r1", "wrong")
    assert site() == ["data set", "release"]
    # Another program may write other pages.
    monkeypatch.setattr(
        "gramercy.pipeline.catalogue.catalogue_pages.source_digest", lambda: "0" * 64
    )
    assert site() == ["data set"] * 2 + ["release"] * 3


@pytest.mark.slow
def test_public_digests_are_of_public_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of other facts they would confirm a guess: who has charged, or at what time of the day."""
    seen: list[object] = []

    def recorded(facts: object) -> str:
        seen.append(facts)
        return digest_of(facts)

    monkeypatch.setattr("gramercy.pipeline.catalogue.catalogue_pages.digest", recorded)
    monkeypatch.setattr("gramercy.ledger.budget_ledger.account", lambda: "a-steward")
    run_release(write_request(tmp_path))
    write_site(Context.default())
    context = Context.default()
    (timeline,) = context.ledger.timelines("toy")
    assert timeline.charges[0].by == "a-steward"
    hashed = json.dumps(seen)
    assert timeline.charges[0].release in hashed
    assert "a-steward" not in hashed
    assert not any(event.at in hashed for event in timeline.events)


@pytest.mark.slow
def test_withdrawal_is_shown_on_all_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    code, out, err = run_command(
        "withdraw", "toy/v1-r1", "--reason", "wrong", "--yes", capsys=capsys
    )
    assert code == 0, err
    assert "Withdrawn" in out
    root = Home.default().archive
    for name in ("index.html", "toy/index.html", "toy/v1-r1/index.html"):
        assert "ithdrawn" in (root / name).read_text().partition("</style>")[2]


@pytest.mark.slow
def test_damaged_release_does_not_hide_others(tmp_path: Path) -> None:
    home = Home.default()
    for each in ("v1", "v2"):
        run_release(write_request(tmp_path, request={"version": each, "mechanism": LITTLE}))
    for damaged, other, file in (
        ("v2-r1", "v1-r1", "datapackage.json"),
        ("v1-r1", "v2-r1", "second_moment.npy"),
        ("v2-r1", "v1-r1", "second_moment.npy"),
    ):
        path = home.archive / f"toy/{damaged}/release/{file}"
        content = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(content[:-1])
        assert write_site(Context(home)) == 1
        text = (home.archive / "toy/index.html").read_text()
        assert f"toy/{damaged}" in text
        assert f"{other}/index.html" in text
        assert "gramercy verify" in text
        assert "What changed" not in text
        assert len(Page((home.archive / "index.html").read_text()).rows) == 1
        path.write_bytes(content)
    # A new release is still published.
    path.write_bytes(content[:-1])
    done = run_release(write_request(tmp_path, request={"version": "v3", "mechanism": LITTLE}))
    assert write_site(Context(home), ("toy", done)) == 1
    assert "v3" in (home.archive / "index.html").read_text()


def test_unreachable_store_writes_no_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise wordings.store_failed("s3://bucket", "read", "timeout")

    run_release(write_request(tmp_path))
    home = Home.default()
    monkeypatch.setattr("gramercy.archive.bundles.bundle_kinds.read_release_manifest", unreachable)
    with raises(families.STORE, reason="timeout"):
        write_site(Context(home))
    assert not (home.archive / "index.html").exists()


@pytest.mark.slow
def test_pages_are_never_written_through_links(tmp_path: Path) -> None:
    run_release(write_request(tmp_path))
    archive, elsewhere = archive_of(Home.default()), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "index.html").write_text("mine")
    (archive.root / "led").symlink_to(elsewhere)
    with raises(families.STORE):
        archive.write_page("led/index.html", "theirs")
    (archive.root / "index.html").unlink(missing_ok=True)
    (archive.root / "index.html").symlink_to(elsewhere / "index.html")
    archive.write_page("index.html", "theirs")
    assert (elsewhere / "index.html").read_text() == "mine"
    assert (archive.root / "index.html").read_text() == "theirs"


@pytest.mark.slow
@pytest.mark.parametrize("url", ["memory", "s3"], indirect=True)
def test_pages_of_an_archive_at_a_url(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", url)
    run_pipeline(write_request(tmp_path))
    home = Home.default()
    archive = archive_of(home)
    assert write_site(Context(home)) == 1
    assert unknown_files(archive) == []
    reader = open_archive(url)
    text = reader.store.read("toy/v1-r1/index.html").decode()
    assert f'gramercy.open("{reader.location}")' in text
    if url.startswith("s3:"):
        system, root = reader.store._system
        assert system.info(f"{root}/index.html")["ContentType"] == "text/html"
    assert reader.releases() == [("toy", "v1-r1")]


@pytest.mark.slow
def test_pages_without_a_ledger_show_no_budget(
    tmp_path: Path, published_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shutil.copytree(published_home / "archive", tmp_path / "archive")
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", str(root))
    write_site(Context(Home(tmp_path / "reader")))
    assert "meter" not in (root / "toy/index.html").read_text().partition("</style>")[2]


@pytest.mark.slow
def test_changes_are_measured_against_the_noise(tmp_path: Path) -> None:
    names = [
        run_release(write_request(tmp_path, request={"version": version, "mechanism": LITTLE}))
        for version in ("a", "b")
    ]
    earlier, later = (Release(archive_of(Home.default()), "toy", name) for name in names)
    assert comparable(earlier.manifest, later.manifest)
    difference = change(later.evidence, earlier.evidence)
    np.testing.assert_array_equal(
        difference.difference, later.second_moment - earlier.second_moment
    )
    np.testing.assert_allclose(difference.sd, np.sqrt(2) * earlier.evidence.deviations)
    # The table is the same: p-values of its releases are uniform, so that this fails once in 1e6.
    assert difference.p_value is not None
    assert difference.p_value > 1e-6
    moved = change(
        replace(later.evidence, raw=earlier.evidence.raw + 9 * difference.sd), earlier.evidence
    )
    assert moved.p_value is not None
    assert moved.p_value < 1e-30
    laplace = earlier.noise.model_copy(update={"family": "laplace"})
    assert change(replace(later.evidence, law=laplace), earlier.evidence).p_value is None
    noisy = change(replace(later.evidence, divisor="noisy", rows_sd=9.0), earlier.evidence)
    assert noisy.p_value is None
    facts = earlier.manifest.model_copy(update={"kind": "precision"})
    penalties = [
        facts.model_copy(update={"mechanism": {"name": "output", "penalty": x}}) for x in (0.1, 0.2)
    ]
    assert not comparable(*penalties)
    assert comparable(penalties[0], penalties[0])


@pytest.mark.slow
def test_compare_command(
    catalogue: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(catalogue))
    page = tmp_path / "change.html"
    facts = run_json("compare", "toy/v2-r1", "toy/v3-r1", "--page", page, capsys=capsys)
    assert facts["entries"] == 6
    assert [facts["earlier"], facts["later"]] == ["toy/v2-r1", "toy/v3-r1"]
    assert facts["beyond"] == sum(abs(line[-1]) > 2 for line in facts["strongest"])
    assert ("<svg" in page.read_text()) == (facts["beyond"] > 0)
    assert ("No entry changed" in page.read_text()) == (facts["beyond"] == 0)
    check_ids(page.read_text())
    assert json.dumps(facts)
    code, out, _ = run_command("compare", "toy/v2-r1", "toy/v3-r1", capsys=capsys)
    assert code == 0
    assert "of 6 entries" in out
    swapped = run_json("compare", "toy/v3-r1", "toy/v2-r1", capsys=capsys)
    assert swapped == facts
    assert (
        "v1-r1 was withdrawn" in run_command("compare", "toy/v1-r1", "toy/v2-r1", capsys=capsys)[2]
    )
    for other, problem in (
        ("ward/v1-r1", families.COMPARISON),
        ("toy/v9-r1", families.UNKNOWN_RELEASE),
        ("toy/v2-r1", families.COMPARISON),
    ):
        code, _, err = run_command("compare", "toy/v2-r1", other, capsys=capsys)
        assert code == 2
        assert problem.code in err


@pytest.mark.slow
@needs_chromium
def test_catalogue_search_in_a_browser(catalogue: Path, tmp_path: Path) -> None:
    """Works offline; finds older releases; special characters are harmless."""
    archive = catalogue / "archive"
    page = (archive / "index.html").as_uri()

    def matches(words: str) -> list[str]:
        rows = Page(rendered(f"{page}#{words}", tmp_path)).rows
        return [str(row["data-text"]).split()[0] for row in rows if "hidden" not in row]

    assert matches("") == ["toy/v4-r1", "toy/v3-r1", "toy/v2-r1", "ward/v1-r1"]
    assert matches("WARD%20Friends") == ["ward/v1-r1"]
    assert matches("c1%20v1") == ["toy/v1-r1", "ward/v1-r1"]
    assert matches("%3Cscript%3E") == []
    assert matches("%") == matches("")
    # Data sets on other pages are found as well.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gramercy.reports.catalogue_page.DATASETS_ON_PAGE", 1)
        patch.setenv("GRAMERCY_HOME", str(catalogue))
        shutil.copytree(archive, tmp_path / "paged")
        patch.setenv("GRAMERCY_ARCHIVE_URL", str(tmp_path / "paged"))
        write_site(Context.default(), ("toy", "v4-r1"))
    page = (tmp_path / "paged/index.html").as_uri()
    assert matches("") == ["toy/v4-r1", "toy/v3-r1", "toy/v2-r1"]
    assert matches("ward") == ["ward/v1-r1"]
    assert "Catalogue" in rendered((archive / "toy/v1-r1/index.html").as_uri(), tmp_path, "dark")


@pytest.mark.slow
def test_remote_listing_fetches_only_descriptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "memory://described"
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", place)
    run_release(write_request(tmp_path))
    run_release(write_request(tmp_path, request={"version": "v2", "mechanism": LITTLE}))
    withdraw(Context.default(), "toy", "v1-r1", "wrong")
    archive = Archive(UrlStore(place, tmp_path / "mirror"))
    first, second = Contents(archive).list_all()
    assert [first.name, second.name] == ["toy/v1-r1", "toy/v2-r1"]
    assert [first.withdrawn, second.withdrawn] == ["wrong", None]
    fetched = {path.name for path in archive.root.rglob("*") if path.is_file()}
    assert fetched == {"SHA256SUMS", "SHA256SUMS.sig", "datapackage.json", "NOTICE.md"}
    objects = archive.store
    descriptor = objects.read("toy/v2-r1/release/datapackage.json")
    objects.write("toy/v2-r1/release/datapackage.json", descriptor.replace(b"0.5", b"0.1"))
    again = Archive(UrlStore(place, tmp_path / "another"))
    with pytest.raises(BundleError) as refused:
        Contents(again).list_all()
    assert refused.value.facts["path"] == f"{place}/toy/v2-r1/release/datapackage.json"


@pytest.mark.slow
def test_withdrawal_notice_of_another_release_is_refused(tmp_path: Path) -> None:
    for version in ("v1", "v2"):
        run_release(write_request(tmp_path, request={"version": version, "mechanism": LITTLE}))
    withdraw(Context.default(), "toy", "v1-r1", "wrong")
    root = Home.default().archive
    shutil.copytree(root / "toy/v1-r1/withdrawn", root / "toy/v2-r1/withdrawn")
    with raises(families.DESCRIPTION):
        Contents(archive_of(Home.default())).list_all()


SERVED = "https://example.org/data"


@pytest.fixture
def context(home: Path) -> Context:
    """The context of a home whose archive has a catalogue and the page of one data set."""
    for name in ("index.html", "toy/index.html"):
        open_archive(home / "archive").write_page(name, "<p>page</p>")
    return Context(Home(home))


@pytest.mark.parametrize("folder", ["home", "home/audits/now", "home/archive", "home/archive/toy"])
def test_links_are_relative_next_to_the_archive(
    folder: str, tmp_path: Path, context: Context
) -> None:
    link = archive_links(context, tmp_path / folder / "page.html")
    for name in ("index.html", "toy/index.html"):
        assert not link(name).startswith("/")
        target = os.path.normpath(tmp_path / folder / link(name))
        assert Path(target) == context.archive.root / name
    assert link("glossary.html") == link("other/index.html") == ""


def test_there_are_no_links_elsewhere(tmp_path: Path, context: Context) -> None:
    link = archive_links(context, tmp_path / "page.html")
    assert link("index.html") == link("toy/index.html") == ""


def test_a_served_archive_is_linked_from_elsewhere(
    tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_PUBLIC_URL", f"{SERVED}/")
    link = archive_links(context, tmp_path / "page.html")
    assert link("toy/index.html") == f"{SERVED}/toy/index.html"
    assert link("other/index.html") == ""
    inside = archive_links(context, context.home.root / "page.html")
    assert inside("index.html") == "archive/index.html"


def test_remote_archive_is_linked_where_it_is_served(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"memory://{tmp_path.name}"
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", url)
    context = Context(Home(home))
    context.archive.write_page("index.html", "<p>page</p>")
    page = home / "page.html"
    assert archive_links(context, page)("index.html") == ""
    monkeypatch.setenv("GRAMERCY_PUBLIC_URL", SERVED)
    link = archive_links(context, page)
    assert link("index.html") == f"{SERVED}/index.html"
    assert link("toy/index.html") == ""
