"""Which bucket a key is in: Spark's hash inverted, heavy keys placed, kept as it was begun."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from headway.errors import HeadwayError
from headway.models.stages.spark_hash import spark_hash
from headway.runtime.ordered.layout import GUARD_FILE, BucketLayout, partition_ids, placed_keys
from tests.runtime.sharing.log_cases import MemoryFiles

LAYOUT = BucketLayout(
    shuffle_partitions=2, ids=(1, 0), bucket_of={"a": 1}, key=("k",), by=("at",), wait="batch",
    state="struct<n:bigint>",
)  # fmt: skip


@pytest.mark.parametrize("partitions", [1, 2, 16, 200, 1000])
def test_each_partition_has_one_bucket(partitions: int) -> None:
    ids = partition_ids(partitions)
    hashes = spark_hash(np.array(ids), "int").astype(np.int64)
    assert np.mod(hashes, partitions).tolist() == [*range(partitions)]


def test_the_fullest_partition_is_as_full_as_it_must_be() -> None:
    for seed in range(200):
        seeded = random.Random(seed)
        weights = [seeded.random() ** 3 for _ in range(seeded.randint(1, 60))]
        total = sum(weights) * seeded.choice([1.0, 1.5])
        shares = {f"k{at}": weight / total for at, weight in enumerate(weights)}
        ids = partition_ids(seeded.randint(1, 9))
        loads = dict.fromkeys(ids, (1.0 - sum(shares.values())) / len(ids))
        for key, bucket in placed_keys(shares, ids).items():
            loads[bucket] += shares[key]
        rest = loads[min(loads, key=loads.__getitem__)]
        # No lighter one could take what came last to the fullest.
        assert max(loads.values()) <= rest + max(shares.values()) + 1e-12


def test_a_layout_is_kept_and_read() -> None:
    files = MemoryFiles()
    assert BucketLayout.of_checkpoint(files, "/c") is None
    LAYOUT.keep(files, "/c")
    assert BucketLayout.of_checkpoint(files, "/c") is None
    LAYOUT.keep(files, "/c")
    files.write_new("/c/offsets/0", "")
    first = BucketLayout.of_checkpoint(files, "/c")
    assert first == LAYOUT
    assert first.fingerprint == LAYOUT.fingerprint
    LAYOUT.require_same(first, "/c")
    # As releases before timers and pieces wrote it, byte by byte: it is part of the state.
    assert LAYOUT.to_json() == (
        '{"bucket_of": {"a": 1}, "by": ["at"], "columns": null, "format": "headway.ordered/v1", '
        '"ids": [1, 0], "key": ["k"], "shuffle_partitions": 2, "state": "struct<n:bigint>", '
        '"wait": "batch"}'
    )
    later = replace(LAYOUT, clock="event", forgets=True, logged=True)
    assert BucketLayout.from_json(later.to_json()) == later
    with pytest.raises(HeadwayError, match="another timer or clock and another forget_after;"):
        later.require_same(first, "/c")
    files.texts[f"/c/{GUARD_FILE}"] = "{}"
    with pytest.raises(HeadwayError, match=r"expected headway\.ordered/v1"):
        BucketLayout.of_checkpoint(files, "/c")
