"""What every page is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def table(head: Iterable[str], body: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table, and an empty one."""
    titles = list(head)
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    yield from ("| " + " | ".join(line) + " |" for line in body)
    yield ""
