"""A thousand hostile names for contracts, requests, commands and headers."""

from __future__ import annotations

import itertools
from urllib.parse import quote


def _words(names: str) -> list[str]:
    """Names without blanks."""
    return names.split()


# Letters that look like others, and digits that are digits elsewhere.
_LOOKALIKES = {
    "a": "аɑａ𝐚α",
    "b": "ЬƄｂ𝖇",
    "c": "сϲｃ𝒸",
    "e": "еҽｅ",
    "i": "іıｉ",
    "o": "оο０ｏօ",
    "p": "рρｐ",
    "t": "тｔ",
    "v": "ѵνｖ",
    "y": "уүｙ",
    "1": "１١۱¹𝟏",
    "2": "２٢²",
    "-": "‐‑–—−－﹣",
    ".": "․。．‥…",
    "/": "∕⁄／⧸",
    "\\": "＼⧵",
}
_WORDS = ["toy", "v1", "v1-r1", "release", "archive"]
_PARENTS = _words(".. ../x ../../x ../../../../../../tmp/x a/../../b ./.. ....//x ..;/x")
_WINDOWS = ["con", "prn", "aux", "nul", "com1", "com9", "lpt1", "conin$", "clock$"]
_HIDDEN = _words(". ... .staging .ledger .git .ssh/authorized_keys .bashrc .staging/x")
_SQL = [
    "'; DROP TABLE charges;--",
    "x'; DELETE FROM marks WHERE '1'='1",
    "' OR '1'='1",
    '" OR ""="',
    "1); ATTACH DATABASE '/tmp/x' AS x;--",
    "toy' UNION SELECT * FROM budgets--",
    "%' --",
    "toy\\'; --",
    "x`; DROP TABLE datasets; --`",
    "'||(SELECT hex(randomblob(9)))||'",
    "[toy]",
    "toy; PRAGMA writable_schema=1",
]
_SHELL = [
    *_words("$HOME ~ ~root ~/x %USERPROFILE% * ? [a-z] {a,b} !x -rf --yes - -- \\ ' \" a&b (a)"),
    "$(touch x)",
    "`touch x`",
    "; touch x",
    "| tee x",
    "&& touch x",
    "> x",
    "a b",
]
_TEMPLATES = [
    *_words(
        "${7*7} #{7*7} %(x)s %s%n {0.__class__} {x!r} !!python/object:os.system &a *a | >- "
        "@a yes null ~ 1e3 0x10 2026-11-01 NaN $x^2$ $\\frac{1}$ \\input{/etc/passwd} _x_ "
        "**x** [x](javascript:alert(1)) ![x](file:///etc/passwd) ```"
    ),
    "{{ 7 * 7 }}",
    "{{ config }}",
    "{% include '/etc/passwd' %}",
    "{# x #}",
    "<%= 7 * 7 %>",
    "!!python/object/apply:os.system ['touch x']",
    "<<: *a",
    "a: b",
    "- a",
    "# a",
]
_MARKUP = [
    *_words(
        "<script>alert(1)</script> </script><script>alert(1)</script> "
        "'><svg/onload=alert(1)> <!-- --> <![CDATA[ ]]> </data></node></graph></graphml> "
        "&x; &lt;script&gt; &#x3c;script> </title><script>alert(1)</script> "
        "</style><script>alert(1)</script> javascript:alert(1) "
        "</text></svg><script>alert(1)</script> <b> </table> [bold]x[/bold] "
        "[link=file:///etc/passwd]x[/link]"
    ),
    '"><img src=x onerror=alert(1)>',
    '<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    "<?xml version='1.0'?>",
]
_SHEETS = [
    *_words('=HYPERLINK("http://x","y") =1+1 +1+1 -1+1 @SUM(1) "=1+1" , ; " "" a"b a,b'),
    "=cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "a\nb",
    "a\r\nb",
]
_INVISIBLE = [
    *(
        "\x00\x01\x07\x08\x0b\x0c\x7f\x85\xad\u061c\u180e\u200b\u200d\u200e\u200f\u2028\u2029"
        "\u202a\u202d\u202e\u2060\u2066\u2067\u2069\ufeff\ufff9\ufffe\uffff\U000e0041\ue000"
        "\ud800\udfff\udc80\U0001f4a9\U0010ffff\u0301\u0338\u20dd"
    ),
    *("\x1b[2J", "\x1b]0;x\x07", "\x9b31m"),
]
_LONG = [
    "a" * 64,
    "a" * 128,
    "a" * 129,
    "a" * 255,
    "a" * 256,
    "a" * 10_000,
    "../" * 3000,
    "a/" * 3000,
    "ä" * 200,
    "\u0301" * 500,
    "-" * 100,
    "." * 300,
]


def _paths(inside: str) -> list[str]:
    """Paths to other folders, with many spellings of separators."""
    names = []
    for up, word in itertools.product(_PARENTS, ["", "x", *_WORDS[:2]]):
        path = f"{up}/{word}" if word else up
        names += [path, path.replace("/", "\\"), quote(path, safe=""), quote(quote(path, safe=""))]
        names += [path.replace(".", "%2e"), path.replace("/", "%c0%af"), f"{path}\0.csv"]
        names += [path.replace("/", "∕"), path.replace(".", "．"), f"file://{path}"]
    roots = ["/", "//", "/etc/passwd", inside, f"file://{inside}", f"//localhost{inside}"]
    roots += [
        "/dev/zero",
        "/proc/self/environ",
        "C:",
        "C:\\x",
        "C:/x",
        "c:x",
        "\\\\host\\share",
        "\\\\?\\C:\\x",
    ]
    return names + roots + [f"{root}/" for root in roots] + [f"x{root}" for root in roots]


def _around(word: str) -> list[str]:
    """A word with a mark before it, in it or after it."""
    marks = [*" ./\\:\0\n\t\u00a0\u3000", "..", "\r\n", *_INVISIBLE]
    return [name for mark in marks for name in (mark + word, word + mark, f"v{mark}1")]


def _lookalikes(word: str) -> list[str]:
    return [
        word[:position] + lookalike + word[position + 1 :]
        for position, letter in enumerate(word)
        for lookalike in _LOOKALIKES.get(letter, "")
    ]


def _devices() -> list[str]:
    shapes = ["{}", "{}.csv", "{}.", "{} ", "{}:", "x/{}"]
    upper = [name.upper() for name in _WINDOWS]
    return [shape.format(name) for name in [*_WINDOWS, *upper] for shape in shapes]


def hostile_names(inside: str, count: int) -> list[str]:
    """Return distinct names; the kinds alternate.

    Parameters
    ----------
    inside
        An absolute path to which something could be written.
    """
    kinds = [
        ["", " ", "\t", "\n"],
        _paths(inside),
        _devices(),
        _HIDDEN,
        _SQL,
        _SHELL,
        _TEMPLATES,
        _MARKUP,
        _SHEETS,
        _INVISIBLE,
        _LONG,
        [name for word in _WORDS for name in _lookalikes(word)],
        [name for word in _WORDS for name in _around(word)],
    ]
    alternating = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
    names = list(dict.fromkeys(name for name in alternating if name is not None))
    return names[:count]
