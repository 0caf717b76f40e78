"""Runs as they are committed: what every batch showed, so that others can fit without running.

A line holds what was measured of a run, and its steady batches as columns: rows, phases, and of
each stage the number of tasks, their mean, spread, covariance with their rows, and span. Numbers
have five digits. `kept_run` and `run_of` are inverse to each other, but for the digits.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.domain import (
    Coalescing,
    Configuration,
    EventTimeWindow,
    QueryShape,
    StatefulOperator,
    StateOperatorProfile,
)
from headway.profiler.operators import Operator
from headway.profiler.streaming.samples import (
    ArrivalSeries,
    BatchSample,
    EarlyBatch,
    QueryRun,
    StageSample,
    StateSample,
)
from headway.profiler.streaming.stage_kinds import StageKind

Row = dict[str, Any]
_DIGITS = 5
_AS_THEY_ARE = ("batch_id", "started_s")
_ADAPTIVE = ("advisory_bytes", "smallest_bytes", "parallelism", "initial_partitions")


def write_lines(path: Path, rows: Iterable[Row]) -> int:
    """How many lines were written; the same rows make the same file."""
    lines = [json.dumps(row, separators=(",", ":")) + "\n" for row in rows]
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return len(lines)


def read_lines(path: Path) -> Iterator[Row]:
    """The lines of a file of `write_lines`; none if there is no such file yet."""
    if path.exists():
        for line in gzip.decompress(path.read_bytes()).splitlines():
            yield json.loads(line)


def kept_run(run: QueryRun) -> Row:
    """A run as JSON."""
    return {
        "query_id": run.query_id,
        "query_name": run.query_name,
        "shape": asdict(run.shape),
        "configuration": asdict(run.configuration),
        "rate_per_s": run.rate_per_s,
        "dispersion_ratio": run.arrivals.dispersion_ratio,
        "num_cut": run.num_cut,
        "pinned_state_partitions": run.pinned_state_partitions,
        "source_partitions": run.source_partitions,
        "state_store": run.state_store,
        "mean_file": run.mean_file,
        "adaptive": run.adaptive and [getattr(run.adaptive, name) for name in _ADAPTIVE],
        "batches": _columns(run.batches),
        "without_rows": _columns(run.without_rows),
        "early": [asdict(batch) for batch in run.early],
    }


def run_of(kept: Row) -> QueryRun:
    """The run again; its arrivals have the same rate and dispersion, and no other detail."""
    shape = {name: _as_tuple(value) for name, value in kept["shape"].items()}
    shape["windows"] = tuple(_window(one) for one in kept["shape"]["windows"] or ())
    shape["chain"] = tuple(_operator(part) for part in kept["shape"].get("chain") or ())
    configuration = Configuration(**kept["configuration"])
    return QueryRun(
        query_id=kept["query_id"],
        query_name=kept["query_name"],
        shape=QueryShape(**shape),
        configuration=configuration,
        arrivals=_arrivals(kept["rate_per_s"], kept["dispersion_ratio"] or 0.0),
        rate_per_s=kept["rate_per_s"],
        num_cut=kept["num_cut"],
        pinned_state_partitions=kept.get("pinned_state_partitions"),
        source_partitions=kept["source_partitions"],
        state_store=kept.get("state_store"),
        mean_file=_as_tuple(kept.get("mean_file")) or None,
        adaptive=_adaptive(kept["adaptive"], configuration) if kept.get("adaptive") else None,
        batches=_batches(kept["batches"]),
        early=tuple(EarlyBatch(**batch) for batch in kept["early"]),
        without_rows=_batches(kept["without_rows"]),
    )


def _adaptive(settings: Sequence[int | None], configuration: Configuration) -> Coalescing:
    by_name: Row = dict(zip(_ADAPTIVE, settings, strict=True))
    return Coalescing(exchange_bytes_per_row=0.0, task_cpus=configuration.task_cpus, **by_name)


def _operator(kept: Row) -> StatefulOperator:
    plain = {name: _as_tuple(value) for name, value in kept.items()}
    return StatefulOperator(**{**plain, "windows": tuple(map(_window, kept["windows"]))})


def _window(kept: Row) -> EventTimeWindow:
    return EventTimeWindow(**kept)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _arrivals(rate_per_s: float, dispersion_ratio: float) -> ArrivalSeries:
    """Two seconds of the rate, as far apart as the dispersion says."""
    apart = np.sqrt(dispersion_ratio * rate_per_s)
    return ArrivalSeries(
        counted="rows",
        arrived_rows=np.array([rate_per_s + apart, rate_per_s - apart]),
        interval_s=np.ones(2),
        lag_rows=None,
        partition_rows={},
    )


def _columns(batches: Sequence[BatchSample]) -> Row:
    """Field by field; phases, states and stages as columns of their own."""
    if not batches:
        return {}
    plain = [field.name for field in fields(BatchSample) if field.name not in _NESTED]
    return {
        **{name: _values(batches, name) for name in plain},
        "phases_s": {
            name: [_short(batch.phases_s.get(name, 0.0)) for batch in batches]
            for name in dict.fromkeys(name for batch in batches for name in batch.phases_s)
        },
        "state": _state_columns([batch.state for batch in batches]),
        "stages": [
            _of_each([batch.stages[place] for batch in batches], StageSample)
            | {_COMPUTES: _computes(batches[0].stages[place])}
            for place in range(len(batches[0].stages))
        ],
    }


def _computes(stage: StageSample) -> Row:
    """What tells the stage apart and names it, the same in all batches."""
    kind = None if stage.kind is None else list(stage.kind)
    return {"kind": kind, "operators": [list(operator) for operator in stage.operators]}


def _what_it_computes(columns: Row) -> dict[str, Any]:
    """The inverse; nothing in lines from before it was written."""
    computes = columns.get(_COMPUTES)
    if computes is None:
        return {}
    kind = computes["kind"]
    return {
        "kind": None if kind is None else StageKind(*map(_as_tuple, kind)),
        "operators": tuple(Operator(*operator) for operator in computes["operators"]),
    }


_NESTED = ("phases_s", "state", "stages")
_COMPUTES = "computes"
# Of a stage they are the same in all batches; of a state, each operator has columns of its own.
_ONLY_WHILE_READING = ("kind", "operators", "store_metrics")


def _state_columns(states: Sequence[StateSample]) -> Row:
    """Of a state; several operators, of which each stage has its own, have columns of their own."""
    num_operators = {len(state.operators) for state in states}
    several = range(num_operators.pop()) if len(num_operators) == 1 else range(0)
    operators = [
        _of_each([state.operators[place] for state in states], StateOperatorProfile)
        for place in several
    ]
    columns = _of_each(states, StateSample)
    return columns if len(operators) < 2 else columns | {"operators": operators}


def _states(columns: Row, number: int) -> list[StateSample]:
    plain = {name: values for name, values in columns.items() if name != "operators"}
    operators = [
        _samples(of_operator, number, StateOperatorProfile)
        for of_operator in columns.get("operators", ())
    ]
    return [
        replace(state, operators=tuple(samples[place] for samples in operators))
        for place, state in enumerate(_samples(plain, number, StateSample))
    ]


def _of_each(samples: Sequence[Any], kind: type) -> Row:
    names = [field.name for field in fields(kind) if field.name not in _ONLY_WHILE_READING]
    return {name: _values(samples, name) for name in names}


def _values(samples: Sequence[Any], name: str) -> list[Any]:
    """A column; one value stands for all where they are alike."""
    values = [getattr(sample, name) for sample in samples]
    if name not in _AS_THEY_ARE:
        values = [_short(value) for value in values]
    return values[:1] if all(value == values[0] for value in values) else values


def _short(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _batches(columns: Row) -> tuple[BatchSample, ...]:
    if not columns:
        return ()
    number = max(len(columns["batch_id"]), len(columns["started_s"]))
    plain = {name: _all(values, number) for name, values in columns.items() if name not in _NESTED}
    states = _states(columns["state"], number)
    stages = [_stage_samples(one, number) for one in columns["stages"]]
    return tuple(
        BatchSample(
            **{name: values[place] for name, values in plain.items()},
            phases_s={name: values[place] for name, values in columns["phases_s"].items()},
            state=states[place],
            stages=tuple(one[place] for one in stages),
        )
        for place in range(number)
    )


def _stage_samples(columns: Row, number: int) -> list[StageSample]:
    computes = _what_it_computes(columns)
    plain = {name: values for name, values in columns.items() if name != _COMPUTES}
    return [replace(sample, **computes) for sample in _samples(plain, number, StageSample)]


def _samples(columns: Row, number: int, kind: Any) -> list[Any]:
    full = {name: _all(values, number) for name, values in columns.items()}
    return [kind(**{name: full[name][place] for name in full}) for place in range(number)]


def _all(values: list[Any], number: int) -> list[Any]:
    return values * number if len(values) == 1 else values
