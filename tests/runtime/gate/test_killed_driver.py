"""A driver under the gate is killed; its queries go on where they were, no row lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headway.runtime.word_count import clock_lines

ROOT = Path(__file__).parents[3]
PATIENCE_S = 180.0
DRIVER = """
import sys, time
from pathlib import Path
from headway.api.schedule import schedule
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.word_count import clock_lines
folder, jar = Path(sys.argv[1]), Path(sys.argv[2])
with embedded_session(app_name="killed", master="local[2]", event_log_dir=folder, jars=[jar],
                      driver_memory="1g", extra_conf=local_checkpoint_conf()) as spark:
    with schedule(spark, "fcfs", at_once=1, decisions=folder / "gate.jsonl") as gate:
        for name in ("a", "b"):
            lines = clock_lines(spark, rate_per_s=200, num_source_partitions=1)
            gate.add(lines.writeStream.format("json").queryName(name)
                     .option("path", str(folder / name))
                     .option("checkpointLocation", str(folder / ("checkpoint-" + name)))
                     .trigger(processingTime="500 milliseconds").start())
        time.sleep(600)
"""


def num_commits(folder: Path, name: str) -> int:
    return len(list((folder / f"checkpoint-{name}" / "commits").glob("[0-9]*")))


@pytest.mark.robustness
def test_rows_are_each_there_once_after_kill_9(
    spark: SparkSession, clock_source_jar: Path, tmp_path: Path
) -> None:
    with (tmp_path / "driver.log").open("wb") as output:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(tmp_path), str(clock_source_jar)],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    children: list[int] = []
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while min(num_commits(tmp_path, name) for name in "ab") < 4:
            assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-2000:]
            assert time.monotonic() < deadline_s
            time.sleep(0.2)
        children = children_of(driver.pid)
    finally:
        # Python and the JVM at once, whatever they were at.
        for process in (driver.pid, *children):
            os.kill(process, signal.SIGKILL)
        driver.wait()
    for name in "ab":
        before = num_commits(tmp_path, name)
        lines = clock_lines(spark, rate_per_s=200, num_source_partitions=1)
        query = (
            lines.writeStream.format("json")
            .option("path", str(tmp_path / name))
            .option("checkpointLocation", str(tmp_path / f"checkpoint-{name}"))
            .trigger(processingTime="500 milliseconds")
            .start()
        )
        deadline_s = time.monotonic() + PATIENCE_S
        while num_commits(tmp_path, name) < before + 2:
            assert time.monotonic() < deadline_s
            time.sleep(0.2)
        query.stop()
        rows = spark.read.schema("arrival timestamp").json(str(tmp_path / name))
        found = sorted(row.us for row in rows.selectExpr("unix_micros(arrival) AS us").collect())
        # 200 a second, 5 ms apart, as JSON keeps milliseconds.
        assert len(found) > 200
        assert found == [found[0] + 5000 * at for at in range(len(found))]


def children_of(process: int) -> list[int]:
    """Its children and theirs."""
    direct = [
        int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]
    return [*direct, *(below for one in direct for below in children_of(one))]
