"""A JVM of this process for PySpark: started, connected to, and always ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import struct
import subprocess
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headway.errors import SparkUnavailableError

_CONNECTION = "connection"
_LOOK_EVERY_S = 0.01
_EXIT_WITHIN_S = 5.0


@contextlib.contextmanager
def running_jvm(
    spark_home: Path, conf: Mapping[str, str], scratch: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A JVM for PySpark that ends with the block, however the block ends.

    Its output goes to ``spark.log`` in ``scratch``. SparkUnavailableError if Spark does not start.
    """
    with (scratch / "spark.log").open("wb") as output:
        process = _start(spark_home, conf, scratch, output.fileno())
    # While it is starting, it needs no orderly shutdown.
    exit_within_s = 0.0
    try:
        gateway = _connect(process, scratch)
        exit_within_s = _EXIT_WITHIN_S
        with _used_by_pyspark(gateway):
            yield process
    finally:
        _end(process, within_s=exit_within_s)


def complaint(scratch: Path) -> str:
    """The most informative line of the JVM's output: the first error, else the last line."""
    output = (scratch / "spark.log").read_text(errors="replace")
    lines = [line.strip() for line in output.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "WARNING:"))]
    errors = [line for line in lines if re.search(r"error|exception", line, re.IGNORECASE)]
    return (errors or lines[-1:] or ["it said nothing"])[0]


def _start(
    spark_home: Path, conf: Mapping[str, str], scratch: Path, output: int
) -> subprocess.Popen[bytes]:
    """Start the process that PySpark would start, with the protocol of its own launcher.

    PySpark's launcher returns the process only after success, and polls for the answer ten times a
    second.
    """
    command = [str(spark_home / "bin" / "spark-submit")]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    return subprocess.Popen(
        [*command, "pyspark-shell"],
        # Closing it, as the end of this process does, too, requests the JVM to end.
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=os.environ
        | {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(scratch / _CONNECTION)},
        # A separate session keeps the terminal's Ctrl-C from the JVM, and allows ending the
        # launcher's processes together.
        start_new_session=True,
    )


def _connect(process: subprocess.Popen[bytes], scratch: Path) -> Any:
    """The gateway to the JVM once it is up: it writes port and secret, then renames the file."""
    from pyspark.java_gateway import launch_gateway

    _load_what_pyspark_loads_later()
    connection = scratch / _CONNECTION
    while not connection.is_file():
        if process.poll() is not None:
            raise SparkUnavailableError(f"Spark did not start: {complaint(scratch)}")
        time.sleep(_LOOK_EVERY_S)
    answer = connection.read_bytes()
    port, length = struct.unpack(">ii", answer[:8])
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = answer[8 : 8 + length].decode()
    try:
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    except Exception as error:
        raise SparkUnavailableError(f"Spark did not start: {complaint(scratch)}") from error
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"]
        del os.environ["PYSPARK_GATEWAY_SECRET"]
    gateway.proc = process
    return gateway


@contextlib.contextmanager
def _used_by_pyspark(gateway: Any) -> Iterator[None]:
    from pyspark import SparkContext

    try:
        SparkContext._gateway = gateway
        SparkContext._jvm = gateway.jvm
        yield
    finally:
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkContext._active_spark_context = None
        gateway.shutdown()
        gateway.close()


def _load_what_pyspark_loads_later() -> None:
    """Load pandas and pyarrow while the JVM starts instead of after.

    PySpark does so at the first value that it passes to the JVM, to check whether it is a NumPy
    value: its test utilities load them and warn about every pandas 3.
    """
    from pyspark.sql.types import NumpyScalarConverter

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
        NumpyScalarConverter().can_convert(None)


def _end(process: subprocess.Popen[bytes], *, within_s: float) -> None:
    """Let the process end on its own, as closing its input requests, else kill it."""
    try:
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(within_s)
    finally:
        if process.poll() is None:
            # The whole group, since during the start the launcher's shell has children.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
