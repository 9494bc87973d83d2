"""The page, from the results alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.graphs.releases import DELTA
from benchmarks.markdown import table
from benchmarks.papers import cells, sound
from benchmarks.papers.cells import Results
from benchmarks.papers.experiment import Experiment, Measured, Verdict
from benchmarks.papers.papers import PAPERS

FIGURES = "results"
Known = tuple[str, str, Experiment, Measured]  # paper, name of the experiment


def write(results: Results, folder: Path) -> None:
    """`results.md`, and its figures in a folder beside it."""
    (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    known = list(_known(results))
    for key, name, experiment, measured in known:
        if experiment.draw is not None:
            path = folder / FIGURES / f"{key}-{name}.svg"
            style: dict[Any, Any] = {
                "svg.hashsalt": path.stem,
                "svg.fonttype": "none",
                "font.size": 9,
            }
            with mpl.rc_context(style):
                experiment.draw(measured).savefig(path, format="svg", metadata={"Date": None})
    (folder / "results.md").write_text("\n".join(_page(results, known)) + "\n")


def _page(results: Results, known: list[Known]) -> Iterator[str]:
    yield "# The papers, reproduced\n"
    yield (
        "Written by `python -m benchmarks.papers` from `benchmarks/papers/results`. No number that "
        "was measured is typed by hand: only what the papers print, and what an earlier run of "
        "ours had led to expect where they print none, which is called expected. Experiments as "
        "published use noise scales, normalisation and tuning as the papers have them, which no "
        "release of Gramercy ever does: there is no ledger and no archive behind this page, and "
        "its noise is seeded. Real tables are not part of the project; what needs one that is "
        "absent is left out, and named.\n"
    )
    tested = {
        key: [each for of, _, made, found in known if of == key for each in made.verdicts(found)]
        for key in PAPERS
    }
    yield from _counted(tested)
    yield from _compared(known)
    for key, paper in PAPERS.items():
        mine = [(name, made, found) for of, name, made, found in known if of == key]
        if not mine:
            continue
        yield f"## {paper.title}\n"
        yield f"{paper.about}\n"
        yield from _tested(tested[key])
        for name, experiment, measured in mine:
            yield f"### {experiment.title}\n"
            yield f"{experiment.about}\n"
            if experiment.draw is not None:
                yield f"![{experiment.title}]({FIGURES}/{key}-{name}.svg)\n"
            yield from experiment.page(measured)
        yield from _left_out(key, {name for name, *_ in mine})
    seconds = sum(result.seconds for result in results.values())
    yield f"{len(results):,} cells, {seconds / 60:.0f} minutes on one core."


def _left_out(key: str, shown: set[str]) -> Iterator[str]:
    missing = [
        f"{experiment.title}" + (f" (table `{experiment.table}`)" if experiment.table else "")
        for name, experiment in PAPERS[key].experiments.items()
        if name not in shown
    ]
    if missing:
        yield f"Not measured: {'; '.join(missing)}.\n"


def _counted(tested: dict[str, list[Verdict]]) -> Iterator[str]:
    yield "## Claims put to the test\n"
    ours = sum(sound.IDENTITY in each.claim for found in tested.values() for each in found)
    yield (
        "What the papers say, what their settings imply, and what we say, together, each in its "
        f"section: no score of the papers. {ours} of the claims are one and the same, once a task: "
        "that the noise of our mechanism is smaller than theirs by a known factor. Readings and "
        "bands were set after the printed numbers had been seen.\n"
    )
    yield from table(
        ("section", "claims", "hold", "do not"),
        (
            (paper.title, str(len(mine)), str(sum(mine)), str(len(mine) - sum(mine)))
            for key, paper in PAPERS.items()
            if (mine := [each.holds for each in tested[key]])
        ),
    )


def _compared(known: list[Known]) -> Iterator[str]:
    lines = [
        (f"[{key.upper()}]", *made.compared(found))
        for key, _, made, found in known
        if made.compared is not None
    ]
    if not lines:
        return
    yield "## At the same exact guarantee\n"
    yield (
        "How many times better our default is than the paper's mechanism, exactly calibrated, with "
        f"the paper's estimator, by epsilon, at delta = {DELTA:g}: the ratio of the errors, "
        "or, where larger scores are better, of what each gains over not looking at the release. "
        f"Hopeless: neither gets {sound.HOPELESS:.0%} of what is to be had, or more than chance "
        "gives; ours alone: the paper's does not. The matrix: Frobenius error of the papers' raw "
        "matrix over that of our denoised one.\n"
    )
    yield (
        "Where precision matrices are scored, the paper's have the penalty that is best in "
        "hindsight, which only the truth can tell. The thresholds of [WX] and [LW] are set from "
        "the release, as ours are; with the best one in hindsight, a column of their sections, "
        "ours is ahead by less, or behind. [GPP] publishes every row with noise, and needs nobody "
        "who is trusted with the rows; ours does, and those ratios are what that is worth.\n"
    )
    yield (
        "In the sections, raw is the matrix as released, denoised the same repaired by what is "
        "known of its noise; without privacy is our estimator of the exact matrix; nothing is the "
        "score of whoever does not look at the release. Replace-one: n is public, and one row "
        "becomes another. Mu: telling two such tables apart is as hard as N(0, 1) from N(mu, 1).\n"
    )
    yield from table(("paper", *sound.COMPARED), lines)


def _tested(found: list[Verdict]) -> Iterator[str]:
    if found:
        yield from table(
            ("claim", "holds", "measured"),
            ((each.claim, "yes" if each.holds else "**no**", each.found) for each in found),
        )


def _known(results: Results) -> Iterator[Known]:
    """Experiments of which enough was measured to be told, in the order of the page."""
    for key, paper in PAPERS.items():
        for name, experiment in paper.experiments.items():
            measured = cells.measured(results, key, name)
            if set(experiment.quick) <= set(measured.settings):
                yield key, name, experiment, measured
