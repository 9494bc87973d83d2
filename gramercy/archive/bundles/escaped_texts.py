"""Texts of others in Markdown pages, and in CSV files that a spreadsheet program may open."""

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


# A program may skip spaces and control characters before a formula, and accepts wide signs.
_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def not_a_formula(text: str) -> str:
    """The text, after an apostrophe if a spreadsheet program could take it for a formula.

    Such programs do not show the apostrophe. See OWASP, "CSV Injection".

    Examples
    --------
    >>> not_a_formula("=cmd|'/C calc'!A0"), not_a_formula("weight")
    ("'=cmd|'/C calc'!A0", 'weight')
    """
    return f"'{text}" if text.strip().startswith(_SIGNS) or text.startswith(_SIGNS) else text
