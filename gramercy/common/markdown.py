"""Texts of others in Markdown pages."""

from __future__ import annotations

import re

_MARKUP = re.compile(r"[\\`*_\[\]<>&!|~#]")


def markdown_text(text: str) -> str:
    r"""The text as Markdown that shows it unchanged: no markup, no links, no HTML.

    Examples
    --------
    >>> print(markdown_text("<b>[x](javascript:y)"))
    \<b\>\[x\](javascript:y)
    """
    return _MARKUP.sub(r"\\\g<0>", text)
