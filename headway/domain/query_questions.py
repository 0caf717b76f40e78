"""What is asked about one query besides plan and prediction: windows, keys, a simulated plan."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import headway.domain.argument_values as values
from headway.domain.argument import CommandQuestion, argument_of, as_in
from headway.domain.playback import Outage, RateTrace
from headway.domain.question import KeyType, PlanQuestion, RunQuestion
from headway.errors import argument
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT, MOST_LONG

if TYPE_CHECKING:
    from headway.domain import JobProfile
    from headway.domain.ordered import KeyCounts


@dataclass(frozen=True, kw_only=True)
class WindowsQuestion(RunQuestion):
    """What the sharing of windows is asked for, at a setting."""

    windows: tuple[str, ...] = argument_of(
        values.ListOf(members=str, expected="a list of texts such as '10m'"),
        "Windows to count, e.g. '1h every 5m'; repeatable. As profiled by default.",
        option="--window",
        default=(),
        is_repeatable=True,
        is_first=True,
    )
    queries: str | Path | None = argument_of(
        values.of_class(
            str | Path, "the path of a spec file of the kind SharedWindows", is_path=True
        ),
        "Spec file of the kind SharedWindows: several queries on one stream, each with its "
        "windows.",
        is_first=True,
        metavar="FILE",
    )
    num_keys: int | None = argument_of(
        values.Count(maximum=MOST_LONG),
        "Number of distinct keys in the stream. By default it grows with the rows as profiled.",
        is_rare=True,
    )


@dataclass(frozen=True, kw_only=True)
class OrderedQuestion(RunQuestion):
    """What the placement of heavy keys is asked for, at a setting."""

    keys: KeyCounts | str | Path | None = argument_of(
        values.PATH_READ_LATER,
        "How often each key occurs: CSV with the columns key and count, or JSON lines.",
        is_required=True,
        is_first=True,
    )
    key_type: KeyType | None = as_in(PlanQuestion, "key_type")
    total_rows: float | None = as_in(PlanQuestion, "total_rows")
    stage: str | None = argument_of(
        values.of_class(str, "a text"),
        "Stage after an exchange; by default the one with the most work.",
    )


class Simulated(StrEnum):
    """What is simulated, by what it can be asked; pipelines are named as in their files."""

    PLAN = "plan"
    POLICIES = "plan under policies"
    PIPELINE = "MicroBatchPipeline"
    OPERATORS = "OrderedPipeline"


_NOT_FOR_PIPELINES = dict.fromkeys((Simulated.PIPELINE, Simulated.OPERATORS), "not for pipelines")
_OF_POLICIES = {
    Simulated.PLAN: f"is used with {argument('policies')}; add it, or leave this out",
    **_NOT_FOR_PIPELINES,
}
_BY_RATE_TRACE = f"a plan is simulated under its {argument('rate_trace')}"
_WITHOUT_CHANCE = "ordered operators are simulated without chance"


@dataclass(frozen=True, kw_only=True)
class SimulateQuestion(CommandQuestion):
    """What a simulation is asked for."""

    rate_trace: RateTrace | str | Path | None = argument_of(
        values.of_class(
            str | Path | RateTrace, "the path of a CSV or JSON file, or a RateTrace", is_path=True
        ),
        "CSV file with the columns time and rate, or JSON: the answer of a Prometheus range "
        "query, or the progress of a query, one object per line; required for a plan.",
        not_for=_NOT_FOR_PIPELINES,
    )
    length_s: float | None = argument_of(
        values.Duration(),
        "Duration to simulate; until the last line of the trace by default.",
        name="length",
        option="--for",
        not_for={Simulated.OPERATORS: "ordered operators are simulated by tuples, not by time"},
    )
    outages: tuple[Outage, ...] = argument_of(
        values.ListOf(
            members=Outage, expected="a list of texts such as '5m at 1h'", parse=Outage.parse
        ),
        "Outage during which the query does not run, e.g. '5m at 1h'; repeatable.",
        option="--outage",
        default=(),
        is_repeatable=True,
        not_for=_NOT_FOR_PIPELINES,
    )
    policies: tuple[str, ...] | None = argument_of(
        values.names_of("e.g. headway,hpa,static"),
        "Autoscaling policies to compare: headway, hpa, flink, ds2, static, optimum; with "
        "constants: hpa:50%,flink:70%,ds2:1.2,static:8.",
        option="--policy",
        not_for=_NOT_FOR_PIPELINES,
    )
    profile: JobProfile | str | Path | None = argument_of(
        values.PATH_READ_LATER, "With --policy: the profile behind the plan.", not_for=_OF_POLICIES
    )
    executors: tuple[int, int] | None = argument_of(
        values.EXECUTOR_RANGE,
        "With --policy: minimum and maximum number of executors; by default 1 to 1.5 times what "
        "the highest rate needs.",
        not_for=_OF_POLICIES,
        metavar="MIN..MAX",
        is_rare=True,
    )
    triggers_s: tuple[float, ...] = argument_of(
        values.each_of(values.TRIGGER_ABOVE_ZERO, "a list of durations such as '1s'"),
        "With --policy headway: trigger interval that it may change to; repeatable.",
        name="triggers",
        option="--trigger",
        default=(),
        is_repeatable=True,
        not_for=_OF_POLICIES,
        is_rare=True,
    )
    runs: int | None = argument_of(
        values.Count(maximum=1000),
        "Number of simulated runs.  [default: 16; 2 of each policy, 2 of a pipeline]",
        not_for={Simulated.OPERATORS: _WITHOUT_CHANCE},
        is_rare=True,
    )
    rate_per_s: float | None = argument_of(
        values.RATE,
        "Input rate of a pipeline; as its file says by default.",
        name="rate",
        not_for=dict.fromkeys((Simulated.PLAN, Simulated.POLICIES), _BY_RATE_TRACE),
        is_rare=True,
    )
    seed: int = argument_of(
        values.Count(minimum=0, maximum=MOST_INT),
        "Random seed.",
        default=1,
        not_for={Simulated.OPERATORS: _WITHOUT_CHANCE},
        is_rare=True,
    )

    def num_runs(self, kind: Simulated) -> int:
        return self.runs or (16 if kind is Simulated.PLAN else 2)
