"""Rows that a batch reads several times are counted once, by offsets or by scans."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.profiler.streaming.rows_at_source import counted_once, times_read
from tests.profiler.event_log import AppLog, Query, Stage, write_plain

SCAN = Stage(num_tasks=2, scopes=("Scan json",))
TABLE = Stage(num_tasks=2, rows_scale=0.0, static_rows=15_000, scopes=("Scan parquet",))
# Two writes of a batch without a cache, each of which reads the source.
TWICE = Query(jobs=((SCAN,), (TABLE,), (SCAN,)), operators=(), rate_per_s=10_000.0)


def test_two_writes_that_read_the_source_count_its_rows_once(tmp_path: Path) -> None:
    log = AppLog().add(TWICE)
    _report_times(log, 2)
    profile = headway.profile(write_plain(log.lines, tmp_path / "log"))
    assert profile.arrivals.rate_per_s == pytest.approx(10_000.0, rel=0.02)
    assert any("reads its rows 2 times" in note for note in profile.notes)
    first, table, second = profile.stages
    assert table.is_static
    assert (first.rows.scale, second.rows.scale) == pytest.approx((1.0, 1.0), rel=0.01)


def test_a_cached_batch_is_read_once(tmp_path: Path) -> None:
    """The second write scans the cache, which Spark does not count as input of the query."""
    profile = headway.profile(write_plain(AppLog().add(TWICE).lines, tmp_path / "log"))
    assert profile.arrivals.rate_per_s == pytest.approx(10_000.0, rel=0.02)
    assert not any("times" in note for note in profile.notes)


def test_offsets_tell_how_often_a_row_is_read(tmp_path: Path) -> None:
    log = AppLog().add(replace(TWICE, jobs=((replace(SCAN, scopes=()),),)))
    _report_times(log, 3, with_offsets=True)
    profile = headway.profile(write_plain(log.lines, tmp_path / "log"))
    assert profile.arrivals.rate_per_s == pytest.approx(10_000.0, rel=0.02)
    assert profile.observed_arrivals is not None
    assert profile.observed_arrivals.counted == "offsets"


def test_offsets_and_rows_that_disagree_are_named(tmp_path: Path) -> None:
    log = AppLog().add(replace(TWICE, jobs=((SCAN,),)))
    _report_times(log, 1.5, with_offsets=True)
    profile = headway.profile(write_plain(log.lines, tmp_path / "log"))
    assert any("1.50 times as many" in note for note in profile.notes)


def test_rows_of_several_sources_are_taken_as_reported() -> None:
    two_sources: list[Any] = [
        {"start_offset": None, "end_offset": None, "latest_offset": None, "num_rows": 5.0}
    ] * 2
    reports = [
        {"batch_id": number, "num_rows": 10.0, "sources": two_sources} for number in range(20)
    ]
    scans = {"parent_ids": [], "num_scans": 2, "rows_read": 10.0}
    assert times_read(reports, {number: [scans] for number in range(20)}) == 1
    (halved, _) = counted_once(reports[0], 2)["sources"]
    assert halved["num_rows"] == 2.5


@pytest.mark.parametrize(("apart", "times"), [(3, 2), (9_000, 1)])
def test_a_stream_joined_with_itself_is_one_source(tmp_path: Path, apart: int, times: int) -> None:
    """Its reads are asked one after the other; another stream stands elsewhere."""
    log = AppLog().add(replace(TWICE, jobs=((replace(SCAN, num_tasks=4, scopes=()),),)))
    _report_times(log, 1, with_offsets=True)
    for event in log.of("QueryProgressEvent"):
        (source,) = event["progress"]["sources"]
        later = {
            name: {"orders": {"0": source[name]["orders"]["0"] + apart}}
            for name in ("startOffset", "endOffset", "latestOffset")
        }
        event["progress"]["sources"] = [source, source | later]
    profile = headway.profile(write_plain(log.lines, tmp_path / "log"))
    assert profile.arrivals.rate_per_s == pytest.approx(20_000.0 / times, rel=0.02)
    assert any("reads its rows 2 times" in note for note in profile.notes) == (times == 2)


_PLAN = """== Physical Plan ==
WriteToDataSourceV2 (3)
+- * Filter (2)
   +- Scan json  (1)


(1) Scan json
Output [1]: [secret_amount#1L]
Batched: false
PushedFilters: [{}]
ReadSchema: struct<secret_amount:bigint>

"""


@pytest.mark.parametrize(
    ("source", "filters", "is_noted"),
    [
        ("FileStreamSource[file:/data/in]", "GreaterThan(secret_amount,5)", True),
        ("FileStreamSource[file:/data/in]", "", False),
        ("KafkaV2[Subscribe[orders]]", "GreaterThan(secret_amount,5)", False),
    ],
)
def test_a_note_names_filters_pushed_into_the_scan_of_files(
    tmp_path: Path, source: str, filters: str, *, is_noted: bool
) -> None:
    query = replace(TWICE, jobs=((SCAN,),), source=source, is_adaptive=True)
    log = AppLog().add(query)
    for event in log.of("SQLExecutionStart"):
        event["physicalPlanDescription"] = _PLAN.format(filters)
    profile = headway.profile(write_plain(log.lines, tmp_path / "log"))
    notes = [note for note in profile.notes if "PushedFilters" in note]
    assert bool(notes) == is_noted
    assert not any("secret_amount" in note for note in profile.notes)


def test_a_note_names_scans_and_batches_that_disagree(tmp_path: Path) -> None:
    query = replace(TWICE, jobs=((SCAN,),), source="FileStreamSource[file:/data/in]")
    log = AppLog().add(query)
    assert not any("their scan read" in note for note in _notes(log, tmp_path / "agree"))
    _report_times(log, 0.94)
    assert any("their scan read" in note for note in _notes(log, tmp_path / "disagree"))


def _notes(log: AppLog, file: Path) -> tuple[str, ...]:
    return headway.profile(write_plain(log.lines, file)).notes


def _report_times(log: AppLog, times: float, *, with_offsets: bool = False) -> None:
    """Every report has so many times the rows that arrived."""
    offset = 0
    for event in log.of("QueryProgressEvent"):
        (source,) = event["progress"]["sources"]
        rows = source["numInputRows"]
        source["numInputRows"] = round(times * rows)
        if with_offsets:
            source["startOffset"] = {"orders": {"0": offset}}
            offset += rows
            source["endOffset"] = source["latestOffset"] = {"orders": {"0": offset}}
