"""The embedded Spark: one JVM that starts silently, leaves no litter and always ends."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from headway.errors import SparkUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLDEST_JAVA = 17
_JAVA_ANSWERS_WITHIN_S = 30.0
_STOP_WITHIN_S = 20.0
_EXIT_WITHIN_S = 5.0

# Settings of the caller's shell that would bend the session: another Spark, a Connect server,
# a JVM that spark-submit has started already.
_FOREIGN_VARIABLES = (
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_REMOTE",
    "SPARK_TESTING",
)

_LOG_CONFIGURATION = """\
status = off
rootLogger = warn, file
appender.file.type = Console
appender.file.name = file
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


def require_java() -> Path:
    """Home of the Java that Spark will run on: that of JAVA_HOME, else the one on PATH.

    Returns
    -------
    Path
        Java home, of version 17 or later.

    Raises
    ------
    SparkUnavailableError
        If neither is there, or both are older; the message says how to get one.
    """
    found = []
    for candidate in _java_candidates():
        described = _describe_java(candidate)
        if described is None:
            continue
        home, version = described
        if version >= _OLDEST_JAVA:
            return home
        found.append(f"Java {version} in {home}")
    raise SparkUnavailableError(
        f"Spark needs Java {_OLDEST_JAVA} or later, found {' and '.join(found) or 'none'}: "
        f"apt-get install openjdk-{_OLDEST_JAVA}-jdk-headless, "
        f"brew install openjdk@{_OLDEST_JAVA}, or set JAVA_HOME"
    )


def local_checkpoint_conf() -> dict[str, str]:
    """The setting that makes checkpoints on a local disk cost what the disk costs.

    Without Hadoop's native library Spark's default file manager starts a process for each file
    that it writes: some 30 ms per state partition and batch that no cluster has.

    Returns
    -------
    dict[str, str]
        For ``extra_conf`` of `embedded_session`, under the class name of the installed Spark.
    """
    import pyspark

    package = "org.apache.spark.sql.execution.streaming"
    release = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    if release >= (4, 1):
        package += ".checkpointing"
    return {
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{package}.FileSystemBasedCheckpointFileManager"
        )
    }


@contextlib.contextmanager
def embedded_session(
    *,
    app_name: str,
    master: str = "local[*]",
    event_log_dir: Path | None = None,
    jars: Sequence[Path] = (),
    driver_memory: str = "2g",
    extra_conf: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A Spark session in a JVM of its own, gone with the block however the block ends.

    The JVM writes nothing to the terminal and nothing into the working directory. SIGTERM ends
    the block as Ctrl-C does, unless the program handles it itself. One session per process at a
    time; another may follow.

    Parameters
    ----------
    app_name : str
        Name of the application, as event logs show it.
    master : str
        Spark master. A local one is shielded from the caller's Spark settings; any other takes
        SPARK_HOME, SPARK_CONF_DIR and SPARK_LOCAL_IP as they are.
    event_log_dir : Path, optional
        Folder of the event log, made if missing: rolling files, zstd, on every Spark version.
    jars : sequence of Path
        Jars for driver and executors.
    driver_memory : str
        Heap of the driver in Spark's spelling; with a local master the only heap there is.
    extra_conf : mapping, optional
        Spark properties that win over all of the above.

    Yields
    ------
    SparkSession

    Raises
    ------
    SparkUnavailableError
        If there is no Java, a session is open already, or Spark does not start.
    """
    java_home = require_java()
    local = master.startswith("local")
    with contextlib.ExitStack() as cleanup:
        folder = tempfile.TemporaryDirectory(prefix="headway-spark-", ignore_cleanup_errors=True)
        scratch = Path(cleanup.enter_context(folder))
        conf = _base_conf(app_name, master, driver_memory, scratch, local=local)
        if event_log_dir is not None:
            conf |= _event_log_conf(event_log_dir)
        if jars:
            conf["spark.jars"] = ",".join(str(jar.resolve()) for jar in jars)
        java_options = conf["spark.driver.extraJavaOptions"]
        conf |= extra_conf or {}
        if conf["spark.driver.extraJavaOptions"] != java_options:
            conf["spark.driver.extraJavaOptions"] += " " + java_options
        cleanup.enter_context(_signals_end_the_block())
        cleanup.enter_context(_environment(java_home, scratch, local=local))
        cleanup.enter_context(_jvm(conf, scratch / "spark.log"))
        yield cleanup.enter_context(_session(scratch / "spark.log"))


def _java_candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)


def _describe_java(java: Path) -> tuple[Path, int] | None:
    """Home and feature version, asked from Java itself; None if this is not a working Java."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_JAVA_ANSWERS_WITHIN_S,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"(?m)^\s*java\.home = (.+)$", answer)
    # Java 8 calls itself 1.8.
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    if home is None or version is None:
        return None
    return Path(home[1].strip()), int(version[1])


def _base_conf(
    app_name: str, master: str, driver_memory: str, scratch: Path, *, local: bool
) -> dict[str, str]:
    log_configuration = scratch / "log4j2.properties"
    log_configuration.write_text(_LOG_CONFIGURATION, encoding="utf-8")
    temporary = scratch / "tmp"
    temporary.mkdir()
    conf = {
        "spark.app.name": app_name,
        "spark.master": master,
        "spark.driver.memory": driver_memory,
        # Native libraries unpack themselves into the JVM's temporary folder and stay there when
        # the JVM is killed.
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={log_configuration.as_uri()} -Djava.io.tmpdir={temporary}"
        ),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if local:
        conf |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(temporary),
            "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        }
    return conf


def _event_log_conf(folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    # The defaults of Spark 4, spelled out so that 3.5 writes the same.
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "128m",
    }


@contextlib.contextmanager
def _signals_end_the_block() -> Iterator[None]:
    """SIGTERM raises SystemExit inside, where it would end Python without any cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    on_interrupt = signal.getsignal(signal.SIGINT)
    on_terminate = signal.getsignal(signal.SIGTERM)
    if on_terminate is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, on_terminate)
        signal.signal(signal.SIGINT, on_interrupt)


@contextlib.contextmanager
def _environment(java_home: Path, scratch: Path, *, local: bool) -> Iterator[None]:
    import pyspark

    wanted: dict[str, str | None] = dict.fromkeys(_FOREIGN_VARIABLES)
    wanted["JAVA_HOME"] = str(java_home)
    wanted["PYSPARK_PYTHON"] = wanted["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if local:
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
        wanted["SPARK_CONF_DIR"] = str(scratch)
        if (package := Path(pyspark.__file__).parent).joinpath("jars").is_dir():
            wanted["SPARK_HOME"] = str(package)
    before = {name: os.environ.get(name) for name in wanted}
    _set_variables(wanted)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextlib.contextmanager
def _jvm(conf: Mapping[str, str], log: Path) -> Iterator[None]:
    """A JVM of this process's own that PySpark will use."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        raise SparkUnavailableError(
            "a Spark session is open in this process; close it before opening another"
        )
    settings = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    try:
        with log.open("wb") as output:
            gateway: Any = launch_gateway(  # type: ignore[no-untyped-call]
                settings,
                # A session of its own keeps the terminal's Ctrl-C away from the JVM and lets
                # the launcher's processes be ended together.
                {"stdout": output, "stderr": subprocess.STDOUT, "start_new_session": True},
            )
    except BaseException as error:
        # It has nothing to put in order yet.
        _end(_process_being_started(error), within_s=0.0)
        if isinstance(error, Exception):
            raise SparkUnavailableError(f"Spark did not start: {_complaint(log)}") from error
        raise
    try:
        SparkContext._gateway = gateway
        SparkContext._jvm = gateway.jvm
        yield
    finally:
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkContext._active_spark_context = None
        try:
            gateway.shutdown()
            gateway.close()
        finally:
            _end(gateway.proc, within_s=_EXIT_WITHIN_S)


@contextlib.contextmanager
def _session(log: Path) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        with warnings.catch_warnings():
            # PySpark's start imports its test kit, which warns of every pandas 3; the session
            # itself goes nowhere near pandas.
            warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
            session = SparkSession.builder.getOrCreate()
    except Exception as error:
        raise SparkUnavailableError(f"Spark did not start: {_complaint(log)}") from error
    finally:
        # PySpark's own handler calls the JVM from inside the handler, on the connection that
        # the interrupted call is waiting on. Stopping below cancels the jobs just as well.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield session
    finally:
        _stop(session)
        SparkSession._instantiatedSession = None


def _stop(session: SparkSession) -> None:
    """Stop the session, or give up after a while: the JVM ends in any case.

    A thread of its own has a connection of its own. That of this thread may still owe the answer
    to a call that a signal interrupted.
    """

    def stop() -> None:
        # A JVM that is gone or broken cannot be stopped in order; ending it comes next.
        with contextlib.suppress(Exception):
            session.stop()

    stopper = threading.Thread(target=stop, name="headway-stop-spark", daemon=True)
    stopper.start()
    stopper.join(_STOP_WITHIN_S)


def _process_being_started(error: BaseException) -> subprocess.Popen[bytes] | None:
    """The process that ``launch_gateway`` had started when the error or the signal came.

    It hands out its process on success only; otherwise the frame holds the one reference.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            return process
    return None


def _end(process: subprocess.Popen[bytes] | None, *, within_s: float) -> None:
    """Let the process go by itself, which closing its input asks for, else kill it."""
    if process is None or process.stdin is None:
        return
    try:
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(within_s)
    finally:
        if process.poll() is None:
            # Its group: while starting, the launcher's shell has children.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _complaint(log: Path) -> str:
    """The line of the JVM's output that says most: the first error, else the last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "WARNING:"))]
    errors = [line for line in lines if re.search(r"error|exception", line, re.IGNORECASE)]
    return (errors or lines[-1:] or ["it said nothing"])[0]
