"""Compaction of the log of a real file sink, in a run of some seconds."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import headway
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf

ROOT = Path(__file__).parents[3]
NUM_BATCHES, MOST_S, NUM_FILES = 240, 120.0, 24


def write_with_a_log(folder: Path) -> None:
    """Write files until their log was compacted many times; the event log is in ``folder/log``."""
    from pyspark.sql import functions

    commits = folder / "checkpoint" / "commits"
    with embedded_session(
        app_name="compaction",
        master="local[2]",
        event_log_dir=folder / "log",
        extra_conf=local_checkpoint_conf(),
    ) as spark:
        rows = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", 240)
            .option("numPartitions", 1)
            .load()
            .withColumn("part", functions.col("value") % NUM_FILES)
        )
        query = (
            rows.writeStream.queryName("files")
            .partitionBy("part")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(processingTime="50 milliseconds")
            .format("parquet")
            .start(str(folder / "out"))
        )
        ends_s = time.monotonic() + MOST_S
        while time.monotonic() < ends_s and not (commits / str(NUM_BATCHES - 1)).exists():
            time.sleep(0.2)
        query.stop()


@pytest.mark.jvm
@pytest.mark.statistical
def test_every_tenth_batch_of_a_file_sink_is_seen_to_compact_its_log(tmp_path: Path) -> None:
    # A process has one session, which other tests share in this one.
    subprocess.run([sys.executable, "-m", __name__, str(tmp_path)], cwd=ROOT, check=True)
    profile = headway.profile(tmp_path / "log")
    assert profile.settings[0].num_batches >= NUM_BATCHES // 2
    (compaction,) = (one for one in profile.slow_growth if one.measure == "compaction")
    assert compaction.part == "add_batch"
    assert compaction.cause == "sink_log"
    # Each compaction rewrites all entries so far, of which a batch adds 24.
    assert compaction.rise_per_day > 0.0


if __name__ == "__main__":
    write_with_a_log(Path(sys.argv[1]))
