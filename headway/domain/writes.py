"""Files that a streaming query writes beside its results, and what a store charges for them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headway.units import S_PER_HOUR


class CheckpointStore(StrEnum):
    """Where a checkpoint is, by what writing to it costs."""

    S3 = "s3"
    GCS = "gcs"
    ADLS = "adls"
    HDFS = "hdfs"
    DISK = "disk"

    @classmethod
    def of_scheme(cls, scheme: str) -> CheckpointStore | None:
        """The store behind the scheme of an address; None if it does not tell.

        A local address tells nothing: what runs on a disk for a profile may run elsewhere later.

        Examples
        --------
        >>> str(CheckpointStore.of_scheme("s3a")), CheckpointStore.of_scheme("file")
        ('s3', None)
        """
        return _STORE_OF_SCHEME.get(scheme)


#: Their names.
STORES = tuple(map(str, CheckpointStore))
_STORE_OF_SCHEME = {
    **dict.fromkeys(("s3", "s3a", "s3n"), CheckpointStore.S3),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), CheckpointStore.ADLS),
    "gs": CheckpointStore.GCS,
    "hdfs": CheckpointStore.HDFS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePrice:
    """What a store charges for writes.

    A file that is written where it stays takes ``requests_in_place`` write requests; one that gets
    its name when it is complete, as most files of a checkpoint do, ``requests_renamed``. ``date``
    is that of the price.
    """

    store: CheckpointStore
    price_per_write: float
    requests_in_place: int
    requests_renamed: int
    date: str
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrites:
    """Files and write requests of a query at its planned setting.

    ``checkpoint_files_per_batch`` are files of offsets, commits and state. What is unknown is None:
    ``sink_files_per_batch`` if the log does not show what the sink writes, the requests without a
    store, their cost without a price. ``files_per_hour`` are those of the checkpoint and, as far as
    known, of the sink. All follow the trigger interval.
    """

    batches_per_hour: float
    checkpoint_files_per_batch: float
    sink_files_per_batch: float | None = None
    files_per_hour: float
    requests_per_hour: float | None = None
    cost_per_hour: float | None = None
    store: CheckpointStore | None = None
    prices_of: str | None = None

    @property
    def interval_s(self) -> float:
        """Time between the starts of two batches.

        Examples
        --------
        >>> PlannedWrites(
        ...     batches_per_hour=1800.0, checkpoint_files_per_batch=10.0, files_per_hour=18e3
        ... ).interval_s
        2.0
        """
        return S_PER_HOUR / self.batches_per_hour
