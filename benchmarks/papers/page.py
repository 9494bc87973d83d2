"""The pages of the papers, from the stored results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks import summary
from benchmarks.cells import append, argument_parser, report, run_cells
from benchmarks.graphs.releases import DELTA
from benchmarks.pages import page_text, table
from benchmarks.papers import cells, sound
from benchmarks.papers.cells import Results
from benchmarks.papers.experiment import Comparison, Experiment, Measured, Paper, Verdict
from benchmarks.papers.papers import PAPERS

FOLDER = "results"
HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"


@dataclass(frozen=True)
class Section:
    """An experiment with enough results for the page."""

    name: str
    experiment: Experiment
    measured: Measured


def write(results: Results, folder: Path) -> None:
    """Write `results.md`, and each paper's page and figures to the folder `results`."""
    figures = folder / FOLDER
    figures.mkdir(parents=True, exist_ok=True)
    for key in PAPERS:
        for section in _sections(results, key):
            _draw(section, figures / f"{key}-{section.name}.svg")
    for name, text in pages(results).items():
        (folder / name).write_text(text, encoding="utf-8")


def pages(results: Results) -> dict[str, str]:
    """Return the text of all pages, by path in the folder."""
    findings, texts = [], {}
    for key, paper in PAPERS.items():
        sections = list(_sections(results, key))
        if not sections:
            continue
        seconds = [result.seconds for cell, result in results.items() if cell.paper == key]
        path = f"{FOLDER}/{key}.md"
        texts[path] = page_text(_page(key, paper, sections, seconds))
        findings.append(
            summary.Findings(
                paper.title,
                path,
                [each.holds for each in _verdicts(sections)],
                _comparisons(sections),
            )
        )
    claims = cells.measured(results, "claims", "table")
    return {"results.md": page_text(summary.page(findings, claims))} | texts


def _draw(section: Section, path: Path) -> None:
    if section.experiment.draw is None:
        return
    style: dict[Any, Any] = {
        "svg.hashsalt": path.stem,
        "svg.fonttype": "none",
        "font.size": 9,
    }
    with mpl.rc_context(style):
        section.experiment.draw(section.measured).savefig(
            path, format="svg", metadata={"Date": None}
        )


def _page(key: str, paper: Paper, sections: list[Section], seconds: list[float]) -> Iterator[str]:
    yield f"# {paper.title}\n"
    yield f"{paper.about}\n"
    yield (
        "For readers who want the evidence behind [the summary](../results.md). Written by "
        f"`python -m benchmarks papers` from `benchmarks/papers/results/{key}.jsonl`. Measured "
        "numbers come from that file. Only the numbers printed in the papers, and numbers expected "
        "from earlier measurements, are typed; the tables call them printed or expected. Noise is "
        "seeded, so nothing here is a release. Real tables are not part of the project.\n"
    )
    yield from _claims(list(_verdicts(sections)))
    yield from _compared(_comparisons(sections))
    for section in sections:
        experiment = section.experiment
        yield f"## {experiment.title}\n"
        yield f"{experiment.about}\n"
        if experiment.draw is not None:
            yield f"![{experiment.title}]({key}-{section.name}.svg)\n"
        yield from experiment.page(section.measured)
    yield from _missing(paper, {section.name for section in sections})
    yield f"{len(seconds):,} cells, {sum(seconds) / 60:.0f} minutes on one core."


def _missing(paper: Paper, measured: set[str]) -> Iterator[str]:
    missing = [
        f"{experiment.title}" + (f" (table `{experiment.table}`)" if experiment.table else "")
        for name, experiment in paper.experiments.items()
        if name not in measured
    ]
    if missing:
        yield f"Not measured: {'; '.join(missing)}.\n"


def _claims(verdicts: list[Verdict]) -> Iterator[str]:
    if not verdicts:
        return
    yield "## Claims tested\n"
    yield (
        "The table mixes what the paper says, what its settings imply and what Gramercy claims: it "
        "is not a score of the paper. How a vague claim is read, and its tolerance, were set after "
        "the printed numbers had been seen.\n"
    )
    yield from table(
        ("claim", "holds", "measured"),
        ((each.claim, "yes" if each.holds else "**no**", each.evidence) for each in verdicts),
    )


def _compared(comparisons: list[Comparison]) -> Iterator[str]:
    if not comparisons:
        return
    yield "## At the same exact guarantee\n"
    yield (
        "How many times better Gramercy's default is than the paper's mechanism, exactly "
        f"calibrated, with the paper's estimator, at delta = {DELTA:g}: the ratio of the errors, "
        "or, where larger scores are better, of the gains over not using the release. A score is "
        f"useful if it reaches {sound.USEFUL:.0%} of the largest gain and is beyond chance. The "
        "matrix: Frobenius error of the paper's raw matrix over that of Gramercy's denoised one.\n"
    )
    yield (
        "In the sections below, raw is the matrix as released. Denoised is the same matrix after a "
        "correction that uses only the noise's distribution. Without privacy is Gramercy's "
        "estimator on the exact matrix. Replace-one: n is public, and one row is replaced. Mu: to "
        "tell two such tables apart is as hard as to tell N(0, 1) from N(mu, 1).\n"
    )
    yield from table(
        (
            "task",
            "rows x columns",
            *(f"at epsilon = {epsilon:g}" for epsilon in sound.EPSILONS),
            "the matrix at epsilon = 1",
        ),
        (
            (
                each.task,
                f"{each.rows:,} x {each.columns}",
                *(str(each.outcomes.get(epsilon, "")) for epsilon in sound.EPSILONS),
                each.matrix,
            )
            for each in comparisons
        ),
    )


def _verdicts(sections: list[Section]) -> Iterator[Verdict]:
    for section in sections:
        yield from section.experiment.verdicts(section.measured)


def _comparisons(sections: list[Section]) -> list[Comparison]:
    return [
        section.experiment.compared(section.measured)
        for section in sections
        if section.experiment.compared is not None
    ]


def _sections(results: Results, key: str) -> Iterator[Section]:
    """Yield the experiments with enough results, in the order of the page."""
    for name, experiment in PAPERS[key].experiments.items():
        measured = cells.measured(results, key, name)
        if set(experiment.quick) <= set(measured.settings):
            yield Section(name, experiment, measured)


class Papers:
    """Like `Benchmark`, with a file of results for each paper, and pages in `docs/`."""

    def main(self, arguments: list[str] | None = None) -> None:
        """Measure the missing cells of the papers, and write their pages."""
        parser = argument_parser(
            "papers", "measure a few settings and repetitions of each experiment"
        )
        parser.add_argument(
            "papers",
            nargs="*",
            metavar="PAPER",
            help=f"of {', '.join(PAPERS)}; default: all papers",
        )
        options = parser.parse_args(arguments)
        unknown = set(options.papers) - set(PAPERS)
        if unknown:
            parser.error(f"unknown papers: {', '.join(sorted(unknown))}")
        out: Path | None = options.out or (Path("papers-quick") if options.quick else None)
        kept, page_to = (HERE / "results", DOCS) if out is None else (out / "results", out)
        kept.mkdir(parents=True, exist_ok=True)
        started, done = time.monotonic(), cells.read(kept)
        wanted = cells.plan(options.papers or list(PAPERS), options.quick)
        missing = [(cell,) for cell in wanted if cell not in done]
        for result in run_cells(cells.measure, missing, options.jobs, _label):
            append(cells.file_of(kept, result.cell.paper), result)
        write(cells.read(kept), page_to)
        report(page_to, started)


def _label(cell: cells.Cell) -> str:
    return " ".join((cell.paper, cell.experiment, *(str(value) for _, value in cell.setting)))


BENCHMARK = Papers()
