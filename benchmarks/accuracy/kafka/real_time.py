"""Real-Time Mode: what Spark reports of it, and what the models say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafka.runs import Record


def real_time_section(runs: Sequence[Record]) -> Iterator[str]:
    """What ran, and how it compares."""
    yield "## Real-Time Mode"
    yield ""
    for run in runs:
        if "refused" in run:
            yield f"* {run['name']}: refused: {run['refused']}"
            continue
        append = run["to_append_s"]
        yield (
            f"* {run['name']}: {append['num_rows']} rows, stamp to append: mean "
            f"{append['mean']:.4f} s, p50 {append['p50']:.4f} s, p99 {append['p99']:.4f} s"
        )
    yield ""
