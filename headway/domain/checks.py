"""Checks that several nouns share: of numbers, and of names."""

from __future__ import annotations

import math
import re

from headway.errors import InputError
from headway.limits import LONGEST_SUM_S, MOST_LONG, MOST_SPREAD_RATIO

# Names as Kubernetes takes them: by RFC 1123, as its documentation of object names says.
#: A label: namespaces, and the names of what becomes a host name.
LABEL_PATTERN = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
LABEL_WORDS = "lower case letters, digits and '-', a letter or digit at both ends, at most 63"
#: Labels with dots between them: service accounts.
SUBDOMAIN_PATTERN = rf"(?=.{{1,253}}$){LABEL_PATTERN}(?:\.{LABEL_PATTERN})*"
SUBDOMAIN_WORDS = (
    "lower case letters, digits, '-' and '.', a letter or digit at both ends, at most 253"
)


def require_not_negative(where: str, **values: float | None) -> None:
    """Refuse values that are negative, undefined, or too large for their unit, as a ValueError."""
    for name, value in values.items():
        max_value: float = LONGEST_SUM_S if name.endswith("_s") else MOST_LONG
        if value is not None and not 0 <= value <= max_value:
            up_to = "" if value < 0 or math.isnan(value) else f", up to {max_value:g}"
            raise ValueError(f"{where}: {name} is {value}; expected 0 or more{up_to}")


def require_spread(where: str, **ratios: float) -> None:
    """Refuse spreads of durations that no distribution used here can have, as a ValueError."""
    for name, ratio in ratios.items():
        if not 0 <= ratio <= MOST_SPREAD_RATIO:
            fault = f"{where}: {name} is {ratio}; expected 0 or more, up to {MOST_SPREAD_RATIO:g}"
            raise ValueError(fault)


def require_count(max_count: int, **counts: int | None) -> None:
    """Refuse counts below 1 or above ``max_count``, as a ValueError; None is no count."""
    for name, count in counts.items():
        if count is not None and not 1 <= count <= max_count:
            up_to = "" if count < 1 else f", up to {max_count:,}"
            raise ValueError(f"{name} is {count}; expected at least 1{up_to}")


def require_seconds(**values_s: float) -> None:
    """Refuse durations that are not positive and finite, as a ValueError."""
    for name, value_s in values_s.items():
        if not 0 < value_s < math.inf:
            raise ValueError(f"{name} is {value_s}; expected a positive number of seconds")


def require_label(name: str, setting: str) -> None:
    """Refuse what Kubernetes would refuse for a namespace.

    Raises InputError, which says what is expected; ``setting`` is how the user gave it.

    >>> require_label("data-eu", "namespace")
    >>> require_label("Data_EU", "namespace")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: namespace 'Data_EU': no name that Kubernetes takes; expected ...
    """
    _require(LABEL_PATTERN, LABEL_WORDS, name, setting)


def require_subdomain(name: str, setting: str) -> None:
    """Refuse what Kubernetes would refuse for a service account, as `require_label` does."""
    _require(SUBDOMAIN_PATTERN, SUBDOMAIN_WORDS, name, setting)


def _require(pattern: str, words: str, name: str, setting: str) -> None:
    if re.fullmatch(pattern, name) is None:
        raise InputError(f"{setting} {name!r}: no name that Kubernetes takes; expected {words}")
