"""The bucket of each key, stored beside the checkpoint, since buckets hold state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headway.errors import HeadwayError
from headway.formats.codec import STATE, data_of, noun_of
from headway.formats.own_files import parse_json
from headway.models.ordered import placement
from headway.runtime.sharing.files import SparkFiles

GUARD_FILE = "headway-ordered.json"
_FORMAT = "headway.ordered/v1"
# Left out where they are empty: checkpoints from before they existed have none.
_LATER = ("clock", "forgets", "logged")


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketLayout:
    """Buckets of keys, and further parameters of a query's state.

    A key that is not in ``bucket_of`` goes to ``ids[pmod(xxhash64(key), len(ids))]``. Buckets are
    integers that Spark's hash sends to all of ``shuffle_partitions`` evenly.
    """

    shuffle_partitions: int
    ids: tuple[int, ...]
    bucket_of: Mapping[str, int]
    key: tuple[str, ...]
    by: tuple[str, ...]
    wait: str
    state: str
    columns: str | None = None
    """Columns of the rows that wait for the watermark, which are part of the state."""
    clock: str | None = None
    """Of timers and the time to live, if there are any."""
    forgets: bool = False
    """Whether the time of a key's last row is part of the state."""
    logged: bool = False
    """Whether state is stored in pieces, each with what a batch changed."""

    @property
    def fingerprint(self) -> str:
        """Stored in the state of each bucket."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """The form stored beside the checkpoint."""
        items = data_of(self, STATE).items()
        data = {name: value for name, value in items if value or name not in _LATER}
        return json.dumps({"format": _FORMAT, **data}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> BucketLayout:
        """The layout written by :meth:`to_json`, unless it is damaged, or of another version."""
        data = parse_json(text, name=GUARD_FILE, expected=_FORMAT)
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise HeadwayError(f"{GUARD_FILE} is of another format; expected {_FORMAT}")
        return noun_of(data, cls, STATE)

    @classmethod
    def of_checkpoint(cls, files: SparkFiles, checkpoint: str) -> BucketLayout | None:
        """The layout that a query's checkpoint was created with; None if it never ran."""
        guard_path = f"{checkpoint}/{GUARD_FILE}"
        if not files.exists(f"{checkpoint}/offsets"):
            return None
        if not files.exists(guard_path):
            raise HeadwayError(
                f"{checkpoint}: the checkpoint of a query that was started without ordered; start "
                "with a new checkpoint"
            )
        return cls.from_json(files.read(guard_path))

    def keep(self, files: SparkFiles, checkpoint: str) -> None:
        """Store it beside a new checkpoint."""
        guard_path = f"{checkpoint}/{GUARD_FILE}"
        files.delete(guard_path)
        files.write_new(guard_path, self.to_json())

    def require_same(self, first: BucketLayout, checkpoint: str) -> None:
        """Refuse parameters that a checkpoint was not created with."""
        names = {"key": "key", "by": "by", "wait": "wait", "state": "state",
                 "columns": "columns of the stream", "bucket_of": "place",
                 "clock": "timer or clock", "forgets": "forget_after"}  # fmt: skip
        changed = [
            label for name, label in names.items() if getattr(first, name) != getattr(self, name)
        ]
        if changed:
            raise HeadwayError(
                f"{checkpoint}: begun with another {' and another '.join(changed)}; rows would not "
                "find their state. Start as before, or with a new checkpoint"
            )


def partition_ids(shuffle_partitions: int) -> tuple[int, ...]:
    """For each partition, the first integer from 0 on that Spark's hash sends there.

    >>> partition_ids(16)[:6]
    (12, 16, 5, 1, 37, 20)
    """
    return tuple(placement.first_bucket_ids(shuffle_partitions).tolist())


def placed_keys(shares: Mapping[str, float], ids: tuple[int, ...]) -> dict[str, int]:
    """Heaviest key first, each to the least loaded bucket; all other keys count evenly.

    >>> placed_keys({"a": 0.4, "b": 0.3, "c": 0.2}, (12, 16))
    {'a': 12, 'b': 16, 'c': 16}
    """
    keys = sorted(shares, key=lambda key: (-shares[key], key))
    # Shares in a file are rounded.
    weights = np.array([shares[key] for key in keys]) / max(sum(shares.values()), 1.0)
    partitions, _ = placement.placed_keys(weights, len(ids))
    return {key: ids[at] for key, at in zip(keys, partitions.tolist(), strict=True)}
