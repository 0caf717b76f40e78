"""Names of files and addresses in messages: on one line, and without secrets."""

from __future__ import annotations

import re

_LONGEST_CHARACTERS = 300
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)", re.DOTALL)
# In these schemes, the text before the @ is the name of a container.
_CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs")


def one_line(text: str) -> str:
    r"""The text with control characters escaped, and its middle left out if it is long.

    >>> print(one_line("two\nlines \x1b[31m"))
    two\nlines \x1b[31m
    >>> len(one_line("x" * 5000))
    300
    """
    escaped = "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )
    if len(escaped) <= _LONGEST_CHARACTERS:
        return escaped
    half = (_LONGEST_CHARACTERS - 3) // 2
    return f"{escaped[: _LONGEST_CHARACTERS - 3 - half]}...{escaped[-half:]}"


def without_secrets(address: str) -> str:
    """An address without user, password and, on the web, query.

    >>> without_secrets("http://me:hush@host:18080/history/app-1?token=hush")
    'http://host:18080/history/app-1'
    >>> without_secrets("s3a://KEY:sec/ret@bucket/logs")
    's3a://bucket/logs'
    >>> without_secrets("abfss://logs@account.dfs.core.windows.net/spark")
    'abfss://logs@account.dfs.core.windows.net/spark'
    >>> without_secrets("hdfs://namenode:8020/logs/app@1")
    'hdfs://namenode:8020/logs/app@1'
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return one_line(address)
    scheme, authority, rest = match.groups()
    if scheme.lower() in ("http", "https"):
        rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    user, _, host = authority.rpartition("@")
    port = host.rpartition("]")[2].partition(":")[2]
    is_web = scheme.lower() in ("http", "https")
    if not user and "@" in rest and port and (is_web or not port.isdecimal()):
        # A password that contains a slash makes the host part end early.
        host, slash, path = rest.rpartition("@")[2].partition("/")
        return one_line(f"{scheme}://{host}{slash}{path}")
    if scheme.lower() in _CONTAINER_SCHEMES and user and ":" not in user:
        host = f"{user}@{host}"
    return one_line(f"{scheme}://{host}{rest}")
