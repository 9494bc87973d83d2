"""The report: self-contained, escaped, and made from public facts alone."""

from __future__ import annotations

import html.parser
import re
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.common.home import Home
from gramercy.estimators.noise.draws import draw
from gramercy.estimators.noise.spectrum import semicircle_quantiles, spectrum
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_report
from gramercy.pipeline.publish.internal_record import error_against_truth, page_path, read_record
from gramercy.reports.correlations import correlations, largest_entries
from gramercy.reports.reader_notes import (
    best_attacker_accuracy,
    median_largest_noise,
    reader_notes,
)
from gramercy.reports.release_report import release_page
from gramercy.schemas import families
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.noise import Family, NoiseLaw
from tests.support.browser import needs_chromium, rendered
from tests.support.factories import bundle_bytes, run_pipeline, write_request, write_table

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "$x^2$ \\alpha",
    "a--b-->c",
    "数 & <b>'\"",
    "\u05d0\u05d1 abc",
    "w" * 200,
    "#010101; fill: url(http://example.org)",
]
VOID = {"meta", "link", "img", "br", "path", "use", "image", "rect", "stop"}


class Page(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects the resources a page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.resources: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.resources += [
            v
            for k, v in attrs
            if k in {"src", "href", "xlink:href", "srcset", "data"} and tag != "a"
        ]
        self.links += [str(v) for k, v in attrs if k == "href" and tag == "a"]
        assert not [k for k, _ in attrs if k.startswith("on")]

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def text_of(root: Path) -> str:
    (found,) = root.glob("reports/*/report.html")
    return found.read_text(encoding="utf-8")


@pytest.mark.slow
def test_report_loads_nothing_external(published: Path) -> None:
    text = text_of(published)
    page = Page(text)
    assert all(resource.startswith(("data:", "#")) for resource in page.resources)
    assert not re.search(r"url\((?!#)|@import|http-equiv=\"refresh", text)
    assert all(re.match(r"(\.\./)+[a-z]+\.html$|#", link) for link in page.links)  # the catalogue
    assert "script" not in page.tags
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert "var(--ink)" in text
    assert "#0101" not in text  # every placeholder colour was replaced
    for fact in ("ε = 1", "δ = 10⁻⁶", "μ = 0.2367", "54.8 %", "toy/v1-r1", "second moment of the"):
        assert fact in text
    assert text.count("<svg") >= 2  # a map and a graph too, where anything is above the noise


@pytest.mark.slow
def test_hostile_names_are_escaped_in_the_report(tmp_path: Path, home: Path) -> None:
    columns = {name: {"lower": -5.0, "upper": 5.0} for name in HOSTILE}
    columns["kind"] = {"levels": HOSTILE[:3]}  # type: ignore[dict-item]
    values = np.random.default_rng(2).normal(size=(40, len(HOSTILE)))
    frame = pd.DataFrame(values, columns=HOSTILE).assign(kind=HOSTILE[1])
    frame.to_csv(tmp_path / "table.csv", index=False)
    names = {"title": HOSTILE[0], "curator": HOSTILE[1] + HOSTILE[4], "intercept": True}
    text = text_of(run_pipeline(write_request(tmp_path, columns=columns, **names)))
    page = Page(text)
    assert "img" not in page.tags
    assert "script" not in page.tags
    assert "{{ 7 * 7 }}" in text
    assert "$x^2$" in text
    assert all(resource.startswith(("data:", "#")) for resource in page.resources)
    inside = page_path(Home.default(), "toy", "v1-r1").read_text()
    assert "img" not in Page(inside).tags


@pytest.mark.slow
def test_concurrent_reports_are_sealed_once(tmp_path: Path, home: Path) -> None:
    root = run_pipeline(write_request(tmp_path))
    context, ids = Context.default(), [p.name for p in (root / "estimates").iterdir()]
    (place,) = (root / "reports").iterdir()
    before = bundle_bytes(place)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: make_report(context, "toy", "v1-r1", ids), range(8)))
    assert len({each.sha256 for each in made}) == 1
    assert bundle_bytes(place) == before
    shutil.rmtree(place)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: make_report(context, "toy", "v1-r1", ids[::-1]), range(4)))
    assert bundle_bytes(place) == before  # the order of the estimates does not matter
    assert len(list((root / "reports").iterdir())) == 1
    assert len(make_report(context, "toy", "v1-r1", []).manifest.estimates) == 0
    assert len(list((root / "reports").iterdir())) == 2


@pytest.mark.slow
def test_matplotlib_settings_do_not_change_the_report(published: Path) -> None:
    import matplotlib

    bundle = read_release(published / "release")
    plain = release_page(bundle, [])
    with matplotlib.rc_context({"axes.grid": True, "axes.labelsize": 30, "image.origin": "lower"}):
        assert release_page(bundle, []) == plain
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: release_page(bundle, []), range(4))) == {plain}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "rows", "epsilon", "how", "neighbours"),
    [
        (1, 5, 1.0, "unit", "replace-one"),
        (2, 50, 0.0001, "unit", "add-remove"),
        (2, 1, 900.0, {"kind": "clip", "radius": 1.5}, "replace-one"),
        (12, 8, 0.5, {"kind": "clip", "radius": 3.0}, "add-remove"),
        (70, 400, 30.0, "unit", "replace-one"),  # more columns than a map names
    ],
    ids=str,
)
def test_any_release_has_a_report(
    p: int, rows: int, epsilon: float, how: Any, neighbours: Any, tmp_path: Path
) -> None:
    write_table(tmp_path / "table.csv", rows=rows, p=p)
    request = write_request(
        tmp_path,
        rows=rows,
        neighbours=neighbours,
        columns={f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(p)},
        budget={"epsilon": 950.0, "delta": 1e-5},
        request={
            "normalisation": how,
            "mechanism": {"name": "gaussian", "epsilon": epsilon, "delta": 1e-6},
        },
    )
    root = run_pipeline(request)
    text = text_of(root)
    Page(text)
    assert "nan" not in re.sub(r"<[^>]*>|base64,\S*", "", text).lower()


@pytest.mark.slow
def test_notes_follow_protection_and_noise(published: Path) -> None:
    plain = read_release(published / "release")
    # Whatever noise this release drew, its columns have a variance of 0.1 and no correlation.
    matrix = 0.1 * np.eye(3)

    def noise_notes(**changes: Any) -> int:
        facts = plain.manifest.model_copy(update=changes)
        bundle = replace(plain, manifest=facts, raw=matrix, projected=matrix, denoised=matrix)
        notes = reader_notes(bundle, spectrum(matrix, matrix, bundle.manifest.noise))
        assert all((note.level == "good") == (not note.code) for note in notes)
        codes = [note.code for note in notes]
        weak = bundle.manifest.guarantee.mu > 1
        assert codes.count(families.PROTECTION.code) == weak
        return codes.count(families.NOISE.code)

    for mu in (0.9, 1.5, 4.0):
        noise_notes(guarantee=plain.manifest.guarantee.model_copy(update={"mu": mu}))
    rows = plain.manifest.rows

    def noise(sd: float) -> NoiseLaw:
        return NoiseLaw(family="gaussian-isotropic", sd_diagonal=sd, sd_off_diagonal=sd / 2**0.5)

    quiet = noise(2e-4)
    assert noise_notes(noise=quiet) == 0
    assert noise_notes(noise=noise(2.0)) == 2  # of the matrix, and of lost columns
    for changes, count in (
        ({"value": 2.0}, 1),
        ({"value": 20.0}, 1),
        ({"value": 40.0}, 0),
        ({"status": "noisy", "sd": 20.0}, 1),
        ({"status": "noisy", "sd": 0.4}, 0),
    ):
        assert noise_notes(noise=quiet, rows=rows.model_copy(update=changes)) == count
    exact = plain.manifest.guarantee
    assert best_attacker_accuracy(exact) == 0.548  # 0.5471, rounded up
    assert best_attacker_accuracy(exact.model_copy(update={"delta0": 0.1})) == 0.648
    assert "every row but one" in Neighbours.REPLACE_ONE.attack("row")
    assert "every cell but one" in Neighbours.REPLACE_ONE.attack("cell")
    assert "in the table or not" in Neighbours.ADD_REMOVE.attack("row")


def test_spectrum_of_pure_noise() -> None:
    stream = np.random.default_rng(0)
    half = stream.normal(size=(300, 300)) / 2**0.5
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=2**0.5, sd_off_diagonal=1.0)
    result = spectrum(half + half.T, np.eye(300), law)
    assert result.upper == -result.lower == pytest.approx(2 * 300**0.5 + 2.0234 * 300 ** (-1 / 6))
    np.testing.assert_allclose(result.released, result.noise, atol=0.06 * result.upper)
    assert result.above_noise == 0
    quantiles = semicircle_quantiles(1001)
    np.testing.assert_allclose(quantiles, -quantiles[::-1], atol=1e-9)
    # P(x > 1/2) of the semicircle law is 1/3 - sqrt(3)/(4 pi).
    assert (quantiles > 0.5).mean() == pytest.approx(1 / 3 - 3**0.5 / (4 * np.pi), abs=2e-3)


@pytest.mark.parametrize("p", [1, 2, 10])
def test_pure_noise_rarely_exceeds_the_spectral_edge(p: int) -> None:
    stream = np.random.default_rng(p)
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=2**0.5, sd_off_diagonal=1.0)
    half = stream.normal(size=(4000, p, p)) / 2**0.5
    draws = half + half.transpose(0, 2, 1)
    edge = spectrum(draws[0], np.eye(p), law).upper
    above_noise = (np.linalg.eigvalsh(draws)[:, -1] > edge).mean()
    assert 0.0002 <= above_noise <= 0.01


@pytest.mark.slow
def test_largest_of_noise_is_the_median_maximum() -> None:
    draws = np.abs(np.random.default_rng(0).normal(size=(4000, 435)))
    assert median_largest_noise(435) == pytest.approx(np.median(draws.max(axis=1)), abs=0.03)
    assert median_largest_noise(1) == pytest.approx(0.6745, abs=1e-4)
    assert median_largest_noise(10**12) > 7
    heavy = np.abs(np.random.default_rng(0).laplace(scale=0.5**0.5, size=(4000, 435)))
    median_of_maxima = np.median(heavy.max(axis=1))
    assert median_largest_noise(435, "laplace") == pytest.approx(median_of_maxima, abs=0.05)
    assert median_largest_noise(435, "laplace") > 1.4 * median_largest_noise(435)
    for p in (5, 30):
        family: Family
        for family in ("k-norm", "matrix-laplace", "wishart"):
            law = NoiseLaw(family=family, sd_diagonal=2**0.5, sd_off_diagonal=1.0, dof=p + 1.0)
            above, stream = np.triu_indices(p, 1), np.random.RandomState(p)
            largest = [np.abs(draw(stream, p, law)[above]).max() for _ in range(1500)]
            median = median_largest_noise(above[0].size, family)
            assert median == pytest.approx(np.median(largest), rel=0.06)


def words_of(page: str) -> str:
    """The text of a page, without figures and tags."""
    return re.sub(r"<svg\b.*?</svg>|<[^>]*>", "", page, flags=re.DOTALL)


@pytest.mark.slow
def test_report_of_a_cell_level_release(tmp_path: Path) -> None:
    pd.read_csv(write_table(tmp_path / "table.csv")).to_parquet(tmp_path / "table.parquet")
    request = write_request(
        tmp_path,
        privacy_unit="cell",
        source="table.parquet",
        intercept=True,
        budget={"epsilon": 500.0, "delta": 1e-5},
        columns={
            "c0": {"lower": -5.0, "upper": 5.0, "centre": -5.0, "scale": 0.1},
            "c1": {"lower": -5.0, "upper": 5.0, "centre": 0.0, "scale": 5.0},
            "c2": {"lower": -5.0, "upper": 5.0, "centre": 0.0, "scale": 5.0},
        },
        request={
            "normalisation": "box",
            "mechanism": {"name": "rows", "epsilon": 400.0, "delta": 1e-6},
        },
    )
    root = run_pipeline(request)
    Page(text_of(root))
    text = words_of(text_of(root))
    for phrase in (
        "knows every cell but one",
        "how often a cell is detected",
        "the greatest length that the bounds allow",
        "has a standard deviation of about ",
        "to first order: they depend",
        "with its own standard error",
    ):
        assert phrase in text, phrase
    for phrase in ("how often a row", "were shortened", "known exactly", "Means and classes"):
        assert phrase not in text, phrase
    bundle = read_release(root / "release")
    deviations = bundle.deviations
    assert deviations[1, 1] > 1.5 * deviations[2, 2]  # the first column dominates
    facts = bundle.manifest
    v = facts.noise.cell_variance or 0.0
    expected = (4 * bundle.repaired[1, 1] * v + 2 * v * v) / facts.rows.value
    assert deviations[1, 1] == pytest.approx(expected**0.5)
    for entry in largest_entries(bundle, correlations(bundle)):
        at = facts.names.index(entry.row), facts.names.index(entry.col)
        assert entry.sd == deviations[at]
    errors = error_against_truth(bundle, bundle.projected)
    off = np.abs(bundle.unbiased - bundle.projected) / deviations
    assert errors["largest"] == pytest.approx(off.max())


@pytest.mark.slow
def test_report_of_a_precision_release_states_an_upper_bound(
    tmp_path: Path, published: Path
) -> None:
    mechanism = {"name": "output", "epsilon": 1.0, "delta": 1e-6, "penalty": 0.5}
    mechanism["arithmetic"] = "floating-point"
    request = {"mechanism": mechanism, "estimates": []}
    text = words_of(text_of(run_pipeline(write_request(tmp_path, request=request))))
    assert re.search(r"at most [\d.]+-Gaussian differential privacy", text)
    assert "knows every row but one" in text
    plain = words_of(text_of(published))
    assert re.search(r"exactly [\d.]+-Gaussian differential privacy", plain)
    assert "known exactly" in plain


@pytest.mark.slow
def test_internal_page_is_private_and_shows_no_values(tmp_path: Path, home: Path) -> None:
    (tmp_path / "table.csv").write_text("c0,c1,c2\n1,2,3\n,98765.4,x\n4,5\n")
    root = run_pipeline(write_request(tmp_path, rows=3, budget={"epsilon": 2.0, "delta": 1e-5}))
    inside = page_path(Home.default(), "toy", root.name)
    assert stat.S_IMODE(inside.stat().st_mode) == 0o600
    assert stat.S_IMODE(inside.parent.stat().st_mode) == 0o700
    text = inside.read_text()
    Page(text)
    assert "INTERNAL" in text
    assert "98765.4" not in text
    assert "1 lines were blank" in text
    truth = read_record(Home.default(), "toy", root.name)["truth"]
    bundle = read_release(root / "release")
    assert truth["expected"] == pytest.approx(6**0.5 * bundle.manifest.noise.sd_diagonal)
    assert truth["norm"] == pytest.approx(0.47, abs=0.2)
    assert not list((home / "archive").rglob("*v1-r1.html"))
    assert "98765.4" not in text_of(root)


@pytest.mark.slow
@needs_chromium
def test_report_opens_in_a_browser_without_messages(published: Path, tmp_path: Path) -> None:
    """With its own content security policy, which tests of all pages take out."""
    (shown,) = published.glob("reports/*/report.html")
    assert "What is guaranteed" in rendered(shown.as_uri(), tmp_path, "dark")
