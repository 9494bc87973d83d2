"""The page, from the results alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

from benchmarks.markdown import table
from benchmarks.papers import cells
from benchmarks.papers.cells import Results
from benchmarks.papers.experiment import Experiment, Measured, Verdict
from benchmarks.papers.papers import PAPERS

FIGURES = "results"


def write(results: Results, folder: Path) -> None:
    """`results.md`, and its figures in a folder beside it."""
    (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    for key, name, experiment, measured in _known(results):
        if experiment.draw is not None:
            path = folder / FIGURES / f"{key}-{name}.svg"
            style = {"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 9}
            with mpl.rc_context(style):
                experiment.draw(measured).savefig(path, format="svg", metadata={"Date": None})
    (folder / "results.md").write_text("\n".join(_page(results)) + "\n")


def verdicts(results: Results) -> Iterator[tuple[str, Verdict]]:
    """Every claim put to the test, with the key of its paper."""
    for key, _, experiment, measured in _known(results):
        for verdict in experiment.verdicts(measured):
            yield key, verdict


def _page(results: Results) -> Iterator[str]:
    yield "# The papers, reproduced\n"
    yield (
        "Written by `python -m benchmarks.papers` from `benchmarks/papers/results`; nothing is "
        "typed by hand but what the papers print. Experiments as published use noise scales, "
        "normalisation and tuning as the papers have them, which no release of Gramercy ever "
        "does: there is no ledger and no archive behind this page, and its noise is seeded. Real "
        "tables are those of `shared/data`, where they are present.\n"
    )
    known = list(_known(results))
    yield "## Claims put to the test\n"
    yield from table(
        ("paper", "claim", "holds", "measured"),
        (
            (_named(key), each.claim, "yes" if each.holds else "**no**", each.found)
            for key, each in verdicts(results)
        ),
    )
    for key, paper in PAPERS.items():
        mine = [(name, made, found) for of, name, made, found in known if of == key]
        if not mine:
            continue
        yield f"## {paper.title}\n"
        yield f"{paper.about}\n"
        for name, experiment, measured in mine:
            yield f"### {experiment.title}\n"
            yield f"{experiment.about}\n"
            if experiment.draw is not None:
                yield f"![{experiment.title}]({FIGURES}/{key}-{name}.svg)\n"
            yield from experiment.page(measured)
    seconds = sum(result.seconds for result in results.values())
    yield f"{len(results):,} cells, {seconds / 60:.0f} minutes on one core."


def _named(key: str) -> str:
    return "all" if key == "claims" else f"[{key.upper()}]"


def _known(results: Results) -> Iterator[tuple[str, str, Experiment, Measured]]:
    """Experiments of which anything was measured, in the order of the page."""
    for key, paper in PAPERS.items():
        for name, experiment in paper.experiments.items():
            measured = cells.measured(results, key, name)
            if measured.settings:
                yield key, name, experiment, measured
