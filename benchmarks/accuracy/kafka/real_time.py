"""Real-Time Mode: what Spark reports, and what the models predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pages import headed
from read_logs import LogsOfRuns

from headway.assumptions.resources import SHUFFLE_MAX_WAIT_S
from headway.models.real_time.latency import RealTimeLatency, real_time_latency
from headway.models.real_time.stages import RealTimeStage, required_slots
from headway.units import ms_to_s
from kafka.cases import Job
from kafka.runs import Record

FITTED = (Job.TRANSFORM, 4)
"""Job and partitions of the run on which the time of a row through fetch and send is fitted."""

# Work per row; at these rates a task is busy for a few hundredths of the time, so twice as much
# would make no visible difference.
ROW_S = 3e-5
_BEFORE_TASKS = ("latestOffset", "walCommit", "getBatch", "queryPlanning")
_ROW_CV = 1.0
_LEVELS = np.array([0.5, 0.95, 0.99])

_PREFACE = """\
Trigger `realTime` of 5 s, which is the duration of a batch; RocksDB, checkpoint format 2;
`local[8]` on the same two cores, since every task of every stage needs a slot all the time.
Latency is measured from the producer's stamp to the broker's stamp in the topic that the query
writes. This Spark reports batches of Real-Time Mode like any others; with this connector, their
progress contains no latencies. Its fields:
{fields}.

The model is theory.md (N1)-(N7): work row by row, a shuffle that sends every {flush:.0f} ms, and
gaps between batches in which nothing is read. A batch reads until 5 s after its plan was made,
whenever its tasks began. So a gap has three parts: the time by which the next batch starts later
than 5 s after the one before, the time from its plan until its first task is launched (event
log), and the time until a state store is loaded (progress, `rocksdbLoadLatencyMs` over the number
of stores). Each prediction uses the run's own gap, which its event log shows and which contains
no latency. One number is fitted, on {fitted}: the time that a row takes through fetch and send
({base:.0f} ms, its median). Everything else is predicted.
"""


_GAPS = """\
The parts of the gap of each run, and the gap with which its p99 would be predicted correctly.
Behind a shuffle, latencies are uniform between 0 and 50 ms, as in (N5); p99 is due to the gaps.
"""


class Gap(NamedTuple):
    """Time between two batches in which no row is read. [s]"""

    late_s: float
    launch_s: float
    state_load_s: float


def judge_real_time(records: Sequence[Record]) -> list[Record]:
    """The records with predictions; unchanged if the fitted run is not among them."""
    fitted = next((run for run in records if _is_fitted(run)), None)
    if fitted is None:
        return list(records)
    base_s = fitted["to_append_s"]["p50"]
    return [
        run if "failed" in run else {**run, "predicted": _predicted(run, base_s)} for run in records
    ]


def with_launches(records: Sequence[Record], log: LogsOfRuns) -> list[Record]:
    """The records with how long after its planning each batch launched its first task. [s]"""
    launched_s: dict[tuple[str, int], float] = {}
    for stage in log.collected.stage_runs:
        if stage["query_id"] is not None and stage["first_launch_s"] is not None:
            batch = (stage["query_id"], stage["batch_id"])
            launched_s[batch] = min(launched_s.get(batch, np.inf), stage["first_launch_s"])
    return [
        run
        if "failed" in run
        else {
            **run,
            "launch_s": [
                launched_s[run["query_id"], batch["batch_id"]]
                - batch["begun_epoch_s"]
                - ms_to_s(sum(batch["duration_ms"].get(phase, 0) for phase in _BEFORE_TASKS))
                for batch in run["batches"]
                if (run["query_id"], batch["batch_id"]) in launched_s
            ],
        }
        for run in records
    ]


def gap_of(run: Record) -> Gap:
    """How late batches start, and how long a new one takes until it reads a row."""
    starts = [batch["started_s"] for batch in run["batches"]]
    between_s = (starts[-1] - starts[0]) / max(len(starts) - 1, 1)
    return Gap(
        late_s=max(between_s - float(run["case"]["trigger_s"]), 0.0),
        launch_s=float(np.mean(run["launch_s"])),
        state_load_s=_state_load_s(run),
    )


def _state_load_s(run: Record) -> float:
    """How long a state store was loaded, on average over batches; 0 without state. [s]"""
    loads_ms = [
        operator["customMetrics"]["rocksdbLoadLatencyMs"] / operator["numStateStoreInstances"]
        for batch in run["batches"]
        for operator in batch["state"]
    ]
    return ms_to_s(float(np.mean(loads_ms))) if loads_ms else 0.0


def _is_fitted(run: Record) -> bool:
    # One batch alone shows no gap.
    return (
        len(run.get("batches", ())) > 1
        and (run["case"]["job"], run["case"]["partitions"]) == FITTED
    )


def _predicted(run: Record, base_s: float) -> Record:
    gap_s = sum(gap_of(run))
    law = _law(run, gap_s)
    p50_s, p95_s, p99_s = (base_s + float(value) for value in law.quantile_s(_LEVELS))
    return {
        "slots": required_slots(_stages(run)),
        "base_s": base_s,
        "gap_s": gap_s,
        "mean": base_s + law.mean_s,
        "p50": p50_s,
        "p95": p95_s,
        "p99": p99_s,
        "implied_gap_s": _implied_gap_s(run, base_s),
    }


def _stages(run: Record) -> list[RealTimeStage]:
    tasks = [run["case"]["partitions"]]
    if run["case"]["job"] != Job.TRANSFORM:
        tasks.append(run["shuffle_partitions"])
    return [RealTimeStage(num_tasks=number, row_s=ROW_S, row_cv=_ROW_CV) for number in tasks]


def _law(run: Record, gap_s: float) -> RealTimeLatency:
    return real_time_latency(
        run["case"]["rate_per_s"],
        _stages(run),
        trigger_s=run["case"]["trigger_s"],
        gap_s=gap_s,
    )


def _implied_gap_s(run: Record, base_s: float) -> float:
    """The gap at which the p99 is predicted right, to a millisecond; by halving."""
    low_s, high_s = 0.0, float(run["case"]["trigger_s"])
    while high_s - low_s > 1e-3:
        middle_s = 0.5 * (low_s + high_s)
        predicted_s = base_s + float(_law(run, middle_s).quantile_s(0.99))
        low_s, high_s = (
            (middle_s, high_s) if predicted_s < run["to_append_s"]["p99"] else (low_s, middle_s)
        )
    return 0.5 * (low_s + high_s)


def real_time_section(runs: Sequence[Record]) -> Iterator[str]:
    """What ran, predicted and measured."""
    yield "## Real-Time Mode"
    yield ""
    predicted_values = [run for run in runs if "predicted" in run]
    if predicted_values:
        first = predicted_values[0]["predicted"]
        yield _PREFACE.format(
            fields=", ".join(predicted_values[0]["progress_fields"]),
            flush=1e3 * SHUFFLE_MAX_WAIT_S.value,
            fitted=next(run["name"] for run in predicted_values if _is_fitted(run)),
            base=1e3 * first["base_s"],
        )
        yield from _table(predicted_values)
        yield ""
        yield _GAPS
        yield from _gaps(predicted_values)
        yield ""
    for run in runs:
        if "failed" in run:
            yield f"* {run['name']}: no figures: {run['failed']}"


def _table(predicted_values: Sequence[Record]) -> Iterator[str]:
    figures = ("mean", "p50", "p95", "p99")
    yield from headed(
        "| run | rows | slots "
        + "".join(f"| {name}: predicted | measured | error " for name in figures)
        + "|"
    )
    for run in predicted_values:
        cells = [
            run["name"] + (" (fitted)" if _is_fitted(run) else ""),
            str(run["to_append_s"]["num_rows"]),
            str(run["predicted"]["slots"]),
        ]
        for name in figures:
            value_s, measured_s = run["predicted"][name], run["to_append_s"][name]
            cells += [
                f"{1e3 * value_s:.0f} ms",
                f"{1e3 * measured_s:.0f} ms",
                f"{value_s / measured_s - 1:+.0%}",
            ]
        yield "| " + " | ".join(cells) + " |"


def _gaps(predicted_values: Sequence[Record]) -> Iterator[str]:
    yield from headed("| run | late | to the first task | state | gap | gap implied by p99 |")
    for run in predicted_values:
        predicted = run["predicted"]
        parts_s = (*gap_of(run), predicted["gap_s"], predicted["implied_gap_s"])
        cells = " | ".join(f"{1e3 * part_s:.0f} ms" for part_s in parts_s)
        yield f"| {run['name']} | {cells} |"
