"""Numbers as pages write them, ε = 0.5 (δ = 10⁻⁶); terminals write epsilon=0.5, delta=1e-06."""

from __future__ import annotations

import math

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def significant(number: float, digits: int) -> str:
    """A number with this many significant digits, and with powers of ten as superscripts.

    Examples
    --------
    >>> significant(0.000001, 3), significant(2.5e-7, 2), significant(1234.0, 2)
    ('10⁻⁶', '2.5·10⁻⁷', '1234')
    """
    if math.isnan(number):
        return "–"
    text = f"{number:.{digits}g}"
    if 1 <= abs(number) < 1e6 and "e" in text:
        text = f"{number:.0f}"
    if "e" not in text:
        return text.replace("-", "−")
    mantissa, _, exponent = text.partition("e")
    raised = str(int(exponent)).translate(_SUPERSCRIPTS)
    factor = mantissa.removesuffix("1") if mantissa in {"1", "-1"} else f"{mantissa}·"
    return f"{factor}10{raised}".replace("-", "−")


def epsilon_delta(epsilon: float, delta: float) -> str:
    """An (epsilon, delta) pair.

    Examples
    --------
    >>> epsilon_delta(0.5, 1e-6)
    'ε = 0.5 (δ = 10⁻⁶)'
    """
    return f"ε = {significant(epsilon, 4)} (δ = {significant(delta, 3)})"
