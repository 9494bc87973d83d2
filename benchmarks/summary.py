"""The page `docs/results.md`, which summarises all stored results."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.cells import read_results
from benchmarks.coverage import cells as coverage_cells
from benchmarks.coverage import tables as coverage
from benchmarks.coverage.populations import QUANTITIES
from benchmarks.coverage.scores import LEVEL, RATES
from benchmarks.graphs import cells as graph_cells
from benchmarks.graphs import methods as graph_methods
from benchmarks.graphs import tables as graphs
from benchmarks.intervals import cells as interval_cells
from benchmarks.intervals import tables as resampled
from benchmarks.pages import table
from benchmarks.papers.claims import false_claims
from benchmarks.papers.experiment import Comparison, Measured, short
from benchmarks.solvers import cells as solver_cells
from benchmarks.solvers import tables as solvers
from benchmarks.solvers.page import TITLES as SOLVERS
from benchmarks.solvers.peers import OURS
from benchmarks.throughput import cells as throughput_cells
from benchmarks.throughput import tables as throughput
from benchmarks.throughput.cells import Result
from benchmarks.utility import cells as utility_cells
from benchmarks.utility import tables as utility

HERE = Path(__file__).parent
GRAPHS = ("lasso-ebic-refit", "sgz-lasso", "wx", "gpp", "exact")
PEERS = ("admm", "scikit-learn", "gglasso", "quic")


@dataclass(frozen=True)
class Findings:
    """The results of one paper for the summary page.

    Parameters
    ----------
    title, page
        Heading and link.
    holds
        For each tested claim, whether it holds.
    comparisons
        Tasks compared at the same exact guarantee.
    """

    title: str
    page: str
    holds: list[bool]
    comparisons: list[Comparison]

    @property
    def link(self) -> str:
        """Label, authors and year, as a link to the page of the paper."""
        label, source = self.title.split(":")[0].removeprefix("[").split("] ")
        return f"[{label}{'' if source.startswith('(') else ':'} {source}]({self.page})"


def page(findings: list[Findings], claims: Measured) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Results: accuracy, coverage, speed and five papers\n"
    yield (
        "For everyone who wants to know how accurate releases are, whether the intervals can be "
        "trusted, and how fast it all is. Every number is computed from measurements stored in the "
        "repository; `make benchmarks` repeats them and writes this page. Unless stated, "
        "delta = 1e-06, neighbouring tables differ in one row, and public constants bound the "
        "length of a row by one. Benchmarks use seeded noise, so nothing here is a release. The "
        "[glossary](glossary.md) explains the terms.\n"
    )
    yield from _utility()
    yield from _graphs()
    yield from _coverage()
    yield from _intervals()
    yield from _solvers()
    yield from _throughput()
    yield from _papers(findings, claims)


def _utility() -> Iterator[str]:
    results = read_results(HERE / "utility" / "results.jsonl", utility_cells.Result)
    comparisons = list(utility.comparisons(results))
    lost = [each for each in comparisons if each.verdict == "more"]
    short_rows = sum(each.dataset.startswith("short") for each in lost)
    pure = sum(each.kind == "pure" for each in lost)
    yield "## Accuracy of the released matrix\n"
    yield (
        "Mean Frobenius error of the second-moment matrix XᵀX/n at the same guarantee, on six "
        "tables with 30 to 200 columns. Gramercy appears in one form, fixed in advance. Every "
        "other method appears in the form that is best in each case. A case is a table and a "
        "guarantee; equal means within two standard errors.\n"
    )
    lines = []
    for rival, method in utility_cells.METHODS.items():
        cases = [each for each in comparisons if (each.norm, each.rival) == ("frobenius", rival)]
        if cases:
            counts = Counter(each.verdict for each in cases)
            ratios = [each.ratio for each in cases]
            lines.append(
                (
                    method.title,
                    *(str(counts[verdict]) for verdict in ("less", "tie", "more")),
                    f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                )
            )
    yield from table(
        (
            "other method",
            "Gramercy more accurate",
            "equal",
            "less accurate",
            "its error / Gramercy's: median (range)",
        ),
        lines,
    )
    yield "![Frobenius error on the digits table](../benchmarks/utility/figures/digits.svg)\n"
    yield (
        f"Another method is more accurate in {len(lost)} of {len(comparisons):,} comparisons in "
        f"both norms: {pure} of these with pure epsilon, {short_rows} on a table whose rows are "
        "mostly much shorter than the public bound. "
        "[All tables, methods and losses](../benchmarks/utility/results.md).\n"
    )


def _graphs() -> Iterator[str]:
    results = read_results(HERE / "graphs" / "results.jsonl", graph_cells.Result)
    yield "## Graphs and precision matrices\n"
    yield (
        "F1 score of the edges that are found (1 is perfect), averaged over three kinds of "
        "graphs with 20 and 60 columns. SGZ, WX and GPP are published methods "
        "([the five papers](#the-five-papers)). Gramercy chooses its penalty from the release "
        "alone; SGZ and GPP get the penalty that is best in hindsight, which requires the "
        "truth.\n"
    )

    lines = []
    for n, epsilon in product(graph_cells.ROWS, graph_cells.EPSILONS):
        means = (graphs.mean(results, name, "f1", _where(n, epsilon)) for name in GRAPHS)
        lines.append((f"{n:,}", f"{epsilon:g}", *("" if m is None else str(m) for m in means)))
    titles = ["Gramercy", *(graph_methods.METHODS[name].title for name in GRAPHS[1:-1])]
    yield from table(("rows", "epsilon", *titles, "without privacy"), lines)
    edges, loss = (
        graphs.comparison(results, measure, graph_methods.HEADLINE, "sgz-lasso")
        for measure in ("f1", "stein")
    )
    if edges and loss:
        yield (
            "With few rows and a small epsilon no method finds the graph. With more of either, "
            "Gramercy finds it. Compared with SGZ, the closest, its graph is better in "
            f"{edges.better} settings, equal in {edges.tie} and worse in {edges.worse}; the Stein "
            f"loss of SGZ's precision matrix is {loss.median:.1f} times Gramercy's (median). "
            "[All measures, penalties and real tables](../benchmarks/graphs/results.md).\n"
        )


def _where(n: int, epsilon: float) -> Callable[[graph_cells.Cell], bool]:
    return lambda cell: cell.synthetic and (cell.n, cell.epsilon) == (n, epsilon)


def _coverage() -> Iterator[str]:
    results = read_results(HERE / "coverage" / "results.jsonl", coverage_cells.Result)
    lines, found = coverage.intervals(results), coverage.discoveries(results)
    judged = coverage.with_enough_known(lines)
    yield "## Coverage of intervals\n"
    yield (
        f"Share of {LEVEL:.0%} confidence intervals that contain the true value, by setting (a "
        "population, a number of rows and columns, a noise and its strength). Settings count if "
        f"at least {coverage.FEW:.0%} of the entries have a bounded interval. Width is relative to "
        "an oracle that knows the true standard deviation.\n"
    )
    body = []
    for quantity in QUANTITIES:
        here, every = judged[judged["of"] == quantity], lines[lines["of"] == quantity]
        held = here["held"]
        body.append(
            (
                quantity.replace("-", " "),
                f"{held.mean():.1%}",
                f"{held.min():.1%} to {held.max():.1%}",
                f"{held.between(*coverage.BAND).sum():,} of {len(here):,}",
                f"{here['width'].median():.2f}",
                f"{len(every) - len(here):,}",
            )
        )
    low, high = coverage.BAND
    yield from table(
        (
            "quantity",
            "mean coverage",
            "range",
            f"settings within {low:.0%} to {high:.0%}",
            "median width",
            "settings with too few intervals",
        ),
        body,
    )
    at = found[found["rate"] == RATES[0]]
    over = coverage.over(at)
    many = over[(over["rows"] == "unit") & (over["n"] == over["n"].max())]
    yield (
        "Intervals keep their level. Where noise hides a partial correlation, its interval is "
        f"unbounded instead of wrong. At a false discovery rate of {RATES[0]:g}, "
        f"{len(over)} of {len(at):,} settings exceed the rate beyond chance; {len(many)} of these "
        "are rows scaled to length one, where scaling itself creates tiny true correlations that "
        "the benchmark counts as false. "
        "[All settings, exceptions and power](../benchmarks/coverage/results.md).\n"
    )


def _intervals() -> Iterator[str]:
    results = read_results(HERE / "intervals" / "results.jsonl", interval_cells.Result)
    some = resampled.judged(resampled.intervals(results))
    yield "### On tables that are not Gaussian\n"
    yield (
        f"Rows drawn from {some['table'].nunique()} tables, skewed, discrete, with many zeros or "
        "real, and released with private constants: mean coverage over tables, numbers of rows and "
        "epsilon, of the population's values / of the released table's own.\n"
    )
    body = []
    for quantity, here in some.groupby("of", sort=False):
        by_folds = (here[here["folds"] == folds] for folds in resampled.LAYOUTS)
        cells = (
            f"{each['held'].mean():.1%}"
            + (f" / {each['own'].mean():.1%}" if each["own"].notna().all() else "")
            for each in by_folds
        )
        body.append((str(quantity).replace("-", " "), *cells))
    yield from table(("quantity", *resampled.LAYOUTS.values()), body)
    yield (
        "![Coverage by table](../benchmarks/intervals/figures/coverage.svg)\n\n"
        "Least covered are partial correlations of the wines, at 200,000 rows. [All tables and "
        "widths](../benchmarks/intervals/results.md).\n"
    )


def _solvers() -> Iterator[str]:
    results = read_results(HERE / "solvers" / "results.jsonl", solver_cells.Result)
    yield "## Speed of the graphical lasso\n"
    yield (
        "How many times longer other solvers take for a path of 20 penalties, at the same "
        f"certified accuracy ({solver_cells.ACCURACY:g} per column), on one thread: the median "
        "over matrices.\n"
    )
    body = []
    for p in solvers.sizes(results, "path"):
        where = solvers.at(p, "path")
        ours = solvers.seconds(results, OURS, where)
        texts = []
        for name in PEERS:
            ratios = solvers.ratios(results, name, where)
            text = "" if ratios is None else short(ratios.median)
            if ratios is not None and ratios.short + ratios.failed:
                text += f" ({ratios.short + ratios.failed} of {ratios.cells} not solved)"
            texts.append(text)
        body.append((f"{p:,}", "" if ours is None else f"{ours:.3g}", *texts))
    head = ("columns", "Gramercy, seconds", *(SOLVERS.get(name, name) for name in PEERS))
    yield from table(head, body)
    yield (
        "Above one, Gramercy's solver is faster. Not solved means that the accuracy was not "
        "reached, or that the solver failed. A run that missed the accuracy counts with the time "
        "it took, which makes the ratio too small; a failed run does not count. [All matrices and "
        "single penalties](../benchmarks/solvers/results.md).\n"
    )


def _throughput() -> Iterator[str]:
    results = read_results(HERE / "throughput" / "results.jsonl", throughput_cells.Result)
    yield "## Time and memory of a release\n"
    yield "Medians on the benchmark machine; the ratio is to the reference in the same round.\n"
    yield from table(
        ("step", "size", "Gramercy, seconds", "reference", "Gramercy / reference"),
        _steps(results),
    )
    stream = throughput.of(results, "stream")
    first, last = (next(iter(each.contenders.values())).peak for each in (stream[0], stream[-1]))
    flow = throughput.of(results, "flow")[-1]
    yield (
        f"Memory hardly grows with the number of rows: reading {stream[0].cell.rows:,} rows of "
        f"{stream[0].cell.columns} columns needs {first:.0f} MB, {stream[-1].cell.rows:,} rows "
        f"{last:.0f} MB. A complete release of {flow.cell.rows:,} rows (validation, charge, noise, "
        f"seal) takes {throughput.seconds(flow.contenders['its steps alone']):.1f} s, as a Prefect "
        f"flow {throughput.seconds(flow.contenders['Prefect flow']):.1f} s. "
        "[All steps, sizes and clusters](../benchmarks/throughput/results.md).\n"
    )


def _steps(results: throughput.Results) -> Iterator[tuple[str, ...]]:
    for what, rows, columns, title, ours, reference in (
        ("gram", 1_000_000, 50, "integer matrix in memory",
         "Gramercy: repair, normalisation, Gram", "numpy: X.T @ X"),
        ("gram", 1_000_000, 50, "integer matrix in memory",
         "Gramercy: repair, normalisation, Gram", "OpenDP: clamp, make_np_sscp"),
        ("parquet", 1_000_000, 50, "matrix from Parquet",
         "Gramercy: Parquet to Gram", "pyarrow: read, X.T @ X"),
        ("csv", 200_000, 50, "matrix from CSV",
         "Gramercy: CSV to Gram", "pyarrow: read, X.T @ X"),
        ("noise", 1_000_000, 0, "noise values",
         "Gramercy: rounded Gaussian", "numpy: normal doubles"),
        ("noise", 1_000_000, 0, "noise values",
         "Gramercy: rounded Gaussian", "OpenDP: discrete Gaussian"),
    ):  # fmt: skip
        result = _at(throughput.of(results, what), rows, columns)
        times = None if result is None else throughput.ratio(result, ours, reference)
        if result is None or times is None:
            continue
        size = f"{rows:,}" + (f" x {columns}" if columns else "")
        seconds = throughput.seconds(result.contenders[ours])
        ratio = short(times) if times >= 0.01 else f"1/{1 / times:.0f}"
        yield title, size, f"{seconds:.3g}", reference, ratio


def _at(results: list[Result], rows: int, columns: int) -> Result | None:
    for result in results:
        if result.cell.rows == rows and columns in (0, result.cell.columns):
            return result
    return None


def _papers(findings: list[Findings], claims: Measured) -> Iterator[str]:
    papers = [each for each in findings if each.comparisons]
    if not findings:
        return
    yield "## The five papers\n"
    yield (
        "Gramercy's methods come from five papers. Each experiment was repeated as published, and "
        "each claim tested: on accuracy, on reproducibility, and on privacy. A privacy claim is "
        "false if the exact guarantee of the published noise is weaker than stated.\n"
    )
    false = false_claims(claims)
    lines = []
    for each in findings:
        key = each.page.rsplit("/", 1)[-1].removesuffix(".md")
        wrong = f"{false[key][0]} of {false[key][1]}" if key in false else ""
        if key != "claims":
            hold = sum(each.holds)
            lines.append((each.link, str(hold), str(len(each.holds) - hold), wrong))
    yield from table(
        ("paper", "claims that hold", "claims that do not", "settings with a false privacy claim"),
        lines,
    )
    checked = next((each.page for each in findings if each.page.endswith("claims.md")), None)
    yield (
        "Some of these claims are Gramercy's own, so the counts are not a score. Not counted are "
        "steps that no guarantee covers: scaling rows by the largest one in the table, and "
        "choosing penalties on private rows.\n"
    )
    yield (
        "Each page of a paper ends with its theorems' rates and measured errors: exponents in "
        "rows, columns and epsilon.\n"
    )
    if checked:
        yield f"* [Every published privacy claim against the exact guarantee]({checked})\n"
    if papers:
        yield "### At the same exact guarantee\n"
        yield (
            "The papers' mechanisms, exactly calibrated, against Gramercy's default, on the "
            "papers' tasks at epsilon = 0.5, 1, 2 and 4. A score is useful if it is clearly better "
            "than not using the release. The ratio says how many times better Gramercy's score "
            "is; better means a ratio above one.\n"
        )
        yield from table(
            (
                "paper",
                "cases",
                "Gramercy better",
                "only Gramercy useful",
                "paper's better",
                "neither useful",
                "ratio where the paper's is useful: median (range)",
            ),
            (_compared(each) for each in papers),
        )
        yield (
            "Tables with few rows for their columns allow neither method. On a matrix of p "
            "columns, Gramercy's noise is smaller than independent noise by the factor "
            "√(2p/(p+1)), and its estimators use the known distribution of the noise. Where "
            "precision matrices are scored, the paper's penalty is the best in hindsight; "
            "Gramercy's comes from the release. GPP publishes every row with noise and needs no "
            "trusted curator; its ratios are the price of that."
        )


def _compared(findings: Findings) -> tuple[str, ...]:
    outcomes = [each for task in findings.comparisons for each in task.outcomes.values()]
    ratios = [each.ratio for each in outcomes if each.theirs]
    better = sum(each.theirs and each.ours and each.ratio > 1 for each in outcomes)
    alone = sum(each.ours and not each.theirs for each in outcomes)
    neither = sum(not each.ours and not each.theirs for each in outcomes)
    span = (
        f"{short(statistics.median(ratios))} ({short(min(ratios))} to {short(max(ratios))})"
        if ratios and math.isfinite(max(ratios))
        else ""
    )
    counts = (better, alone, len(outcomes) - better - alone - neither, neither)
    return (findings.link, str(len(outcomes)), *map(str, counts), span)
