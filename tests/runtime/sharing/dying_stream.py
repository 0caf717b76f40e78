"""A stream through a log in a process that kills itself, and its JVM, before one of its writes.

python -m tests.runtime.sharing.dying_stream FOLDER SEED EMIT ALLOWED

Writes are those of the log, of Spark's Parquet files, and of the sink; ALLOWED is how many of them
happen first. What it is killed by is signal 9. A run that ends prints how many there were.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.log_batches import Emit
from tests.runtime.sharing.stream_cases import run_log, stream, with_rows


def main(folder: Path, seed: int, emit: Emit, allowed: float) -> None:
    from pyspark.sql import DataFrameWriter

    case = with_rows(random.Random(seed))
    sink = folder / "results"
    sink.mkdir(parents=True, exist_ok=True)
    with embedded_session(
        app_name="dying stream",
        master="local[2]",
        driver_memory="1g",
        extra_conf={"spark.sql.shuffle.partitions": "2", **local_checkpoint_conf()},
    ) as spark:
        jvm: Any = spark._jvm
        jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())
        num_written = 0

        def before_write() -> None:
            nonlocal num_written
            if num_written >= allowed:
                os.kill(jvm_pid, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            num_written += 1

        def counted(write: Callable[..., Any]) -> Callable[..., Any]:
            def writes(*arguments: Any) -> Any:
                before_write()
                return write(*arguments)

            return writes

        def keep(number: int, size: int, end: int, key: str, rows: int) -> None:
            before_write()
            name = f"{number}-{size}-{end}-{key}"
            (sink / name).write_text(json.dumps([number, size, end, key, rows]))

        # A write of the log is two: its draft, then its name.
        for owner, name in ((SparkFiles, "_put"), (SparkFiles, "_name"), (SparkFiles, "delete"),
                            (DataFrameWriter, "parquet")):  # fmt: skip
            setattr(owner, name, counted(getattr(owner, name)))
        run_log(stream(spark, folder / "in"), case, emit, folder, keep)
        print(f"writes: {num_written}")


if __name__ == "__main__":
    where, seed_text, emit_text, allowed_text = sys.argv[1:]
    main(Path(where), int(seed_text), cast("Emit", emit_text), float(allowed_text))
