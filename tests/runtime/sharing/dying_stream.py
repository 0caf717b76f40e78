"""A stream through a log in a process that kills itself, and its JVM, before one of its writes.

python -m tests.runtime.sharing.dying_stream FOLDER SEED ALLOWED

Writes are those of the log, of Spark's Parquet files, and of the sink; ALLOWED is how many of them
happen first. What it is killed by is signal 9. With "all", it is not killed; with "compared", it
then has Spark's own query over the same files, too, and prints how many writes there were.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any

from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from tests.runtime.sharing.typed_cases import Results
from tests.runtime.sharing.typed_streams import (
    FEW_ROWS,
    a_typed_case,
    interrupted_after,
    run_by_spark,
    run_log,
)


def main(folder: Path, seed: int, allowed: float, *, is_compared: bool) -> None:
    case = a_typed_case(seed)
    sink = folder / "results"
    sink.mkdir(parents=True, exist_ok=True)
    with embedded_session(
        app_name="dying stream",
        master="local[2]",
        driver_memory="1g",
        extra_conf=FEW_ROWS | local_checkpoint_conf(),
    ) as spark:
        jvm: Any = spark._jvm
        jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())

        def end() -> None:
            os.kill(jvm_pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

        with interrupted_after(allowed, end) as num_writes:

            def keep(number: int, results: Results) -> None:
                if num_writes[0] >= allowed:
                    end()
                num_writes[0] += 1
                (sink / f"{number}.pickle").write_bytes(pickle.dumps(results))

            run_log(spark, case, folder, keep)
        if is_compared:
            expected = Results()
            run_by_spark(spark, case, folder, "direct", expected)
            (folder / "expected.pickle").write_bytes(pickle.dumps(expected))
            print(f"writes: {num_writes[0]}")


if __name__ == "__main__":
    where, seed_text, allowed_text = sys.argv[1:]
    num_allowed = float("inf") if allowed_text in ("all", "compared") else int(allowed_text)
    main(Path(where), int(seed_text), num_allowed, is_compared=allowed_text == "compared")
