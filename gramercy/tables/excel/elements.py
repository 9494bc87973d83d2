"""Elements of XML, read in bounded memory for any content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO
from xml.parsers import expat

_CHUNK = 1 << 16  # bytes
_MAX_TAG = 1 << 20  # bytes
_MAX_DEPTH = 100  # elements inside each other
_MAX_NAMES = 10_000  # different names of elements, attributes and prefixes, which expat keeps


class ElementReader:
    """Calls `start`, `end` and `text` of a subclass; names are without their namespaces.

    A file with a document type is refused, so there are no entities.

    Attributes
    ----------
    done
        Set by a subclass that needs no more of the file.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._depth = 0
        self.done = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element starts; names of attributes with a namespace are ``namespace name``."""

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Some of the text of an element; it may come in several parts."""

    def read(self, stream: IO[bytes]) -> Iterator[None]:
        """Read the file; yields after every part of it.

        Raises
        ------
        ValueError, expat.ExpatError
            If it is not XML, or needs too much memory.
        """
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.text
        parser.StartNamespaceDeclHandler = self._declared
        parser.StartDoctypeDeclHandler = _refuse
        size = 0
        while chunk := stream.read(_CHUNK):
            parser.Parse(chunk, False)
            size += len(chunk)
            if size - parser.CurrentByteIndex > _MAX_TAG:
                raise ValueError
            yield
            if self.done:
                return
        parser.Parse(b"", True)
        yield

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError
        if not attributes.keys() <= self._names.keys():
            for each in attributes:
                self._noted(each)
        self.start(self._noted(name), attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self.end(self._names[name])

    def _declared(self, prefix: str | None, namespace: str | None) -> None:
        self._noted(f"{prefix} {namespace}")

    def _noted(self, name: str) -> str:
        """The name without its namespace."""
        known = self._names.get(name)
        if known is None:
            if len(self._names) == _MAX_NAMES:
                raise ValueError
            known = self._names[name] = name.rpartition(" ")[2]
        return known


def _refuse(*_: object) -> None:
    raise ValueError
