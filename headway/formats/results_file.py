"""Results read from the JSON that commands print: backtests, simulations, capacity, checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from headway.domain import AnyAnswer, Backtest, Playback
from headway.errors import InputError
from headway.formats.as_json import DEADLINE_SCHEMA, PLAN_SCHEMA
from headway.formats.codec import noun_of
from headway.formats.figures_read import KINDS, FiguresRead, figures_read
from headway.formats.from_json import in_todays_form, parse_any_plan, require_words
from headway.formats.own_files import parse_json, read_whole_text

_EXPECTED = "a profile, or what a command such as 'headway plan' prints with --json"
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOfCapacity:
    """One job of a capacity plan: where it runs, on how many nodes or executors by the hour."""

    job: str
    served: bool
    why: str = ""
    pool: str = ""
    node_type: str = ""
    nodes: tuple[int, ...] = ()
    executors: tuple[int, ...] = ()
    cost_per_day: float | None = None
    kept_probability: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOfLimit:
    """Saving by a slightly higher limit, in words; files of earlier versions have only its name."""

    name: str
    saves_per_day: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthOfGrowth:
    """The plan of a later month; ``cost_per_day`` is None if there is none, ``why`` says why."""

    month: str
    ratio: float
    cost_per_day: float | None = None
    max_nodes: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """Nodes of a type that a capacity plan buys, by the hour."""

    node_type: str
    nodes: tuple[int, ...]
    spot: tuple[int, ...]
    committed: int
    cost_per_day: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOfPromise:
    """Saving by a looser target."""

    job: str
    promise: str
    looser: str
    saves_per_day: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpossibleJob:
    """A job that cannot run anywhere."""

    job: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRead:
    """A capacity plan as ``headway capacity --json`` printed it."""

    name: str
    feasible: bool
    currency: str
    prices_of: str
    scenarios: str
    proof: str = ""
    cost_per_day: float | None = None
    budget_per_day: float | None = None
    jobs: tuple[JobOfCapacity, ...] = ()
    purchases: tuple[Purchase, ...] = ()
    promise_prices: tuple[PriceOfPromise, ...] = ()
    shadow_prices: tuple[PriceOfLimit, ...] = ()
    growth: tuple[MonthOfGrowth, ...] = ()
    impossible: tuple[ImpossibleJob, ...] = ()
    unserved: tuple[str, ...] = ()
    relaxations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FiguresOfCheck:
    """What a check compares of a plan."""

    nodes: int | None = None
    planned_latency_s: float | None = None
    planned_run_time_s: float | None = None
    cost_per_hour: float | None = None
    cost_per_run: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOfCheck:
    """One checked job, now and as locked."""

    name: str
    file: str
    ok: bool
    now: FiguresOfCheck
    locked: FiguresOfCheck | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingOfCheck:
    """One thing that a check found."""

    rule: str
    level: str
    job: str
    message: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRead:
    """A check as ``headway check --json`` printed it."""

    ok: bool
    headline: str
    baseline: str | None = None
    jobs: tuple[JobOfCheck, ...]
    findings: tuple[FindingOfCheck, ...]


AnyResult: TypeAlias = AnyAnswer | Backtest | Playback | CapacityRead | CheckRead | FiguresRead
_NOUNS: Mapping[str, type[Backtest | Playback | CapacityRead | CheckRead]] = {
    "headway.backtest/v1": Backtest,
    "headway.playback/v1": Playback,
    "headway.capacity/v1": CapacityRead,
    "headway.check/v1": CheckRead,
}


def load_result(path: str | Path) -> AnyResult:
    """A result from the JSON of its command.

    Raises
    ------
    InputError
        If the file cannot be read or is none of these; names the file and the position in it.
    """
    text = read_whole_text(Path(path), expected=_EXPECTED, largest_bytes=_MOST_BYTES)
    return parse_result(text, name=str(path))


def parse_result(text: str, *, name: str) -> AnyResult:
    """As `load_result`, from the text; messages call it ``name``."""
    data = parse_json(text, name=name, expected=_EXPECTED)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema in (PLAN_SCHEMA, DEADLINE_SCHEMA):
        return parse_any_plan(text, name=name)
    if isinstance(schema, str) and schema in KINDS:
        return figures_read(data, KINDS[schema])
    try:
        if isinstance(schema, str) and schema in _NOUNS:
            result = noun_of(in_todays_form(data), _NOUNS[schema])
            for run in result.runs if isinstance(result, Backtest) else ():
                require_words(run.prediction.findings, "predicted.findings")
            return result
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    schema_text = f"schema {schema}" if isinstance(schema, str) else "no schema of Headway's"
    raise InputError(f"{name}: {schema_text}; expected {_EXPECTED}")
