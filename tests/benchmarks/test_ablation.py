"""The ablation: variants see the same tables and the same noise, and the page counts effects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest

from benchmarks.ablation import cells, page, variants
from benchmarks.ablation.kinds import KINDS, table_of
from benchmarks.ablation.tables import Effect
from benchmarks.cells import append


@pytest.fixture(scope="module")
def today() -> cells.Result:
    return cells.measure(cells.Cell(variants.TODAY, "rain", 2000), 1)


def test_every_kind_is_a_table_within_its_bounds() -> None:
    for kind in KINDS:
        table = table_of(kind, 400, np.random.default_rng(1))
        assert table.n == 400, kind
        assert np.nanstd(table.cells, axis=0).max() > 0, kind
        if table.bounds is not None:
            assert (np.nanmin(table.cells, axis=0) >= table.bounds[0]).all(), kind
            assert (np.nanmax(table.cells, axis=0) <= table.bounds[1]).all(), kind


def test_noise_of_an_array_does_not_depend_on_the_sizes_before() -> None:
    first, second = cells.Streams(3), cells.Streams(3)
    first.normal(size=4)
    second.normal(size=9)
    np.testing.assert_array_equal(first.normal(size=5), second.normal(size=5))


def test_without_a_change_every_release_is_todays(
    today: cells.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert today.releases == len(today.changed) == 3
    assert all(variant == own for own, variant in today.changed)
    monkeypatch.setitem(cells.VARIANTS, "same", variants.Variant({}, of_estimates=True))  # type: ignore[arg-type]
    assert cells.measure(cells.Cell("same", "rain", 2000), 1).changed == []


def test_variants_with_a_pilot_are_compared_with_the_rule_with_a_pilot() -> None:
    cell = cells.Cell("whitening: never", "beta", 20_000)
    assert cell in dict(cells.missing(quick=False, done={}))
    assert replace(cell, n=2000) not in dict(cells.missing(quick=False, done={}))
    result = cells.measure(cell, 1)
    without = cells.measure(replace(cell, variant=variants.TODAY), 1)
    assert result.changed
    assert [each for _, each in result.changed] == [own for own, _ in without.changed]


def test_every_variant_replaces_objects_that_exist() -> None:
    for name, variant in variants.VARIANTS.items():
        for target, value in variant.patches.items():
            assert resolve_name(target) is not value, name


def test_effects_are_ratios_differences_and_counts(tmp_path: Path, today: cells.Result) -> None:
    own = replace(today.changed[0][0], green=True, false=False, fine=True)
    worse = replace(
        own,
        errors=tuple(2 * each for each in own.errors),
        coverage=tuple(each - 0.3 for each in own.coverage),
        green=False,
    )
    cell = replace(today.cell, variant="chain rows: 5")
    result = replace(today, cell=cell, releases=2, changed=[(own, worse)])
    effect = Effect.of([result])
    assert effect.errors == pytest.approx([2**0.5] * 3)
    assert effect.widths == pytest.approx([1.0] * 3)
    assert effect.coverage == pytest.approx([-0.15] * 3)
    assert (effect.green, effect.false, effect.missed) == (-1, 0, 1)
    assert effect.worst == ("rain", pytest.approx(2**0.5))
    for each in (today, result):
        append(tmp_path / "results.jsonl", each)
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| `chain rows` | 5 | 2 | 1 | +41.4 / +41.4 / +41.4 | " in text
