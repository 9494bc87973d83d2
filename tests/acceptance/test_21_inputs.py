"""Hostile tables give the correct matrix, or a typed error with file and column, not values."""

from __future__ import annotations

import gzip
import itertools
import os
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fsspec.implementations.local import LocalFileSystem

from gramercy.common.lattice import Lattice
from gramercy.pipeline.plan.checking import check_table_header
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas import families
from gramercy.tables.formats import parquet_format
from gramercy.tables.sums.streaming import Accumulated
from tests.acceptance.hostile.readable_tables import ALL_READ, ROWS, SPELLINGS, TEXT
from tests.acceptance.hostile.refused_tables import (
    ALL_REFUSED,
    REPEATED_COLUMN,
    damaged_parquet,
    valid_parquet,
)
from tests.acceptance.hostile.table_cases import (
    COLUMNS,
    PLAIN,
    PLANTED,
    SECRET,
    WORD,
    Content,
    Read,
    Reference,
    Refused,
    csv,
    steps,
    summed,
    write_case,
)
from tests.support.factories import FULL, as_flow_step, at_scale, read_plan
from tests.support.problems import raises


def assert_reference(case: Read, sums: Accumulated, lattice: Lattice) -> Reference:
    """Compare the sums with the reference; return the reference."""
    changes = case.changes
    reference = Reference(changes.get("columns", COLUMNS), changes.get("intercept", False))
    for row in case.rows:
        reference.add(row)
    moments = sums.gram.astype(float) / lattice.divisor
    # Rounding a unit row moves a product of two entries by less than 1/(2^K c).
    slack = (len(case.rows) + 1) / lattice.unit_length
    np.testing.assert_allclose(moments, reference.gram(), rtol=0, atol=slack)
    assert sums.rows == len(case.rows)
    assert sums.malformed == reference.malformed
    assert sums.repairs.filled.tolist() == reference.filled
    assert sums.repairs.clamped.tolist() == reference.clamped
    return reference


@pytest.mark.parametrize("case", ALL_READ, ids=str)
def test_hostile_table_equals_reference(case: Read, tmp_path: Path) -> None:
    checked, sums, lattice = steps(write_case(tmp_path, case))
    reference = assert_reference(case, sums, lattice)
    assert [column.name for column in checked.columns] == list(reference.columns)
    assert [column.missing for column in checked.columns] == reference.filled
    assert [column.clamped for column in checked.columns] == reference.clamped


@pytest.mark.parametrize(("name", "cell", "number"), SPELLINGS, ids=[s[0] for s in SPELLINGS])
def test_hostile_cell_equals_reference(name: str, cell: str, number: float, tmp_path: Path) -> None:
    case = csv(name, f"c0,c1\n{cell},3\n2,5\n", [[number, 3], [2, 5]])
    assert_reference(case, *summed(write_case(tmp_path, case)))


def error_texts(error: BaseException) -> str:
    """Everything that could be shown of an error, including its causes."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("case", ALL_REFUSED, ids=str)
def test_unreadable_table_is_refused_without_values(
    case: Refused,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    request = write_case(tmp_path, case)
    caplog.set_level(0)
    with raises(case.problem, key=case.key, **case.facts) as caught:
        steps(request)
    named = "contract.yaml" if case.key is not None else case.named
    facts = caught.value.facts
    assert facts.get("file", facts.get("source")).endswith(
        named or case.source or next(iter(case.files))
    )
    assert caught.value.exit_code == 2
    out, err = capfd.readouterr()
    for planted in PLANTED:
        assert planted not in error_texts(caught.value) + out + err + caplog.text


def test_brackets_in_the_contract_folder_are_literal(tmp_path: Path) -> None:
    """Only the source in the contract is a pattern, not the contract's own folder."""
    folder = tmp_path / "blood [2026]"
    folder.mkdir()
    for source in ("blood.csv", "blood*.csv"):
        _, sums, _ = steps(write_case(folder, Read("", {"blood.csv": TEXT.encode()}, ROWS, source)))
        assert sums.rows == 3


def test_symbolic_links_to_tables(tmp_path: Path) -> None:
    case = Read("", {"t.csv": TEXT.encode()}, ROWS, "link.csv")
    request = write_case(tmp_path, case)
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    assert steps(request)[1].rows == 3
    for target in ("absent.csv", "link.csv"):
        (tmp_path / "link.csv").unlink()
        (tmp_path / "link.csv").symlink_to(tmp_path / target)
        with raises(families.SOURCE, source=str(tmp_path / "link.csv")):
            steps(request)


def test_named_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    request = write_case(tmp_path, Read("", {"t.csv": TEXT.encode()}, ROWS, "pipe.csv"))
    os.mkfifo(tmp_path / "pipe.csv")
    with raises(families.SOURCE, source=str(tmp_path / "pipe.csv")):
        steps(request)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("step", [check_table_header, accumulate], ids=["validate", "accumulate"])
def test_unreadable_file_is_refused_at_every_step(
    name: str, step: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {"t.csv": PLAIN, "t.csv.gz": gzip.compress(PLAIN), "t.parquet": valid_parquet()}
    plan = read_plan(write_case(tmp_path, Read("", {name: contents[name]}, [None] * 2)))
    (tmp_path / name).chmod(0)
    if os.geteuid() == 0:  # root may read everything

        def refuse(*_: Any, **__: Any) -> None:
            raise PermissionError(13, "Permission denied", WORD)

        monkeypatch.setattr(LocalFileSystem, "_open", refuse)
        monkeypatch.setattr(parquet_format, "_open_bytes", refuse)
    with raises(families.FILE, file=str(tmp_path / name)) as caught:
        as_flow_step(step)(plan.contract if step is check_table_header else plan)
    assert not any(planted in error_texts(caught.value) for planted in PLANTED)


def test_table_changed_between_steps_is_refused_by_name(tmp_path: Path) -> None:
    """The table may change after it was validated: the error still names it."""
    good = pa.table({"c0": [2.0], "c1": [5.0]})
    bad: dict[str, Content | None] = {
        "gone": None,
        "text": pa.table({"c0": [WORD], "c1": [SECRET]}),
        "twice": REPEATED_COLUMN,
        "lacking": pa.table({"c1": [SECRET]}),
        "damaged": damaged_parquet(),
    }
    for name, content in bad.items():
        folder = tmp_path / name
        folder.mkdir()
        request = write_case(folder, Read("", {"t.parquet": good}, [[2, 5]]))
        plan = read_plan(request)
        as_flow_step(check_table_header)(plan.contract)
        (folder / "t.parquet").unlink()
        if content is not None:
            write_case(folder, Read("", {"t.parquet": content}, [None]))
        if name == "text":  # cells that are not numbers are replaced by the centre
            assert as_flow_step(accumulate)(plan).sums.repairs.filled.tolist() == [1, 0]
            continue
        problem = families.SOURCE if content is None else families.FILE
        with raises(problem) as caught:
            as_flow_step(accumulate)(plan)
        assert str(folder / "t.parquet") in caught.value.facts.values()
        assert not any(planted in error_texts(caught.value) for planted in PLANTED)


def test_table_with_many_columns(tmp_path: Path) -> None:
    p = at_scale(2000, 5000)
    names = [f"c{i}" for i in range(p)]
    signs = np.where(np.arange(p) % 3 == 0, -1.0, 1.0)
    lines = [names, [f"{x:g}" for x in signs], ["x"] * p]
    files: dict[str, Content] = {
        "t.csv": "".join(",".join(line) + "\n" for line in lines).encode(),
        "t.parquet": pa.table({n: [x, 0.0] for n, x in zip(names, signs, strict=True)}),
    }
    columns = {n: {"lower": -2, "upper": 2} for n in names}
    case = Read("", files, [None] * 4, "t.*", changes={"columns": columns})
    plan = read_plan(write_case(tmp_path, case))
    if FULL:  # minutes
        as_flow_step(check_table_header)(plan.contract)
    sums = as_flow_step(accumulate)(plan).sums
    moments = sums.gram / plan.mechanism.lattice.divisor
    slack = 2 / plan.mechanism.lattice.unit_length
    for i, j in itertools.product((0, 1, 2, p // 2, p - 1), repeat=2):
        assert moments[i, j] == pytest.approx(2 * signs[i] * signs[j] / p, abs=slack)
    assert sums.repairs.filled.tolist() == [1] * p
