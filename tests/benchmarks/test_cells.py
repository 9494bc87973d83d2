"""Any benchmark measures only its missing cells, and those whose line was cut short."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.cells import Benchmark, Cell, read_results

CELLS = [Cell("a table", epsilon, "a method") for epsilon in (1.0, 2.0, 3.0)]


@dataclass(frozen=True)
class Toy:
    cell: Cell
    value: float


def measure(cell: Cell) -> Toy:
    return Toy(cell, 2 * cell.epsilon)


def test_runs_resume(tmp_path: Path) -> None:
    written: list[Path] = []
    benchmark = Benchmark(
        "toy",
        "quick",
        Toy,
        lambda _, done: [(each,) for each in CELLS if each not in done],
        measure,
        repr,
        written.append,
    )
    arguments, path = ["--jobs", "1", "--out", str(tmp_path)], tmp_path / "results.jsonl"
    measured = {cell: measure(cell) for cell in CELLS}
    benchmark.main(arguments)
    lines = path.read_text().splitlines()
    assert read_results(path, Toy) == measured
    path.write_text("\n".join((lines[0], lines[1][:20])))  # an interrupted write
    benchmark.main(arguments)
    assert len(path.read_text().splitlines()) == len(CELLS) + 1
    assert read_results(path, Toy) == measured
    benchmark.main(arguments)
    assert len(path.read_text().splitlines()) == len(CELLS) + 1  # nothing is missing
    assert written == [tmp_path] * 3
