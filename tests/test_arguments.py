"""Arguments of the calls: bad values are refused by name, for every kind of job."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

import headway
from headway.cli.main import run
from headway.domain import RateTrace
from headway.domain.ordered import KeyCounts
from headway.errors import HeadwayError, InputError
from headway.formats.profile_file import load_any_profile
from tests.factories import a_profile
from tests.planner.jobs import SLIDING, windowed
from tests.planner.test_dstreams import FITTED, profiled
from tests.planner.test_real_time import a_query
from tests.sources import ROOT, modules

BATCH = ROOT / "examples/nightly-totals.profile.yaml"
WORD_COUNT = BATCH.with_name("word-count.profile.yaml")
KEYS = KeyCounts(keys=("a", "b"), num_rows=(2.0, 1.0))
TRACE = RateTrace(times_s=(0.0,), rates_per_s=(1000.0,), end_s=60.0)


@cache
def a_plan() -> headway.Plan:
    plan = headway.plan(WORD_COUNT, rate="2k/s", target="p99 <= 3s")
    assert plan.feasible
    return plan


CALLS: dict[str, tuple[Callable[..., Any], Callable[[], Any], dict[str, Any]]] = {
    "plan": (headway.plan, a_profile, {"rate": 2000.0, "target": "p99 <= 3s"}),
    "predict": (headway.predict, a_profile, {}),
    "plan of a batch job": (headway.plan, lambda: BATCH, {"target": "deadline <= 60s"}),
    "plan of DStreams": (
        headway.plan,
        lambda: profiled(FITTED),
        {"rate": None, "target": "p99 <= 10s"},
    ),
    "prediction of DStreams": (headway.predict, lambda: profiled(FITTED), {}),
    "plan in Real-Time Mode": (
        headway.plan,
        a_query,
        {"rate": 2000.0, "target": "p99 <= 300ms", "mode": "real-time"},
    ),
    "prediction in Real-Time Mode": (headway.predict, a_query, {"mode": "real-time"}),
    "windows": (headway.windows, lambda: windowed(windows=(SLIDING,)), {}),
    "ordered": (headway.ordered_plan, a_profile, {"keys": KEYS}),
    "simulation": (headway.simulate, a_plan, {"rate_trace": TRACE}),
    "simulation of policies": (
        headway.simulate,
        a_plan,
        {"rate_trace": TRACE, "policies": ["static"], "profile": WORD_COUNT},
    ),
}
# No argument of any call takes one of these.
NONSENSE = (object(), -5, float("nan"), [1], {"a": 1}, b"x", 10**400)


@pytest.mark.parametrize("name", CALLS)
def test_nonsense_is_refused_by_the_name_of_the_argument(name: str) -> None:
    call, make_profile, arguments = CALLS[name]
    profile = make_profile()
    first, *others = inspect.signature(call).parameters
    for argument in (first, *others):
        for value in NONSENSE:
            given = {first: profile, **arguments, argument: value}
            with pytest.raises(HeadwayError) as refusal:
                call(given.pop(first), **given)
            if not (name == "plan of a batch job" and argument == "target"):
                assert argument in str(refusal.value), (argument, value)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("value", [True, "x"])
def test_numbers_are_neither_choices_nor_words(name: str, value: object) -> None:
    """A choice would count as 1, since it is a number to Python."""
    call, make_profile, arguments = CALLS[name]
    profile = make_profile()
    numbers = {
        "rate", "max_nodes", "node_cores", "cores", "partitions", "trigger", "confidence", "budget",
        "source_partitions", "task_cpus", "executor_memory_bytes", "total_rows", "executors",
        "max_offsets", "jvm_age", "concurrent_jobs", "path", "num_keys", "runs", "seed", "length",
    }  # fmt: skip
    taken = numbers & set(inspect.signature(call).parameters)
    assert len(taken) >= 5
    for argument in sorted(taken):
        with pytest.raises(InputError, match=argument):
            call(profile, **{**arguments, argument: value})


def test_a_zero_is_not_the_same_as_nothing_given() -> None:
    for name in ("partitions", "trigger", "source_partitions"):
        with pytest.raises(InputError, match=f"{name}: not with a deadline"):
            headway.plan(BATCH, target="deadline <= 60s", **{name: 0})  # type: ignore[call-overload]


@pytest.mark.parametrize("name", [name for name in CALLS if "simulation" not in name])
def test_a_trigger_of_less_than_a_millisecond_is_refused(name: str) -> None:
    """Spark drops what is less, so that the query would run as fast as possible."""
    call, make_profile, arguments = CALLS[name]
    if name == "plan of a batch job":
        pytest.skip("it has no trigger")
    with pytest.raises(InputError, match="trigger is 400 us; expected 0, or at least 1 ms"):
        call(make_profile(), **arguments, trigger="400us")


def test_triggers_of_a_policy_are_a_millisecond_or_more() -> None:
    call, make_profile, arguments = CALLS["simulation of policies"]
    with pytest.raises(InputError, match="triggers is 400 us; expected at least 1 ms"):
        call(make_profile(), **arguments, triggers=["400us"])


@pytest.mark.parametrize(
    ("spark", "given", "message"),
    [
        (None, {}, "spark: got None; expected a SparkSession"),
        ("spark", {"allow": {"repartition"}}, "spark: got 'spark'; expected a SparkSession"),
        (None, {"allow": 7}, "allow is 7; expected a text, or a list of texts"),
        (None, {"allow": "all"}, "allow is 'all'; expected one of repartition"),
        (None, {"quiet": 22}, "quiet is 22; expected a text, or a list of texts"),
    ],
)
def test_what_cannot_be_tuned_is_named(
    tmp_path: Path, spark: Any, given: dict[str, Any], message: str
) -> None:
    how = {"profile": a_profile(), "target": "p99 <= 3s", "state": tmp_path / "orders.json"}
    with pytest.raises(InputError, match=message):
        headway.tune(spark, lambda _session, _setting: None, **{**how, **given})  # type: ignore[arg-type,return-value]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in CALLS if "simulation" not in name])
def test_a_fraction_of_a_core_needs_spark_4_3(name: str) -> None:
    call, make_profile, arguments = CALLS[name]
    job = make_profile()
    if isinstance(job, Path):
        job = load_any_profile(job)
    of_4_2 = replace(job.application, spark_version="4.2.1")
    field = (
        {"applications": (of_4_2,)}
        if isinstance(job, headway.JobProfile)
        else {"application": of_4_2}
    )
    with pytest.raises(InputError, match=r"task_cpus 0\.5: Spark 4\.2\.1 does not start"):
        call(replace(job, **field), **arguments, task_cpus=0.5)


@pytest.mark.parametrize("version", ["4.3.0", "5.0.0", "unknown"])
def test_a_fraction_of_a_core_is_planned_where_spark_may_read_it(version: str) -> None:
    application = replace(a_profile().application, spark_version=version)
    job = a_profile(applications=(application,))
    plan = headway.plan(job, rate=2000.0, target="p99 <= 3s", task_cpus=0.5)
    assert plan.spark_conf["spark.task.cpus"] == "0.5"
    headway.emit(plan, "spark-submit", submission={"spark_version": "4.3.1"})
    with pytest.raises(InputError, match=r"spark\.task\.cpus 0\.5: Spark 4\.0\.1 does not start"):
        headway.emit(plan, "spark-submit", submission={"spark_version": "4.0.1"})


def test_a_heap_below_what_spark_starts_with_is_refused_for_every_kind() -> None:
    for call, make_profile, arguments in (CALLS["plan"], CALLS["plan of a batch job"]):
        for size in (1, 449 * 2**20):
            with pytest.raises(InputError, match=r"executor_memory_bytes is .* \(450m\)"):
                call(make_profile(), **arguments, executor_memory_bytes=size)
        plan = call(make_profile(), **arguments, executor_memory_bytes=450 * 2**20)
        assert plan.spark_conf["spark.executor.memory"] == "450m"


@pytest.mark.parametrize(
    ("call", "argument_words", "option_words"),
    [
        (
            {"node_cores": 4, "node_types": ["a:cores=4,memory=8g"]},
            "node_cores contradicts node_types",
            "--node-cores contradicts --node-type",
        ),
        (
            {"objective": "cost", "node_types": ["a:cores=4,memory=8g"]},
            "objective cost needs the price",
            "--objective cost needs the price",
        ),
        (
            {"node_cores": 1, "cores": 2},
            "give a larger node_cores or fewer cores",
            "give a larger --node-cores or fewer --cores",
        ),
        ({"task_cpus": 64}, "fewer task_cpus", "fewer --task-cpus"),
    ],
)
@pytest.mark.parametrize("profile", [BATCH, WORD_COUNT])
def test_the_library_names_arguments_and_the_command_line_options(
    profile: Path,
    call: dict[str, Any],
    argument_words: str,
    option_words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One message in two spellings, for both kinds of jobs."""
    arguments: dict[str, Any] = dict(call)
    if profile == BATCH:
        arguments |= {"target": "deadline <= 60s"}
    else:
        arguments |= {"target": "p99 <= 3s", "rate": "2k/s"}
    with pytest.raises(InputError, match=argument_words) as refusal:
        headway.plan(profile, **arguments)
    assert "--" not in str(refusal.value)
    options = []
    for name, value in arguments.items():
        if name == "node_types":
            options += ["--node-type", *value]
        else:
            options += [f"--{name.replace('_', '-')}", str(value)]
    assert run(["plan", str(profile), *options]) == 2
    said = capsys.readouterr().err
    assert option_words in said
    assert said.removesuffix("\n").isprintable()


def _raised_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The literal parts of everything that a module raises."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def test_no_message_of_the_library_names_an_option() -> None:
    """A whole command, such as 'headway plan FILE --json', may be named."""
    faults = [
        f"{name}:{line}: {text!r}; name the argument: errors.argument"
        for name, tree in modules().items()
        if not name.startswith("cli/")
        for line, text in _raised_texts(tree)
        if re.search(r"--[a-z]", text) and "headway " not in text
    ]
    assert not faults, "\n".join(faults)


def test_a_task_may_take_half_a_core() -> None:
    def task_cpus(number: float) -> str:
        plan = headway.plan(a_profile(), rate=2000.0, target="p99 <= 3s", task_cpus=number)
        assert plan.feasible
        return plan.spark_conf["spark.task.cpus"]

    assert (task_cpus(0.5), task_cpus(2.0)) == ("0.5", "2")
    with pytest.raises(InputError, match="task_cpus"):
        task_cpus(0)


NOTHING: Any = None
A_NUMBER: Any = 3
A_PROFILE: Any = a_profile()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: headway.diff(NOTHING, a_plan()),
            "before is of the type NoneType; expected a plan or a profile of a streaming query",
        ),
        (lambda: headway.diff(a_plan(), A_NUMBER), "after is of the type int"),
        (
            lambda: headway.diff(a_plan(), a_profile()),
            "before is the plan of a streaming query, after is the profile of a streaming query",
        ),
        (lambda: headway.explain(A_PROFILE), "plan is of the type JobProfile; expected a plan"),
        (lambda: headway.explain(NOTHING), "plan is of the type NoneType"),
        (
            lambda: headway.emit(cast(Any, headway.predict(a_profile())), "emr"),
            "plan is of the type Prediction",
        ),
        (
            lambda: headway.emit(a_plan(), "emr", submission={"nope": "1"}),
            "submission: 'nope' is no such name; expected one of name, main",
        ),
        (
            lambda: headway.emit(a_plan(), "emr", submission={"spark_version": A_NUMBER}),
            "submission: spark_version is of the type int; expected text",
        ),
        (lambda: headway.page(NOTHING), "shown is of the type NoneType"),
    ],
)
def test_objects_of_other_kinds_are_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(said)}"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        *(headway.load_plan, headway.load_lock, headway.load_profile, headway.validate),
        *(headway.capacity, headway.plan_spec),
    ],
)
def test_what_is_no_path_is_refused(call: Callable[[Any], Any]) -> None:
    for value in (None, 3, a_plan()):
        with pytest.raises(InputError, match=rf"^path is of the type {type(value).__name__}; "):
            call(value)


@pytest.mark.parametrize("call", [headway.profile, headway.survey, headway.backtest])
def test_calls_on_logs_need_logs(call: Callable[[Any], Any]) -> None:
    with pytest.raises(InputError, match=r"^sources is empty; expected the path of an event log"):
        call([])
    with pytest.raises(InputError, match=r"^sources is of the type NoneType; expected the path"):
        call(None)
    with pytest.raises(InputError, match=r"^sources has a member of the type int; expected"):
        call([3])
