"""A table that cannot be read: public facts alone refuse, a check finds it, the steward is warned.

Cells never decide whether a release is charged, not even if all of them are unreadable.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from gramercy.cli import flow_runner
from gramercy.pipeline.context import Context
from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.support.factories import run_command, run_json, write_request
from tests.support.leaks import prefect_texts

ROWS = 600
BUDGET = {"epsilon": 9.0, "delta": 1e-4}
COLUMNS: dict[str, Any] = {
    "size": {"lower": 0, "upper": 300},
    "mass": {"lower": 0, "upper": 300},
    "kind": {"levels": ["1", "2"]},
}
HEADER = "size,mass,kind\n"
READABLE = HEADER + "".join(f"{k % 250},{k % 200},{k % 2 + 1}\n" for k in range(ROWS))
# Tables whose header is right, and the warnings about them.
NOISE: dict[str, tuple[str, list[Family[Any]]]] = {
    "decimal commas, levels 2.0": (
        HEADER + '"17,25","3,5",2.0\n' * ROWS,
        [families.UNUSABLE_COLUMNS, families.UNUSABLE_COLUMNS],
    ),
    "units in cells, other levels": (
        HEADER + "17.25 cm,3.5 kg,two\n" * ROWS,
        [families.UNUSABLE_COLUMNS, families.UNUSABLE_COLUMNS],
    ),
    "empty": (HEADER + ",,\n" * ROWS, [families.UNUSABLE_COLUMNS, families.UNUSABLE_COLUMNS]),
    "too many fields": (HEADER + "1,2,1,4\n" * ROWS, [families.UNUSABLE_LINES]),
}
PARTLY: dict[str, tuple[str, list[Family[Any]]]] = {
    "one column": (HEADER + '"17,25",3.5,2\n' * ROWS, [families.UNUSABLE_COLUMNS]),
    "levels 2.0": (HEADER + "17.25,3.5,2.0\n" * ROWS, [families.UNUSABLE_COLUMNS]),
    "another unit": (HEADER + "17250,3.5,2\n" * ROWS, [families.MANY_CELLS]),
    "many gaps": (HEADER + "17,,2\n17,3,2\n" * (ROWS // 2), [families.MANY_CELLS]),
    "blank lines": (HEADER + "17,3,2\n\n" * (ROWS // 2), [families.UNUSABLE_LINES]),
}
PRIVATE = [
    families.UNUSABLE_TABLE,
    families.NOTHING_USED,
    families.UNUSABLE_COLUMNS,
    families.UNUSABLE_COLUMNS,
    families.MANY_CELLS,
    families.MANY_CELLS,
    families.UNUSABLE_LINES,
]


def written(folder: Path, text: str, *, version: str = "v1", **changes: Any) -> Path:
    """Write a table, a contract and a request; returns the request."""
    (folder / "table.csv").write_text(text)
    facts: dict[str, Any] = {"columns": COLUMNS, "rows": ROWS} | changes
    return write_request(folder, request={"estimates": [], "version": version}, **facts)


def private_codes(text: str) -> set[str]:
    return {problem.code for problem in PRIVATE if problem.code in text}


def files(*folders: Path) -> dict[Path, bytes]:
    paths = (path for folder in folders for path in folder.rglob("*"))
    return {path: path.read_bytes() for path in paths if path.is_file()}


@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize("name", [*NOISE, *PARTLY])
def test_check_finds_it_without_a_charge(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = (NOISE | PARTLY)[name]
    request = written(tmp_path, text)
    assert run_command("plan", request, capsys=capsys)[0] == 0  # cells are not read
    before = files(tmp_path)
    code, out, err = run_command("check", request, capsys=capsys)
    unusable = "unusable" in out
    assert code == (2 if unusable else 0)
    assert unusable == (name not in {"many gaps", "blank lines"})
    codes = {problem.code for problem in expected}
    codes |= {families.UNUSABLE_TABLE.code} if unusable else set()
    assert codes <= private_codes(err) <= codes | {families.MANY_CELLS.code}  # likely mistakes
    assert families.PRIVATE.code in err
    assert files(tmp_path) == before


def test_check_agrees_with_a_readable_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = run_json("check", written(tmp_path, READABLE), capsys=capsys)
    assert facts["usable"]
    assert facts["problems"] == []
    assert facts["rows"] == ROWS
    assert {(each["missing"], each["out_of_bounds"]) for each in facts["columns"].values()} == {
        (0, 0)
    }


def test_check_starts_no_prefect_and_stores_nothing(tmp_path: Path, home: Path) -> None:
    request = written(tmp_path, NOISE["empty"][0])
    before = files(tmp_path)
    code = (
        "import logging, sys\n"
        "from gramercy.cli.main import main\n"
        "records = []\n"
        "logging.setLogRecordFactory(lambda *args, **kwargs: records.append(args))\n"
        f"sys.argv = ['gramercy', 'check', {str(request)!r}, '--json']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    print('prefect' in sys.modules, records, end.code, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stderr.splitlines()[-1] == "False [] 2"
    assert json.loads(done.stdout)["usable"] is False
    assert files(tmp_path) == before
    assert not home.exists()


@pytest.mark.usefixtures("on_terminal", "prefect_server")
def test_steward_is_warned_after_the_release(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any cells give the same exit code, output, charge and public files; warnings differ."""
    noise, codes = NOISE["decimal commas, levels 2.0"]
    differs = families.MANY_CELLS  # from the table of the first release
    cases = [(READABLE, []), (noise, [families.NOTHING_USED, differs, *codes])]
    results, public = [], []
    for number, (text, expected) in enumerate(cases):
        request = written(tmp_path, text, version=f"v{number}", budget=BUDGET)
        code, out, err = run_command("release", request, "--yes", "--json", capsys=capsys)
        assert private_codes(err) == {problem.code for problem in expected}
        done = json.loads(out)
        charge = Context.default().ledger.releases("toy")
        results.append((code, done["problems"], done["replayed"], len(charge) - number))
        release = Path(done["path"])
        public.append({path.relative_to(release) for path in files(release)})
    assert results == [(0, [], False, 1)] * 2
    assert public[0] == public[1] != set()
    published = b"".join(files(home / "archive").values()).decode("latin-1")
    for text in (published, *prefect_texts()):
        assert not private_codes(text)
        assert "filled_cells" not in text


PUBLIC: dict[str, tuple[str, str, Family[Any]]] = {
    "wrong path": ("tables.csv", READABLE, families.SOURCE),
    "wrong pattern": ("*.pq", READABLE, families.SOURCE),
    "wrong column": ("table.csv", READABLE.replace("mass", "weight"), families.TABLE_COLUMNS),
    "semicolons": ("table.csv", READABLE.replace(",", ";"), families.HEADER),
    "tabs": ("table.csv", READABLE.replace(",", "\t"), families.HEADER),
    "bars": ("table.csv", READABLE.replace(",", "|"), families.HEADER),
    "text for numbers": ("text.parquet", READABLE, families.TABLE_COLUMNS),
    "spreadsheet": ("table.xlsx", READABLE, families.SOURCE),
    "feather named parquet": ("feather.parquet", READABLE, families.FILE),
}


@pytest.mark.parametrize("command", ["plan", "check", "release"])
@pytest.mark.parametrize("name", PUBLIC)
def test_public_facts_are_found_before_the_charge(
    name: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(flow_runner, "start_prefect", None)  # would fail if it was called
    source, text, problem = PUBLIC[name]
    request = written(tmp_path, text, source=source)
    table = pa.table({"size": ["1"], "mass": [1.0], "kind": ["1"]})
    pq.write_table(table, tmp_path / "text.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "feather.parquet")
    (tmp_path / "table.xlsx").write_bytes(b"PK\x03\x04")
    options = {"plan": (), "check": ("--json",), "release": ("--yes",)}[command]
    code, _, err = run_command(command, request, *options, capsys=capsys)
    assert code == 2
    assert problem.code in err
    assert not Context.default().ledger.releases("toy")
    if command == "plan":
        assert run_command(command, request, "--no-table", capsys=capsys)[0] == 0
