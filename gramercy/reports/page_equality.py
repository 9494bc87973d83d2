"""Compare two pages made on machines whose linear algebra differs in the last digits."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np

_FIGURE = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")
_GEOMETRY = {"d", "x", "y", "width", "height", "transform", "points", "viewBox", "cx", "cy", "r"}
_REFERENCE = re.compile(r"#([A-Za-z][\w-]*)")
_IMAGE = "data:image/png;base64,"
_TOLERANCE = 0.5  # pixels
_COLOUR_TOLERANCE = 2.5  # of 255
_REDRAWN = re.compile(r'(?<=<span class="drawn">)([0-9.]+)(?=</span>)')
_REDRAW_TOLERANCE = 10  # percentage points (two redraws of twenty), or edges


def same_text(first: str, second: str) -> bool:
    """Whether the texts of two pages outside their figures are equal.

    Counts over redraws of the release may differ a little: the last digit of a number can move a
    redraw across a threshold.
    """
    counts = [[float(x) for x in _REDRAWN.findall(page)] for page in (first, second)]
    close = len(counts[0]) == len(counts[1]) and all(
        abs(a - b) <= _REDRAW_TOLERANCE for a, b in zip(*counts, strict=True)
    )
    texts = [_REDRAWN.sub("", _FIGURE.sub("", page)) for page in (first, second)]
    return close and texts[0] == texts[1]


def same_figures(first: str, second: str) -> bool:
    """Whether two pages have the same figures.

    Texts, colours and styles must be equal; coordinates may differ by half a pixel.
    """
    figures = [_FIGURE.findall(page) for page in (first, second)]
    return len(figures[0]) == len(figures[1]) and all(
        _same_figure(a, b) for a, b in zip(*figures, strict=True)
    )


def _same_figure(first: str, second: str) -> bool:
    try:
        # Nothing before the root element is passed on, so that there is no DTD, and no entity.
        trees = [ElementTree.fromstring(svg) for svg in (first, second)]  # noqa: S314
        parts = [list(_parts(tree)) for tree in trees]
    except ElementTree.ParseError:
        return False
    return len(parts[0]) == len(parts[1]) and all(
        a[:2] == b[:2] and _same_value(a[1], a[2], b[2]) for a, b in zip(*parts, strict=True)
    )


def _parts(svg: ElementTree.Element) -> Iterator[tuple[str, str, str]]:
    """(element, attribute or '', value) in order; ids, which are hashes, become numbers."""
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


def _same_value(attribute: str, first: str, second: str) -> bool:
    if first.startswith(_IMAGE) and second.startswith(_IMAGE):
        return _same_image(first.removeprefix(_IMAGE), second.removeprefix(_IMAGE))
    if attribute not in _GEOMETRY:
        return first == second
    numbers = [np.array(_NUMBER.findall(text), dtype=float) for text in (first, second)]
    return _NUMBER.sub("", first) == _NUMBER.sub("", second) and bool(
        (np.abs(numbers[0] - numbers[1]) <= _TOLERANCE).all()
    )


def _same_image(first: str, second: str) -> bool:
    from PIL import Image

    images = [Image.open(io.BytesIO(base64.b64decode(x))) for x in (first, second)]
    pixels = [np.asarray(image.convert("RGBA"), dtype=float) for image in images]
    for each in pixels:
        each[..., :3] *= each[..., 3:] / 255  # the colour of a transparent pixel is not visible
    return pixels[0].shape == pixels[1].shape and bool(
        (np.abs(pixels[0] - pixels[1]) <= _COLOUR_TOLERANCE).all()
    )
