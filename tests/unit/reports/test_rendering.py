"""Numbers, symbols and tables as pages write them, and what pages of one release share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.archive.store.opening import open_archive
from gramercy.common.notation import in_symbols, message_in_symbols
from gramercy.estimators.noise.spectrum import spectrum
from gramercy.reports.reader_notes import accuracy_notes
from gramercy.reports.rendering import open_table, plus_minus
from gramercy.schemas import families
from tests.support.factories import run_release, write_request


def test_decimals_of_a_number_are_those_of_its_error() -> None:
    assert plus_minus((-0.01225, 0.035)) == "−0.012 ± 0.035"
    assert plus_minus((54095.48, 150.1)) == "54095 ± 150"
    assert plus_minus((0.5, float("nan"))) == "0.5 ± –"
    assert plus_minus((3e-9, 2e-10)) == "3·10⁻⁹ ± 2·10⁻¹⁰"


def test_tables_are_in_named_regions_and_escaped() -> None:
    text = open_table('a "b" <c>', region="of <d>")
    assert 'aria-label="of &lt;d&gt;" tabindex="0"' in text
    assert text.endswith('<caption class="unseen">a &#34;b&#34; &lt;c&gt;</caption>')


@pytest.mark.slow
def test_accuracy_of_a_release_is_simulated_once(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report and a page of the catalogue share it; other matrices or facts do not."""
    simulated: list[Any] = []
    monkeypatch.setattr("gramercy.reports.reader_notes._simulated", {})
    monkeypatch.setattr(
        "gramercy.reports.reader_notes.correlation_accuracy",
        lambda evidence, *_: simulated.append(evidence),
    )
    mechanism = {"name": "gaussian", "epsilon": 500.0, "delta": 1e-6}
    request = write_request(
        tmp_path, budget={"epsilon": 600.0, "delta": 1e-5}, request={"mechanism": mechanism}
    )
    place = open_archive(home / "archive").release("toy", run_release(request))

    def notes(**changes: Any) -> None:
        bundle = replace(read_release(place), **changes)
        law = bundle.manifest.noise
        accuracy_notes(bundle, spectrum(bundle.unbiased, bundle.repaired, law))

    notes()
    notes()
    assert len(simulated) == 1
    notes(sha256="0" * 64)
    facts = read_release(place).manifest
    notes(manifest=facts.model_copy(update={"release": "v9-r1"}))
    assert len(simulated) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("At delta=1e-06 it needs epsilon=1.5.", "At δ = 10⁻⁶ it needs ε = 1.5."),
        ("takes epsilon 4.2, 1,000 rows or", "takes ε = 4.2, 1,000 rows or"),
        ("not pure epsilon-DP: needs a delta.", "not pure ε-DP: needs a δ."),
        ("delta0=2.5e-07 was spent", "δ₀ = 2.5·10⁻⁷ was spent"),
        ("the budget's delta, or 'epsilon: 2'", "the budget's δ, or 'epsilon: 2'"),
        ("mechanism.delta and deltalake", "mechanism.delta and deltalake"),
        ("multiple delta_sd", "multiple delta_sd"),
    ],
)
def test_symbols_replace_names(text: str, expected: str) -> None:
    assert in_symbols(text) == expected


def test_message_of_a_problem_has_symbols() -> None:
    weak = families.PROTECTION("{correct:.1f} %.", "A smaller epsilon protects more.", correct=94.8)
    assert message_in_symbols(weak) == "94.8 %. A smaller ε protects more."


def test_names_from_outside_stay() -> None:
    lost = families.NOISE("Columns lost: {columns}.", columns="delta, mu and epsilon")
    assert "delta, mu and epsilon" in message_in_symbols(lost)
    changed = families.RECORDED(
        "The budget of {dataset} was raised to epsilon={epsilon}, delta={delta}: {reason}",
        dataset="mu",
        epsilon=4.0,
        delta=1e-6,
        reason="more delta",
    )
    note = message_in_symbols(changed)
    assert note == "The budget of mu was raised to ε = 4, δ = 10⁻⁶: more delta"
    exceeded = families.EXCEEDED(
        "The budget of {budget} is exceeded. At its delta={delta:g}.", budget="delta", delta=1e-6
    )
    assert "The budget of delta is exceeded. At its δ = 10⁻⁶" in message_in_symbols(exceeded)
