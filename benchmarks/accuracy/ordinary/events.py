"""Numbered events on the wall clock, and what is made of their numbers: persons, auctions, bids.

Of 50 events in a row 1 is a person, 3 are auctions, 46 are bids, as in Nexmark. Ids of persons and
auctions are counted upwards; bids and auctions refer to recent ones, and half of the bids to the
newest auction of their hundred. Every column is an expression of the number alone, so that a run
again has the same events, and nothing is kept in memory.

Numbers come from the clock source: rows arrive evenly from a known instant on, so the arrival of a
row tells its number.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from campaign.workloads import Stream

from headway.runtime.word_count import clock_lines, observe_arrivals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS_PER_EPOCH, PERSONS_PER_EPOCH, AUCTIONS_PER_EPOCH = 50, 1, 3
FIRST_PERSON_ID = FIRST_AUCTION_ID = 1000
RECENT_PERSONS, RECENT_AUCTIONS = 1000, 100
"""How far back events refer."""
HOT_SELLER_STEP = HOT_AUCTION_STEP = 100
NUM_CATEGORIES = 5
HIGHEST_RATE_PER_S = 1e6
"""Instants have microseconds: above it two rows arrive at one."""


def numbered_events(spark: SparkSession, stream: Stream, *, observed: bool = True) -> DataFrame:
    """Rows with ``arrival`` (timestamp) and ``number`` (0, 1, ...), evenly at the stream's rate.

    With ``observed`` each batch reports its arrivals; of several reads in one query only one may.
    """
    from pyspark.sql import functions

    if stream.rate_per_s > HIGHEST_RATE_PER_S:
        raise ValueError(f"rate_per_s is {stream.rate_per_s:g}; expected at most 1e6")
    start_us = round((time.time() if stream.start_epoch_s is None else stream.start_epoch_s) * 1e6)
    lines = clock_lines(
        spark,
        rate_per_s=stream.rate_per_s,
        num_source_partitions=stream.source_partitions,
        start_epoch_s=start_us / 1e6,
        max_rows_per_trigger=stream.max_rows_per_trigger,
        num_words=1,
        words_per_row=1,
    )
    rows = observe_arrivals(lines) if observed else lines
    number = f"ceil((unix_micros(arrival) - {start_us}L) * {stream.rate_per_s / 1e6!r}D - 1e-6D)"
    return rows.select("arrival", functions.expr(number).cast("long").alias("number"))


def number_of(arrival_us: int, start_us: int, rate_per_s: float) -> int:
    """The number of a row, from its arrival: what the expression of `numbered_events` does.

    Examples
    --------
    >>> [number_of(int(row * 1e6 // 30_000.0), 0, 30_000.0) for row in (0, 1, 2, 29_999)]
    [0, 1, 2, 29999]
    """
    share = (arrival_us - start_us) * (rate_per_s / 1e6) - 1e-6
    return int(share) + (share > int(share)) if share > 0 else 0


def drawn(salt: str, count: int | str, number: str = "number") -> str:
    """SQL: an integer from 0 to ``count`` - 1, drawn by a number; each salt draws anew."""
    return f"pmod(xxhash64({number}, '{salt}'), {count})"


_EPOCH = f"(number DIV {EVENTS_PER_EPOCH})"
_PLACE = f"(number % {EVENTS_PER_EPOCH})"
IS_PERSON = f"{_PLACE} < {PERSONS_PER_EPOCH}"
IS_AUCTION = (
    f"{_PLACE} BETWEEN {PERSONS_PER_EPOCH} AND {PERSONS_PER_EPOCH + AUCTIONS_PER_EPOCH - 1}"
)
IS_BID = f"{_PLACE} >= {PERSONS_PER_EPOCH + AUCTIONS_PER_EPOCH}"
_NEWEST_PERSON = f"({_EPOCH} * {PERSONS_PER_EPOCH})"
_AUCTIONS_SO_FAR = f"({_EPOCH} * {AUCTIONS_PER_EPOCH})"
_RECENT_PERSON = (
    f"({FIRST_PERSON_ID} + greatest({_NEWEST_PERSON} - {drawn('person', RECENT_PERSONS)}, 0))"
)
_HOT_PERSON = f"({FIRST_PERSON_ID} + {_NEWEST_PERSON} DIV {HOT_SELLER_STEP} * {HOT_SELLER_STEP})"
_RECENT_AUCTION = (
    f"({FIRST_AUCTION_ID} + greatest({_AUCTIONS_SO_FAR} - {drawn('auction', RECENT_AUCTIONS)}, 0))"
)
_HOT_AUCTION = (
    f"({FIRST_AUCTION_ID} + {_AUCTIONS_SO_FAR} DIV {HOT_AUCTION_STEP} * {HOT_AUCTION_STEP})"
)
_STATES = "array('AZ', 'CA', 'ID', 'OR', 'WA', 'WY')"
_CHANNELS = "array('apple', 'google', 'facebook', 'baidu')"

PERSON_COLUMNS = {
    "person": f"{FIRST_PERSON_ID} + {_NEWEST_PERSON}",
    "name": f"concat('name', {drawn('name', 1000)})",
    "city": f"concat('city', {drawn('city', 10)})",
    "state": f"element_at({_STATES}, 1 + cast({drawn('state', 6)} AS int))",
}
AUCTION_COLUMNS = {
    "auction": f"{FIRST_AUCTION_ID} + {_AUCTIONS_SO_FAR} + {_PLACE} - {PERSONS_PER_EPOCH}",
    "category": f"10 + {drawn('category', NUM_CATEGORIES)}",
    # 3 of 4 auctions are of a seller who sells much.
    "seller": f"if({drawn('hot seller', 4)} > 0, {_HOT_PERSON}, {_RECENT_PERSON})",
    "reserve": f"100 + {drawn('reserve', 10_000)}",
    "open_s": f"2 + {drawn('open', 8)}",
}
BID_COLUMNS = {
    "auction": f"if({drawn('hot auction', 2)} > 0, {_HOT_AUCTION}, {_RECENT_AUCTION})",
    "bidder": f"if({drawn('hot bidder', 4)} > 0, {_HOT_PERSON} + 1, {_RECENT_PERSON})",
    "price": f"1 + {drawn('price', 10_000)}",
    "channel": (
        f"if({drawn('hot channel', 2)} > 0, element_at({_CHANNELS}, 1 + "
        f"cast({drawn('channel', 4)} AS int)), concat('channel-', {drawn('channel', 10_000)}))"
    ),
    "url": (
        f"concat('https://www.nexmark.com/', {drawn('one', 100)}, '/', {drawn('two', 100)}, '/', "
        f"{drawn('three', 100)}, '/item.htm?query=1&channel_id=', {drawn('channel', 10_000)})"
    ),
}


def persons(events: DataFrame) -> DataFrame:
    """New persons: ``arrival``, ``number`` and the columns of `PERSON_COLUMNS`."""
    return _events_of(events, IS_PERSON, PERSON_COLUMNS)


def auctions(events: DataFrame) -> DataFrame:
    """New auctions: ``arrival``, ``number`` and the columns of `AUCTION_COLUMNS`."""
    return _events_of(events, IS_AUCTION, AUCTION_COLUMNS)


def bids(events: DataFrame) -> DataFrame:
    """Bids: ``arrival``, ``number`` and the columns of `BID_COLUMNS`."""
    return _events_of(events, IS_BID, BID_COLUMNS)


def _events_of(events: DataFrame, which: str, columns: dict[str, str]) -> DataFrame:
    return events.where(which).selectExpr(
        "arrival", "number", *(f"{text} AS {name}" for name, text in columns.items())
    )
