"""Tests of results that objects keep."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gramercy.common.kept_results import kept


@dataclass(frozen=True)
class Number:
    value: int


def test_each_object_computes_its_result_once() -> None:
    computed: list[int] = []

    @kept
    def double(of: Number) -> int:
        computed.append(of.value)
        return 2 * of.value

    first = Number(3)
    assert [double(first), double(first), double(Number(3))] == [6, 6, 6]
    assert computed == [3, 3]
    assert double(replace(first, value=4)) == 8
    assert first == Number(3)
