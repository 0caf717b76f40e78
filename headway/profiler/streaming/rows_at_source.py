"""Rows at the source, each once: Spark counts a row each time that a batch reads it.

Two writes in ``foreachBatch`` without a cache, a union with itself or a self-join read each row of
the batch twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from headway.assumptions import logs
from headway.profiler.offsets import (
    advance_counts,
    counts_rows,
    num_source_partitions,
    read_offset,
    rows_between,
)
from headway.profiler.plan_text import PlanShape
from headway.profiler.rows import Record
from headway.profiler.streaming.batch_samples import known_rows, source_samples
from headway.sparkconf import reader_limit

_MOST_TIMES = 8


def each_source_once(reports: Sequence[Record]) -> list[Record]:
    """Reports in which a source that a query reads several times is one source.

    A stream that is joined with itself is reported as several sources, with one description and
    with offsets that differ by what arrives while they are asked, one after the other.
    """
    filled = [report for report in reports if known_rows(report) > 0]
    numbers = {len(report["sources"] or ()) for report in filled}
    if len(numbers) != 1 or max(numbers) < 2:
        return list(reports)
    first_of = [
        next(first for first in range(position + 1) if _are_one(filled, first, position))
        for position in range(max(numbers))
    ]
    if first_of == list(range(len(first_of))):
        return list(reports)
    return [
        _merged(report, first_of) if len(report["sources"] or ()) == len(first_of) else report
        for report in reports
    ]


def _are_one(reports: Sequence[Record], first: int, second: int) -> bool:
    if first == second:
        return True
    pairs = [(report["sources"][first], report["sources"][second]) for report in reports]
    if any(source["description"] != again["description"] for source, again in pairs):
        return False
    telling = [alike for pair in pairs if (alike := _stand_alike(*pair)) is not None]
    most_agree = sum(telling) >= logs.AGREEING_RATIO.value * len(telling)
    return most_agree and len(telling) >= logs.LEAST_BATCHES_WITH_OFFSETS.value


def _stand_alike(first: Record, second: Record) -> bool | None:
    """Whether two reads count the same rows up to the same offsets, nearly; None if unknown."""
    positions = []
    for source in (first, second):
        start, end = read_offset(source["start_offset"]), read_offset(source["end_offset"])
        advanced = rows_between(start, end)
        if not start:
            return None
        rows = source["num_rows"] or 0.0
        if not end or len(advanced) < len(end) or not advance_counts(sum(advanced.values()), rows):
            return False
        positions.append((end, advanced))
    (end, advanced), (other_end, _) = positions
    return end.keys() == other_end.keys() and all(
        abs(end[name] - other_end[name]) <= logs.SAME_READ_RATIO.value * advanced[name]
        for name in end
    )


def _merged(report: Record, first_of: Sequence[int]) -> Record:
    """The report with the first read of each source, which has the rows of all of them."""
    times = Counter(first_of)
    sources = [
        {**source, "num_rows": (source["num_rows"] or 0.0) * times[position]}
        for position, source in enumerate(report["sources"])
        if position in times
    ]
    rows = sum(source["num_rows"] for source in sources)
    return {**report, "num_rows": rows or report["num_rows"], "sources": sources}


def times_read(reports: Sequence[Record], stages: Mapping[int, Sequence[Record]]) -> int:
    """How many times each row is read, by offsets if they count rows, else by scans; 1 if unknown.

    Of several sources without such offsets no event tells which one is read again.
    """
    for times in range(1, _MOST_TIMES + 1):
        if _offsets_count(reports, times):
            return times
    filled = [report for report in reports if known_rows(report) > 0]
    if any(len(report["sources"] or ()) != 1 for report in filled):
        return 1
    counts = Counter(
        _times_scanned(known_rows(report), of_batch)
        for report in filled
        if (of_batch := stages.get(report["batch_id"]))
    )
    if counts.total() < logs.LEAST_BATCHES_WITH_OFFSETS.value:
        return 1
    times, number = counts.most_common(1)[0]
    return times if number >= logs.AGREEING_RATIO.value * counts.total() else 1


def counted_once(report: Record, times: int) -> Record:
    """The report of a batch with each row counted once."""
    if times == 1:
        return report
    sources = [
        {**source, "num_rows": None if source["num_rows"] is None else source["num_rows"] / times}
        for source in report["sources"] or ()
    ]
    rows = report["num_rows"]
    return {**report, "num_rows": None if rows is None else rows / times, "sources": sources}


def contradictions(reports: Sequence[Record]) -> Iterator[str]:
    """Offsets by partition that advance by another number than the rows that batches read."""
    advanced, rows = 0, 0.0
    for report in reports:
        for source in source_samples(report):
            if num_source_partitions(source.end) is None or source.start is None:
                return
            advanced += sum(rows_between(source.start, source.end).values())
        rows += max(known_rows(report), 0.0)
    if advanced > 0 and rows > 0 and not _offsets_count(reports, 1):
        yield (
            f"offsets advanced by {advanced:,} while batches read {rows:,.0f} rows "
            f"({rows / advanced:.2f} times as many): the rows that Spark reports are used, so the "
            "rate may not be that of the source"
        )


def filter_notes(
    reports: Sequence[Record], stages: Mapping[int, Sequence[Record]], plan: PlanShape
) -> Iterator[str]:
    """Rows of a source of files that its scan does not count, or counts otherwise than Spark."""
    sources: Sequence[Record] = reports[-1]["sources"] or ()
    if len(sources) != 1 or not reader_limit(sources[0]["description"] or "").counts.of_files:
        return
    if any(plan.filters_in_scans):
        which = "its scan" if all(plan.filters_in_scans) else "one of its scans, perhaps that"
        yield (
            f"filters of the query are pushed into {which} of the files (PushedFilters in the "
            "plan), which then counts the rows that pass them: rates and rows are those after the "
            "filters, and there may be more at the source"
        )
    reported, scanned = 0.0, 0.0
    for report in reports:
        scans = [stage for stage in stages.get(report["batch_id"], ()) if stage["num_scans"]]
        if len(scans) != 1 or known_rows(report) <= 0 or not (scans[0]["rows_read"] or 0) > 0:
            continue
        if scans[0]["num_finished"] == scans[0]["num_tasks"]:
            reported += known_rows(report)
            scanned += scans[0]["rows_read"]
    if reported > 0 and abs(scanned / reported - 1.0) > logs.SAME_ROWS_RATIO.value:
        yield (
            f"batches report {reported:,.0f} rows while the tasks of their scan read "
            f"{scanned:,.0f}: the rows that batches report are used, so the rate may not be that "
            "of the source"
        )


def _offsets_count(reports: Sequence[Record], times: int) -> bool:
    """Whether offsets advance by the rows that batches report, over a number of times."""
    filled = [report for report in reports if known_rows(report) >= 0]
    pairs = [[(source.start, source.end) for source in source_samples(report)] for report in filled]
    return counts_rows(pairs, [known_rows(report) / times for report in filled])


def _times_scanned(num_rows: float, stages: Sequence[Record]) -> int:
    """Scans of the source in a batch, which together read the rows that it reports.

    Scans of static tables read other numbers of rows, or the same by chance.
    """
    scans = [
        (stage["rows_read"] / stage["num_scans"], stage["num_scans"])
        for stage in stages
        if not stage["parent_ids"] and stage["num_scans"] and (stage["rows_read"] or 0) > 0
    ]
    for rows_of_scan, _ in scans:
        num_alike = sum(
            number
            for rows, number in scans
            if abs(rows / rows_of_scan - 1.0) < logs.SAME_ROWS_RATIO.value
        )
        times = round(num_rows / rows_of_scan)
        fits = abs(times * rows_of_scan / num_rows - 1.0) < logs.SAME_ROWS_RATIO.value
        if fits and 1 < times <= min(num_alike, _MOST_TIMES):
            return int(times)
    return 1
