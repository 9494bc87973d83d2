"""YAML scalars on one line."""

from __future__ import annotations

import io
import math
import re

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

_PLAIN = re.compile(r"(?:\.{0,2}/)*[^\W\d_](?:[\w ./()*=-]*[\w)*])?")
_READ_AS_OTHER = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def yaml_scalar(value: str | float | None) -> str:
    """A text, a number or nothing as a YAML scalar on one line; parsing it returns the value."""
    if value is None:
        return ""
    if isinstance(value, int | float):
        is_whole = math.isfinite(value) and value == int(value) and abs(value) < 1e15
        return str(int(value)) if is_whole else repr(value)
    if _PLAIN.fullmatch(value) and value.isprintable() and value.lower() not in _READ_AS_OTHER:
        return value
    quoted, text = YAML(pure=True), io.StringIO()
    quoted.width = 1 << 30
    quoted.allow_unicode = True
    quoted.dump({"a": DoubleQuotedScalarString(value)}, text)
    return text.getvalue().removeprefix("a: ").rstrip("\n")
