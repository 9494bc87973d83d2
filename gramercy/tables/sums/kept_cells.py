"""The cells of a table that several passes read, kept in memory where they fit.

To read and decode a file takes longer than to count or to sum its cells, and a remote store sends
it again for every pass.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import spare_memory
from gramercy.tables.formats.csv_reader import MalformedLines

Array = NDArray[np.float64]

_MOST = 512 << 20  # bytes
_SHARE = 4  # of the memory that is free, one part in so many is used


class KeptCells:
    """Keeps the batches of the first complete pass for the next ones. Private: never pickled.

    Parameters
    ----------
    expected
        Bytes that the cells are expected to take, from public facts.
    limit
        Most bytes; by default 512 MiB, and a quarter of the memory that this process may use. A
        larger table is read again for every pass.
    """

    def __init__(self, expected: int, limit: int | None = None) -> None:
        limit = min(_MOST, spare_memory() // _SHARE) if limit is None else limit
        self._limit = limit if expected <= limit else 0
        self._form: object = None
        self._batches: list[Array] = []
        self._malformed = MalformedLines()

    def batches(
        self, form: object, malformed: MalformedLines, read: Iterator[Array]
    ) -> Generator[Array]:
        """All batches of a table, from memory where an earlier pass has kept them.

        Parameters
        ----------
        form
            What was asked of the table: columns, their coding, and so on. Compared with that of the
            pass that was kept.
        malformed
            Counts of malformed lines, updated in place.
        read
            Reads the batches, and counts malformed lines; not started where they are in memory.
        """
        if self._form is not None and self._form == form:
            malformed.dropped += self._malformed.dropped
            malformed.kept += self._malformed.kept
            yield from self._batches
            return
        self.close()  # never the cells of two forms at a time
        kept, size = list[Array](), 0
        for batch in read:
            size += batch.nbytes
            if size <= self._limit:
                kept.append(batch)
            else:
                kept.clear()
                self._limit = 0  # no further pass needs to try
            yield batch
        if size <= self._limit:
            self._form, self._batches, self._malformed = form, kept, malformed

    def close(self) -> None:
        """Forget everything, after the last pass."""
        self._form, self._batches = None, []

    def __reduce__(self) -> str:
        raise TypeError("private cells are not pickled")
