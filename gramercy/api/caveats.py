"""The caveats of a release, as analysts read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, overload

import pandas as pd

from gramercy.api.notebook import html_table

if TYPE_CHECKING:
    from gramercy.estimators.caveats import Caveat


_MOST_SHOWN = 8  # in words


class Caveats(Sequence["Caveat"]):
    """What the numbers of a release do not say: see `estimators.caveats.Caveat`.

    Parameters
    ----------
    found
        Those of the columns, in their order, then those of the whole release.

    Examples
    --------
    >>> import gramercy
    >>> found = gramercy.open(survey).latest("toy").warnings
    >>> list(found.table().columns)
    ['column', 'kind', 'code', 'sentence', 'hint']
    """

    def __init__(self, found: Iterable[Caveat]) -> None:
        self._found = tuple(found)

    @overload
    def __getitem__(self, index: int) -> Caveat: ...
    @overload
    def __getitem__(self, index: slice) -> Caveats: ...
    def __getitem__(self, index: int | slice) -> Caveat | Caveats:
        found = self._found[index]
        return Caveats(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        return len(self._found)

    def of(self, column: str) -> Caveats:
        """Those of one column of the table."""
        return Caveats(each for each in self if each.column == column)

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds by column, such as ``tail; hidden cells``; only columns with caveats."""
        named = dict.fromkeys(each.column for each in self if each.column)
        return {name: "; ".join(each.kind for each in self.of(name)) for name in named}

    def table(self) -> pd.DataFrame:
        """One line each: ``column`` (empty for the whole release), ``kind``, ``code`` and words."""
        from gramercy.estimators.caveats import caveats_table

        return caveats_table(self)

    def _repr_html_(self) -> str:
        return html_table(self.table().set_index("column"), repr(self).partition("\n")[0][1:])

    def __repr__(self) -> str:
        lines = [
            f"{each.column or 'release'}: {each.kind}. {each.notice.code}: {each}" for each in self
        ]
        if len(self) > _MOST_SHOWN:  # one of each kind in words, and the columns that have it
            found = {each.kind: each for each in reversed(self)}
            lines = [f"{name}: {kinds}" for name, kinds in self.kinds.items()]
            lines += [
                f"{kind}: {each.notice.code}: {each}" for kind, each in reversed(found.items())
            ]
        return "\n".join([f"<{len(self)} caveats>", *lines])
