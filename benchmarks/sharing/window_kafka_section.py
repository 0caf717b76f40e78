"""The section about runs on a Kafka broker on the page on shared windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from pages import headed
from result_lines import lines_of

from headway.units import format_rate


def section(results: Path) -> Iterator[str]:
    """One run of the direct query and one of the best way, each with its prediction."""
    yield "## On a Kafka topic"
    yield ""
    lines = lines_of(results)
    if not lines:
        yield "Not measured yet: `make window-kafka`, ten minutes on a quiet machine."
        return
    first = lines[0]
    profiled = " and ".join(
        f"{format_rate(rate)} with a trigger interval of {trigger:g} s"
        for rate, trigger in first["profiled"]
    )
    yield (
        f"One run of each way on a real broker ({first['made']}), with windows of "
        f"{first['window']}, {format_rate(first['rate_per_s'])} with 8,192 keys, a trigger "
        f"interval of {first['trigger_s']:g} s, and Parquet files as the sink. The predictions are "
        f"from profiles of the direct query at {profiled}. The way besides `direct` is the one "
        "that was predicted to be best. Window latency is the time from the end of a window to the "
        "commit of the batch that wrote it; a run has few windows, so their p99 is the longest. "
        "The output of a run is compared with Spark's own windows over the whole topic, read "
        "afterwards."
    )
    yield ""
    yield from headed(
        "| way | batch: predicted | measured | error | window p99: predicted | measured | error | "
        "windows | rows written | missing | extra |"
    )
    for line in lines:
        yield _row(line)
    yield ""
    direct = next((line for line in lines if line["how"] == "direct"), None)
    for line in lines:
        if direct is not None and line is not direct:
            ratio = fmean(direct["batches_s"]) / fmean(line["batches_s"])
            yield f"{line['how']} is {ratio:.2f} times as fast as the direct query."


def _row(line: Mapping[str, Any]) -> str:
    batch_s, expected_s = fmean(line["batches_s"]), line["predicted_batch_s"]
    window_s, windowed_s = max(line["windows_s"]), line["predicted_window_p99_s"]
    window = f"unavailable | {window_s:.2f} s | -"
    if windowed_s is not None:
        error = f"{windowed_s / window_s - 1.0:+.0%}"
        window = f"{windowed_s:.2f} s | {window_s:.2f} s | {error}"
    return (
        f"| {line['how']} | {1e3 * expected_s:.0f} ms | {1e3 * batch_s:.0f} ms | "
        f"{expected_s / batch_s - 1.0:+.0%} | {window} | {len(line['windows_s'])} | "
        f"{line['num_rows']:,} | {line['num_missing']} | {line['num_beyond']} |"
    )
