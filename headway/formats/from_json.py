"""Plans read back from the JSON that ``headway plan --json`` prints."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from headway.domain import (
    AdvisedRun,
    AnyAnswer,
    AnyPromise,
    Arrivals,
    BatchAnswer,
    Configuration,
    Deadline,
    DeadlinePlan,
    Finding,
    FindingCode,
    InfeasibleDeadlinePlan,
    InfeasiblePlan,
    Interval,
    LatencyDistribution,
    Metric,
    Plan,
    Prediction,
    Promise,
    Provenance,
    StreamAnswer,
    Target,
    parse_promise,
)
from headway.domain.kept_promise import KeptPromise
from headway.errors import InputError
from headway.formats.as_json import DEADLINE_SCHEMA, PLAN_SCHEMA
from headway.formats.own_files import parse_json, read_whole_text
from headway.redaction import one_line
from headway.words import all_words

# What plans of earlier versions do not hold.
_SINCE_LATER = ("declared", "after_start", "skew")
_EXPECTED = "a plan as 'headway plan --json' prints it"
_MOST_BYTES = 64 * 2**20
Noun = TypeVar("Noun")


def load_plan(path: str | Path) -> StreamAnswer:
    """A plan of a streaming query as it was printed by ``headway plan --json``.

    Raises
    ------
    InputError
        If the file cannot be read or is no such plan; names the file and the position in it.

    Examples
    --------
    >>> load_plan("no/such/plan.json")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: no/such/plan.json: no such file; expected a plan as 'headway plan...
    """
    return _of_a_query(load_any_plan(path), str(path))


def load_any_plan(path: str | Path) -> AnyAnswer:
    """As `load_plan`, or the plan of a batch job."""
    text = read_whole_text(Path(path), expected=_EXPECTED, largest_bytes=_MOST_BYTES)
    return parse_any_plan(text, name=str(path))


def parse_plan(text: str, *, name: str) -> StreamAnswer:
    """A plan of a streaming query from the text of its JSON; messages call it ``name``.

    Raises
    ------
    InputError
        As `load_plan`.
    """
    return _of_a_query(parse_any_plan(text, name=name), name)


def parse_any_plan(text: str, *, name: str) -> AnyAnswer:
    """As `parse_plan`, or the plan of a batch job."""
    try:
        data = parse_json(text, name=name, expected=_EXPECTED)
    except InputError as error:
        raise InputError(_not_a_plan(text, one_line(name)) or str(error)) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    try:
        if schema == DEADLINE_SCHEMA:
            return _deadline_plan(At(data, ""))
        if schema == PLAN_SCHEMA:
            return plan_from_json(data)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    raise InputError(f"{name}: no {PLAN_SCHEMA}; expected {_EXPECTED}")


def _not_a_plan(text: str, name: str) -> str | None:
    """The command that makes a plan from a text that is no JSON; None if none does."""
    if re.search(r"(?m)^schema:\s*['\"]?headway\.", text):
        return f"{name}: a profile; expected {_EXPECTED}: headway plan {name} --json > plan.json"
    if re.search(r"(?m)^kind:", text):
        return f"{name}: a spec file; plan it first: headway plan {name} --json > plan.json"
    return None


def _of_a_query(plan: AnyAnswer, name: str) -> StreamAnswer:
    if plan.ends:
        raise InputError(
            f"{name}: the plan of a batch job ({plan.deadline}); expected that of a streaming query"
        )
    return plan


def plan_from_json(data: Mapping[str, object]) -> StreamAnswer:
    """A plan from the data of :func:`headway.formats.as_json.plan_json`.

    Numbers have the six digits that were written.

    Raises
    ------
    InputError
        Names the key that is missing or invalid.
    """
    found = At(data, "")
    kind = Plan if found.of("feasible", bool) else InfeasiblePlan
    target, *also = _promises(found)
    if not isinstance(target, Target):
        raise InputError(f"promises[0]: '{target}'; expected the latency that is planned by")
    hints = _hints(kind)
    read: dict[str, Any] = {
        "target": target,
        "also": tuple(also),
        "prediction": read_prediction(found.at("prediction")),
        "findings": _findings(found, words_first=True),
    }
    for field in fields(kind):
        if field.name not in read and (field.name not in _SINCE_LATER or field.name in data):
            read[field.name] = found.of(field.name, hints[field.name])
    if "trigger" not in read["query_options"]:
        raise InputError("query_options.trigger: missing; made by another version?")
    return kind(**read)


def _findings(found: At, *, words_first: bool) -> tuple[Finding, ...]:
    """The findings. Earlier versions had no code for some of them: the texts without a code follow
    the texts of coded findings if ``words_first``, otherwise they precede them."""
    coded: tuple[Finding, ...] = found.of("findings", tuple[Finding, ...])
    texts = found.of("warnings", tuple[str, ...])
    try:
        all_words(coded)
    except KeyError as missing:
        place = found.path("findings")
        raise InputError(f"{place}: a finding without its {missing}") from None
    num_beyond = max(len(texts) - len(coded), 0)
    beyond = texts[len(coded) :] if words_first else texts[:num_beyond]
    earlier = tuple(Finding(code=FindingCode.EARLIER_WORDS, names={"text": one}) for one in beyond)
    return (*coded, *earlier) if words_first else (*earlier, *coded)


@dataclass(frozen=True, slots=True)
class At:
    """A mapping and its position in the file."""

    data: Mapping[str, object]
    place: str

    def at(self, key: str) -> At:
        """A mapping inside."""
        value = self._value(key)
        if not isinstance(value, dict):
            raise InputError(f"{self.path(key)}: expected a mapping")
        return At(value, self.path(key))

    def of(self, key: str, kind: Any) -> Any:
        """A value of a given type."""
        return _read(self._value(key), kind, self.path(key))

    def each(self, key: str) -> tuple[At, ...]:
        """The mappings of a list."""
        values, place = self._value(key), self.path(key)
        if not isinstance(values, list) or not all(isinstance(one, dict) for one in values):
            raise InputError(f"{place}: expected a list of mappings")
        return tuple(At(one, f"{place}[{number}]") for number, one in enumerate(values))

    def noun(self, kind: Any) -> Any:
        """The whole mapping as one noun."""
        return _noun(kind, self)

    def _value(self, key: str) -> object:
        if key not in self.data:
            raise InputError(f"{self.path(key)}: missing; made by another version?")
        return self.data[key]

    def path(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def _deadline_plan(found: At) -> BatchAnswer:
    kind = DeadlinePlan if found.of("feasible", bool) else InfeasibleDeadlinePlan
    had: dict[str, object] = {"findings": []}
    found = At({**had, **found.data}, found.place)
    plan: BatchAnswer = _noun(kind, found)
    plan = replace(plan, findings=_findings(found, words_first=False))
    if "promises" not in found.data:
        return plan
    promises = [kept.promise() for kept in found.of("promises", tuple[KeptPromise, ...])]
    if len(promises) != 1 or not isinstance(promises[0], Deadline):
        raise InputError("promises: expected one deadline")
    return replace(plan, deadline=promises[0])


def _target(found: At) -> Target:
    return _made(
        lambda: Target(
            metric=found.of("metric", Metric),
            quantile=found.of("quantile", float | None),
            limit_s=found.of("limit_s", float),
        ),
        found.place,
    )


def _promises(found: At) -> list[Promise]:
    """The targets of a plan of a stream; plans of earlier versions have all except one as text."""
    promises: list[AnyPromise]
    if "promises" in found.data:
        promises = [kept.promise() for kept in found.of("promises", tuple[KeptPromise, ...])]
    else:
        target, also = _target(found.at("target")), found.of("also", tuple[str, ...])
        promises = [target, *map(parse_promise, also)]
    if not promises:
        raise InputError("promises: none; expected the latency that is planned by")
    return [_of_a_stream(promise) for promise in promises]


def _of_a_stream(promise: AnyPromise) -> Promise:
    if isinstance(promise, Deadline):
        raise InputError(f"'{promise}' is not a promise of a streaming job")
    return promise


def read_prediction(found: At) -> Prediction:
    """A prediction from the data of :func:`headway.formats.as_json.prediction_json`."""
    return Prediction(
        configuration=found.of("configuration", Configuration),
        arrivals=found.of("arrivals", Arrivals),
        stable=found.of("stable", bool),
        utilization_ratio=found.of("utilization", float),
        calibrated=found.of("calibrated", bool),
        batch_duration=_distribution(found, "batch_duration_s"),
        tuple_latency=_distribution(found, "tuple_latency_s"),
        window_latency=_distribution(found, "window_latency_s"),
        phases_s=found.of("phases_s", Mapping[str, float]),
        sustainable_rate_per_s=found.of("sustainable_rate_per_s", float),
        offered_load_ratio=_offered_load_ratio(found),
        overrun_probability=found.of("overrun_probability", float),
        findings=_findings(found, words_first=True),
        provenance=_provenance(found),
        next_run=found.of("next_run", AdvisedRun | None) if "next_run" in found.data else None,
        stage_work=found.of("stage_work", Mapping[str, str]) if "stage_work" in found.data else {},
    )


def _offered_load_ratio(found: At) -> float | None:
    """In plans of earlier versions, the utilisation as fast as possible was the offered load."""
    if "offered_load" in found.data:
        load: float | None = found.of("offered_load", float | None)
        return load
    trigger_s = found.of("configuration", Configuration).trigger_s
    return found.of("utilization", float) if trigger_s == 0 else None


def _provenance(found: At) -> Provenance:
    """Plans of earlier versions lack it: they were made from measured figures, or said so."""
    known = "provenance" in found.data
    return found.of("provenance", Provenance) if known else Provenance.MEASURED


def _distribution(found: At, key: str) -> LatencyDistribution | None:
    if found.data.get(key) is None:
        return None
    one = found.at(key)
    intervals = one.at("interval90")
    return LatencyDistribution(
        mean_s=one.of("mean", float),
        p50_s=one.of("p50", float),
        p95_s=one.of("p95", float),
        p99_s=one.of("p99", float),
        interval90_mean_s=_interval(intervals, "mean"),
        interval90_p99_s=_interval(intervals, "p99"),
    )


def _interval(found: At, key: str) -> Interval | None:
    ends = found.of(key, tuple[float, ...] | None)
    if ends is None:
        return None
    if len(ends) != 2:
        raise InputError(f"{found.place}.{key}: expected two ends")
    return Interval(low=ends[0], high=ends[1])


def _read(value: object, kind: Any, place: str) -> Any:
    """A value of a given type; ``null`` for a number means unbounded."""
    if get_origin(kind) in (Union, UnionType):
        if value is None:
            return None
        (inner,) = (one for one in get_args(kind) if one is not NoneType)
        return _read(value, inner, place)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise InputError(f"{place}: expected a list")
        return tuple(
            _read(each, get_args(kind)[0], f"{place}[{number}]")
            for number, each in enumerate(value)
        )
    if get_origin(kind) is Mapping:
        if not isinstance(value, dict):
            raise InputError(f"{place}: expected a mapping")
        inner = get_args(kind)[1]
        # Counts among numbers stay whole.
        return {
            key: each
            if inner is float and type(each) is int
            else _read(each, inner, f"{place}.{key}")
            for key, each in value.items()
        }
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise InputError(f"{place}: expected a mapping")
        return _noun(kind, At(value, place))
    return _plain(value, kind, place)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _noun(kind: Any, found: At) -> Any:
    hints = _hints(kind)
    keys = {field: field.metadata.get("key", field.name) for field in fields(kind)}
    given = {
        field.name: found.of(key, hints[field.name])
        for field, key in keys.items()
        if key in found.data or field.default is field.default_factory is MISSING
    }
    return _made(lambda: kind(**given), found.place)


def _plain(value: object, kind: Any, place: str) -> Any:
    if kind is float:
        if value is None:
            return math.inf
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        if isinstance(value, str) and value in list(kind):
            return kind(value)
        raise InputError(f"{place}: {value!r} is not one of {', '.join(kind)}")
    elif kind in (str, bool) and isinstance(value, kind):
        return value
    raise InputError(f"{place}: {value!r} is no {kind.__name__}")


def _made(make: Callable[[], Noun], place: str) -> Noun:
    try:
        return make()
    except ValueError as error:
        raise InputError(f"{place}: {error}") from None
