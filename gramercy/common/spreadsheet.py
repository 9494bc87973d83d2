"""Texts in CSV files that a spreadsheet program would take for formulas."""

from __future__ import annotations

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
