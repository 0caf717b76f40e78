"""The Spark session that tests share, the marker of those that need one, and who begins first."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.assertion import rewrite
from hypothesis import settings

from tests.interpreted import INTERPRETED
from tests.quick_jvm import conf_of_local_files, look_classes_up_once
from tests.seeds import examples, few_settings

# The same examples every time, however slow the machine: what fails, fails for everyone. To search
# among others: pytest --hypothesis-profile=default. `make test-statistical` looks at more of them.
settings.register_profile("same-examples", examples(25, 100), derandomize=True)
settings.load_profile("same-examples")

# A JVM of a test lives for minutes and runs each query a few times: to compile it twice costs more
# than it is worth, and so does verifying the thousands of classes of Spark's jars. What is compiled
# once should be so early, and stay: by itself, this compiler has room for 48 MB of code, and then
# throws code away that it compiles again. No garbage collector here: a JVM refuses a second one,
# and readers name theirs. The launcher is another JVM.
_QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:CompileThresholdScaling=0.4 "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
os.environ.setdefault("SPARK_SUBMIT_OPTS", _QUICK)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", f"{_QUICK} -XX:+UseSerialGC")
# Processes of pytest-xdist have a width, which what people read from a pipe would follow.
os.environ.pop("COLUMNS", None)
# Nor are the matrices worth a second thread, which would take the core of another process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# One session: a second JVM would load and compile the same again, which takes it a minute. Half of
# the time its process waits for triggers, and leaves the cores to the others.
_SPARK = "spark"
_CLOCKED = ("tests/runtime/gate/", "tests/runtime/test_", "tests/tuning/")
# What starts JVMs, runs many commands or searches for long takes long in few tests: begun last, it
# would be waited for while the other cores have nothing left to do.
_BEGUN_EARLY = (
    *("tests/test_wheel.py", "tests/test_docs.py", "tests/test_readme.py"),
    *("tests/test_code_blocks.py", "tests/test_configs.py", "tests/test_watched_runs.py"),
    *("tests/cli/test_capacity_of_queries.py", "tests/cli/test_terminal.py"),
    *("tests/planner/test_live_rule.py", "tests/planner/test_pipelines.py"),
    *("tests/planner/test_nodes_by_rate.py", "tests/profiler/streaming/test_fit_error.py"),
    *("tests/report/test_pages.py", "tests/runtime/sharing/test_log_state.py"),
    *("tests/tuning/test_crash_table.py", "tests/tuning/test_machine.py"),
)

# They read the source of the package, which takes seconds to parse: one process does it for all.
_SOURCE = "source"
_OF_SOURCE = frozenset(
    (
        *("tests/test_architecture.py", "tests/test_arguments.py", "tests/test_assumptions.py"),
        *("tests/test_findings.py", "tests/test_house_rules.py", "tests/test_one_protocol.py"),
        *("tests/test_packaging.py", "tests/test_theory.py", "tests/formats/test_codec.py"),
    )
)

_LONGEST_ID = 80
_ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure(config: pytest.Config) -> None:
    # Trees, arrays and ten thousand tests are looked through again and again for little garbage.
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    if "PYTEST_XDIST_WORKER" in os.environ and not sys.dont_write_bytecode:
        _rewrite_asserts(config)
    # Older ones leave the sockets of collected rows to the garbage collector.
    if tuple(map(int, version("pyspark").split(".")[:2])) < (4, 1):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


def _rewrite_asserts(config: pytest.Config) -> None:
    """Each process begins with other test files, and then finds what the others have written."""
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    part = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    first = part * len(files) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for path in (*files[first:], *files[:first]):
        rewritten = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if not rewritten.exists():
            rewritten.parent.mkdir(exist_ok=True)
            status, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, status, rewritten)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Of a long text the beginning: processes send each other the names of tests."""
    if isinstance(val, str | bytes) and len(val) > _LONGEST_ID:
        return ascii(val[:_LONGEST_ID]).removeprefix("b").strip("'\"")
    return None


# First, before xdist reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    groups: dict[pytest.Item, str] = {}
    early = {*_BEGUN_EARLY}
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        # What needs Spark shares a session; the other tests of a module share what it prepares.
        groups[item] = module = item.nodeid.partition("::")[0]
        if module in _OF_SOURCE:
            groups[item] = _SOURCE
        if item.get_closest_marker("spark") is not None:
            groups[item] = _SPARK
        item.add_marker(pytest.mark.xdist_group(groups[item]))
        is_of_jvm = item.get_closest_marker("jvm") is not None
        if is_of_jvm:
            early.add(groups[item])
        # What waits for Spark or a clock waits longer where others take the cores: one more try,
        # which the summary counts as a rerun. What is wrong fails both times.
        if item.get_closest_marker("spark") or is_of_jvm or module.startswith(_CLOCKED):
            item.add_marker(pytest.mark.flaky(reruns=1))
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Groups are handed out in this order.
        sizes = Counter(groups.values())

        def place(item: pytest.Item) -> tuple[bool, bool, int]:
            group = groups[item]
            return group != _SPARK, group not in early, -sizes[group]

        items.sort(key=place)


def pytest_collection_finish() -> None:
    """The tests themselves stay to the end: they are no garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def small_pages() -> Iterator[None]:
    """Pages with a what-if of few settings."""
    with pytest.MonkeyPatch.context() as patch:
        few_settings(patch)
        yield


@pytest.fixture(scope="session")
def clock_source_jar() -> Path:
    from headway.runtime.clock_source import clock_source_jar

    return clock_source_jar()


@pytest.fixture(scope="session")
def spark_event_log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session of `spark` writes its event log."""
    return tmp_path_factory.mktemp("event-logs")


@pytest.fixture(scope="session")
def spark(
    clock_source_jar: Path, spark_event_log_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """The session that all tests share; a JVM takes seconds to start and to warm up."""
    from headway.profiler.spark.session import embedded_session, local_checkpoint_conf

    look_classes_up_once()
    with embedded_session(
        app_name="headway tests",
        master="local[2]",
        event_log_dir=spark_event_log_dir,
        jars=[clock_source_jar],
        driver_memory="1g",
        extra_conf={
            # Test data is tiny: the default of 200 tasks would be all of a test's time.
            "spark.sql.shuffle.partitions": "2",
            # What lives long is small: the rest of the heap is for what does not.
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xms1g -Xmn512m "
            "-XX:MetaspaceSize=512m",
            # Nor need Java know where in Python each expression was written.
            "spark.python.sql.dataFrameDebugging.enabled": "false",
            **local_checkpoint_conf(),
            **conf_of_local_files(tmp_path_factory.mktemp("classes")),
            **INTERPRETED,
        },
    ) as session:
        yield session
