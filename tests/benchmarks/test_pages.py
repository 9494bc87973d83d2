"""The results pages agree with the stored results, and use mathematical symbols."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from benchmarks.pages import symbols
from benchmarks.papers import cells, page

ROOT = Path(__file__).parents[2]


def test_pages_of_papers_agree_with_stored_results() -> None:
    pages = page.pages(cells.read(ROOT / "benchmarks/papers/results"))
    assert len(pages) == 7
    for name, text in pages.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, name


@pytest.mark.parametrize(
    "name",
    [
        "ablation",
        "analyses",
        "coverage",
        "denoising",
        "graphs",
        "intervals",
        "load",
        "solvers",
        "statistics",
        "throughput",
        "utility",
        "verdicts",
    ],
)
def test_pages_of_benchmarks_agree_with_stored_results(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)  # most of the time
    folder = ROOT / "benchmarks" / name
    shutil.copy(folder / "results.jsonl", tmp_path)
    importlib.import_module(f"benchmarks.{name}.page").write(tmp_path)
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    assert written == {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    assert "results.md" in written


def test_symbols_replace_names_outside_code_and_links() -> None:
    text = "epsilon 0.5 (delta = 1e-06), 2.5e+03, 95%, 10 x 3: `epsilon 1e-06` [mu](delta.md)"
    assert symbols(text) == (
        "ε = 0.5 (δ = 10⁻⁶), 2.5 × 10³, 95 %, 10 × 3: `epsilon 1e-06` [μ](delta.md)"
    )
