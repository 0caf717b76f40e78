"""Results of many calls at once leave in the order of the rows, each once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.errors import InputError
from headway.runtime.ordered.ordered_map import in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Calls:
    """Calls of random length that count how many there are at once."""

    def __init__(self, seed: int) -> None:
        self._lock, self._seeded = threading.Lock(), random.Random(seed)
        self.now = self.most = 0
        self.seen: Counter[int] = Counter()

    def __call__(self, number: int) -> int:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.seen[number] += 1
            seconds = self._seeded.choice([0.0, 0.0, 1e-4, 1e-3])
        time.sleep(seconds)
        with self._lock:
            self.now -= 1
        return -number


def test_results_are_in_order_each_once() -> None:
    for seed in range(30):
        seeded = random.Random(seed)
        at_once, number = seeded.randint(1, 8), seeded.choice([0, 1, 7, 200])
        calls = Calls(seed)
        given = in_order(
            range(number), calls, at_once=at_once, buffer=at_once + seeded.randint(0, 9)
        )
        assert list(given) == [-one for one in range(number)]
        assert calls.seen == Counter(range(number))
        assert calls.most <= at_once


def test_no_more_are_called_than_the_buffer_holds() -> None:
    taken: list[int] = []

    def rows() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    first_is_slow = threading.Event()
    results = in_order(
        rows(), lambda number: first_is_slow.wait(0.05) if number == 0 else number,
        at_once=2, buffer=5,
    )  # fmt: skip
    for number, _ in enumerate(results):
        assert len(taken) <= number + 6


def test_a_call_that_raises_is_made_again_in_its_place_and_then_fails() -> None:
    failures = Counter({3: 2, 5: 1})
    lock = threading.Lock()

    def flaky(number: int) -> int:
        with lock:
            failures[number] -= 1
            if failures[number] >= 0:
                raise OSError(number)
        return number

    assert list(in_order(range(9), flaky, at_once=3, buffer=4, retries=2)) == [*range(9)]
    failures.update({3: 4})
    before = set(threading.enumerate())
    results, found = in_order(range(50), flaky, at_once=2, buffer=3, retries=1), []
    with pytest.raises(OSError, match="3"):
        for result in results:
            found.append(result)  # noqa: PERF402 - what came before the error
    assert found == [0, 1, 2]
    # Threads of the calls end with them; those of other tests are not counted.
    ends_s = time.monotonic() + 5.0
    while set(threading.enumerate()) - before:
        assert time.monotonic() < ends_s, threading.enumerate()
        time.sleep(0.01)


def test_on_spark_rows_keep_their_order(spark: SparkSession) -> None:
    def call(row: Any) -> tuple[Any, ...]:
        time.sleep(0.002 if row.id % 5 == 0 else 0.0)
        return row.id, None if row.id % 2 else f"{row.at.isoformat()} {row.n}"

    rows = spark.range(0, 3000, 1, 2).selectExpr(
        "id", "timestamp_seconds(id) AS at", "IF(id % 3 = 0, NULL, id + 9007199254740993) AS n"
    )
    found = headway.ordered_map(rows, call, output="id long, text string", at_once=8).collect()
    assert [row.id for row in found] == [*range(3000)]
    assert found[4].text == "1970-01-01T00:00:04+00:00 9007199254740997"
    assert found[6].text == "1970-01-01T00:00:06+00:00 None"
    assert found[7].text is None
    for wrong in ({"at_once": 0}, {"at_once": "16"}, {"buffer": 3, "at_once": 4}, {"retries": -1}):
        with pytest.raises(InputError, match="expected a whole number from"):
            headway.ordered_map(rows, call, output="id long, text string", **wrong)


def test_on_spark_a_value_that_its_column_would_change_ends_the_query(spark: SparkSession) -> None:
    rows = spark.range(2).withColumnRenamed("id", "_id")
    made = headway.ordered_map(
        rows, lambda row: (row._id, row._id + 0.5), output="_id long, n long"
    )
    with pytest.raises(
        Exception, match=r"call returned [01]\.5 for the output n; expected a value of"
    ):
        made.collect()
    by_step = headway.ordered(
        rows, key="_id", by="_id", step=lambda row, _: ((row._id,), [(1_700_000_000,)]),
        state="_n long", output="at timestamp",
    )  # fmt: skip
    with pytest.raises(Exception, match="step returned 1700000000 for the output at; expected a v"):
        by_step.collect()
