"""Output that several commands share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gramercy.cli import terminal


@pytest.mark.parametrize("items", [[], [{}], [{"a": [1, "\x1b[31m\n"], "b": None}, [], "x"]])
def test_a_list_is_printed_item_by_item_as_a_whole_one(
    items: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.print_json(items)
    whole = capsys.readouterr().out
    terminal.print_json_list(iter(items))
    assert capsys.readouterr().out == whole


def test_no_part_of_a_list_is_printed_before_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError

    with pytest.raises(KeyError):
        terminal.print_json_list(items())
    assert capsys.readouterr().out == ""
