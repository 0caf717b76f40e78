"""Spark's hash of 64 bits, by which `headway.ordered` deals out keys that are not placed.

Longs are compared with the tasks of a real Spark in tests/benchmarks/test_ordered_speed.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.stages import spark_hash
from headway.models.stages.spark_hash import spark_xxhash64

# XXH64 with seed 0, as its authors print it.
PUBLISHED = {
    "": 0xEF46DB3751D8E999,
    "a": 0xD24EC4F1A98C6E5B,
    "abc": 0x44BC2CF5AD770999,
    "Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


def test_texts_have_the_published_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_hash, "SPARK_SEED", 0)
    found = spark_xxhash64([*PUBLISHED], "string").view(np.uint64)
    assert found.tolist() == [*PUBLISHED.values()]


def test_a_word_is_hashed_as_its_bytes_are() -> None:
    """A long as eight bytes, an integer as four, whichever way they come."""
    text = "abcdefgh"
    (as_long,) = np.frombuffer(text.encode(), dtype="<i8").tolist()
    (as_int,) = np.frombuffer(text[:4].encode(), dtype="<i4").tolist()
    assert spark_xxhash64([as_long], "long").tolist() == spark_xxhash64([text], "string").tolist()
    assert spark_xxhash64([as_int], "int").tolist() == spark_xxhash64([text[:4]], "string").tolist()


def test_a_key_has_its_hash_whatever_stands_beside_it() -> None:
    texts = ["", "x", "Grüße", "y" * 31, "z" * 32, "user-1" * 20]
    together = spark_xxhash64(texts, "string").tolist()
    assert [int(spark_xxhash64([text], "string")[0]) for text in texts] == together
    assert len(set(together)) == len(texts)
