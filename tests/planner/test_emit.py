from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headway.domain import (
    CatchUp,
    Change,
    Plan,
    StreamAnswer,
    Target,
)
from headway.emitters import FORMATS
from headway.report.explanation import explanation_text
from headway.report.wording import headline
from headway.sparkconf import parse_properties
from tests.factories import a_plan, a_prediction, about_stage, an_infeasible_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Values that each format must quote, escape or leave alone.
AWKWARD_CONF = {
    "spark.executor.instances": "2",
    "spark.headway.path": "C:\\temp\\new",
    "spark.headway.blank": "two words",
    "spark.headway.sign": '=: # $HOME `id` "quoted" it\'s é',
    "spark.headway.empty": "",
}


def outputs(plan: StreamAnswer) -> dict[str, str]:
    return {name: render(plan, version="9.8.7") for name, render in FORMATS.items()}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_where_it_comes_from(name: str) -> None:
    text = outputs(a_plan())[name]
    for part in ("headway 9.8.7", "p99 <= 3.00 s at 50k/s", "p99 2.30 s", "2.10 s to 2.60 s"):
        assert part in text
    assert "was 1; applies when the application is submitted again" in text
    assert "binding constraint: stage aggregate" in text
    assert "INFEASIBLE" not in text


@pytest.mark.parametrize("name", FORMATS)
def test_a_plan_that_misses_its_target_says_so_first(name: str) -> None:
    text = outputs(an_infeasible_plan())[name]
    assert text.startswith("# !!! INFEASIBLE")


def test_a_plan_too_close_to_tell_is_said_to_be_so() -> None:
    plan = an_infeasible_plan(kept_probability=0.9, confidence=0.95)
    for text in outputs(plan).values():
        assert "INFEASIBLE: p99 <= 3.00 s at 50k/s is 90% certain, 95% asked" in text
        assert "no configuration meets" not in text
    beyond_budget = an_infeasible_plan(kept_probability=0.99, confidence=0.95)
    for text in outputs(beyond_budget).values():
        assert "no configuration meets p99 <= 3.00 s at 50k/s within the given limits" in text


def test_the_header_names_all_targets_of_which_any_may_be_missed() -> None:
    plan = an_infeasible_plan(also=(CatchUp(limit_s=1.0, after=1800.0),))
    targets = "p99 <= 3.00 s and catch_up <= 1.00 s after 30 min at 50k/s"
    for text in outputs(plan).values():
        assert f"{headline(plan)}." in text.replace("INFEASIBLE", "infeasible")
        assert f"target: {targets}" in text
    explanation = " ".join(explanation_text(plan).split())
    assert "It also meets" not in explanation
    assert "All targets: p99 <= 3.00 s and catch_up <= 1.00 s after 30 min." in explanation


@pytest.mark.parametrize("name", FORMATS)
def test_over_capacity_no_latency_is_quoted(name: str) -> None:
    prediction = a_prediction(stable=False, tuple_latency=None, calibrated=False)
    text = outputs(an_infeasible_plan(prediction=prediction))[name]
    assert "no latency, because the backlog grows" in text
    assert "80k/s" in text
    assert "outside the profiled range" in text
    assert "p99 2.30 s" not in text


@pytest.mark.parametrize("target", ["mean < 2s", "batch p95 <= 1s", "window p99 <= 9s"])
def test_every_kind_of_target_can_be_written(target: str) -> None:
    for text in outputs(a_plan(target=Target.parse(target))).values():
        assert f"target: {Target.parse(target)}" in text


@pytest.mark.parametrize("name", FORMATS)
def test_messages_cannot_break_out_of_their_comment(name: str) -> None:
    change = Change(setting="executors", before="1\nspark.evil 1", after="2", applies="restart")
    plan = a_plan(
        binding=("two\nlines\\",),
        findings=tuple(map(about_stage, ("carriage\rreturn", "\x85\u2028"))),
        changes=(change,),
    )
    text = outputs(plan)[name]
    code = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert not [line for line in code if "evil" in line or "lines" in line or "return\n" in line]
    assert "\r" not in text


def test_spark_defaults_round_trip() -> None:
    for conf in (a_plan().spark_conf, AWKWARD_CONF):
        text = outputs(a_plan(spark_conf=conf))["spark-defaults"]
        assert parse_properties(text) == dict(conf)


def test_spark_submit_round_trip() -> None:
    text = outputs(a_plan(spark_conf=AWKWARD_CONF))["spark-submit"]
    # shlex knows no continued lines, which a shell joins before it splits.
    program, *arguments, application = shlex.split(text.replace("\\\n", ""), comments=True)
    assert (program, application) == ("spark-submit", "app.py")
    assert arguments[::2] == ["--conf"] * len(AWKWARD_CONF)
    assert dict(pair.split("=", 1) for pair in arguments[1::2]) == AWKWARD_CONF


@pytest.mark.parametrize("name", ["spark-defaults", "spark-submit"])
def test_what_configuration_cannot_carry_is_reported(name: str) -> None:
    text = outputs(a_plan())[name]
    assert 'trigger(processingTime="2 seconds")' in text
    assert 'option("maxOffsetsPerTrigger", "100000")' in text


class Recorder:
    """Stands for a builder, a reader or a writer: takes every call and returns itself."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def record(*args: Any, **kwargs: Any) -> Recorder:
            self.calls.append((name, args, kwargs))
            return self

        return record


def snippet(plan: Plan) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(outputs(plan)["pyspark"], "snippet.py", "exec"), namespace)
    return namespace


def test_the_snippet_puts_the_plan_on_builder_reader_and_writer() -> None:
    code = snippet(a_plan(spark_conf=AWKWARD_CONF))
    builder, reader, writer = Recorder(), Recorder(), Recorder()
    assert code["configure"](builder) is builder
    assert code["read"](reader) is reader
    assert code["write"](writer) is writer
    assert builder.calls == [("config", pair, {}) for pair in AWKWARD_CONF.items()]
    assert reader.calls == [("option", ("maxOffsetsPerTrigger", "100000"), {})]
    assert writer.calls == [("trigger", (), {"processingTime": "2 seconds"})]


def test_the_snippet_leaves_out_what_comes_too_late_for_the_driver() -> None:
    plan = a_plan(spark_conf={"spark.driver.memory": "2g", "spark.executor.cores": "4"})
    assert snippet(plan)["SPARK_CONF"] == {"spark.executor.cores": "4"}
    assert "--conf spark.driver.memory=2g" in outputs(plan)["pyspark"]


def test_the_snippet_without_a_rate_limit_leaves_the_reader_alone() -> None:
    plan = a_plan(query_options={"trigger": "0 seconds"})
    code, reader = snippet(plan), Recorder()
    assert code["read"](reader) is reader
    assert reader.calls == []
    assert "No rate limit is planned" in outputs(plan)["pyspark"]


def test_the_usage_in_the_snippet_is_python() -> None:
    text = outputs(a_plan())["pyspark"]
    usage = re.findall(r"^#     (.+)$", text, flags=re.MULTILINE)
    assert len(usage) > 4
    compile("\n".join(usage), "usage.py", "exec")


@pytest.mark.parametrize("trigger", ["0 seconds", "500 milliseconds", "1 seconds"])
def test_spark_takes_the_snippet(spark: SparkSession, tmp_path: Path, trigger: str) -> None:
    options = {"trigger": trigger, "maxOffsetsPerTrigger": "100"}
    code = snippet(a_plan(query_options=options))
    # An unknown option is no error in Spark, and no Kafka is at hand: the rate limit's effect
    # cannot be seen here, that the reader takes it can.
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10)
    rows = code["read"](reader).load()
    sink = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = code["write"](sink).start()
    try:
        while query.lastProgress is None and query.isActive:
            query.awaitTermination(0.1)
        assert query.lastProgress is not None
        assert query.lastProgress["numInputRows"] == 10
        assert query.exception() is None
    finally:
        query.stop()


def test_the_builder_takes_the_snippet(spark: SparkSession) -> None:
    conf = {"spark.sql.shuffle.partitions": spark.conf.get("spark.sql.shuffle.partitions") or "2"}
    code = snippet(a_plan(spark_conf=conf))
    assert code["configure"](type(spark).builder).getOrCreate() is spark


def properties_that_spark_used(command: list[str], folder: Path) -> dict[str, str]:
    """The `spark.headway.*` and executor properties in what `spark-submit --verbose` prints."""
    package = Path((find_spec("pyspark") or pytest.skip("no pyspark")).origin or "").parent
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java on this machine")
    (folder / "app.py").write_text("print('the application ran')\n")
    environment = os.environ | {
        "SPARK_HOME": str(package),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PATH": f"{package / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "JAVA_TOOL_OPTIONS": "-Dfile.encoding=UTF-8 -Dsun.jnu.encoding=UTF-8",
        "LC_ALL": "C.UTF-8",
    }
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    said = run.stdout + run.stderr
    assert "the application ran" in said, said
    used = said.split("Spark properties used", 1)[1].split("Main class", 1)[0]
    return dict(re.findall(r"^  \((spark\.(?:headway|executor)[^,]*),(.*)\)$", used, re.MULTILINE))


@pytest.mark.jvm
def test_spark_reads_the_defaults_as_written(tmp_path: Path) -> None:
    planned = {
        **a_plan().spark_conf,
        "spark.executor.memoryOverhead": "1434m",
        "spark.executor.pyspark.memory": "2g",
        **AWKWARD_CONF,
    }
    text = outputs(a_plan(spark_conf=planned))["spark-defaults"]
    file = tmp_path / "plan.conf"
    file.write_text(text, encoding="utf-8")
    command = ["spark-submit", "--verbose", "--master", "local[1]"]
    used = properties_that_spark_used(
        ["bash", "-c", shlex.join([*command, "--properties-file", str(file), "app.py"])], tmp_path
    )
    assert used == {
        key: value
        for key, value in planned.items()
        if key.startswith(("spark.executor", "spark.headway"))
    }


@pytest.mark.jvm
def test_the_shell_runs_the_submit_command_as_written(tmp_path: Path) -> None:
    text = outputs(a_plan(spark_conf=AWKWARD_CONF, binding=("it's \\",)))["spark-submit"]
    verbose = text.replace("spark-submit \\", "spark-submit --verbose --master 'local[1]' \\")
    assert properties_that_spark_used(["bash", "-c", verbose], tmp_path) == AWKWARD_CONF
