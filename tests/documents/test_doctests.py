"""The examples in docstrings and documents run, and give the shown output."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from gramercy.archive.store.opening import archive_of
from gramercy.common.home import Home
from tests.support.documents import ROOT, ApproximateOutput, blocks, documents
from tests.support.factories import run_release, write_request
from tests.support.survey import survey_release
from tests.test_architecture import sources

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
# The tutorial has a test of its own; the reference repeats the docstrings.
TUTORIAL, REFERENCE = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "reference"
ANALYSES, GROUPS = ROOT / "docs" / "analyses", ROOT / "docs" / "how-to" / "groups.md"
TOLERANCE = 0.15  # of their numbers: ten standard deviations of the noise or more
SLOW_PAGES = {"components.md", "synthetic.md", "pool.md"}
WITH_EXAMPLES = [path for path in sources() if "\n>>> " in path.read_text().replace("    ", "")]
PAGES = [
    page
    for page in documents()
    if page != TUTORIAL and page.parent != REFERENCE
    if any(">>>" in each.text for each in blocks(page))
]


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """An archive with one small release, under the name used by the examples."""
    run_release(write_request(tmp_path))
    return str(archive_of(Home.default()).root)


@pytest.fixture
def survey(tmp_path: Path) -> str:
    """An archive with a release of numbers and levels, of rows that were hardly clipped."""
    survey_release(tmp_path, epsilon=16.0, rows=10_000)
    return str(archive_of(Home.default()).root)


@pytest.fixture
def wards(tmp_path: Path) -> str:
    """An archive with a release of the survey that has a matrix for every ward."""
    survey_release(tmp_path, epsilon=16.0, rows=10_000, by="ward")
    return str(archive_of(Home.default()).root)


@pytest.fixture
def two_surveys(survey: str, tmp_path: Path) -> str:
    """The same archive with a second release of the table, which has more noise."""
    request = tmp_path / "request.yaml"
    request.write_text(request.read_text().replace("epsilon: 16.0", "epsilon: 12.0"))
    run_release(request)
    return survey


def names(path: Path, request: pytest.FixtureRequest) -> dict[str, object]:
    """The names that examples may use without defining them."""
    text = path.read_text(encoding="utf-8")
    archives = ("archive", "survey", "two_surveys", "wards")
    used = (name for name in archives if f"({name})" in text)
    return {name: request.getfixturevalue(name) for name in used}


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_in_docstrings(path: Path, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    )
    result = doctest.testmod(module, extraglobs=names(path, request), optionflags=OPTIONS)
    assert result.attempted
    assert not result.failed


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page.name in SLOW_PAGES else ())
        for page in PAGES
    ],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_examples_in_documents(page: Path, request: pytest.FixtureRequest) -> None:
    """All examples of a page run together: later blocks use names of earlier ones."""
    text = "\n".join(each.text for each in blocks(page) if ">>>" in each.text)
    example = doctest.DocTestParser().get_doctest(
        text, names(page, request), page.name, str(page), 0
    )
    noisy = page.parent == ANALYSES or page == GROUPS
    checker = ApproximateOutput(TOLERANCE) if noisy else None
    report: list[str] = []
    result = doctest.DocTestRunner(checker, optionflags=OPTIONS).run(example, out=report.append)
    assert result.attempted
    assert not result.failed, "".join(report)


def test_public_modules_have_examples() -> None:
    modules = {path.relative_to(ROOT).as_posix() for path in WITH_EXAMPLES}
    assert {
        "gramercy/__init__.py",
        "gramercy/api/catalogue.py",
        "gramercy/schemas/request.py",
    } <= modules
    assert any(name.startswith("gramercy/estimators/scikit/") for name in modules)
