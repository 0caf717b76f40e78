"""Quantities as Kubernetes writes them: cores such as ``1500m``, memory such as ``5Gi``."""

from __future__ import annotations

import re
from decimal import Decimal

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
# The operator of kubeflow takes Java's spellings too, which are binary.
_JAVA = {"k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}
_QUANTITY = r"(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<unit>[A-Za-z]*)"


def cores_of(text: str) -> float | None:
    """Cores of a quantity; None if it is none.

    >>> cores_of("1500m"), cores_of("2"), cores_of("two")
    (1.5, 2.0, None)
    """
    number = _plain(text)
    return None if number is None else float(number)


def memory_bytes_of(text: str) -> int | None:
    """Bytes of a quantity; None if it is none.

    Java's ``5g`` and ``512m`` are read as the operator of kubeflow reads them.

    >>> memory_bytes_of("1Gi") == memory_bytes_of("1g") == 2**30
    True
    >>> memory_bytes_of("1G"), memory_bytes_of("lots")
    (1000000000, None)
    """
    match = re.fullmatch(_QUANTITY, text.strip())
    if match is None:
        return None
    java = _JAVA.get(match["unit"])
    if java is not None:
        return int(Decimal(match["number"]) * 2**java)
    number = _plain(text)
    return None if number is None else int(number)


def memory_quantity(size_bytes: int) -> str:
    """A memory size in whole ``Mi``, rounded up.

    >>> memory_quantity(2**30 + 1)
    '1025Mi'
    """
    return f"{-(-size_bytes // 2 ** _BINARY['Mi'])}Mi"


def _plain(text: str) -> Decimal | None:
    """The number that a quantity stands for."""
    match = re.fullmatch(_QUANTITY, text.strip())
    if match is None:
        return None
    unit = match["unit"]
    if unit in _BINARY:
        return Decimal(match["number"]) * Decimal(2 ** _BINARY[unit])
    if unit in _DECIMAL:
        return Decimal(match["number"]).scaleb(_DECIMAL[unit])
    return None
