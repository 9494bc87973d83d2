"""Pages with scripts, forms or frames are refused; pages that only show something are not."""

from __future__ import annotations

import pytest

from gramercy.archive.bundles.bundle_kinds import is_active

ACTIVE = [
    "<script>x</script>",
    "<ScRiPt src=x>",
    "<img src=x onerror=y>",
    "<p onclick='x'>",
    "<svg/onload=x>",
    "<a href=' java\tscript:x'>",
    "<a href=javascript:x>",
    '<a href="&#106;avascript:x">',
    "<a xlink:href='data:text/html,x'>",
    "<iframe src=/x>",
    "<form action=/x>",
    "<svg><foreignObject></svg>",
    "<meta http-equiv=refresh content=0>",
    "<img src=https://x.example/y.png>",
    "<link rel=stylesheet href=//x.example/y.css>",
    "<p title='x",
]
INERT = [
    "<p>a &lt;script&gt; b</p>",
    '<a href="https://x.example/?a=b">c</a>',
    "<a href='#x'><img src=x.png></a>",
    '<p title="a onclick=b > c">',
    "1 < 2, javascript:x, onclick=y",
    "<!DOCTYPE html><style>a > b {color: red}</style>",
]


@pytest.mark.parametrize("page", ACTIVE)
def test_active_content(page: str) -> None:
    assert is_active(f"<p>before</p>{page}")


@pytest.mark.parametrize("page", INERT)
def test_inert_content(page: str) -> None:
    assert not is_active(page)
