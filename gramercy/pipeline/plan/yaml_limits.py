"""Limits on YAML files, checked before they are loaded.

An alias stands for a whole list or mapping. Aliases of aliases let a few lines stand for any number
of values, and merge keys (``<<``) copy all of them.
"""

from __future__ import annotations

import re

from gramercy.common.extras import publishing

with publishing():
    from ruamel.yaml import YAML
    from ruamel.yaml.events import (
        AliasEvent,
        CollectionEndEvent,
        CollectionStartEvent,
        NodeEvent,
    )

MOST_CHARACTERS = 2_000_000
MOST_NODES = 200_000  # a contract of 5000 columns with bounds, centres and scales has 50,000
_MOST_DEPTH = 100
_BRACKET = re.compile(r"[\[\]{}]")


def exceeds_limits(text: str) -> bool:
    """Whether a YAML file is too large, also with all aliases expanded, or nested too deeply.

    Raises
    ------
    YAMLError
        If it is not valid YAML.
    """
    if len(text) > MOST_CHARACTERS:
        return True
    if "&" not in text and not _may_be_deep(text):  # without an anchor there is no alias
        return False
    sizes: dict[str, int] = {}  # by anchor: number of values, with all aliases expanded
    open_nodes: list[tuple[str | None, int]] = []  # anchor of each open collection, and its start
    nodes = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        if isinstance(event, AliasEvent):
            nodes += sizes.get(event.anchor, 1)  # 1 for an alias inside of its own anchor
        elif isinstance(event, NodeEvent):
            nodes += 1
            if isinstance(event, CollectionStartEvent):
                open_nodes.append((event.anchor, nodes - 1))
            elif event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, CollectionEndEvent):
            anchor, start = open_nodes.pop()
            if anchor:
                sizes[anchor] = nodes - start
        if nodes > MOST_NODES or len(open_nodes) > _MOST_DEPTH:
            return True
    return False


def _may_be_deep(text: str) -> bool:
    """Whether brackets, also those in texts, are nested deeply."""
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _MOST_DEPTH:
            return True
    return False
