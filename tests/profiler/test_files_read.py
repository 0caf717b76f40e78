"""Files that batches read: the driver counts them, and a profile keeps what each held."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.profiler.gathered import Gathered
from headway.profiler.gatherer import Gatherer
from headway.profiler.schema import BatchOf
from tests.profiler.event_log import AppLog, Event, Query, write_plain

FILES = "FileStreamSource[file:/data/in]"
QUERY = Query(num_batches=30, noise=0.2, source=FILES, file_rows=500)


def mean_file(log: AppLog, folder: Path) -> tuple[float | None, float | None]:
    seen = headway.profile(write_plain(log.lines, folder / "log")).observed_arrivals
    assert seen is not None
    return seen.file_mean_rows, seen.file_mean_bytes


def test_a_profile_keeps_what_a_file_held(tmp_path: Path) -> None:
    rows, size_bytes = mean_file(AppLog().add(QUERY), tmp_path)
    assert rows is not None
    assert size_bytes == pytest.approx(8 * rows)
    # The last file of a batch is not full; of the batches the first and the seventeenth tell.
    assert 470 < rows <= 500


def scans(log: AppLog) -> list[Event]:
    return [event for event in log.of("SQLExecutionStart") if "sparkPlanInfo" in event]


def test_nothing_is_said_where_it_is_not_known_whose_files_they_are(tmp_path: Path) -> None:
    none = (None, None)
    assert mean_file(AppLog().add(replace(QUERY, source="KafkaV2[Subscribe[a]]")), tmp_path) == none
    assert mean_file(AppLog().add(QUERY).drop("DriverAccumUpdates"), tmp_path) == none
    joined = AppLog().add(QUERY)
    for event in scans(joined):
        (scan,) = event["sparkPlanInfo"]["children"]
        other = json.loads(json.dumps(scan).replace('"accumulatorId": ', '"accumulatorId": 9'))
        event["sparkPlanInfo"]["children"].append(other)
    assert mean_file(joined, tmp_path) == none


def test_two_executions_with_one_scan_are_one(tmp_path: Path) -> None:
    """Of a batch that a sink of the second version writes, both executions show the scan."""
    log = AppLog().add(QUERY)
    again = [{**event, "executionId": 1000 + place} for place, event in enumerate(scans(log))]
    log.events += again
    once = mean_file(AppLog().add(QUERY), tmp_path)
    assert mean_file(log, tmp_path) == once
    assert None not in once


def gathered(lines: list[str]) -> Gathered:
    gatherer = Gatherer(0, 0)
    gatherer.gather("\n".join(lines).encode())
    return gatherer.done()


def test_pieces_add_up_wherever_the_log_is_cut() -> None:
    log = AppLog().add(replace(QUERY, num_batches=18))
    lines, whole = log.lines, gathered(log.lines).executions
    reports = [event["progress"] for event in log.of("$QueryProgressEvent")]
    rows = [report["sources"][0]["numInputRows"] for report in reports]
    assert whole.files_read() == {
        BatchOf(QUERY.run, batch): (-(-number // 500), 8 * number)
        for batch, number in enumerate(rows)
        if batch % 16 == 0
    }
    for cut in range(0, len(lines), 25):
        for one, other in itertools.permutations((lines[:cut], lines[cut:])):
            both = gathered(one)
            both.add(gathered(other))
            assert both.executions == whole


def test_memory_does_not_grow_with_the_executions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.profiler.executions._MOST_SCANS", 4)
    monkeypatch.setattr("headway.profiler.executions._MOST_VALUES", 110)
    files = gathered(AppLog().add(replace(QUERY, num_batches=100)).lines).executions
    assert [batch.batch_id for batch in files.files_read()] == [48, 64, 80, 96]
    assert len(files.values) == 110


@pytest.mark.parametrize("depth", [3, 400, 5000])
def test_plans_of_any_depth_and_kind_stop_nothing(depth: int) -> None:
    start = scans(AppLog().add(replace(QUERY, num_batches=1)))[0]
    deep = '{"children":[' * depth + "7" + "]}" * depth
    line = json.dumps(start | {"sparkPlanInfo": 0, "was": "size of files read"})
    one = gathered([line.replace('"sparkPlanInfo": 0', f'"sparkPlanInfo": {deep}')])
    assert not one.executions.scans
    # What is deeper than any JSON is no line at all.
    assert (one.num_damaged, sum(one.counts.values())) == ((1, 0) if depth == 5000 else (0, 1))


def test_a_profile_has_what_the_actions_of_a_batch_wrote(tmp_path: Path) -> None:
    log = AppLog().add(QUERY)
    updates = log.of("DriverAccumUpdates")
    # Two actions, of three files and of four.
    for event, update in zip(scans(log), updates, strict=True):
        first_id = update["accumUpdates"][0][0]
        for more, num_files in ((4, 3), (5, 4)):
            metric = {"name": "number of written files", "accumulatorId": first_id + more}
            writer = {"nodeName": "Execute Insert", "children": [], "metrics": [metric]}
            event["sparkPlanInfo"]["children"].append(writer)
            update["accumUpdates"].append([first_id + more, num_files])
    written = headway.profile(write_plain(log.lines, tmp_path / "log")).settings[0]
    assert written.written_files_per_batch == 7.0
    unknown = headway.profile(write_plain(AppLog().add(QUERY).lines, tmp_path / "none"))
    assert unknown.settings[0].written_files_per_batch is None
