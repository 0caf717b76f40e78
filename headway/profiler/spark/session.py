"""The embedded Spark: a JVM that starts silently, leaves no files behind and always ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from headway.errors import SparkUnavailableError, require_packages
from headway.processes import python_environment
from headway.profiler.spark.jvm import complaint, running_jvm
from headway.profiler.work_folder import signals_end_the_block, work_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STOP_WITHIN_S = 20.0

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# Variables of the caller's shell that would change the session: another Spark, a Connect server, a
# JVM already started by spark-submit.
_FOREIGN_VARIABLES = (
    *("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "PYSPARK_SUBMIT_ARGS"),
    *("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_TESTING"),
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


def local_checkpoint_conf() -> dict[str, str]:
    """Setting with which checkpoints on a local disk cost no more than the disk.

    Without Hadoop's native library, Spark's default file manager starts a process for each file
    that it writes: some 30 ms per state partition and batch, which do not occur on a cluster.
    """
    import pyspark

    package = "org.apache.spark.sql.execution.streaming"
    release = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    if release >= (4, 1):
        package += ".checkpointing"
    manager = f"{package}.FileSystemBasedCheckpointFileManager"
    return {"spark.sql.streaming.checkpointFileManagerClass": manager}


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
    """A Spark session in its own JVM that ends with the block, however the block ends.

    The JVM writes nothing to the terminal and nothing into the working directory. SIGTERM ends the
    block like Ctrl-C, unless the program handles it. One session per process at a time; another may
    follow. A local ``master`` ignores the caller's Spark settings; any other uses SPARK_HOME,
    SPARK_CONF_DIR and SPARK_LOCAL_IP as they are. ``event_log_dir`` is made if missing: rolling
    files, zstd, on every Spark version. ``driver_memory`` is the heap of the driver in Spark's
    format; with a local master, it is the only heap. ``extra_conf`` overrides all of this. Raises
    MissingPackagesError if PySpark is not installed; SparkUnavailableError if there is no Java, a
    session is open already, or Spark does not start.
    """
    require_packages("spark", "running Spark", "pyspark")
    _require_no_other_session()
    java_home = require_java()
    local = master.startswith("local")
    spark_home = _spark_home(local=local)
    with contextlib.ExitStack() as cleanup:
        scratch = cleanup.enter_context(work_folder("spark"))
        conf = _base_conf(app_name, master, driver_memory, scratch, local=local)
        if event_log_dir is not None:
            conf |= _event_log_conf(event_log_dir)
        if jars:
            conf["spark.jars"] = ",".join(str(jar.resolve()) for jar in jars)
        cleanup.enter_context(signals_end_the_block())
        conf |= extra_conf or {}
        # Spark's launcher reads quotes and escapes in them as JSON has them.
        quoted = [json.dumps(option, ensure_ascii=False) for option in _java_options(scratch)]
        conf[_JAVA_OPTIONS] = " ".join([conf.get(_JAVA_OPTIONS, ""), *quoted])
        cleanup.enter_context(_environment(java_home, spark_home, scratch, local=local))
        cleanup.enter_context(running_jvm(spark_home, conf, scratch))
        yield cleanup.enter_context(_session(scratch))


def _require_no_other_session() -> None:
    # If PySpark is not imported, it has no session; importing it now would only delay the JVM.
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and pyspark.SparkContext._gateway is not None:
        raise SparkUnavailableError(
            "a Spark session is open in this process; close it before opening another"
        )


def _spark_home(*, local: bool) -> Path:
    """PySpark's own Spark; if the master is not local, the caller's SPARK_HOME if it is set."""
    named = os.environ.get("SPARK_HOME")
    if named and not local:
        return Path(named)
    package = find_spec("pyspark")
    if package is not None and package.origin is not None:
        home = Path(package.origin).parent
        # PySpark installed for another Hadoop version has its Spark in a sub-folder.
        for candidate in (home / "spark-distribution", home):
            if (candidate / "jars").is_dir():
                return candidate
    if named:
        return Path(named)
    raise SparkUnavailableError(
        "the installed PySpark has no Spark in it: pip install 'headway[spark]', or set SPARK_HOME"
    )


def _base_conf(
    app_name: str, master: str, driver_memory: str, scratch: Path, *, local: bool
) -> dict[str, str]:
    conf = {
        "spark.app.name": app_name,
        "spark.master": master,
        "spark.driver.memory": driver_memory,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if local:
        conf |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(scratch / "tmp"),
            "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        }
    return conf


def _java_options(scratch: Path) -> list[str]:
    log_configuration = scratch / "log4j2.properties"
    log_configuration.write_text(_LOG_CONFIGURATION, encoding="utf-8")
    temporary = scratch / "tmp"
    temporary.mkdir()
    return [
        f"-Dlog4j2.configurationFile={log_configuration.as_uri()}",
        # Native libraries unpack themselves into the JVM's temporary folder and stay there when
        # the JVM is killed.
        f"-Djava.io.tmpdir={temporary}",
    ]


def _event_log_conf(folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    # The defaults of Spark 4, set explicitly so that 3.5 writes the same.
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "128m",
    }


@contextlib.contextmanager
def _environment(
    java_home: Path, spark_home: Path, scratch: Path, *, local: bool
) -> Iterator[None]:
    variables: dict[str, str | None] = dict.fromkeys(_FOREIGN_VARIABLES)
    variables["JAVA_HOME"] = str(java_home)
    variables["SPARK_HOME"] = str(spark_home)
    variables["PYSPARK_PYTHON"] = variables["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if local:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
        variables["SPARK_CONF_DIR"] = str(scratch)
        # Spark starts Python with -m, in the folder in which this process was started.
        variables |= python_environment()
    previous_variables = {name: os.environ.get(name) for name in variables}
    _set_variables(variables)
    try:
        yield
    finally:
        _set_variables(previous_variables)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextlib.contextmanager
def _session(scratch: Path) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        session = SparkSession.builder.getOrCreate()
    except Exception as error:
        raise SparkUnavailableError(f"Spark did not start: {complaint(scratch)}") from error
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
    """Stop the session, or give up after a while; the JVM ends in any case.

    A separate thread has a separate connection. That of this thread may still be waiting for the
    answer to a call that a signal interrupted.
    """

    def stop() -> None:
        # A JVM that is gone or broken cannot be stopped properly; it is ended next.
        with contextlib.suppress(Exception):
            session.stop()

    stopper = threading.Thread(target=stop, name="headway-stop-spark", daemon=True)
    stopper.start()
    stopper.join(_STOP_WITHIN_S)


_OLDEST_JAVA = 17
_ANSWERS_WITHIN_S = 30.0


def require_java() -> Path:
    """Home of the Java that Spark will run on, of version 17 or later: JAVA_HOME, else by PATH.

    SparkUnavailableError states how to get one.
    """
    old_versions = []
    for candidate in _candidates():
        java = _home_and_version(candidate)
        if java is None:
            continue
        home, feature_version = java
        if feature_version >= _OLDEST_JAVA:
            return home
        old_versions.append(f"Java {feature_version} in {home}")
    raise SparkUnavailableError(
        f"Spark needs Java {_OLDEST_JAVA} or later, found {' and '.join(old_versions) or 'none'}: "
        f"apt-get install openjdk-{_OLDEST_JAVA}-jdk-headless, "
        f"brew install openjdk@{_OLDEST_JAVA}, or set JAVA_HOME"
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)


def _home_and_version(java: Path) -> tuple[Path, int] | None:
    """As reported by Java itself; None if this is not a working Java."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWERS_WITHIN_S,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    properties = dict(re.findall(r"(?m)^\s*(java\.[\w.]+) = (.*?)\s*$", answer))
    # Java 8 calls itself 1.8.
    version = re.match(r"(?:1\.)?(\d+)", properties.get("java.specification.version", ""))
    if version is None or "java.home" not in properties:
        return None
    return Path(properties["java.home"]), int(version[1])
