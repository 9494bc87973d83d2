"""URLs without user, password, query and fragment, for display.

The URL of a source, an archive, a ledger or a server may contain a secret. Messages, logs and files
show only the result of `without_secrets`.
"""

from __future__ import annotations

import re

# Also matches mistyped URLs, and URLs inside paths. A single letter is a Windows drive instead.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:[/\\]+")
_CHAIN_SEPARATOR = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.-]*:[:/\\])")
_QUERY = re.compile(r"[?#]|%3f|%23", re.IGNORECASE)
# A password that is not percent-encoded may contain '/' and '@'.
_USER = re.compile(r".*:.*@|[^/\\@]*@", re.DOTALL)
# A host, a bucket or a pattern of buckets. Anything else may be part of a secret.
_HOST = re.compile(r"(?:arn:[\w:-]+|\[[0-9A-Fa-f:.]*\]|[\w.~*{}-]*)(?::\d*)?")

USE_ENVIRONMENT = (
    "Put credentials into the environment variables or configuration files of the driver (for S3: "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials)."
)


def without_secrets(url: str) -> str:
    """The URL without user, password, query and fragment; any other text unchanged.

    Only the scheme remains if it is unclear which part is a secret.

    Examples
    --------
    >>> without_secrets("https://user:password@host/x.csv?signature=abc")
    'https://host/x.csv'
    >>> without_secrets("data/x.csv")
    'data/x.csv'
    """
    return "::".join(map(_redact, _CHAIN_SEPARATOR.split(url)))


def has_secrets(url: str) -> bool:
    """Whether a URL has a user, a password, a query or a fragment."""
    return without_secrets(url) != url


def path_of(url: str) -> str:
    """An HTTP URL without query and fragment; any other text unchanged.

    In other URLs and in paths, ``?`` and ``#`` are part of a pattern or a name.
    """
    if not url.lower().startswith(("http://", "https://")):
        return url
    return re.split(r"[?#]", url, maxsplit=1)[0]


def user_in_name(url: str, path: str) -> bool:
    """Whether a driver treats the user and password of a URL as part of the name.

    Examples
    --------
    >>> user_in_name("s3://key:secret@bucket/x.csv", "key:secret@bucket/x.csv")
    True
    >>> user_in_name("sftp://user@host/x.csv", "/x.csv")
    False
    """
    authority = _authority(url.partition("://")[2])
    # A '/' in a password ends the authority too early; names of AWS buckets may contain colons.
    cut_short = ":" in authority and "@" in url and not authority.startswith("arn:")
    named = cut_short or "@" in authority or "%40" in authority
    return named and "://" not in path and authority in path


def _redact(url: str) -> str:
    start = _SCHEME.search(url)
    if start is None:
        return url
    scheme, rest = url[: start.end()], url[start.end() :]
    display = _QUERY.split(rest, maxsplit=1)[0]
    if "@" in rest[len(display) :]:  # a query, or a password with '?' or '#'
        return f"{scheme}..."
    if user := _USER.match(display):
        display = display[user.end() :]
    without_host = scheme.endswith(("///", "\\"))  # a path follows
    return scheme + (display if without_host or _HOST.fullmatch(_authority(display)) else "...")


def _authority(rest: str) -> str:
    return re.split(r"[/\\]", rest, maxsplit=1)[0]
