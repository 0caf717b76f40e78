"""Switches of Spark: settings beside the size of a query that move its latency, files or memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from headway.errors import InputError
from headway.lazy_classes import dataclass


class Switch(StrEnum):
    """A setting of Spark that a plan may turn if it is allowed to, by what turning it does."""

    ASYNC_PROGRESS = "async-progress"
    CHANGELOG = "changelog"
    ROCKSDB = "rocksdb"
    FILE_MANAGER = "file-manager"
    NO_CHECKSUMS = "no-checksums"
    KEEP_LOADED = "keep-loaded"
    NO_EMPTY_BATCHES = "no-empty-batches"
    ADAPTIVE = "adaptive"
    NO_COALESCING = "no-coalescing"

    @classmethod
    def parse(cls, name: str) -> Switch:
        """The switch of a name; the InputError names all.

        >>> str(Switch.parse("changelog"))
        'changelog'
        """
        try:
            return cls(name)
        except ValueError:
            raise InputError(
                f"{name!r} is no switch that Headway knows; expected one of {', '.join(cls)}"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchSetting:
    """What turning a switch takes: Spark's settings, or options of the query's writer.

    ``caution`` is what is given up for it, as a clause; empty if nothing is.
    """

    switch: Switch
    label: str
    conf: Mapping[str, str] = field(default_factory=dict)
    writer_options: Mapping[str, str] = field(default_factory=dict)
    caution: str = ""

    @property
    def settings(self) -> Mapping[str, str]:
        """All of them, by Spark's name.

        >>> SwitchSetting(
        ...     switch=Switch.ADAPTIVE, label="adaptive execution", conf={"spark.a": "true"}
        ... ).settings
        {'spark.a': 'true'}
        """
        return {**self.conf, **self.writer_options}
