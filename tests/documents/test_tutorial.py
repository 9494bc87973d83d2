"""docs/tutorial.md runs from top to bottom, and prints the shown output."""

from __future__ import annotations

import doctest
import os
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.support.documents import ROOT, ApproximateOutput, blocks
from tests.support.factories import run_command

PAGE = ROOT / "docs" / "tutorial.md"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Noise moves a partial correlation of this table by 0.012 (one standard deviation).
TOLERANCE = 0.1


def command(line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    program, *words = line.split()
    if program == "export":
        name, _, value = words[0].partition("=")
        monkeypatch.setenv(name, value.replace("$PWD", str(Path.cwd())))
        return ""
    assert program == "gramercy"
    code, out, err = run_command(*words, capsys=capsys)
    assert code == 0, err
    return out


@pytest.mark.slow
def test_tutorial_runs_from_top_to_bottom(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    prefect_server: None,
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    parser = doctest.DocTestParser()
    printed, outputs, examples = "", 0, 0
    for language, text, line in blocks(PAGE):
        location = f"{PAGE.name}:{line}"
        if language == "yaml":
            Path(text.split()[1]).write_text(text)
            assert YAML(typ="safe", pure=True).load(text), location
        elif language == "sh":
            printed = "".join(command(each, capsys, monkeypatch) for each in text.splitlines())
        elif language == "text":
            same = doctest.OutputChecker().check_output(text, printed, OPTIONS)
            assert same, f"{location} shows\n{text}\nand it prints\n{printed}"
            outputs += 1
        elif ">>>" in text:
            example = parser.get_doctest(text, names, PAGE.name, str(PAGE), line)
            runner = doctest.DocTestRunner(ApproximateOutput(TOLERANCE), False, OPTIONS)
            report: list[str] = []
            result = runner.run(example, out=report.append, clear_globs=False)
            assert not result.failed, "".join(report)
            names, examples = example.globs, examples + result.attempted
        else:
            assert language == "python", location
            exec(compile(text, location, "exec"), names)
    assert outputs == 6
    assert examples > 10
    assert os.path.getsize("checkups.graphml")


def test_output_check_detects_wrong_output() -> None:
    """A wrong sign, a missing line or a distant number is detected."""
    check = ApproximateOutput(TOLERANCE).check_output
    shown = "steps - bmi -0.44\n"
    assert check(shown, "steps - bmi -0.46\n", OPTIONS)
    for wrong in ("steps - bmi 0.44\n", "steps - bmi -0.6\n", "bmi - sleep -0.44\n", 2 * shown, ""):
        assert not check(shown, wrong, OPTIONS)
    assert not check("[1, 2]\n", "[1, 3]\n", OPTIONS)
