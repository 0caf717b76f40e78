"""No option is ignored: in every way of calling every command it changes something, or is refused.

The tables below hold every way of calling every command and a value of every option. What changes
nothing and is not refused must be listed as neutral, with the reason, and must then be neutral.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
import pytest

import headway
from headway.api.lock import lock
from headway.cli.main import cli, run
from headway.cli.overview import COMMANDS
from headway.emitters import ALL_FORMATS
from headway.errors import ExitCode
from headway.formats.as_json import json_text, plan_json
from headway.formats.lock_file import save_lock
from headway.formats.profile_file import save_profile
from headway.spec.spec_file import scaffold
from tests.ci.conftest import SPEC
from tests.cli.test_pipelines import SESSIONS, small
from tests.cli.test_schedule_command import a_log
from tests.factories import a_profile
from tests.planner.jobs import SLIDING, windowed
from tests.planner.test_backlog import ended
from tests.planner.test_deadline import a_long_job
from tests.planner.test_real_time import a_query
from tests.profiler.event_log import AppLog, Query, write_plain

pytestmark = pytest.mark.usefixtures("small_pages")

Value = str | None
NODE = "big:cores=8,memory=64g,price=0.4"
BATCH_SPEC = """\
apiVersion: headway/v1
kind: BatchJob
metadata: {name: nightly}
spec: {profile: nightly.profile.yaml, deadline: 150s}
"""
FLEET = """\
apiVersion: headway/v1
kind: CapacityPlan
metadata: {name: fleet}
spec:
  node_types: [m6i.2xlarge]
  jobs: [{name: orders, file: orders.yaml}]
"""
NOW = "spark.executor.cores 4\nspark.sql.shuffle.partitions 8\nspark.other x\n"
CATALOG = """\
apiVersion: headway/v1
kind: NodeCatalog
metadata: {name: ours}
spec:
  date: 2026-11-21
  currency: USD
  source: ours
  nodes: [{name: m6i.4xlarge, cores: 8, memory: 32Gi, price_per_hour: 0.9}]
"""
MANIFEST = """\
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: orders}
spec: {sparkConf: {spark.sql.shuffle.partitions: "7"}, executor: {instances: 1, cores: 1}}
"""
BUNDLE = """\
resources:
  jobs:
    orders:
      job_clusters:
        - job_cluster_key: main
          new_cluster: {spark_version: 17.3.x-scala2.13, node_type_id: m5.large, num_workers: 1}
"""
QUERIES = """\
apiVersion: headway/v1
kind: QuerySchedule
metadata: {name: turns}
spec:
  cores: 2
  cores_per_node: 2
  queries:
  - {name: a, declared: {source_partitions: 2, task_per_row: 4us}, rate: 8k/s, target: p99 <= 3s}
  - {name: b, declared: {source_partitions: 2, task_per_row: 4us}, rate: 8k/s, target: p99 <= 3s}
"""
EXCHANGES = """\
+- Exchange hashpartitioning(user#1, 8), ENSURE_REQUIREMENTS, [plan_id=11]
   +- Exchange hashpartitioning(user#1, page#2, 8), ENSURE_REQUIREMENTS, [plan_id=12]
"""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way of calling a command: its arguments, and the options that make it this way."""

    name: str
    arguments: tuple[str, ...]
    options: Mapping[str, Value] = field(default_factory=dict)
    neutral: Mapping[str, str] = field(default_factory=dict)

    def line(self, **more: Value) -> list[str]:
        """The command line, with more options or other values of them."""
        words = [*self.name.split()[:1], *self.arguments]
        for option, value in {**self.options, **more}.items():
            words += [option] if value is None else [option, value]
        return words


PLAN = {"--rate": "5k/s", "--target": "p99 <= 3s"}
ENGINE = {"--engine": "it is what auto takes for such a log"}
IN_RANGE = "exits with 5 outside the calibrated range only, and this is inside"
NEEDED_BY_FORMATS = {
    "databricks": {"--node-type": "m6i.xlarge", "--spark-version": "4.0.1"},
    "declarative-pipelines": {"--spark-version": "4.1.0"},
}
WAYS: tuple[Way, ...] = (
    Way(name="windows", arguments=("windows.profile.yaml",)),
    Way(name="ordered", arguments=("orders.profile.yaml",), options={"--keys": "keys.csv"}),
    Way(
        name="schedule",
        arguments=("queries.yaml",),
    ),
    Way(name="schedule a log again", arguments=(), options={"--decisions": "gate.jsonl"}),
    Way(
        name="predict",
        arguments=("orders.profile.yaml",),
        neutral={"--strict": IN_RANGE, "--verbose": "no batch of a fresh JVM is on record"},
    ),
    Way(
        name="predict in Real-Time Mode",
        arguments=("live.profile.yaml",),
        options={"--mode": "real-time"},
    ),
    Way(
        name="plan in Real-Time Mode",
        arguments=("live.profile.yaml",),
        options={**PLAN, "--mode": "real-time"},
        neutral={"--lower-memory": "the heap is as profiled"},
    ),
    Way(
        name="plan in Real-Time Mode on node types",
        arguments=("live.profile.yaml",),
        options={**PLAN, "--mode": "real-time", "--node-type": NODE},
        neutral={
            "--lower-memory": "the heap is as profiled",
            "--max-nodes": "fewer do",
            "--budget": "the plan costs less",
        },
    ),
    Way(
        name="plan a stream",
        arguments=("orders.profile.yaml",),
        options=PLAN,
        neutral={
            "--strict": IN_RANGE,
            "--max-nodes": "fewer do",
            "--lower-memory": "no peak of memory is on record, so nothing is to be lowered",
        },
    ),
    Way(
        name="plan a stream on node types",
        arguments=("orders.profile.yaml",),
        options={**PLAN, "--node-type": NODE},
        neutral={
            "--budget": "the plan costs less",
            "--strict": IN_RANGE,
            "--max-nodes": "fewer do",
            "--lower-memory": "no peak of memory is on record, so nothing is to be lowered",
            "--checkpoint": "today's partitions are the fewest that fill the slots",
        },
    ),
    Way(
        name="plan a stream on a catalogued node",
        arguments=("orders.profile.yaml",),
        options={**PLAN, "--node-type": "m6i.4xlarge"},
        neutral={
            "--budget": "the plan costs less",
            "--strict": IN_RANGE,
            "--max-nodes": "fewer do",
            "--lower-memory": "no peak of memory is on record, so nothing is to be lowered",
        },
    ),
    Way(
        name="plan a deadline",
        arguments=("nightly.profile.yaml",),
        options={"--target": "deadline <= 150s"},
        neutral={"--strict": IN_RANGE, "--lower-memory": "the heap is as profiled"},
    ),
    Way(
        name="plan a backlog",
        arguments=("backlog.profile.yaml",),
        options={"--target": "deadline <= 150s"},
        neutral={
            "--max-nodes": "fewer do",
            "--strict": IN_RANGE,
            "--lower-memory": "the heap is as profiled",
        },
    ),
    Way(
        name="plan a deadline on node types",
        arguments=("nightly.profile.yaml",),
        options={"--target": "deadline <= 125s", "--node-type": NODE},
        neutral={
            "--budget": "the plan costs less",
            "--strict": IN_RANGE,
            "--lower-memory": "the heap is as profiled",
        },
    ),
    Way(
        name="plan a spec",
        arguments=("orders.yaml",),
        neutral={
            "--budget": "the plan costs less",
            "--strict": IN_RANGE,
            "--max-nodes": "fewer do",
            "--lower-memory": "no peak of memory is on record, so nothing is to be lowered",
        },
    ),
    Way(
        name="plan a spec of a batch job",
        arguments=("nightly.yaml",),
        neutral={"--strict": IN_RANGE, "--lower-memory": "the heap is as profiled"},
    ),
    Way(
        name="plan a log",
        arguments=("log",),
        options={"--target": "p99 <= 3s"},
        neutral={
            "--strict": IN_RANGE,
            "--max-nodes": "fewer do",
            "--checkpoint": "today's partitions are the fewest that fill the slots",
            "--from-start": "the log has no fresh JVM",
        },
    ),
    Way(name="explain", arguments=("plan.json",)),
    Way(name="diff two plans", arguments=("plan.json", "orders.yaml")),
    Way(name="diff a profile and a log", arguments=("orders.profile.yaml", "log")),
    Way(
        name="simulate",
        arguments=("plan.json",),
        options={"--rate-trace": "trace.csv", "--runs": "2"},
    ),
    Way(
        name="simulate policies",
        arguments=("plan.json",),
        options={
            "--rate-trace": "trace.csv",
            "--policy": "headway,static",
            "--profile": "orders.profile.yaml",
            "--json": None,
        },
    ),
    Way(
        name="simulate a pipeline",
        arguments=("pipeline.yaml",),
        options={"--runs": "1", "--for": "2s"},
    ),
    Way(name="simulate ordered operators", arguments=("operators.yaml",)),
    *(
        Way(name=f"emit {name}", arguments=("plan.json",), options={"--format": name, **needed})
        for name, needed in ((name, NEEDED_BY_FORMATS.get(name, {})) for name in ALL_FORMATS)
    ),
    Way(name="emit a patch", arguments=("plan.json",), options={"--patch": "manifest.yaml"}),
    Way(name="emit a bundle", arguments=("plan.json",), options={"--patch": "bundle.yaml"}),
    Way(
        name="emit files",
        arguments=("plan.json",),
        options={"--files": "made", "--diff-from": "then.conf"},
    ),
    Way(name="capacity", arguments=("fleet.yaml",)),
    Way(name="lock", arguments=("orders.yaml",)),
    Way(name="check targets", arguments=("orders.yaml",), neutral={"--strict": IN_RANGE}),
    Way(
        name="check a lock",
        arguments=("orders.yaml",),
        options={"--baseline": "dear.lock"},
        neutral={
            "--strict": IN_RANGE,
            "--require-locked": "the job is in the lock file",
            "--quiet-below": "what failed is always printed",
        },
    ),
    Way(
        name="init",
        arguments=("new.yaml",),
        neutral={"--force": "there is no file to replace"},
    ),
    Way(name="init on stdout", arguments=("-",)),
    Way(name="init again", arguments=("orders.yaml",), options={"--force": None}),
    Way(name="validate", arguments=("orders.yaml",)),
    Way(name="schema", arguments=()),
    Way(name="profile", arguments=("log",), neutral=ENGINE),
    Way(
        name="profile to a file",
        arguments=("log",),
        options={"--output": "x.yaml"},
        neutral=ENGINE,
    ),
    Way(
        name="profile each",
        arguments=("log",),
        options={"--output": "each/"},
        neutral=ENGINE,
    ),
    Way(
        name="profile tables",
        arguments=("log",),
        options={"--tables": "t"},
        neutral=ENGINE,
    ),
    Way(
        name="profile and check",
        arguments=("log",),
        options={"--check": None},
        neutral=ENGINE,
    ),
    Way(
        name="profile and advise",
        arguments=("log",),
        options={"--advise": None},
        neutral=ENGINE,
    ),
    Way(name="backtest", arguments=("log",), neutral=ENGINE),
)
_SPARK = "starts Spark, which reads the same: tests/profiler/test_engines.py holds both"
#: What takes long, and what holds it instead.
SLOW = {
    (command, option): _SPARK
    for command in ("profile", "backtest")
    for option in ("--master", "--conf")
}
#: What is not tried here: it runs Spark for minutes, or tests/report/test_pages.py holds it.
NOT_TRIED = {
    *(("demo", option) for option in ("--quick", "--output")),
    *(("report", option) for option in ("--output", "--profile", "--log")),
    # It serves until its input ends; tests/cli/test_mcp.py asks it.
    ("mcp", ""),
    # It starts Spark; tests/cli/test_explore.py tries them.
    *(("explore", option) for option in ("--folder", "--budget", "--json")),
    # They follow a query that runs; tests/cli/test_watch.py and tests/tuning try them.
    *(("watch", option) for option in ("--profile", "--target", "--query", "--executors")),
    *(("watch", option) for option in ("--trigger", "--once", "--every", "--prometheus")),
    *(("watch", option) for option in ("--json", "--strict", "--explain")),
    *(("tune", option) for option in ("--act", "--allow", "--supervise", "--for")),
    *(("tune", option) for option in ("--off", "--on", "--restore")),
}
#: A value of every option, by command where one value does not do for all.
VALUES: dict[str, Value] = {
    "--advise": None, "--baseline": "dear.lock", "--budget": "9", "--burst": "9k/s:1m",
    "--by": "2027-06", "--catalog": "catalog.yaml", "--check": None, "--checkpoint": "new",
    "--checkpoint-store": "s3",
    "--retention": "7d",
    "--confidence": "0.7", "--conf": "spark.app.name=x", "--cores": "8", "--diff-from": "now.conf",
    "--engine": "in-process", "--executors": "3", "--files": "out", "--for": "30s",
    "--force": None, "--format": "json", "--from-start": None, "--growth": "4000x",
    "--image": "an/image", "--job": "other",
    "--json": None, "--keys": "more-keys.csv", "--key-type": "long", "--total-rows": "100000",
    "--stage": "scan", "--jvm-age": "1min", "--kind": "Cluster", "--lower-memory": None,
    "--main": "s3://b/other.py", "--master": "local[1]", "--max-cost": "900%",
    "--max-drift": "900%", "--max-error": "0.0001%", "--max-latency": "900%", "--max-nodes": "3",
    "--max-offsets": "6000", "--name": "other", "--namespace": "other", "--node-cores": "8",
    "--num-keys": "2000", "--queries": "clicks.windows.yaml",
    "--node-type": "other:cores=2,memory=16g,price=0.1", "--objective": "latency",
    "--outage": "10s at 20s", "--output": "other.out", "--partitions": "16",
    "--patch": "manifest.yaml", "--platform": "yarn", "--profile": "orders.profile.yaml",
    "--query": "another", "--rate": "6k/s",
    "--rate-trace": "more.csv",
    "--concurrent-jobs": "2", "--decisions": "gate.jsonl", "--equation": "P2",
    "--mode": "real-time", "--path": "20ms",
    "--explain": "plan.txt",
    "--limit": "files <= 900/h", "--allow": "no-empty-batches",
    "--min-offsets": "40000", "--max-trigger-delay": "7s",
    "--policy": "fcfs", "--window": "2min every 10s",
    "--relaxation": None, "--runs": "3", "--runtime": "other-1.0", "--seed": "2",
    "--source-partitions": "2", "--spark-version": "3.5.6", "--strict": None, "--tables": "t",
    "--target": "p99 <= 2.5s", "--task-cpus": "2", "--trigger": "3s", "--write": None,
    "--rows": "9M",
    "--quiet": None, "--quiet-below": "900%", "--verbose": None, "--require-locked": None,
}  # fmt: skip
#: What fits the cluster of the spec.
FITTING = {"--cores": "2", "--node-type": "other:cores=4,memory=32g,price=0.1"}
#: What an option is called where a message says what it asks for.
IN_WORDS = {"--mode": "Real-Time Mode"}
OF_COMMAND: dict[tuple[str, str], Value] = {
    ("emit", "--format"): "pyspark",
    ("plan", "--profile"): "kept.profile.yaml",
    ("predict", "--profile"): "kept.profile.yaml",
    ("emit", "--node-type"): "other.large",
    ("profile", "--conf"): "spark.app.name=x",
    ("simulate", "--policy"): "static",
    ("simulate", "--executors"): "1..4",
    ("simulate", "--trigger"): "1s",
    ("simulate", "--rate"): "50k/s",
}


def options_of(command: str) -> list[str]:
    """The options of a command, by their longest spelling."""
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    return [max(each.opts, key=len) for each in found.params if isinstance(each, click.Option)]


def value_of(way: Way, option: str) -> Value:
    command = way.name.split()[0]
    if option == "--target" and "deadline" in str(way.options.get(option)):
        return "deadline <= 100s"
    if way.name == "plan a spec" and option in FITTING:
        return FITTING[option]
    return OF_COMMAND.get((command, option), VALUES.get(option))


CASES = [
    (way, option)
    for way in WAYS
    for option in options_of(way.name.split()[0])
    # What makes it this way is not one more option.
    if not (option in way.options and way.options[option] == value_of(way, option))
]


#: Ways whose plans are made as those of a profile, but for what these options say: how the log is
#: read, which nodes there are and what they cost, what a spec file says itself.
OWN_OPTIONS = {
    "plan a log": {"--query", "--engine", "--profile", "--rate", "--target", "--json", "--trigger"},
    "plan a stream on a catalogued node": {
        *("--budget", "--catalog", "--checkpoint-store", "--cores", "--node-cores", "--node-type"),
        *("--objective", "--platform", "--task-cpus", "--json"),
    },
    # Its cluster and what its file says beside; all else is passed on as of a profile.
    "plan a spec": {
        *("--allow", "--checkpoint", "--checkpoint-store", "--confidence", "--cores", "--json"),
        *("--from-start", "--lower-memory", "--max-nodes", "--mode", "--node-type", "--partitions"),
        *("--rate", "--retention", "--target", "--trigger"),
    },
}


def is_as_elsewhere(way: Way, option: str) -> bool:
    """Whether an option does in this way what it does in another that is tried in every run."""
    # One node type of a catalogue is among the ways of every run.
    is_own = option in OWN_OPTIONS.get(way.name, {option})
    return way.name.endswith("on node types") or not is_own


def test_every_command_and_option_is_in_the_tables() -> None:
    commands = {way.name.split()[0] for way in WAYS}
    assert commands == set(COMMANDS) - {command for command, _ in NOT_TRIED}
    for command in commands:
        for option in options_of(command):
            assert option in VALUES, f"{command} {option}"
    ways = {way.name for way in WAYS}
    assert len(ways) == len(WAYS)


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of everything that commands read."""
    folder = tmp_path_factory.mktemp("kitchen")
    save_profile(a_profile(), folder / "orders.profile.yaml")
    save_profile(a_query(), folder / "live.profile.yaml")
    save_profile(a_long_job(), folder / "nightly.profile.yaml")
    save_profile(ended(), folder / "backlog.profile.yaml")
    Path(small(folder)).rename(folder / "pipeline.yaml")
    operators = Path(SESSIONS).read_text().replace("[CT, CT keep, LP, ET, QST]", "[LP]")
    (folder / "operators.yaml").write_text(operators)
    (folder / "clicks.windows.yaml").write_text(scaffold("SharedWindows", name="c", file="c"))
    save_profile(windowed(windows=(SLIDING,)), folder / "windows.profile.yaml")
    (folder / "queries.yaml").write_text(QUERIES)
    a_log(folder / "gate.jsonl", order=("b", "a"))
    (folder / "plan.txt").write_text(EXCHANGES)
    (folder / "orders.yaml").write_text(SPEC)
    (folder / "nightly.yaml").write_text(BATCH_SPEC)
    (folder / "fleet.yaml").write_text(FLEET)
    (folder / "manifest.yaml").write_text(MANIFEST)
    (folder / "bundle.yaml").write_text(BUNDLE)
    (folder / "now.conf").write_text(NOW)
    (folder / "then.conf").write_text("spark.executor.cores 8\n")
    (folder / "trace.csv").write_text("time,rate\n0,5000\n60,5000\n")
    (folder / "more.csv").write_text("time,rate\n0,9000\n60,9000\n")
    (folder / "keys.csv").write_text("key,count\n1,70\n2,30\n3,20\n")
    (folder / "more-keys.csv").write_text("key,count\n1,90\n2,30\n")
    (folder / "catalog.yaml").write_text(CATALOG)
    write_plain(AppLog().add(Query(num_batches=40)).lines, folder / "log")
    with contextlib.chdir(folder):
        plan = headway.plan("orders.profile.yaml", rate="5k/s", target="p99 <= 3s")
        (folder / "plan.json").write_text(json_text(plan_json(plan)))
        locked = lock(["orders.yaml"])
        dear = tuple(
            replace(
                job,
                cost_per_hour=(job.cost_per_hour or 0.0) / 2,
                planned_latency_s=(job.planned_latency_s or 0.0) / 2,
                batch_duration_s=(job.batch_duration_s or 0.0) / 2,
            )
            for job in locked.jobs
        )
        save_lock(replace(locked, jobs=dear), folder / "dear.lock")
    return folder


@dataclass(frozen=True)
class Outcome:
    """All that can be seen of a command: its code, what it prints, what it leaves."""

    exit_code: int
    out: str
    err: str
    files: Mapping[str, bytes]


def _files_here() -> dict[str, bytes]:
    """Files by their paths; folders have no content."""
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in Path().rglob("*")}


class Bench:
    """Runs command lines, each in a fresh copy of the kitchen; equal ones once."""

    def __init__(self, kitchen: Path, folder: Path) -> None:
        self._kitchen, self._folder = kitchen, folder
        self._known: dict[tuple[str, ...], Outcome] = {}
        self._is_as_the_kitchen = False
        with contextlib.chdir(kitchen):
            self.kitchen_files = _files_here()

    def outcome(self, line: list[str], capsys: pytest.CaptureFixture[str]) -> Outcome:
        if tuple(line) not in self._known:
            self._known[tuple(line)] = self._run(line, capsys)
        return self._known[tuple(line)]

    def _run(self, line: list[str], capsys: pytest.CaptureFixture[str]) -> Outcome:
        if not self._is_as_the_kitchen:
            shutil.rmtree(self._folder, ignore_errors=True)
            shutil.copytree(self._kitchen, self._folder)
        with contextlib.chdir(self._folder):
            code = run(line)
            files = _files_here()
        self._is_as_the_kitchen = files == self.kitchen_files
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err, files)


@pytest.fixture(scope="module")
def bench(kitchen: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(kitchen, tmp_path_factory.mktemp("bench") / "kitchen")


@pytest.mark.parametrize(
    ("way", "option"),
    [
        pytest.param(
            *(way, option),
            id=f"{way.name} {option}",
            marks=[pytest.mark.statistical] if is_as_elsewhere(way, option) else [],
        )
        for way, option in CASES
    ],
)
def test_an_option_changes_something_or_is_refused(
    way: Way, option: str, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    command = way.name.split()[0]
    value = value_of(way, option)
    if (command, option) in SLOW:
        pytest.skip(SLOW[command, option])
    before = bench.outcome(way.line(), capsys)
    assert before.exit_code in (0, ExitCode.INFEASIBLE, ExitCode.REGRESSION), before.err
    after = bench.outcome(way.line(**{option: value}), capsys)
    assert "internal error" not in after.err
    if option in way.neutral:
        assert after == before, f"{option} is not neutral: {way.neutral[option]}"
        return
    assert after != before, f"{option} {value} is ignored"
    if after.exit_code == ExitCode.INVALID and before.exit_code != ExitCode.INVALID:
        # Of two that contradict each other either may be the one that is named; beside a spec, by
        # its key there.
        options = (option, *way.options)
        keys = [name.lstrip("-").replace("-", "_") for name in options]
        words = [IN_WORDS[name] for name in options if name in IN_WORDS]
        named = [spelling for spelling in (*options, *keys, *words) if spelling in after.err]
        assert named, f"refused without its name: {after.err}"
        assert after.files == bench.kitchen_files


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"schema", "explain"}))
def test_of_two_values_none_is_ignored(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Giving an option twice is refused, or both count."""
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    for option in found.params:
        if isinstance(option, click.Option) and not (option.multiple or option.is_flag):
            spelling = max(option.opts, key=len)
            assert run([command, "x", spelling, "1", spelling, "2"]) == ExitCode.INVALID
            assert f"{spelling} is given twice" in capsys.readouterr().err
