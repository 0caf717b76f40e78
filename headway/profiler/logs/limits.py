"""Limits on disk space for unpacking one log, as protection against zip bombs."""

from __future__ import annotations

import shutil
from pathlib import Path

from headway.digits import size_text
from headway.lazy_classes import dataclass
from headway.profiler.logs.event_logs import UnreadableLogError
from headway.units import parse_size_bytes

_CHECK_EVERY_BYTES = parse_size_bytes("64m")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackLimits:
    """Maximum bytes of one log on disk, maximum compression ratio, bytes to leave free.

    Real logs reach a ratio of 40, repetitive ones 300, bombs 1000. Up to ``ratio_from_bytes`` the
    ratio does not matter, since small logs may be very repetitive.
    """

    max_bytes: int = parse_size_bytes("1t")
    max_ratio: float = 500.0
    ratio_from_bytes: int = parse_size_bytes("64m")
    min_free_bytes: int = parse_size_bytes("2g")


DEFAULT_LIMITS = UnpackLimits()


class Allowance:
    """Disk space that one log may still use.

    ``packed_bytes`` is None while it is only copied, ``folder`` is None while nothing is written.
    """

    def __init__(self, limits: UnpackLimits, packed_bytes: int | None, folder: Path | None) -> None:
        self._limits = limits
        self._packed_bytes = packed_bytes
        self._folder = folder
        self._taken_bytes = 0

    @property
    def next_bytes(self) -> int:
        return min(_CHECK_EVERY_BYTES, self._limits.max_bytes - self._taken_bytes + 1)

    def take(self, num_bytes: int) -> None:
        """Count bytes that will be or have just been written; raise an error at a limit."""
        self._taken_bytes += num_bytes
        limits, taken = self._limits, self._taken_bytes
        if taken > limits.max_bytes:
            raise UnreadableLogError(
                f"more than {size_text(limits.max_bytes)} when unpacked, the maximum for one log; "
                "unpack it yourself if it is sound"
            )
        packed = self._packed_bytes
        if packed is not None and taken > limits.ratio_from_bytes:
            ratio = taken / max(packed, 1)
            if ratio > limits.max_ratio:
                raise UnreadableLogError(
                    f"{size_text(packed)} unpack to {size_text(taken)} and more, over "
                    f"{limits.max_ratio:g} times as much, as no event log does; "
                    "unpack it yourself if it is sound"
                )
        if self._folder is None:
            return
        free = shutil.disk_usage(self._folder).free
        if free < limits.min_free_bytes:
            raise UnreadableLogError(
                f"its first {size_text(taken)} leave {size_text(free)} free on the disk of "
                f"{self._folder}, less than the {size_text(limits.min_free_bytes)} to keep free; "
                "set TMPDIR to a folder with more room"
            )
