"""Numbers as pages write them, ε = 0.5 (δ = 10⁻⁶); terminals write epsilon=0.5, delta=1e-06."""

from __future__ import annotations

import math

_MOST_DECIMALS, _LARGE = 8, 1e15  # of plain numbers
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


def to_precision(number: float, error: float) -> str:
    """A plain number with as many decimals as two significant digits of its error have.

    Without a positive error it has four significant digits. Powers of ten are for numbers that
    would have more than eight decimals, or be 10^15 and more.

    Examples
    --------
    >>> to_precision(54095.484, 150.1), to_precision(0.28137, 0.0064), to_precision(120.0, 0.0)
    ('54095', '0.2814', '120')
    """
    if not math.isfinite(number):
        return "" if math.isnan(number) else str(number)
    if error > 0 and math.isfinite(error):
        decimals = max(1 - math.floor(math.log10(error)), 0)
    else:
        size = math.floor(math.log10(abs(number))) if number else 0
        decimals = max(3 - size, 0)
    if decimals > _MOST_DECIMALS or abs(number) >= _LARGE:
        return f"{number:.4g}"
    text = f"{number:.{decimals}f}"
    return text if error > 0 else text.rstrip("0").rstrip(".") if "." in text else text
