"""Messages on pages have the notation of pages; names from outside stay as they are."""

from __future__ import annotations

import pytest

from gramercy.common.notation import in_symbols, message_in_symbols
from gramercy.schemas import families


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
