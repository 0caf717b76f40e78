"""What commands besides plan and predict are asked for: about logs, several jobs, one query."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import headway.domain.argument_values as values
from headway.domain.argument import CommandQuestion, argument_of, arguments_of, as_in
from headway.domain.argument_values import FLAG, Positive, ReadBy, not_expected, parse_share
from headway.domain.playback import Outage, RateTrace
from headway.domain.question import KeyType, PlanQuestion, RunQuestion
from headway.errors import InputError, argument
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT, MOST_LONG

if TYPE_CHECKING:
    from headway.domain import JobProfile
    from headway.domain.ordered import KeyCounts


def parse_growth(text: str) -> float:
    try:
        return float(text.strip().removesuffix("x"))
    except ValueError:
        raise InputError(f"{text!r} is no growth; expected a ratio, e.g. 1.5x") from None


def read_month(value: Any, name: str) -> int:
    """The number of months since year 0 until a month such as ``2027-06``.

    >>> read_month("2027-06", "by") - read_month("2026-12", "by")
    6
    """
    match = isinstance(value, str) and re.fullmatch(r"(\d{4})-(\d{1,2})", value)
    if not match:
        raise not_expected(name, value, "a month, e.g. 2027-06")
    year, month = map(int, match.groups())
    if not 1 <= month <= 12:
        fault = f"{argument(name)} {value}: there is no month {month}; expected e.g. {match[1]}-06"
        raise InputError(fault)
    return year * 12 + month - 1


_SHARE = Positive(words="a share, e.g. 15% or 0.15", parse=parse_share, may_be_zero=True)
_GROWTH = Positive(words="a ratio, e.g. 1.5x", parse=parse_growth, maximum=1e6)


@dataclass(frozen=True, kw_only=True)
class CapacityQuestion(CommandQuestion):
    """What the capacity of a fleet is asked for."""

    growth_ratio: float | None = argument_of(
        _GROWTH, "Multiply all rates by this, e.g. 1.5x.", name="growth"
    )
    by_month: int | None = argument_of(
        ReadBy(read_month), "Month by which the rates will have grown, e.g. 2027-06.", name="by"
    )


@dataclass(frozen=True, kw_only=True)
class Limits(CommandQuestion):
    """How much worse than the lock counts as a regression, as shares such as 0.05 or ``"5%"``.

    A share of 0 allows no rise at all. Anything that is no share is an InputError.

    >>> Limits().cost_ratio, Limits(cost_ratio="2%", latency_ratio=0).cost_ratio
    (0.05, 0.02)
    """

    cost_ratio: float = argument_of(
        _SHARE,
        "Fail if the cost rises by more than this.",
        name="max_cost",
        default=0.05,
        metavar="SHARE",
    )
    latency_ratio: float = argument_of(
        _SHARE,
        "Fail if the planned latency or run time rises by more than this.",
        name="max_latency",
        default=0.1,
        metavar="SHARE",
    )
    drift_ratio: float = argument_of(
        _SHARE,
        "Fail if batches in the locked configuration become longer by more than this.",
        name="max_drift",
        default=0.2,
        metavar="SHARE",
    )
    require_locked: bool = argument_of(
        FLAG, "Fail if a job is not in the lock file.", default=False
    )
    strict: bool = argument_of(
        FLAG, "Exit with 5 if the answer is outside the calibrated range.", default=False
    )

    def __post_init__(self) -> None:
        for declared in arguments_of(type(self)):
            name = declared.field_name
            object.__setattr__(self, name, declared.value.read(getattr(self, name), name))


DEFAULT_MASTER = "local[*]"
#: What reads logs; by default, Spark reads what one machine cannot.
LogEngine: TypeAlias = Literal["auto", "in-process", "spark"]


def parse_property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        # The rest of it may be a secret.
        raise InputError(f"{name!r} is not a Spark property; expected spark.NAME=VALUE")
    return name, value


def _properties(value: Any, name: str) -> tuple[tuple[str, str], ...]:
    """Spark properties from a mapping, or from pairs of name and value.

    >>> _properties({"spark.app.name": "x"}, "conf")
    (('spark.app.name', 'x'),)
    """
    try:
        pairs = dict(value).items()
    except (TypeError, ValueError):
        raise values.not_expected(name, value, "a mapping of Spark properties") from None
    for key, _ in pairs:
        if not str(key).startswith("spark."):
            raise InputError(f"{argument(name)}: {key!r} is not a Spark property")
    return tuple(pairs)


@dataclass(frozen=True, kw_only=True)
class LogsQuestion(CommandQuestion):
    """With what logs are read."""

    engine: LogEngine = argument_of(
        values.Choice(get_args(LogEngine)),
        "Reader of the logs. 'auto' uses Spark for remote addresses, with --master or --conf, and "
        "above 8 GB of events. Only 'spark' needs Java.",
        default="auto",
        is_rare=True,
    )
    master: str = argument_of(
        values.of_class(str, "a text"),
        "Spark master for reading the logs.",
        default=DEFAULT_MASTER,
        is_rare=True,
    )
    conf: tuple[tuple[str, str], ...] = argument_of(
        values.ReadBy(_properties, parse=parse_property),
        "Spark property for the session that reads the logs, as for spark-submit. Repeatable.",
        default=(),
        is_repeatable=True,
        metavar="NAME=VALUE",
        is_rare=True,
    )
    session: Any = argument_of(values.READ_LATER, "A running session that reads them.", option=None)
    progress: Any = argument_of(values.READ_LATER, "Called with what is being done.", option=None)


@dataclass(frozen=True, kw_only=True)
class ProfileQuestion(LogsQuestion):
    """What logs are profiled for, or predictions from them judged."""

    queries: tuple[str, ...] = argument_of(
        values.QUERIES,
        "Query to include as a run of the job. Repeatable.",
        option="--query",
        default=(),
        is_repeatable=True,
        is_first=True,
        metavar="NAME_OR_ID",
    )
    trigger_s: float | None = argument_of(
        values.TRIGGER,
        "Trigger interval of the queries; 0s means as fast as possible. Estimated from the log by "
        "default.",
        name="trigger",
        is_first=True,
    )


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
        values.PATH_READ_LATER,
        "With --policy: the profile behind the plan.",
        not_for=_OF_POLICIES,
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
