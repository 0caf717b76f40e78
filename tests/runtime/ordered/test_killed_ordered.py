"""A driver is killed after any number of files; what comes out is the serial program's."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headway.runtime.given import options_set
from tests.runtime.gate.test_killed_driver import children_of
from tests.runtime.ordered.ordered_cases import serial
from tests.runtime.ordered.spark_cases import ROCKSDB, expected, rows_in, started, write_batch
from tests.runtime.ordered.test_ordered_stream import STREAMS, a_long_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
PATIENCE_S = 180.0
NUM_KILLS = int(os.environ.get("HEADWAY_ORDERED_KILLS", "1"))
DRIVER = """
import random, sys
from pathlib import Path
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from tests.runtime.ordered.spark_cases import started
from tests.runtime.ordered.test_killed_ordered import store_of, the_case
folder, seed = Path(sys.argv[1]), int(sys.argv[2])
conf = {"spark.sql.shuffle.partitions": "2", **local_checkpoint_conf(), **store_of(seed)}
with embedded_session(app_name="killed", master="local[2]", driver_memory="1g",
                      extra_conf=conf) as spark:
    started(spark, folder, the_case(seed)).awaitTermination()
"""


def the_case(seed: int):  # type: ignore[no-untyped-def]
    return a_long_case(random.Random(100 + seed), waits=seed % 2 == 0)


def store_of(seed: int) -> dict[str, str]:
    """State in pieces for every second pair of cases, with and without a watermark."""
    return ROCKSDB if seed // 2 % 2 == 0 else {}


def num_written(folder: Path) -> int:
    """Files that the query has written: offsets, state, commits, and its sink's."""
    return sum(
        len(names) for place in ("checkpoint", "out") for _, _, names in os.walk(folder / place)
    )


@STREAMS
@pytest.mark.robustness
@pytest.mark.parametrize("seed", range(NUM_KILLS))
def test_rows_are_those_of_the_serial_program_after_kill_9(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    case, seeded = the_case(seed), random.Random(seed)
    for number, rows in enumerate(case.batches):
        write_batch(tmp_path / "in", number, rows)
    for _ in range(1 if NUM_KILLS == 1 else 2):
        killed_after(tmp_path, seed, num_written(tmp_path) + seeded.randint(2, 40))
        forget_a_checkpoint_of_no_batch(tmp_path / "checkpoint")
    with options_set(spark, store_of(seed)):
        assert started(spark, tmp_path, case).awaitTermination(300)
    assert serial(case)
    assert rows_in(spark.read.parquet(str(tmp_path / "out"))) == expected(case)


def forget_a_checkpoint_of_no_batch(checkpoint: Path) -> None:
    """Since 4.1 Spark refuses one that holds no more than the beginning of its first offset."""
    offsets = [*(checkpoint / "offsets").glob("*")]
    if offsets and not any(path.name.isdigit() for path in offsets):
        shutil.rmtree(checkpoint)


def killed_after(folder: Path, seed: int, num_files: int) -> None:
    """A driver of its own, killed with its JVM once there are so many files, or done before."""
    with (folder / "driver.log").open("wb") as output:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(folder), str(seed)],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline_s = time.monotonic() + PATIENCE_S
    try:
        while num_written(folder) < num_files and driver.poll() is None:
            assert time.monotonic() < deadline_s
            time.sleep(0.001)
        assert driver.poll() in (None, 0), (folder / "driver.log").read_text()[-2000:]
    finally:
        if driver.poll() is None:
            # Python and the JVM at once, whatever they were at.
            for process in (driver.pid, *children_of(driver.pid)):
                os.kill(process, signal.SIGKILL)
        driver.wait()
