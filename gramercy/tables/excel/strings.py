"""Texts of a workbook that cells refer to by their numbers, in bounded memory."""

from __future__ import annotations

import re
from array import array

from gramercy.schemas.problems.source import strings_too_large
from gramercy.tables.excel.book import Book, PartTooLargeError
from gramercy.tables.excel.elements import ElementReader

_MAX_STRINGS = 256 << 20  # bytes of XML
_ESCAPE = re.compile(r"(?:_x[0-9A-Fa-f]{4}_)+")


def plain(text: str) -> str:
    """Text in which ``_x000D_`` is the character of this code, as Excel writes control characters.

    Two such codes may be the halves of one character.
    """
    return _ESCAPE.sub(_characters, text) if "_x" in text else text


def _characters(found: re.Match[str]) -> str:
    codes = found[0][2:-1].split("__x")
    characters = b"".join(int(code, 16).to_bytes(2, "little") for code in codes)
    return characters.decode("utf-16-le", "replace")


class TextReader(ElementReader):
    """Collects the text of an element, up to a number of characters; see `begin`."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._parts: list[str] = []
        self._size = 0
        self._kept = False

    def begin(self) -> None:
        """Forget the text so far; none is kept until `_kept` is set."""
        self._parts, self._size, self._kept = [], 0, False

    def text(self, text: str) -> None:
        """Keep the text, if it is wanted and not too long already."""
        if self._kept and self._size <= self._most:
            self._parts.append(text)
            self._size += len(text)

    @property
    def kept(self) -> str:
        """The text; one that is too long ends one character later."""
        return "".join(self._parts)[: self._most + 1]


class SharedStrings(TextReader):
    """The shared strings of a workbook, as UTF-8 in one buffer.

    Parameters
    ----------
    book
        The workbook.
    most
        Characters of the longest text that is needed; longer ones are cut off after it.
    last
        Number of the last text that is needed; None for all.
    """

    def __init__(self, book: Book, file: str, most: int, last: int | None = None) -> None:
        super().__init__(most)
        self._bytes, self._ends, self._last = bytearray(), array("Q", [0]), last
        self._phonetic = False
        if not book.strings or last == -1:
            return
        try:
            stream = book.open(book.strings, _MAX_STRINGS)
        except PartTooLargeError:
            raise strings_too_large(file, _MAX_STRINGS >> 20) from None
        with stream:
            for _ in self.read(stream):
                pass

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> str:
        return self._bytes[self._ends[number] : self._ends[number + 1]].decode()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "si":
            self.begin()
        elif name == "rPh":
            self._phonetic = True
        elif name == "t":
            self._kept = not self._phonetic

    def end(self, name: str) -> None:
        if name == "t":
            self._kept = False
        elif name == "rPh":
            self._phonetic = False
        elif name == "si":
            self._bytes += plain(self.kept).encode("utf-8", "replace")
            self._ends.append(len(self._bytes))
            self.done = self._last is not None and len(self) > self._last
