"""How far the same batch lies apart, and fixed work beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from campaign.figures import Row
from campaign.fixed_work import KINDS
from headway.models.arrays import Array

_TOGETHER_S = 15.0
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
        f"{len(kept)} batches of the same rows, one after the other, in one JVM, in "
        f"{(kept[-1]['begun_s'] - kept[0]['begun_s']) / 60:.0f} minutes: of "
        f"{min(durations_s):.2f} to {max(durations_s):.2f} s. Beside them, once a second, the "
        "same work that has nothing to do with Spark, in processor time. Standard deviations are "
        "those of logarithms."
    )
    yield ""
    yield (
        f"| | standard deviation | of means over {_TOGETHER_S:.0f} s "
        "| correlation of these with the batch |"
    )
    yield "|---|---|---|---|"
    for name, single, mean, shared in zip(
        _NAMES.values(), _spread(logs), _spread(means), together, strict=True
    ):
        yield f"| {name} | {100 * single:.1f} % | {100 * mean:.1f} % | {shared:.2f} |"
    yield ""


def _spread(logs: Array) -> Array:
    return np.asarray(logs.std(axis=0, ddof=1))
