"""How far the same batch lies apart, and fixed work beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from pages import headed

from campaign.figures import (
    GOAL_MEAN_RATIO,
    GOAL_P99_RATIO,
    Row,
    is_judged,
    median_size,
    regimes,
    share_within,
)
from campaign.fixed_work import KINDS
from headway.models.arrays import Array

GOALS = {"mean": GOAL_MEAN_RATIO, "p99": GOAL_P99_RATIO}
_TOGETHER_S = 15.0
_LEAST_RUNS = 5
_NAMES = {
    "duration_s": "the batch",
    "interpreter_s": "a loop of the interpreter",
    "memory_s": "a copy of 16 MB",
    "hash_s": "a hash of 4 MB",
}


def speed_table(rows: Sequence[Row]) -> Iterator[str]:
    """Spreads of single values and of means over some seconds, and how means go together."""
    kept = [row for row in rows if all(name in row for name in ("duration_s", *KINDS))]
    logs = np.log([[row[name] for name in _NAMES] for row in kept])
    place = np.array([int(row["begun_s"] // _TOGETHER_S) for row in kept])
    means = np.array([logs[place == one].mean(axis=0) for one in np.unique(place)])
    together = np.corrcoef(means.T)[0]
    durations_s = [row["duration_s"] for row in kept]
    yield (
        f"{len(kept)} batches with the same rows, one after the other in one JVM, within "
        f"{(kept[-1]['begun_s'] - kept[0]['begun_s']) / 60:.0f} minutes. They took "
        f"{min(durations_s):.2f} to {max(durations_s):.2f} s. Beside them, fixed work that has "
        "nothing to do with Spark was done once a second, and its CPU time measured. Standard "
        "deviations are those of logarithms."
    )
    yield ""
    yield from headed(
        f"| | standard deviation | of means over {_TOGETHER_S:.0f} s "
        "| correlation of these with the batch |"
    )
    for name, single, mean, shared in zip(
        _NAMES.values(), _spread(logs), _spread(means), together, strict=True
    ):
        yield f"| {name} | {100 * single:.1f}% | {100 * mean:.1f}% | {shared:.2f} |"
    yield ""


def speed_beside_runs(rows: Sequence[Row]) -> Iterator[str]:
    """How errors of the duration go with fixed work, in the runs beside which it was done."""
    seen = [row for row in rows if row.get("fixed_work") and row.get("parts")]
    if len(seen) < _LEAST_RUNS:
        return
    predicted_s, measured_s = np.array([row["parts"]["duration"] for row in seen]).T
    errors = np.log(predicted_s / measured_s)
    loops = np.log([row["fixed_work"]["interpreter_s"] for row in seen])
    names = sorted({row["workload"] for row in seen})
    of = np.array([names.index(row["workload"]) for row in seen])
    # A fit has taken in how fast the machine was in its own runs.
    loops -= np.array([loops[of == place].mean() for place in range(len(names))])[of]
    yield (
        f"The same fixed work was done beside {len(seen)} judged runs ({', '.join(names)}). The "
        f"error of their durations is {100 * np.sqrt(np.mean(errors**2)):.1f}% (root mean square), "
        f"and its correlation with the loop of the interpreter is "
        f"{np.corrcoef(errors, loops)[0, 1]:.2f}."
    )
    yield ""


def corrected_by_speed(rows: Sequence[Row]) -> Iterator[str]:
    """Errors of durations as they are, and with the machine as fast as on average beside a job."""
    seen = [row for row in rows if row.get("fixed_work") and row.get("parts")]
    if len(seen) < _LEAST_RUNS:
        return
    loops_s = {name: _mean_loop_s(seen, name) for name in {row["workload"] for row in seen}}
    plain, corrected = [], []
    for row in seen:
        predicted_s, measured_s = row["parts"]["duration"]
        slower = row["fixed_work"]["interpreter_s"] / loops_s[row["workload"]]
        plain.append(abs(predicted_s / measured_s - 1.0))
        corrected.append(abs(slower * predicted_s / measured_s - 1.0))
    yield (
        f"Corrected for the speed of the machine during these {len(seen)} runs (predicted "
        "durations times the duration of the loop beside the run over its mean beside all runs of "
        f"the job), the median error is {100 * np.median(corrected):.1f}% instead of "
        f"{100 * np.median(plain):.1f}%, and "
        f"{100 * np.mean(np.array(corrected) <= 0.1):.0f}% instead of "
        f"{100 * np.mean(np.array(plain) <= 0.1):.0f}% within 10%."
    )
    yield ""


def latencies_by_speed(rows: Sequence[Row], goals: Mapping[str, float] = GOALS) -> Iterator[str]:
    """Errors of latencies as they are, and predicted for the speed that the machine had."""
    judged = [row for row in rows if is_judged(row) and row["predicted"].get("at_speed")]
    if len(judged) < _LEAST_RUNS:
        return
    yield (
        "The same for latencies: all predicted durations are multiplied by the duration of the "
        "loop beside the judged run over its mean beside the profiled runs."
    )
    yield ""
    yield from headed(
        "| | judged | mean | within | corrected | within | p99 | within | corrected | within |"
    )
    for name, of in {"all": judged, **regimes(judged)}.items():
        cells = [
            cell
            for figure, goal in goals.items()
            for what in ("latency", "at_speed")
            for cell in _error_cells([_error(row, what, figure) for row in of], goal)
        ]
        if of:
            yield f"| {name} | {len(of)} | {' | '.join(cells)} |"
    yield ""


def _error(row: Row, what: str, figure: str) -> float:
    return float(row["predicted"][what][figure] / row["truth"]["latency"][figure] - 1.0)


def _error_cells(errors: Sequence[float], goal: float) -> tuple[str, str]:
    return median_size(errors), share_within(errors, goal)


def _mean_loop_s(rows: Sequence[Row], workload: str) -> float:
    """Beside the runs that were fitted, where that is kept; else beside those that were judged."""
    of_job = [row for row in rows if row["workload"] == workload]
    fitted = [loop for row in of_job if (loop := row["fitted"].get("interpreter_s"))]
    return float(np.mean(fitted or [row["fixed_work"]["interpreter_s"] for row in of_job]))


def _spread(logs: Array) -> Array:
    return np.asarray(logs.std(axis=0, ddof=1))
