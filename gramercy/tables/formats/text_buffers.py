"""The buffers of Arrow text as arrays, for compiled code that needs no Python object for a text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class TextBuffers:
    """Texts, one after another. Private.

    Parameters
    ----------
    offsets
        Text k has the bytes from offset k up to offset k + 1; shape (texts + 1,).
    data
        The bytes, of type uint8.
    present
        Whether each text is not null, shape (texts,).
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    present: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: pa.LargeStringArray) -> TextBuffers:
        """The buffers of an array, which may be a slice, without a copy."""
        count = len(texts)
        _, offsets, data = texts.buffers()
        none = np.zeros(count + 1, np.int64)
        return cls(
            none
            if offsets is None
            else np.frombuffer(offsets, np.int64)[texts.offset :][: count + 1],
            np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8),
            texts.is_valid().to_numpy(zero_copy_only=False)
            if texts.null_count
            else np.ones(count, np.bool_),
        )
