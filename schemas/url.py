"""URLs as they may be shown: without user, password, query and fragment.

A source, an archive, a ledger or a server may be named by a URL that holds a secret. Messages, logs
and files show such a URL only as `without_secrets` leaves it.
"""

from __future__ import annotations

import re

# Also of a URL that was mistyped or became part of a path; one letter is a drive of Windows.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:[/\\]+")
_LINK = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.-]*:[:/\\])")
_QUERY = re.compile(r"[?#]|%3f|%23", re.IGNORECASE)
# A password that is not percent-encoded as it should be may hold '/' and '@'.
_USER = re.compile(r".*:.*@|[^/\\@]*@", re.DOTALL)
# Of a host, a bucket or a pattern of buckets. Whatever else stands there may be part of a secret.
_HOST = re.compile(r"(?:arn:[\w:-]+|\[[0-9A-Fa-f:.]*\]|[\w.~*{}-]*)(?::\d*)?")

USE_ENVIRONMENT = (
    "Put credentials into the environment variables or configuration files of the driver (for S3: "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials)."
)


def without_secrets(url: str) -> str:
    """A URL without user, password, query and fragment; any other text as it is.

    Where it is unclear what is a secret, only the scheme is left.

    Parameters
    ----------
    url
        A URL, several that are chained by ``::``, or a path.

    Examples
    --------
    >>> without_secrets("https://user:password@host/x.csv?signature=abc")
    'https://host/x.csv'
    >>> without_secrets("data/x.csv")
    'data/x.csv'
    """
    return "::".join(map(_link, _LINK.split(url)))


def has_secrets(url: str) -> bool:
    """Whether a URL holds a user, a password, a query or a fragment."""
    return without_secrets(url) != url


def path_of(url: str) -> str:
    """What names the file in a URL over HTTP: without query and fragment; any other as it is.

    Elsewhere ``?`` and ``#`` are part of a pattern or a name.
    """
    if not url.lower().startswith(("http://", "https://")):
        return url
    return re.split(r"[?#]", url, maxsplit=1)[0]


def user_in_name(url: str, path: str) -> bool:
    """Whether a driver takes the user and the password in a URL for a part of the name.

    Parameters
    ----------
    url
        What was named.
    path
        What the driver makes of it.

    Examples
    --------
    >>> user_in_name("s3://key:secret@bucket/x.csv", "key:secret@bucket/x.csv")
    True
    >>> user_in_name("sftp://user@host/x.csv", "/x.csv")
    False
    """
    authority = _authority(url.partition("://")[2])
    # A password with '/' in it ends the authority early; the names of buckets on AWS have colons.
    cut_short = ":" in authority and "@" in url and not authority.startswith("arn:")
    named = cut_short or "@" in authority or "%40" in authority
    return named and "://" not in path and authority in path


def _link(url: str) -> str:
    start = _SCHEME.search(url)
    if start is None:
        return url
    scheme, rest = url[: start.end()], url[start.end() :]
    kept = _QUERY.split(rest, maxsplit=1)[0]
    if "@" in rest[len(kept) :]:  # a query, or a password that holds '?' or '#'
        return f"{scheme}..."
    if user := _USER.match(kept):
        kept = kept[user.end() :]
    nameless = scheme.endswith(("///", "\\"))  # no host is named: a path follows
    return scheme + (kept if nameless or _HOST.fullmatch(_authority(kept)) else "...")


def _authority(rest: str) -> str:
    return re.split(r"[/\\]", rest, maxsplit=1)[0]
