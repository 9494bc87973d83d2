"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.ablation import cells
from benchmarks.ablation.cells import Result
from benchmarks.ablation.kinds import KINDS
from benchmarks.ablation.tables import Effect
from benchmarks.ablation.variants import GONE, KEPT_FOR, TODAY
from benchmarks.arrays import Array
from benchmarks.cells import Benchmark, read_results
from benchmarks.pages import table, write_page
from tests.support.private_release import DELTA

_HEAD = (
    "constant or branch", "instead", "releases", "changed", "errors, %", "±", "widths, %",
    "coverage, points", "green", "false", "fine not green", "most changed", "",
)  # fmt: skip


def write(folder: Path) -> None:
    """Write `results.md` from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    write_page(folder / "results.md", _page(list(results.values())))


def _page(results: Sequence[Result]) -> Iterator[str]:
    variants = dict.fromkeys(each.cell.variant for each in results)
    of = {name: [each for each in results if each.cell.variant == name] for name in variants}
    today = of.pop(TODAY)
    yield "# What each constant of the rule earns\n"
    yield (
        "For engineers who change `gramercy/scaling`, the rule that chooses constants from "
        f"published counts. Every constant and branch was removed, merged with another one or "
        f"replaced, on {len(KINDS)} kinds of generated tables on which none was chosen, with "
        f"{', '.join(f'{n:,}' for n in cells.EPSILONS)} rows and an exact (epsilon, {DELTA:g}) "
        "guarantee (replace-one). Releases of a variant and of today's rule are of the same "
        "table, with the same noise. Written by `python -m benchmarks ablation` from "
        "`results.jsonl`.\n"
    )
    yield from _today([scores for each in today for scores, _ in each.changed])
    yield "## Variants\n"
    yield (
        "Changes of the variant against today's rule. Errors and widths of 95% intervals: of "
        "means / standard deviations / correlations, geometric means over all releases, with the "
        "standard errors (±). Coverage: of the table's own values, the same three. Green, "
        "false and fine verdicts as in [verdict against truth](../verdicts/results.md), as numbers "
        "of releases. `most changed` is the kind of table whose errors grow most. A "
        "constant or branch that earns less than 3% of errors, coverage or greens, and less than "
        "10% for every kind, is gone, unless the last column says why it is kept; another value of "
        "one that is kept removes nothing. A variant that is clearly worse on the first kinds was "
        "not measured on the others, and one that became the rule cannot be measured again. What "
        "keeps numbers finite for any counts and bounds was not tried. Cells are now clamped at "
        "eight scales, not at ten. What concerns the pilot matrix, its metric and the choice "
        f"between metrics is compared with the rule of releases that have one, with "
        f"{cells.WHITENED_ROWS:,} rows; coefficients and partial correlations, for which it is "
        "there, are not in these errors.\n"
    )
    body = sorted(_line(name, Effect.of(each)) for name, each in of.items())
    yield from table(_HEAD, body)


def _today(scores: Sequence[cells.Scores]) -> Iterator[str]:
    yield "## The rule before\n"
    errors, coverage = (
        np.array([getattr(each, of) for each in scores]) for of in ("errors", "coverage")
    )
    middle = np.exp(np.nanmean(np.log(np.maximum(errors, 1e-5)), axis=0))
    yield (
        "Variants are compared with the rule of 27 November 2026, before anything was removed. Its "
        f"{len(scores)} releases: errors {_three(middle, '.2g')}, coverage "
        f"{_three(100 * np.nanmean(coverage, axis=0), '.1f')}, green "
        f"{sum(each.green for each in scores)}, of these false "
        f"{sum(each.false for each in scores)}; fine but not green "
        f"{sum(each.fine and not each.green for each in scores)}.\n"
    )


def _line(name: str, effect: Effect) -> tuple[str, ...]:
    constant, _, instead = name.partition(": ")
    kind, factor = effect.worst
    return (
        f"`{constant}`",
        instead,
        str(effect.releases),
        str(effect.changed),
        _three(_percent(effect.errors), "+.1f"),
        _three(100 * np.array(effect.doubt), ".1f"),
        _three(_percent(effect.widths), "+.0f"),
        _three(100 * np.array(effect.coverage), "+.1f"),
        *(f"{each:+d}" for each in (effect.green, effect.false, effect.missed)),
        f"{kind} {100 * (factor - 1):+.0f}" if effect.changed else "",
        "gone" if name in GONE else KEPT_FOR.get(name, "kept"),
    )


def _percent(ratios: Sequence[float]) -> Array:
    return 100 * (np.array(ratios) - 1)


def _three(values: Iterable[float], style: str) -> str:
    return " / ".join(format(each, style) for each in values)


BENCHMARK = Benchmark(
    name="ablation",
    quick="measure two kinds with few rows",
    result=cells.Result,
    missing=cells.missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.variant} {cell.kind} {cell.n}",
    write=write,
)
