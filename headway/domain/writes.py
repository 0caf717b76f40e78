"""Files that a streaming query writes beside its results, what they cost, and limits of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.limits import LARGEST_NUMBER
from headway.units import S_PER_DAY, S_PER_HOUR, parse_rows

_FILES_LIMIT = r"files *<=? *([\d.]{1,15}[kKMG]?) */ *(h|d)"


#: Where a checkpoint is, by what writing to it costs.
CheckpointStore: TypeAlias = Literal["s3", "gcs", "adls", "hdfs", "disk"]
#: Their names.
STORES: tuple[CheckpointStore, ...] = get_args(CheckpointStore)
#: The store behind the scheme of an address. A local address tells nothing: what runs on a disk for
#: a profile may run elsewhere later.
STORE_OF_SCHEME: Mapping[str, CheckpointStore] = {
    "s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gcs", "hdfs": "hdfs",
    "abfs": "adls", "abfss": "adls", "wasb": "adls", "wasbs": "adls",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePrice:
    """What a store charges for requests and space.

    A file that is written where it stays takes ``requests_in_place`` write requests, one that gets
    its name when it is complete, as most files of a checkpoint do, ``requests_renamed``. With each
    come requests that list, at the same price: ``lists_in_place``, and ``lists_renamed`` or, with a
    manager of checkpoint files that uses ``FileSystem``, ``lists_by_file_system``.
    """

    store: CheckpointStore
    price_per_write: float
    requests_in_place: int
    requests_renamed: int
    date: str
    currency: str = ""
    lists_in_place: int = 0
    lists_renamed: int = 0
    lists_by_file_system: int | None = None
    byte_price_per_hour: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrites:
    """Files of a query at its planned setting, and the requests and the space that they take.

    ``checkpoint_files_per_batch`` are files of offsets, commits and state. What is unknown is None:
    ``sink_files_per_batch`` if the log does not show what the sink writes, the requests without a
    store, their cost without a price. ``files_per_hour`` are those of the checkpoint and, as far as
    known, of the sink. All follow the trigger interval. ``requests_per_hour`` are those charged as
    writes, of which ``lists_per_hour`` list a folder or look for a file; they cost
    ``cost_per_hour``. ``kept_bytes`` are those of the state that the checkpoint keeps, None if the
    log does not show its size, and ``sink_log_bytes_per_day`` those by which the log of a file sink
    grows. Costs are in the ``currency`` of the store's prices, empty if unknown.
    """

    batches_per_hour: float
    checkpoint_files_per_batch: float
    sink_files_per_batch: float | None = None
    files_per_hour: float
    requests_per_hour: float | None = None
    cost_per_hour: float | None = None
    store: CheckpointStore | None = None
    prices_of: str | None = None
    lists_per_hour: float | None = None
    kept_bytes: float | None = None
    storage_cost_per_hour: float | None = None
    sink_log_bytes_per_day: float | None = None
    currency: str = ""

    @property
    def bill_per_hour(self) -> float | None:
        """What requests and space cost together; None without a price."""
        if self.cost_per_hour is None:
            return None
        return self.cost_per_hour + (self.storage_cost_per_hour or 0.0)

    @property
    def interval_s(self) -> float:
        """Time between the starts of two batches.

        >>> PlannedWrites(
        ...     batches_per_hour=1800.0, checkpoint_files_per_batch=10.0, files_per_hour=18e3
        ... ).interval_s
        2.0
        """
        return S_PER_HOUR / self.batches_per_hour


@dataclass(frozen=True, slots=True)
class FilesLimit:
    """The maximum number of files that a query may write per hour, to checkpoint and sink.

    >>> FilesLimit.parse("files <= 12k/d"), str(FilesLimit(500.0))
    (FilesLimit(files_per_hour=500.0), 'files <= 500/h')
    """

    files_per_hour: float

    def __post_init__(self) -> None:
        if not 0 < self.files_per_hour <= LARGEST_NUMBER:
            raise ValueError(f"files_per_hour is {self.files_per_hour}; expected a positive number")

    def __str__(self) -> str:
        return f"files <= {self.files_per_hour:g}/h"

    @classmethod
    def parse(cls, text: str) -> FilesLimit:
        """A limit from its text.

        Raises InputError if it is none; says what is expected.
        """
        stated = re.fullmatch(_FILES_LIMIT, text.strip())
        if stated is None:
            raise InputError(f"limit {text!r} is unknown; expected e.g. 'files <= 500/h'")
        hours = S_PER_DAY / S_PER_HOUR if stated[2] == "d" else 1.0
        return cls(parse_rows(stated[1]) / hours)
