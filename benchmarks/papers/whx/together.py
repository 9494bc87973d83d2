"""Whether the printed rows can all be graphical lasso estimates of one problem.

Let x be what a diagonal entry of the problem is, S_ii + penalty, on average. Under noise N that
swamps all else the estimates are about I / x and (x I + N)^-1, so that the relative error of Table
1's Wishart row tells x. From that x follows what the other rows must look like:

* noise with independent entries leaves a minimiser only if every diagonal entry stays positive: so
  likely as F(x)^p at most, F the distribution of an entry (log F is concave: unequal entries of the
  same mean have less);
* Table 2's Wishart noise leaves the error of (x I + N)^-1 as well;
* Gaussian noise is exactly three times less at epsilon = 1.5 than at 0.5, and small errors go with
  the noise.

The same arithmetic is applied to our own rows, as a control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import laplace, norm

from benchmarks.markdown import table
from benchmarks.papers.experiment import Verdict, short
from benchmarks.papers.whx.noise import freedom, gaussian_scale, laplace_scale, wishart
from benchmarks.papers.whx.published import EPSILONS, printed

Array = NDArray[np.float64]
Error = Callable[[str, float], float]

FACTOR = 3.0  # between what is left of the estimate and what should be
UNLIKELY = 0.05  # for a printed number that needs a minimiser
LINEAR = 1.5  # the least that errors must fall when the noise falls by three


@dataclass(frozen=True)
class Column:
    """A column of the tables.

    Parameters
    ----------
    name, n, p
        Its heading, and the shape of its rows.
    ours
        Our relative error, by method and epsilon.
    """

    name: str
    n: int
    p: int
    ours: Error

    def printed(self, method: str, epsilon: float) -> float:
        return printed(method, epsilon, self.name)


@dataclass(frozen=True)
class Row:
    """What Table 1's Wishart error implies at one epsilon: x, chances, and what is left."""

    column: str
    epsilon: float
    x: float
    laplace: float
    gaussian: float
    printed: float
    ours: float


@lru_cache
def _spectrum(p: int, dof: int) -> tuple[float, ...]:
    """Eigenvalues of a W_p(dof, I), from a public seed."""
    drawn = wishart(np.random.default_rng(0), p, dof, 1.0)
    return tuple(np.linalg.eigvalsh(drawn))


def error(x: float, values: Array) -> float:
    """Of (x I + N)^-1 against I / x, N of these eigenvalues."""
    return float(np.sqrt(np.mean(np.square(values / (x + values)))))


def implied(wanted: float, n: int, p: int, epsilon: float) -> float:
    """x, from the error of Table 1's Wishart row."""
    values = np.array(_spectrum(p, p + 1)) * 1.5 / (n * epsilon)
    top = float(values.max())
    log: float = brentq(lambda at: error(np.exp(at), values) - wanted, *np.log([1e-9, 1e9 * top]))
    return float(np.exp(log))


def left(x: float, n: int, p: int, epsilon: float) -> float:
    """1 - error of Table 2's Wishart row."""
    return 1 - error(x, np.array(_spectrum(p, round(freedom(n, p, epsilon)))) / n)


def chance(x: float, p: int, law: object) -> float:
    """At most so likely has the noisy problem a minimiser."""
    return float(law.cdf(x) ** p)  # type: ignore[attr-defined]


def rows(columns: Sequence[Column]) -> Iterator[Row]:
    """A row a column and epsilon."""
    for each in columns:
        n, p = each.n, each.p
        for epsilon in EPSILONS:
            x = implied(each.printed("wishart", epsilon), n, p, epsilon)
            mine = implied(each.ours("wishart", epsilon), n, p, epsilon)
            shares = [
                (1 - of("wishart-approximate", epsilon)) / left(at, n, p, epsilon)
                for of, at in ((each.printed, x), (each.ours, mine))
            ]
            yield Row(
                each.name,
                epsilon,
                x,
                chance(x, p, laplace(scale=laplace_scale(n, p, epsilon))),
                chance(x, p, norm(scale=gaussian_scale(n, epsilon))),
                *shares,
            )


def agrees(ratio: float) -> bool:
    """Whether what is left is what is expected."""
    return 1 / FACTOR <= ratio <= FACTOR


def fall(of: Error) -> float:
    """Of the Gaussian row, from the least epsilon to the largest."""
    return of("gaussian", EPSILONS[0]) / of("gaussian", EPSILONS[-1])


def page(columns: Sequence[Column]) -> Iterator[str]:
    """What the printed rows would need of each other."""
    yield (
        "Whether the printed rows go together. Under noise that swamps all else, estimates are "
        "about I / x and (x I + noise)^-1, x = S_ii + penalty on average; so Table 1's Wishart row "
        "tells x. From it follow: the chance that a problem of the Laplace row, or of the Gaussian "
        "row, has a minimiser at all, at most; and what Table 2's Wishart row should leave of the "
        "estimate, 1 - error: printed over that, and for control ours over what ours imply.\n"
    )
    yield from table(
        (
            "column",
            "epsilon",
            "x",
            "Laplace: chance of a minimiser",
            "Gaussian: chance of a minimiser",
            "2: Wishart, left: printed / expected",
            "ours / expected",
        ),
        (
            (
                row.column, f"{row.epsilon:g}", short(row.x), f"{row.laplace:.1g}",
                f"{row.gaussian:.1g}", _share(row.printed), _share(row.ours),
            )
            for row in rows(columns)
        ),
    )  # fmt: skip


def verdicts(title: str, columns: Sequence[Column]) -> Iterator[Verdict]:
    """Of the printed numbers, not of ours."""
    known = list(rows(columns))
    for name, chances in (
        ("Laplace", [row.laplace for row in known]),
        ("Gaussian", [row.gaussian for row in known]),
    ):
        yield Verdict(
            f"{title}: at the penalty that the printed Wishart row implies, the printed {name} row "
            "can be of minimisers",
            min(chances) > UNLIKELY,
            f"a noisy problem has one with a chance of at most {min(chances):.1g} to "
            f"{max(chances):.1g}",
        )
    yield Verdict(
        f"{title}: the printed Wishart rows of the two tables go together, within a factor of "
        f"{FACTOR:g} of what is left of the estimate",
        all(agrees(row.printed) for row in known),
        f"{sum(agrees(row.printed) for row in known)} of {len(known)} cells as printed; "
        f"{sum(agrees(row.ours) for row in known)} of {len(known)} of ours",
    )
    falls = {each.name: fall(each.printed) for each in columns}
    yield Verdict(
        f"{title}: the printed Gaussian errors fall with the noise, which is three times less at "
        f"epsilon = {EPSILONS[-1]:g} than at {EPSILONS[0]:g}",
        min(falls.values()) >= LINEAR,
        ", ".join(f"{name}: by {short(by)}" for name, by in falls.items()),
    )


def _share(ratio: float) -> str:
    return "nothing is left" if ratio <= 0 else short(ratio)
