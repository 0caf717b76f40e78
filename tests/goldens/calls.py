"""Two hundred calls of the library, drawn once for all, and what comes of each in one line."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from random import Random
from typing import Any, cast

import headway
from headway.domain import ApplicationProfile, JobProfile
from headway.domain.argument import JobKind, arguments_of
from headway.domain.question import PlanQuestion
from headway.errors import HeadwayError
from headway.formats.as_json import plan_json
from headway.formats.profile_file import load_any_profile, load_profile
from tests.goldens.commands import ROOT, alike_on_all_machines
from tests.planner.jobs import windowed
from tests.planner.test_backlog import ended
from tests.planner.test_dstreams import FITTED, profiled
from tests.planner.test_real_time import a_query

NUM_CALLS = 200
_SEED = 40
_RATES = (500, 5e3, "12k/s", "40k/s", 1e5, "1M/s", 0, "fast")
_TARGETS = (
    "p99 <= 3s", "mean < 1s", "p95 <= 700ms", "batch p99 <= 2s", "window p95 <= 20s",
    "deadline <= 2m", "p99 <= 1ms", "p99", ("p99 <= 3s", "catch_up <= 15m after 30m"),
)  # fmt: skip
# As often as they differ in what can be asked; those of DStreams take longest.
_KINDS = (
    "stream", "stream", "stream", "windows", "batch", "batch", "backlog", "backlog", "dstreams",
    "real-time", "real-time",
)  # fmt: skip
_SETTING: Mapping[str, tuple[object, ...]] = {
    "executors": (1, 2, 6, 0),
    "cores": (1, 4, 8, True),
    "partitions": (2, 8, 64, "8"),
    "trigger": (0.0, 1.0, "2s", -1.0),
    "task_cpus": (1, 2, 16),
}
_OF_PLANS: Mapping[str, tuple[object, ...]] = {
    "confidence": (0.5, 0.95, 0.99, 1.0),
    "max_nodes": (1, 3, 12, 0),
    "executor_memory_bytes": (2**30, 2**35, -5),
    "checkpoint": ("new", "existing", "old"),
    "objective": ("nodes", "latency", "cost", "speed"),
    "source_partitions": (1, 8, 0),
    "from_start": (True, False),
    "rows": ("4M", 1e6, -1),
    "budget": (1.0, "much"),
}
_SHOWN = (
    "stable", "feasible", "nodes", "executors", "cores_per_executor", "utilization", "calibrated",
    "verdict", "configuration", "tuple_latency_s", "window_latency_s", "planned_latency_s",
    "max_rate_per_s", "probability", "kept_probability", "run", "backlog", "spark_conf",
    "query_options", "binding",
)  # fmt: skip


def lines(numbers: Container[int] = range(NUM_CALLS)) -> Iterator[str]:
    """A line for each call: what was asked, and the figures of the answer, or the error.

    ``numbers`` are those of the calls that are made; all are drawn.
    """
    draw, profiles = Random(_SEED), _profiles()
    for number in range(NUM_CALLS):
        kind = draw.choice(_KINDS)
        few = ("plan",) * 6 if kind in ("batch", "dstreams") else ()
        call = draw.choice(("predict", "plan", "plan", *few))
        asked = dict(
            _of_ending_job(draw) if _has_deadline(draw, call, kind) else _asked(draw, call)
        )
        if kind == "real-time" and call == "plan" and number % 5:
            asked.pop("trigger", None)  # Spark refuses those of micro-batches
        if number not in numbers:
            continue
        said = ", ".join(f"{name}={value!r}" for name, value in asked.items())
        answer = _answer(call, kind, profiles[kind], asked)
        yield alike_on_all_machines(f"{number:3} {call} {kind}({said}): {answer}")


def _profiles() -> dict[str, JobProfile | ApplicationProfile]:
    examples = ROOT / "examples"
    return {
        "stream": load_profile(examples / "word-count.profile.yaml"),
        "windows": windowed(),
        "batch": load_any_profile(examples / "nightly-totals.profile.yaml"),
        "backlog": ended(),
        "dstreams": profiled(FITTED),
        "real-time": a_query(),
    }


def _has_deadline(draw: Random, call: str, kind: str) -> bool:
    return call == "plan" and kind in ("batch", "backlog") and draw.random() < 0.8


def _of_ending_job(draw: Random) -> Iterator[tuple[str, object]]:
    yield "target", f"deadline <= {draw.choice((1, 10, 40, 90, 600))}s"
    names = ("cores", "task_cpus", "confidence", "max_nodes", "executor_memory_bytes", "objective")
    for name in (*names, "rows"):
        if draw.random() < 0.3:
            yield name, draw.choice({**_SETTING, **_OF_PLANS}[name])


def _asked(draw: Random, call: str) -> Iterator[tuple[str, object]]:
    """Mostly a setting that makes sense: a search over few settings is quick, too."""
    if draw.random() < 0.9:
        yield "rate", draw.choice(_RATES if draw.random() < 0.2 else _RATES[:5])
    if call == "plan":
        yield "target", draw.choice(_TARGETS if draw.random() < 0.5 else _TARGETS[:6])
    for name, values in _SETTING.items():
        chance = 0.8 if name in ("partitions", "trigger") else 0.3
        if (call == "predict" or name != "executors") and draw.random() < chance:
            yield name, draw.choice(values if draw.random() < 0.2 else values[:-1])
    if call == "plan":
        for name, values in _OF_PLANS.items():
            if draw.random() < 0.12:
                yield name, draw.choice(values)


def _answer(
    call: str, kind: str, profile: JobProfile | ApplicationProfile, asked: Mapping[str, Any]
) -> str:
    try:
        found = _called(call, kind, profile, asked)
    except HeadwayError as error:
        return f"{type(error).__name__}: {error}"
    shown = {name: found[name] for name in _SHOWN if found.get(name) not in (None, {}, [])}
    return str(shown)


def _called(
    call: str, kind: str, profile: JobProfile | ApplicationProfile, asked: Mapping[str, Any]
) -> Mapping[str, Any]:
    anything: Any = profile
    if call == "predict":
        prediction: Any = headway.predict(anything, **asked)
        return cast("Mapping[str, Any]", prediction.to_dict())
    if kind in ("dstreams", "real-time"):
        job_kind = JobKind.DSTREAMS if kind == "dstreams" else JobKind.REAL_TIME
        arguments = arguments_of(PlanQuestion)
        refused = {argument.name for argument in arguments if job_kind in argument.not_for}
        refused |= {"trigger", "executor_memory_bytes"} if kind == "dstreams" else set()
        asked = {"rate": 300, **asked}
        asked = {name: value for name, value in asked.items() if name not in refused}
    if kind == "real-time":
        asked = {**asked, "mode": "real-time"}
    answer: Any = headway.plan(anything, **{"max_nodes": 4, **asked})  # a search over few is quick
    return plan_json(answer) if kind not in ("dstreams", "real-time") else vars_of(answer)


def vars_of(answer: Any) -> Mapping[str, Any]:
    """Figures of an answer that has a JSON of its own."""
    return {name: str(getattr(answer, name)) for name in _SHOWN if hasattr(answer, name)}
