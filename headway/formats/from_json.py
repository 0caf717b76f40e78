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
    document = At(data, "")
    kind = Plan if document.of("feasible", bool) else InfeasiblePlan
    target, *further_targets = _promises(document)
    if not isinstance(target, Target):
        raise InputError(f"promises[0]: '{target}'; expected the latency that is planned by")
    hints = _hints(kind)
    arguments: dict[str, Any] = {
        "target": target,
        "also": tuple(further_targets),
        "prediction": read_prediction(document.at("prediction")),
        "findings": _findings(document, words_first=True),
    }
    for field in fields(kind):
        if field.name not in arguments and (field.name not in _SINCE_LATER or field.name in data):
            arguments[field.name] = document.of(field.name, hints[field.name])
    if "trigger" not in arguments["query_options"]:
        raise InputError("query_options.trigger: missing; made by another version?")
    return kind(**arguments)


def _findings(mapping: At, *, words_first: bool) -> tuple[Finding, ...]:
    """The findings. Earlier versions had no code for some of them: the texts without a code follow
    the texts of coded findings if ``words_first``, otherwise they precede them."""
    coded: tuple[Finding, ...] = mapping.of("findings", tuple[Finding, ...])
    texts = mapping.of("warnings", tuple[str, ...])
    try:
        all_words(coded)
    except KeyError as missing:
        path = mapping.path("findings")
        raise InputError(f"{path}: a finding without its {missing}") from None
    num_uncoded = max(len(texts) - len(coded), 0)
    uncoded_texts = texts[len(coded) :] if words_first else texts[:num_uncoded]
    earlier = tuple(
        Finding(code=FindingCode.EARLIER_WORDS, names={"text": text}) for text in uncoded_texts
    )
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
        values, path = self._value(key), self.path(key)
        if not isinstance(values, list) or not all(isinstance(element, dict) for element in values):
            raise InputError(f"{path}: expected a list of mappings")
        return tuple(At(element, f"{path}[{number}]") for number, element in enumerate(values))

    def noun(self, kind: Any) -> Any:
        """The whole mapping as one noun."""
        return _noun(kind, self)

    def _value(self, key: str) -> object:
        if key not in self.data:
            raise InputError(f"{self.path(key)}: missing; made by another version?")
        return self.data[key]

    def path(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def _deadline_plan(document: At) -> BatchAnswer:
    kind = DeadlinePlan if document.of("feasible", bool) else InfeasibleDeadlinePlan
    defaults: dict[str, object] = {"findings": []}
    document = At({**defaults, **document.data}, document.place)
    plan: BatchAnswer = _noun(kind, document)
    plan = replace(plan, findings=_findings(document, words_first=False))
    if "promises" not in document.data:
        return plan
    promises = [
        kept_promise.promise() for kept_promise in document.of("promises", tuple[KeptPromise, ...])
    ]
    if len(promises) != 1 or not isinstance(promises[0], Deadline):
        raise InputError("promises: expected one deadline")
    return replace(plan, deadline=promises[0])


def _target(mapping: At) -> Target:
    return _made(
        lambda: Target(
            metric=mapping.of("metric", Metric),
            quantile=mapping.of("quantile", float | None),
            limit_s=mapping.of("limit_s", float),
        ),
        mapping.place,
    )


def _promises(document: At) -> list[Promise]:
    """The targets of a plan of a stream; plans of earlier versions have all except one as text."""
    promises: list[AnyPromise]
    if "promises" in document.data:
        promises = [
            kept_promise.promise()
            for kept_promise in document.of("promises", tuple[KeptPromise, ...])
        ]
    else:
        target, further_texts = _target(document.at("target")), document.of("also", tuple[str, ...])
        promises = [target, *map(parse_promise, further_texts)]
    if not promises:
        raise InputError("promises: none; expected the latency that is planned by")
    return [_of_a_stream(promise) for promise in promises]


def _of_a_stream(promise: AnyPromise) -> Promise:
    if isinstance(promise, Deadline):
        raise InputError(f"'{promise}' is not a promise of a streaming job")
    return promise


def read_prediction(mapping: At) -> Prediction:
    """A prediction from the data of :func:`headway.formats.as_json.prediction_json`."""
    return Prediction(
        configuration=mapping.of("configuration", Configuration),
        arrivals=mapping.of("arrivals", Arrivals),
        stable=mapping.of("stable", bool),
        utilization_ratio=mapping.of("utilization", float),
        calibrated=mapping.of("calibrated", bool),
        batch_duration=_distribution(mapping, "batch_duration_s"),
        tuple_latency=_distribution(mapping, "tuple_latency_s"),
        window_latency=_distribution(mapping, "window_latency_s"),
        phases_s=mapping.of("phases_s", Mapping[str, float]),
        sustainable_rate_per_s=mapping.of("sustainable_rate_per_s", float),
        offered_load_ratio=_offered_load_ratio(mapping),
        overrun_probability=mapping.of("overrun_probability", float),
        findings=_findings(mapping, words_first=True),
        provenance=_provenance(mapping),
        next_run=mapping.of("next_run", AdvisedRun | None) if "next_run" in mapping.data else None,
        stage_work=mapping.of("stage_work", Mapping[str, str])
        if "stage_work" in mapping.data
        else {},
    )


def _offered_load_ratio(mapping: At) -> float | None:
    """In plans of earlier versions, the utilisation as fast as possible was the offered load."""
    if "offered_load" in mapping.data:
        load: float | None = mapping.of("offered_load", float | None)
        return load
    trigger_s = mapping.of("configuration", Configuration).trigger_s
    return mapping.of("utilization", float) if trigger_s == 0 else None


def _provenance(mapping: At) -> Provenance:
    """Plans of earlier versions lack it: they were made from measured figures, or said so."""
    has_provenance = "provenance" in mapping.data
    return mapping.of("provenance", Provenance) if has_provenance else Provenance.MEASURED


def _distribution(mapping: At, key: str) -> LatencyDistribution | None:
    if mapping.data.get(key) is None:
        return None
    distribution = mapping.at(key)
    intervals = distribution.at("interval90")
    return LatencyDistribution(
        mean_s=distribution.of("mean", float),
        p50_s=distribution.of("p50", float),
        p95_s=distribution.of("p95", float),
        p99_s=distribution.of("p99", float),
        interval90_mean_s=_interval(intervals, "mean"),
        interval90_p99_s=_interval(intervals, "p99"),
    )


def _interval(mapping: At, key: str) -> Interval | None:
    bounds = mapping.of(key, tuple[float, ...] | None)
    if bounds is None:
        return None
    if len(bounds) != 2:
        raise InputError(f"{mapping.place}.{key}: expected two ends")
    return Interval(low=bounds[0], high=bounds[1])


def _read(value: object, kind: Any, path: str) -> Any:
    """A value of a given type; ``null`` for a number means unbounded."""
    if get_origin(kind) in (Union, UnionType):
        if value is None:
            return None
        (inner,) = (member for member in get_args(kind) if member is not NoneType)
        return _read(value, inner, path)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise InputError(f"{path}: expected a list")
        return tuple(
            _read(element, get_args(kind)[0], f"{path}[{number}]")
            for number, element in enumerate(value)
        )
    if get_origin(kind) is Mapping:
        if not isinstance(value, dict):
            raise InputError(f"{path}: expected a mapping")
        inner = get_args(kind)[1]
        # Counts among numbers stay whole.
        return {
            key: member
            if inner is float and type(member) is int
            else _read(member, inner, f"{path}.{key}")
            for key, member in value.items()
        }
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise InputError(f"{path}: expected a mapping")
        return _noun(kind, At(value, path))
    return _plain(value, kind, path)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _noun(kind: Any, mapping: At) -> Any:
    hints = _hints(kind)
    keys = {field: field.metadata.get("key", field.name) for field in fields(kind)}
    arguments = {
        field.name: mapping.of(key, hints[field.name])
        for field, key in keys.items()
        if key in mapping.data or field.default is field.default_factory is MISSING
    }
    return _made(lambda: kind(**arguments), mapping.place)


def _plain(value: object, kind: Any, path: str) -> Any:
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
        raise InputError(f"{path}: {value!r} is not one of {', '.join(kind)}")
    elif kind in (str, bool) and isinstance(value, kind):
        return value
    raise InputError(f"{path}: {value!r} is no {kind.__name__}")


def _made(make: Callable[[], Noun], path: str) -> Noun:
    try:
        return make()
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
