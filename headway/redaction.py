"""Text of others as it may be shown: on one line, without invisible characters and credentials.

Text that was chosen elsewhere (names of queries and files, descriptions, messages of Spark) passes
through here where it enters, not where it is printed.
"""

from __future__ import annotations

import itertools
import re

HIDDEN = "***"
_LONGEST_NAME = 300
_PLACE = r"(?s)([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)"
# In these schemes, the text before the @ is the name of a container.
_CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs")

# Every expression is bounded or possessive, so the time is linear in the text. Texts are compiled
# when they are first used, which most commands never do.
_LONGEST = 200
_KEY_NAME = (
    r"(?:(?:pass(?:word|wd|phrase|code)|secret|token|credential|signature|bearer|authorization"
    r"|(?:api|access|account|private|secret|encryption|master|signing|storage|shared)[_.\- ]?key)"
    r"[\w.\-]{0,128}+"
    r"|(?<![A-Za-z])(?:pwd|pass|auth|sas|sig|creds?)(?![A-Za-z]))"
)
_SCHEME = r"(?:(?:bearer|basic|digest|negotiate|token|apikey)\s{1,4}+)?"
_VALUE = _SCHEME + r"""(?:"(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|\S++)"""
_KEY_VALUE = rf"""(?i)({_KEY_NAME}["'\]]{{0,2}}+\s{{0,4}}+(?:=>|[=:>])\s{{0,4}}+){_VALUE}"""
_OPTION = rf"(?i)((?<![\w-])--?[\w-]{{0,32}}?{_KEY_NAME}\s{{1,4}}+)(?!\*\*\*)\S++"
_BEARER = r"(?i)(\bbearer\s{1,4}+)(?=\S{0,64}?[\d._~+/-])\S++"
_QUERY_VALUE = r"([?&][\w.~%\-]{1,64}+=)[^\s&#\"'<>]++"
_ORACLE_LOGIN = r"(jdbc:oracle:\w{1,10}:)[^\s@]{1,256}@"
_PEM = r"-----BEGIN [A-Z0-9 ]{1,60}-----.*?(?:-----END [A-Z0-9 ]{1,60}-----|\Z)"
_WELL_KNOWN = (
    r"(?<![A-Za-z0-9])(?:"
    r"(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA|AGPA|ANPA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_\w{20,}+"
    r"|glpat-[\w-]{16,}+"  # GitLab
    r"|xox[a-z]-[\w-]{10,}+|xapp-[\w-]{10,}+"  # Slack
    r"|AIza[\w-]{30,}+|ya29\.[\w-]{16,}+|GOCSPX-[\w-]{16,}+"  # Google
    r"|dapi[0-9a-f]{32}(?:-\d)?"  # Databricks
    r"|(?:sk|rk)_(?:live|test)_\w{16,}+|sk-[\w-]{20,}+|hf_[A-Za-z0-9]{20,}+|npm_[A-Za-z0-9]{20,}+"
    r"|SG\.[\w-]{16,}+\.[\w-]{16,}+"
    r"|[A-Za-z0-9+/]{86}=="  # an Azure account key
    r")"
)
_JWT = r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?"
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_HEX = r"(?<![A-Za-z0-9])(?<!spark-)[0-9a-fA-F]{32,}+(?![A-Za-z0-9])"
_RUN = r"[A-Za-z0-9+/_\-]{32,}+={0,2}"
_LEAST_RUN = 32
_LEAST_HEX_DIGITS = 8
# In a key, small letters, capitals and digits are mixed at random: most neighbours are of different
# kinds, and a sixth are digits. In names, even in CamelCase, this is rare.
_LEAST_CHANGES_RATIO = 0.4
_LEAST_DIGITS = 2


def redact(text: str, *, longest: int = _LONGEST) -> str:
    """Text without apparent credentials, on one line and cut at ``longest`` characters.

    ``***`` replaces logins in URLs, values of query strings, values after names that suggest a
    credential, well-known shapes of tokens and keys, and long runs that look random. Control and
    invisible characters become spaces.

    This finds shapes, not secrets. It does not detect a password that is an ordinary word in an
    ordinary place or consists of several words, nor a key of fewer than 32 characters without a
    name before it, nor names of hosts, buckets, people and tables. Data that must not be passed on
    needs an allow-list, such as that of :mod:`headway.profiler.redaction`.

    >>> redact("cannot read s3a://AKIA:s3cr3t@bucket/orders: password=hunter2 rejected")
    'cannot read s3a://***@bucket/orders: password=*** rejected'
    >>> redact("application_1578436911597_0052")
    'application_1578436911597_0052'
    """
    if longest < 1:
        raise ValueError(f"longest is {longest}; expected at least 1")
    redacted = without_logins(re.sub(_PEM, HIDDEN, printable(text)))
    for name_pattern in (_QUERY_VALUE, _KEY_VALUE, _OPTION, _BEARER):
        redacted = re.sub(name_pattern, rf"\1{HIDDEN}", redacted)
    for token_pattern in (_JWT, _WELL_KNOWN):
        redacted = re.sub(token_pattern, HIDDEN, redacted)
    redacted = re.sub(
        _HEX,
        lambda match: HIDDEN if len(set(match[0])) >= _LEAST_HEX_DIGITS else match[0],
        redacted,
    )
    redacted = re.sub(_RUN, lambda match: HIDDEN if _is_random(match[0]) else match[0], redacted)
    return redacted if len(redacted) <= longest else redacted[: longest - 1] + "…"


def one_line(text: object, *, longest: int = _LONGEST_NAME) -> str:
    r"""A name, mostly of a file, on one line: characters that move the cursor, are invisible or
    change the direction of text are escaped, so that different names stay different; if it is long,
    its middle is left out.

    >>> print(one_line("two\nlines \x1b[31m \u202e"))
    two\nlines \x1b[31m \u202e
    >>> len(one_line("x" * 5000))
    300
    """
    escaped = "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in str(text)
    )
    if len(escaped) <= longest:
        return escaped
    half = (longest - 3) // 2
    return f"{escaped[: longest - 3 - half]}...{escaped[-half:]}"


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
    match = re.fullmatch(_PLACE, address)
    if match is None:
        return one_line(address)
    scheme, authority, path_and_query = match.groups()
    is_web = scheme.lower() in ("http", "https")
    if is_web:
        path_and_query = re.split(r"[?#]", path_and_query, maxsplit=1)[0]
    user, _, host = authority.rpartition("@")
    port = host.rpartition("]")[2].partition(":")[2]
    if not user and "@" in path_and_query and port and (is_web or not port.isdecimal()):
        # A password that contains a slash makes the host part end early.
        host, slash, path = path_and_query.rpartition("@")[2].partition("/")
        return one_line(f"{scheme}://{host}{slash}{path}")
    if scheme.lower() in _CONTAINER_SCHEMES and user and ":" not in user:
        host = f"{user}@{host}"
    return one_line(f"{scheme}://{host}{path_and_query}")


def printable(text: str) -> str:
    """Text with a blank for each character that moves the cursor, is invisible, or changes the
    direction of text: logs may hold commands.

    >>> printable("two\\nlines")
    'two lines'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


def without_logins(text: str) -> str:
    text = re.sub(_ORACLE_LOGIN, rf"\1{HIDDEN}@", text)
    return re.sub(r"\S++", lambda word: _without_login(word[0]), text) if "@" in text else text


def _without_login(word: str) -> str:
    """A word without the part between ``://`` and the last ``@``, if that can be a login."""
    scheme, slashes, after_scheme = word.partition("://")
    _, at, after_login = after_scheme.rpartition("@")
    authority = re.split(r"[/?#]", after_scheme, maxsplit=1)[0]
    # A secret may contain a slash; then everything up to the last @ is taken as the login.
    is_host = "@" not in authority and re.fullmatch(r"[^:]*+(?::\d{1,5})?", authority)
    if not slashes or not at or is_host:
        return word
    return f"{scheme}://{HIDDEN}@{after_login}"


def harmless_lines(text: str) -> str:
    r"""Text of several lines; each as :func:`printable` leaves it.

    >>> print(harmless_lines("a\x1b[31m\nb\u202ec"))
    a [31m
    b c
    """
    return "\n".join(printable(line) for line in text.split("\n"))


def _is_random(run: str) -> bool:
    """Whether a long run, or a part of it between slashes, looks drawn at random."""
    run_without_uuids = re.sub(_UUID, "", run)
    return any(
        len(part) >= _LEAST_RUN
        and sum(map(str.isdigit, part)) >= _LEAST_DIGITS
        and _changes_ratio(part) >= _LEAST_CHANGES_RATIO
        for part in (run_without_uuids, *run_without_uuids.split("/"))
    )


def _changes_ratio(text: str) -> float:
    kinds = [_kind(character) for character in text]
    changes = sum(a != b for a, b in itertools.pairwise(kinds) if a and b)
    return changes / len(text)


def _kind(character: str) -> str:
    if character.isdigit():
        return "0"
    if character.isalpha():
        return "A" if character.isupper() else "a"
    return ""
