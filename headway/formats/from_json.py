"""Plans and other results read back from the JSON that commands print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import headway.domain as domain
from headway.domain.kept_promise import KeptPromise
from headway.domain.sheet import Sheet
from headway.errors import InputError
from headway.formats.as_json import DEADLINE_SCHEMA, PLAN_SCHEMA
from headway.formats.codec import noun_of, value_of
from headway.formats.own_files import parse_json, path_of, read_whole_text
from headway.redaction import one_line
from headway.words import all_words

AnyResult: TypeAlias = domain.AnyAnswer | domain.Backtest | domain.Playback | domain.Prediction
# What promises say, too, and what plans of earlier versions do not hold.
_MAY_BE_MISSING = (
    *("target", "also", "declared", "after_start", "skew", "rates", "writes", "driver"),
    "source_partitions",
)
_PLAN = "a plan as 'headway plan --json' prints it"
_RESULT = "a profile, or what a command such as 'headway plan' prints with --json"
_MOST_BYTES = 64 * 2**20
_NOUNS: Mapping[str, type[domain.Backtest | domain.Playback | domain.Prediction]] = {
    f"headway.{noun.result_kind}/v1": noun
    for noun in (domain.Backtest, domain.Playback, domain.Prediction)
}


def load_plan(path: str | Path) -> domain.StreamAnswer:
    """A plan of a streaming query as it was printed by ``headway plan --json``.

    Raises InputError if the file cannot be read or is no such plan; names the position in it.

    >>> load_plan("no/such/plan.json")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: no/such/plan.json: no such file; expected a plan as 'headway plan...
    """
    return _of_a_query(load_any_plan(path), str(path))


def load_any_plan(path: str | Path) -> domain.AnyAnswer:
    """As `load_plan`, or the plan of a batch job."""
    file = path_of(path, expected=_PLAN)
    text = read_whole_text(file, expected=_PLAN, largest_bytes=_MOST_BYTES)
    return parse_any_plan(text, name=str(path))


def load_result(path: str | Path) -> AnyResult | Sheet:
    """A result from the JSON of its command, or the sheet in it if it is read for nothing else.

    Raises InputError if the file cannot be read or is none of these; names the position in it.
    """
    name = str(path)
    text = read_whole_text(Path(path), expected=_RESULT, largest_bytes=_MOST_BYTES)
    data = parse_json(text, name=name, expected=_RESULT)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema in (PLAN_SCHEMA, DEADLINE_SCHEMA):
        return parse_any_plan(text, name=name)
    try:
        if isinstance(schema, str) and schema in _NOUNS:
            result = noun_of(in_todays_form(data), _NOUNS[schema])
            runs = result.runs if isinstance(result, domain.Backtest) else ()
            predictions = [result] if isinstance(result, domain.Prediction) else []
            for prediction in (*predictions, *(run.prediction for run in runs)):
                require_words(prediction.findings, "predicted.findings")
            return result
        if isinstance(schema, str) and "sheet" in data:
            return noun_of(data["sheet"], Sheet)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    schema_text = f"schema {schema}" if isinstance(schema, str) else "no schema of Headway's"
    raise InputError(f"{name}: {schema_text}; expected {_RESULT}")


def parse_plan(text: str, *, name: str) -> domain.StreamAnswer:
    """As `load_plan`, from the text of its JSON; messages call it ``name``."""
    return _of_a_query(parse_any_plan(text, name=name), name)


def parse_any_plan(text: str, *, name: str) -> domain.AnyAnswer:
    """As `parse_plan`, or the plan of a batch job."""
    try:
        data = parse_json(text, name=name, expected=_PLAN)
    except InputError as error:
        raise InputError(_not_a_plan(text, one_line(name)) or str(error)) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    try:
        if schema == DEADLINE_SCHEMA:
            return _deadline_plan(data)
        if schema == PLAN_SCHEMA:
            return plan_from_json(data)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    raise InputError(f"{name}: no {PLAN_SCHEMA}; expected {_PLAN}")


def _not_a_plan(text: str, name: str) -> str | None:
    """The command that makes a plan from a text that is no JSON; None if none does."""
    if re.search(r"(?m)^schema:\s*['\"]?headway\.", text):
        return f"{name}: a profile; expected {_PLAN}: headway plan {name} --json > plan.json"
    if re.search(r"(?m)^kind:", text):
        return f"{name}: a spec file; plan it first: headway plan {name} --json > plan.json"
    return None


def _of_a_query(plan: domain.AnyAnswer, name: str) -> domain.StreamAnswer:
    if plan.ends:
        raise InputError(
            f"{name}: the plan of a batch job ({plan.deadline}); expected that of a streaming query"
        )
    return plan


def plan_from_json(data: Mapping[str, object]) -> domain.StreamAnswer:
    """A plan from the data of :func:`headway.formats.as_json.plan_json`, with its six digits."""
    kind: type[domain.StreamAnswer] = (
        domain.Plan if value_of(data, "feasible", bool) else domain.InfeasiblePlan
    )
    target, *further_targets = _targets(data)
    if not isinstance(target, domain.Target):
        raise InputError(f"promises[0]: '{target}'; expected the latency that is planned by")
    for field in fields(kind):
        is_written = field.metadata.get("key", field.name) is not None
        if is_written and field.name not in (*data, *_MAY_BE_MISSING):
            raise InputError(f"{field.name}: missing; made by another version?")
    plan = noun_of(in_todays_form(data), kind, target=target, also=tuple(further_targets))
    require_words(plan.findings, "findings")
    require_words(plan.prediction.findings, "prediction.findings")
    if "trigger" not in plan.query_options:
        raise InputError("query_options.trigger: missing; made by another version?")
    return plan


def _targets(data: Mapping[str, object]) -> list[domain.Promise]:
    if "promises" in data:
        targets = _kept_promises(data)
    else:  # All except one are texts in a plan of an earlier version.
        further_texts = value_of(data, "also", tuple[str, ...])
        targets = [
            value_of(data, "target", domain.Target),
            *map(domain.parse_promise, further_texts),
        ]
    for target in targets:
        if isinstance(target, domain.Deadline):
            raise InputError(f"'{target}' is not a promise of a streaming job")
    if not targets:
        raise InputError("promises: none; expected the latency that is planned by")
    return cast("list[domain.Promise]", targets)


def _kept_promises(data: Mapping[str, object]) -> list[domain.AnyPromise]:
    kept_promises = value_of(data, "promises", tuple[KeptPromise, ...])
    return [kept_promise.promise() for kept_promise in kept_promises]


def _deadline_plan(data: Mapping[str, object]) -> domain.BatchAnswer:
    plan = noun_of(in_todays_form(data, words_first=False), domain.DeadlinePlan)
    require_words(plan.findings, "findings")
    if "promises" not in data:
        return plan
    match _kept_promises(data):
        case [domain.Deadline() as deadline]:
            return replace(plan, deadline=deadline)
    raise InputError("promises: expected one deadline")


def in_todays_form(data: Any, *, words_first: bool = True) -> Any:
    """Data of plans and predictions that earlier versions wrote, as this one writes them.

    Some findings had no code, only a text: these texts follow those of the coded findings if
    ``words_first``, otherwise they precede them. The utilisation as fast as possible was the
    offered load.
    """
    if isinstance(data, list):
        return [in_todays_form(item, words_first=words_first) for item in data]
    if not isinstance(data, dict):
        return data
    data = {key: in_todays_form(value, words_first=words_first) for key, value in data.items()}
    findings, texts, setting = (
        data.get(key, []) for key in ("findings", "warnings", "configuration")
    )
    if isinstance(findings, list) and isinstance(texts, list) and len(texts) > len(findings):
        uncoded = texts[len(findings) :] if words_first else texts[: len(texts) - len(findings)]
        earlier = [
            {"code": domain.FindingCode.EARLIER_WORDS, "names": {"text": text}} for text in uncoded
        ]
        data["findings"] = [*findings, *earlier] if words_first else [*earlier, *findings]
    if isinstance(setting, dict) and setting.get("trigger_s") == 0 and "utilization" in data:
        data.setdefault("offered_load", data["utilization"])
    return data


def require_words(findings: Iterable[domain.Finding], path: str) -> None:
    try:
        all_words(findings)
    except KeyError as missing:
        raise InputError(f"{path}: a finding without its {missing}") from None
    except OverflowError:
        raise InputError(f"{path}: a finding with an unbounded count") from None
    except (TypeError, ValueError):
        raise InputError(f"{path}: a finding with figures that it cannot have") from None
