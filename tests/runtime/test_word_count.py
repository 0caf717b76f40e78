"""The demonstration job counts right and really pays for its hashes."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from headway.runtime.word_count import MOST_HASH_ROUNDS, count_words


def test_words_are_counted_and_every_hash_round_is_done(spark: SparkSession) -> None:
    texts = ["ba be ba", "bi", "ba bi"]
    lines = spark.createDataFrame([(text,) for text in texts], "text string")
    counted = count_words(lines, hash_rounds=3).collect()
    assert {row.word: row.num_seen for row in counted} == Counter(" ".join(texts).split())

    def stretched(word: str) -> str:
        for _ in range(3):
            word = hashlib.sha256(word.encode()).hexdigest()
        return word

    words = spark.createDataFrame([("be", stretched("be"))], "word string, hash string")
    expected = words.selectExpr("xxhash64(hash) AS fingerprint").head()
    assert expected is not None
    # "be" occurs once; its fingerprint can only come out of all three rounds.
    assert [row.fingerprint for row in counted if row.word == "be"] == [expected.fingerprint]


def test_the_most_rounds_pass_the_analyzer(spark: SparkSession) -> None:
    lines = spark.sql("SELECT 'ba' AS text")
    assert count_words(lines, hash_rounds=MOST_HASH_ROUNDS).count() == 1
    with pytest.raises(ValueError, match="expected 0 to 60"):
        count_words(lines, hash_rounds=MOST_HASH_ROUNDS + 1)
