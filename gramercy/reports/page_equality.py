"""Whether two pages say the same, on machines whose linear algebra differs in the last digits."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np

_PICTURE = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")
_GEOMETRY = {"d", "x", "y", "width", "height", "transform", "points", "viewBox", "cx", "cy", "r"}
_REFERENCE = re.compile(r"#([A-Za-z][\w-]*)")
_IMAGE = "data:image/png;base64,"
_PIXEL = 0.5
_COUNTED = re.compile(r'(?<=<span class="drawn">)([0-9.]+)(?=</span>)')
_TIPPED = 10  # two draws of twenty in percent, or as many edges


def same_words(one: str, other: str) -> bool:
    """Whether two pages are the same outside their pictures, to the letter.

    But for numbers that count what came to one side of a threshold in draws of the release anew:
    there a last digit may tip one draw or the other.
    """
    counted = [[float(x) for x in _COUNTED.findall(page)] for page in (one, other)]
    near = len(counted[0]) == len(counted[1]) and all(
        abs(a - b) <= _TIPPED for a, b in zip(*counted, strict=True)
    )
    words = [_COUNTED.sub("", _PICTURE.sub("", page)) for page in (one, other)]
    return near and words[0] == words[1]


def same_pictures(one: str, other: str) -> bool:
    """Whether two pages show the same pictures.

    Texts, colours and styles agree to the letter, and every place where something is drawn to half
    a pixel: that is what two machines' last digits may move.
    """
    found = [_PICTURE.findall(page) for page in (one, other)]
    return len(found[0]) == len(found[1]) and all(
        _same_picture(a, b) for a, b in zip(*found, strict=True)
    )


def _same_picture(one: str, other: str) -> bool:
    try:
        parts = [list(_parts(ElementTree.fromstring(svg))) for svg in (one, other)]
    except ElementTree.ParseError:
        return False
    return len(parts[0]) == len(parts[1]) and all(
        a[:2] == b[:2] and _same_value(a[1], a[2], b[2]) for a, b in zip(*parts, strict=True)
    )


def _parts(svg: ElementTree.Element) -> Iterator[tuple[str, str, str]]:
    """(element, attribute or '', value) in order; ids, which are hashes, by their order."""
    ids: dict[str, str] = {}

    def renamed(value: str) -> str:
        return ids.setdefault(value, f"id{len(ids)}")

    for element in svg.iter():
        for name, value in sorted(element.attrib.items()):
            plain = name.rpartition("}")[2]
            if plain == "id":
                yield element.tag, plain, renamed(value)
            elif plain in _GEOMETRY or value.startswith(_IMAGE):
                yield element.tag, plain, value
            else:
                yield element.tag, plain, _REFERENCE.sub(lambda m: "#" + renamed(m[1]), value)
        yield element.tag, "", f"{element.text}|{element.tail}"


def _same_value(attribute: str, one: str, other: str) -> bool:
    if one.startswith(_IMAGE) and other.startswith(_IMAGE):
        return _same_image(one.removeprefix(_IMAGE), other.removeprefix(_IMAGE))
    if attribute not in _GEOMETRY:
        return one == other
    numbers = [np.array(_NUMBER.findall(text), dtype=float) for text in (one, other)]
    return _NUMBER.sub("", one) == _NUMBER.sub("", other) and bool(
        (np.abs(numbers[0] - numbers[1]) <= _PIXEL).all()
    )


def _same_image(one: str, other: str) -> bool:
    from PIL import Image

    pixels = [np.asarray(Image.open(io.BytesIO(base64.b64decode(x)))) for x in (one, other)]
    return pixels[0].shape == pixels[1].shape and bool(
        (np.abs(pixels[0].astype(int) - pixels[1].astype(int)) <= 2).all()
    )
