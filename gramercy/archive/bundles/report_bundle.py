"""Writing and reading report bundles.

A report has no scripts, forms or frames, and loads nothing. Pages of a hostile archive that would
do more in a browser than show something are refused.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramercy.archive.bundles.package import descriptor, read_manifest, write_descriptor
from gramercy.archive.seal.bundle import check
from gramercy.common.disk import error_reason
from gramercy.schemas import families, wordings
from gramercy.schemas.manifest import ReportManifest

PAGE = "report.html"

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


@dataclass(frozen=True)
class ReportBundle:
    """A report as read from disk; `page` is HTML."""

    manifest: ReportManifest
    page: str
    sha256: str


def write_report(folder: Path, manifest: ReportManifest, page: str) -> None:
    """Fill an empty folder with a report."""
    (folder / PAGE).write_text(page, encoding="utf-8", newline="\n")
    write_descriptor(folder, report_descriptor(folder, manifest))


def report_descriptor(folder: Path, manifest: ReportManifest) -> dict[str, Any]:
    """The content of datapackage.json for a report."""
    name = f"{manifest.dataset.id}-{manifest.release}-{manifest.report}"
    return descriptor(folder, name, f"{manifest.dataset.title}: report", [PAGE], manifest)


def read_report(folder: Path) -> ReportBundle:
    """Read a report, verified; raises as `read_release` does."""
    sha256 = check(folder)
    manifest = read_manifest(folder, ReportManifest)
    try:
        page = (folder / PAGE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as caught:
        raise wordings.file_unreadable(str(folder / PAGE), error_reason(caught)) from None
    if is_active(page):
        raise families.DESCRIPTION(
            "{path} contains a script, a form or a frame.",
            "Do not open it.",
            path=str(folder / PAGE),
        )
    return ReportBundle(manifest, page, sha256)
