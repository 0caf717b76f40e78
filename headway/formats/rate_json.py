"""Rate traces in JSON: answers of Prometheus, and the progress of a streaming query.

**Prometheus**: the answer to ``/api/v1/query_range`` for records per second. Several series are
added up; a missing sample, or one that is no number, is 0.

**Progress**: ``StreamingQueryProgress`` as Spark writes it, one a line, in a list, or inside the
events of a listener, an event log or ``headway.record``. The rows of a batch have arrived since the
start of the batch before it, provided that the query kept up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from headway.errors import InputError
from headway.formats.own_files import parse_json

WORDS = (
    "the answer of Prometheus to a query over a range, or the progress of a streaming query, "
    "one JSON object a line"
)
Sample = tuple[float, float]


def is_json(text: str) -> bool:
    """Whether a text is meant as JSON.

    >>> is_json('{"status": "success"}'), is_json("time,rate")
    (True, False)
    """
    return text.lstrip()[:1] in ("{", "[")


def json_samples(text: str, name: str) -> list[Sample]:
    """When each rate begins, in seconds since 1970, and the rate [records/s], or an InputError.

    >>> import json
    >>> answer = {"data": {"result": [{"values": [[60, "5"], [120, "7.5"]]}]}}
    >>> json_samples(json.dumps(answer), "rates.json")
    [(60.0, 5.0), (120.0, 7.5)]
    """
    objects = _objects(text, name)
    series = [values for json_object in objects for values in _series(json_object)]
    try:
        samples = _added(series) if series else _between(_progress(objects))
    except (InputError, KeyError, TypeError, ValueError, OverflowError):
        samples = []
    if not samples:
        raise InputError(f"{name}: no rates in this JSON; expected {WORDS}")
    return samples


def _objects(text: str, name: str) -> list[Any]:
    """The objects of the file: one value, or one per line."""
    try:
        whole = parse_json(text, name=name, expected=WORDS)
        return whole if isinstance(whole, list) else [whole]
    except InputError:
        pass
    return [
        parse_json(line, name=f"{name}:{number}", expected=WORDS)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    ]


def _series(answer: Any) -> Iterator[Sequence[Sequence[Any]]]:
    """The samples of each series of an answer of Prometheus."""
    data = answer.get("data") if isinstance(answer, Mapping) else None
    results = data.get("result") if isinstance(data, Mapping) else None
    for series in results if isinstance(results, list) else []:
        if isinstance(series, Mapping) and isinstance(series.get("values"), list):
            yield series["values"]


def _added(series: Sequence[Sequence[Sequence[Any]]]) -> list[Sample]:
    total: dict[float, float] = {}
    for values in series:
        for time_s, value in values:
            rate_per_s = float(value)
            finite_per_s = rate_per_s if math.isfinite(rate_per_s) else 0.0
            total[float(time_s)] = total.get(float(time_s), 0.0) + max(finite_per_s, 0.0)
    return sorted(total.items())


def _progress(objects: Sequence[Any]) -> list[tuple[float, float]]:
    """Start and rows of each batch, in order; of several queries, the one with the most batches."""
    by_query: dict[str, dict[float, float]] = {}
    for event in objects:
        progress = event.get("progress", event) if isinstance(event, Mapping) else None
        if isinstance(progress, str):
            progress = parse_json(progress, name="progress", expected=WORDS)
        if not isinstance(progress, Mapping) or "timestamp" not in progress:
            continue
        stamp = datetime.fromisoformat(progress["timestamp"])
        zoned_stamp = stamp if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC)
        batches = by_query.setdefault(str(progress.get("runId", "")), {})
        # Events contain the sum of rows, in some versions only those of each source.
        counts = [progress] if "numInputRows" in progress else progress["sources"]
        batches[zoned_stamp.timestamp()] = sum(float(count["numInputRows"]) for count in counts)
    longest = max(by_query.values(), key=len, default={})
    return sorted(longest.items())


def _between(batches: Sequence[tuple[float, float]]) -> list[Sample]:
    """Rates from the start of each batch to that of the next, which reads the arrived rows."""
    samples = [
        (begin_s, rows / (end_s - begin_s)) for (begin_s, _), (end_s, rows) in pairwise(batches)
    ]
    return [*samples, (batches[-1][0], samples[-1][1])] if samples else []
