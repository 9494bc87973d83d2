"""Notes after a release: loud where the table could hardly be read, and on a terminal only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramercy.cli.request_runner import print_steward_notes, record_of_run
from gramercy.common.home import Home
from gramercy.pipeline.publish.internal_record import read_record
from gramercy.schemas import families
from tests.support.cumulative import STEPS, catch_up, write_step
from tests.support.factories import read_plan, run_release, write_request

LOUD = {
    each.code
    for each in (
        families.NOTHING_USED,
        families.UNUSABLE_COLUMNS,
        families.MANY_CELLS,
        families.UNUSABLE_LINES,
    )
}


def notes(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str], **changes: Any
) -> tuple[set[str], str]:
    """Release a table; return the codes of loud notes, and all notes."""
    (folder / "table.csv").write_text(text)
    request = write_request(folder, **changes)
    plan, release = read_plan(request), run_release(request)
    capsys.readouterr()
    print_steward_notes(plan, f"toy/{release}", read_record(Home.default(), "toy", release))
    out, err = capsys.readouterr()
    assert not out
    return {code for code in LOUD if code in err}, err


HEADER = "c0,c1,c2\n"
UNREADABLE = HEADER + '"0,5","1,5",x\n' * 40


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_notes_are_not_written_to_files(
    variable: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, "1")
    assert notes(tmp_path, UNREADABLE, capsys) == (set(), "")


@pytest.mark.slow
@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEADER + "1,2,3\n" * 40, set()),
        (UNREADABLE, {families.NOTHING_USED, families.UNUSABLE_COLUMNS}),
        (HEADER + "1,2\n" * 40, {families.NOTHING_USED, families.UNUSABLE_LINES}),
        (HEADER + "1,2,x\n" * 40, {families.UNUSABLE_COLUMNS}),
        (HEADER + "1,,3\n" * 9 + "1,2,3\n" * 31, {families.MANY_CELLS}),
        (HEADER + "1,2,30\n" * 3 + "1,2,3\n" * 37, {families.MANY_CELLS}),
        (HEADER + "1,2,3\n\n" * 20, {families.UNUSABLE_LINES}),
    ],
    ids=range(7),
)
# With folds, malformed lines stay in their place.
@pytest.mark.parametrize("folds", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_badly_read_tables_get_loud_warnings(
    text: str, expected: set[Any], folds: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loud, err = notes(tmp_path, text, capsys, request={"folds": folds, "estimates": []})
    assert loud == {problem.code for problem in expected}
    assert ("toy/v1-r1" in err) == (families.NOTHING_USED in expected)


@pytest.mark.slow
@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (UNREADABLE, {families.NOTHING_USED, families.UNUSABLE_COLUMNS}),
        (HEADER + "1,2,3\n\n" * 20, {families.UNUSABLE_LINES}),
        (
            HEADER + "1,,3\n" * 15 + "1,2,3\n" * 5 + "\n" * 20,
            {families.MANY_CELLS, families.UNUSABLE_LINES},
        ),
    ],
    ids=range(3),
)
def test_badly_read_marginals_get_loud_warnings(
    text: str, expected: set[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mechanism = {"name": "marginals", "epsilon": 1.0, "delta": 1e-6}
    request = {"mechanism": mechanism, "scaling": "private", "estimates": []}
    loud, _ = notes(tmp_path, text, capsys, request=request)
    assert loud == {problem.code for problem in expected}


@pytest.mark.slow
@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize(
    ("request_change", "persons"),
    [
        ({}, {}),
        ({"folds": 2}, {}),
        ({"by": "ward"}, {}),
        ({"by": "ward", "folds": 2}, {}),
        ({"by": "ward"}, {"privacy_unit": "who", "persons": 19}),
    ],
    ids=["plain", "folds", "groups", "groups and folds", "groups of persons"],
)
def test_malformed_lines_are_not_missing_cells(
    request_change: dict[str, Any],
    persons: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A malformed line has no cells, except those that the name of its folder states."""
    columns: dict[str, Any] = {
        "site": {"levels": [1, 2]},
        "c0": {"lower": 0, "upper": 9},
        "ward": {"levels": ["A", "B"]},
    }
    lines = [f"{k % 9},{'AB'[k % 2]},{k or ''}\n\n" for k in range(20)]
    folder = tmp_path / "t" / "site=1"
    folder.mkdir(parents=True)
    (folder / "t.csv").write_text("c0,ward,who\n" + "".join(lines))
    loud, err = notes(
        tmp_path, "", capsys, source="t", columns=columns, request=request_change, **persons
    )
    assert loud == {families.UNUSABLE_LINES.code}
    assert families.REPAIRED_CELLS.code not in err
    record = read_record(Home.default(), "toy", "v1-r1")
    assert (record["rows"], record["malformed_rows"]) == (40, 20)
    assert set(record["filled_cells"].values()) == {0}
    if persons:
        assert record["rows_without_person"] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("on_terminal")
def test_levels_of_another_spelling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns: dict[str, Any] = {"c0": {"lower": 0, "upper": 9}, "[kind]": {"levels": ["1", "2"]}}
    text = "c0,[kind]\n" + "1,2.0\n" * 40
    loud, err = notes(tmp_path, text, capsys, columns=columns)
    assert loud == {families.UNUSABLE_COLUMNS.code}
    assert "[kind]" in err
    assert "2.0 is" in err  # the hint, which does not come from the table


@pytest.mark.slow
@pytest.mark.usefixtures("on_terminal")
def test_a_table_without_persons_is_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    persons = {"privacy_unit": "who", "persons": 4}
    text = "c0,c1,c2,who\n" + "1,2,3,\n" * 40
    loud, _ = notes(tmp_path, text, capsys, **persons)
    assert loud == {families.NOTHING_USED.code}


@pytest.mark.slow
@pytest.mark.usefixtures("on_terminal")
def test_changes_are_named_that_the_first_of_several_steps_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those after it are drawn from the same reading, and find no others."""
    catch_up(write_step(tmp_path, STEPS[0]))
    lines = (tmp_path / "table.csv").read_text().splitlines()
    request = write_step(tmp_path, STEPS[2])
    january = [line for line in lines if "2026-01" in line]
    kept = [line for line in lines if line not in january]
    (tmp_path / "table.csv").write_text("\n".join(kept))
    releases = [f"toy/{each}" for each in catch_up(request)]
    record = record_of_run(Home.default(), releases)
    assert record["changed_steps"] == {STEPS[0]: [len(january), 0]}
    capsys.readouterr()
    print_steward_notes(read_plan(request), releases[-1], record)
    assert f"{STEPS[0]} ({len(january)} to 0)" in capsys.readouterr().err
    assert "changed_steps" not in record_of_run(Home.default(), ["toy/none"])
