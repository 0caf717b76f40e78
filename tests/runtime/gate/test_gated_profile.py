"""The event log of a gated query says so, and stops saying so when the gate is open."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import headway
from headway.api.schedule import schedule
from tests.runtime.gate.small_queries import Queries, num_batches, wait_until


def test_gated_batches_are_marked_in_the_log(
    spark: SparkSession, queries: Queries, spark_event_log_dir: Path
) -> None:
    trigger = {"processingTime": "700 milliseconds"}
    gated = queries.start("gated for a while", trigger=trigger)
    with schedule(spark, "fcfs", at_once=1) as gate:
        gate.add(gated)
        # Not those of before: on a busy machine the gate takes seconds to be made.
        wait_until(lambda: gate.report().queries[0].num_batches >= 12, "gated batches")
    count = num_batches(gated)
    # One more may still be granted as the gate opens, and the log is written behind the progress.
    wait_until(lambda: num_batches(gated) >= count + 5, "batches by its own trigger")
    gated.stop()
    profile = headway.profile(spark_event_log_dir, queries=[str(gated.id)])
    assert profile.baseline.trigger_s == 0.7
    (note,) = [note for note in profile.notes if "headway.schedule" in note] or profile.notes
    marked, _, steady = note.partition(": ")[2].partition(" batches")[0].partition(" of ")
    # Of the last ones, by its own trigger, none is marked.
    assert 0 < int(marked) <= int(steady) - 2
