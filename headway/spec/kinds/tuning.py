"""A query by the code that starts it: to be kept within its target, or to be explored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import headway.spec.forms.quantities as values
from headway.assumptions.live import CATCH_UP_S
from headway.domain import Promise
from headway.limits import MOST_EXECUTORS
from headway.spec.forms import as_in, entry
from headway.spec.forms.kinds import Choice, Flag, ListOf, Nested, Number, Text, whole

_EXECUTORS = whole(low=1, high=MOST_EXECUTORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorBounds:
    """Minimum and maximum number of executors."""

    min_executors: int = entry(_EXECUTORS, "Minimum.", key="min")
    max_executors: int = entry(_EXECUTORS, "Maximum.", key="max")

    def __post_init__(self) -> None:
        if self.min_executors > self.max_executors:
            raise ValueError(f"min is {self.min_executors}, more than max, {self.max_executors}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """A query, its target, and what may be changed to meet it."""

    code: Path | None = entry(
        values.CODE_FILE,
        "Python file with the function that starts the query; not needed with `--supervise`.",
        default=None,
    )
    function: str = entry(values.NAME, "Name of that function. Default `build`.", default="build")
    profile: Path = entry(values.PROFILE_FILE, "Its profile.")
    target: Promise = entry(values.TARGET, "Target: a quantile of rows or batches, `p99 <= 2s`.")
    state: str = entry(
        Text(words="a file name, e.g. orders.tuner.json"),
        "State file, beside the spec. Default `tuner.json`.",
        default="tuner.json",
    )
    executors: ExecutorBounds | None = entry(
        Nested(ExecutorBounds),
        "Bounds of the number of executors. Default: the current number.",
        default=None,
    )
    triggers_s: tuple[float, ...] | None = entry(
        ListOf(item=values.TRIGGER, least=1, most=8),
        "Trigger intervals to choose from. Default: half and twice the profiled one.",
        default=None,
    )
    rate_limit: bool = entry(
        Flag(), "Whether batches have a rate limit. Default true.", default=True
    )
    half_done: str = entry(
        Choice(("wait", "allow")),
        "If the query has no gap between batches: `wait` waits for one, `allow` interrupts a "
        "batch, which needs an idempotent sink such as Spark's file sink. Default `wait`.",
        default="wait",
    )
    catch_up_s: float = entry(
        values.DURATION,
        "Time within which a backlog must be processed. Default 5min.",
        default=CATCH_UP_S.value,
    )
    budget: float | None = entry(
        Number(words="executor-hours a day, above 0", above=True, high=1e9),
        "Maximum executor-hours per day. Default: no limit.",
        default=None,
    )
    quiet: tuple[str, ...] = entry(
        ListOf(item=Text(words="two times of the day, e.g. 22:00-06:00"), least=0, most=24),
        "Times of the day at which nothing is changed.",
        default=(),
    )
    master: str = entry(values.MASTER, "Default `local[*]`.", default="local[*]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """Runs of a query that narrow the answer to a question most."""

    code: Path = entry(values.CODE_FILE, "Python file with the function that starts the query.")
    function: str = as_in(Tuning, "function")
    rate_per_s: float = entry(values.RATE, "Input rate of the question.")
    target: Promise = entry(values.TARGET, "Target of the question: `p99 <= 2s`.")
    budget_s: float = entry(
        values.DURATION, "How long all runs may take. Default 10m.", default=600.0
    )
    run_s: float | None = entry(
        values.DURATION,
        "How long one run takes. Default: an eighth of the budget, 20s to 2m.",
        default=None,
    )
    master: str = as_in(Tuning, "master")
