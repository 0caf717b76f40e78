"""Names as Kubernetes takes them: by RFC 1123, as its documentation of object names says."""

from __future__ import annotations

import re

from headway.errors import InputError

#: A label: namespaces, and the names of what becomes a host name.
LABEL_PATTERN = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
LABEL_WORDS = "lower case letters, digits and '-', a letter or digit at both ends, at most 63"
#: Labels with dots between them: service accounts.
SUBDOMAIN_PATTERN = rf"(?=.{{1,253}}$){LABEL_PATTERN}(?:\.{LABEL_PATTERN})*"
SUBDOMAIN_WORDS = (
    "lower case letters, digits, '-' and '.', a letter or digit at both ends, at most 253"
)


def require_label(name: str, what: str) -> None:
    """Refuse what Kubernetes would refuse for a namespace.

    Raises
    ------
    InputError
        Saying what is expected; ``what`` is how the user gave it.

    Examples
    --------
    >>> require_label("data-eu", "--namespace")
    >>> require_label("Data_EU", "--namespace")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: --namespace 'Data_EU': no name that Kubernetes takes; expected ...
    """
    _require(LABEL_PATTERN, LABEL_WORDS, name, what)


def require_subdomain(name: str, what: str) -> None:
    """Refuse what Kubernetes would refuse for a service account.

    Raises
    ------
    InputError
        As `require_label` does.
    """
    _require(SUBDOMAIN_PATTERN, SUBDOMAIN_WORDS, name, what)


def _require(pattern: str, words: str, name: str, what: str) -> None:
    if re.fullmatch(pattern, name) is None:
        raise InputError(f"{what} {name!a}: no name that Kubernetes takes; expected {words}")
