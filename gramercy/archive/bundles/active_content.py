"""Pages of a hostile archive: refuse those that would do more in a browser than show something.

Reports have no scripts, forms or frames, and load nothing.
"""

from __future__ import annotations

import html
import re

_TAG_START = re.compile(r"<[a-zA-Z]")
_TAG = re.compile(r"""<([a-zA-Z][^\s/<>"']*)((?:[^<>"']|"[^"]*"|'[^']*')*+)>""")
_ATTRIBUTE = re.compile(r"""([^\s"'=/<>]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>]+)""")
_ACTIVE = re.compile(
    "animate|applet|base|embed|foreignobject|form|frame|frameset|iframe|input|object|script|set"
)
_REFERENCES = frozenset({"action", "formaction", "href", "poster", "src", "srcdoc", "xlink:href"})
_POLICY = "content-security-policy"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):|//")
_LINK, _INLINE = re.compile(r"https?:|mailto:"), re.compile(r"data:(,|image/)")
_IGNORED = re.compile(r"[\x00-\x20]")  # browsers ignore them in an address


def is_active(page: str) -> bool:
    """Whether an HTML page, or SVG in it, may run a script, or load or send something."""
    for start in _TAG_START.finditer(page):
        tag = _TAG.match(page, start.start())
        if tag is None or _ACTIVE.fullmatch(tag[1].lower()):
            return True
        for attribute in _ATTRIBUTE.finditer(tag[2]):
            if _is_active_attribute(tag[1].lower(), attribute[1].lower(), attribute[2]):
                return True
    return False


def _is_active_attribute(tag: str, name: str, value: str) -> bool:
    text = _IGNORED.sub("", html.unescape(value.strip("\"'"))).lower()
    if name == "http-equiv":
        return text != _POLICY
    if name not in _REFERENCES:
        return name.startswith("on")
    allowed = _LINK if tag == "a" else _INLINE
    return _SCHEME.match(text) is not None and allowed.match(text) is None
