"""Messages on pages have the notation of pages; names from outside stay as they are."""

from __future__ import annotations

import pytest

from gramercy.reports.symbols import in_symbols, message_in_symbols
from gramercy.schemas.problems.budget import budget_exceeded
from gramercy.schemas.problems.verification import budget_changed
from gramercy.schemas.problems.warnings import columns_lost, weak_protection


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
    assert message_in_symbols(weak_protection(94.8)).endswith("A smaller ε protects more.")


def test_names_from_outside_stay() -> None:
    lost = message_in_symbols(columns_lost("delta, mu and epsilon"))
    assert "delta, mu and epsilon" in lost
    note = message_in_symbols(budget_changed("2026-01-01", "mu", "raised", 4.0, 1e-6, "more delta"))
    assert "the budget of mu was raised to ε = 4, δ = 10⁻⁶: more delta" in note
    refusal = budget_exceeded("delta", 1.5, 0.2, 0.1, 0.05, 2.0, 1e-6, 1.9, 0.3)
    assert "The budget of delta is exceeded. At its δ = 10⁻⁶" in message_in_symbols(refusal)
