"""Completion in a shell: what is offered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gramercy import estimators
from gramercy.cli.commands import COMMANDS
from gramercy.schemas.families import catalogue
from tests.support.factories import run_command

RELEASES = ("clinic/v1-r1", "clinic/v2-r1", "survey/v1-r1")


@pytest.fixture
def archive(home: Path) -> Path:
    """An archive of committed releases, one that is not, and a name that is never written."""
    for name in RELEASES:
        bundle = home / "archive" / name / "release"
        bundle.mkdir(parents=True)
        (bundle / "SHA256SUMS.sig").touch()
    (home / "archive/unfinished/v1-r1/release").mkdir(parents=True)
    (home / "archive/evil\x1b[2J/v1-r1/release").mkdir(parents=True)
    (home / "archive/evil\x1b[2J/v1-r1/release/SHA256SUMS.sig").touch()
    return home / "archive"


def completions(
    *words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What bash is offered for the last of the words of a command."""
    monkeypatch.setenv("_GRAMERCY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["gramercy", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    code, out, err = run_command(capsys=capsys)
    assert (code, err) == (0, "")
    return out.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("show", ""), RELEASES),
        (("show", "clinic/"), RELEASES[:2]),
        (("compare", "clinic/v1-r1", "s"), RELEASES[2:]),
        (("list", ""), ("clinic", "survey")),
        (("budget", "--json", "s"), ("survey",)),
        (("verify", "sur"), ("survey", "survey/v1-r1")),
        (("estimate", "clinic/v1-r1", "--estimator", "th"), ("thresholded",)),
        (("estimate", "clinic/v1-r1", "--estimator", ""), tuple(estimators.registry)),
        (("estimate", "clinic/v1-r1", "--penalty", ""), ()),
        (("plan", "req"), ()),  # the shell offers files
        (("explain", "GRM-00"), tuple(code for code in catalogue() if code < "GRM-010")),
        (("list", "--arch"), ("--archive",)),
        (("keys", "n"), ("new",)),
        (("ex",), ("export", "explain")),
        (("--vers",), ("--version",)),
    ],
    ids=" ".join,
)
def test_words_are_completed(
    words: tuple[str, ...],
    offered: tuple[str, ...],
    archive: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert completions(*words, capsys=capsys, monkeypatch=monkeypatch) == list(offered)


def test_archive_elsewhere_is_not_searched(
    archive: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", "https://example.invalid/archive")
    assert completions("show", "", capsys=capsys, monkeypatch=monkeypatch) == []


def test_home_without_an_archive_offers_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert completions("show", "", capsys=capsys, monkeypatch=monkeypatch) == []


@pytest.mark.slow
def test_completion_of_a_command_imports_none() -> None:
    code = (
        "import sys\n"
        "from gramercy.cli.main import main\n"
        "try: main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    environment = {"_GRAMERCY_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "gramercy "}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip()
    imported = set(done.stderr.split())
    assert not imported & {"numpy", "pandas", "prefect", "sqlalchemy", "cryptography"}
    assert not imported & {f"gramercy.cli.{place.partition(':')[0]}" for place in COMMANDS.values()}
