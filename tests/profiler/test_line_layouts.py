"""Logs that another JSON writer wrote: other blanks, another order of keys, the same events."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.errors import InputError
from headway.formats.profile_file import load_profile
from headway.profiler.collect import collect
from headway.profiler.contents import CollectedLogs, each_application
from headway.profiler.engines.in_process import read_in_process
from headway.profiler.logs.sources import find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import pieces_of
from tests.profiler.event_log import AppLog, Event, Query

SMALL = Query(num_batches=34, noise=0.05)


def as_spark(event: Event) -> str:
    return json.dumps(event, separators=(",", ":"))


def reversed_keys(value: Any) -> Any:
    """The same with the keys of every mapping the other way round."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


LAYOUTS: dict[str, Callable[[Event], str]] = {
    "spark": as_spark,
    "blanks after colons and commas": json.dumps,
    "blanks around colons": lambda event: json.dumps(event, separators=(" , ", " : ")),
    "tabs": lambda event: "\t" + json.dumps(event, separators=(",\t", "\t:\t")) + " \t\r",
    "keys sorted": lambda event: json.dumps(event, sort_keys=True),
    "keys reversed": lambda event: json.dumps(reversed_keys(event)),
    "beyond the head": lambda event: "{" + " " * 2000 + json.dumps(event)[1:],
    "escapes": lambda event: (
        as_spark(event).replace("$", "\\u0024").replace("runId", "r\\u0075nId")
    ),
}


def events_of_log() -> list[Event]:
    """A streaming job and plain SQL, with the descriptions that Spark gives micro-batches."""
    log = AppLog().add(SMALL)
    for number, event in enumerate(log.of("SparkListenerSQLExecutionStart")):
        description = f"\nid = {SMALL.query_id}\nrunId = {SMALL.run}\nbatch = {number}"
        if number == 3:
            description = "save at <console>:1"
        event["description"] = description
        event["details"] = 'a "description":"of nothing" in a text'
        event["physicalPlanDescription"] += f"(1) Scan [batch#{number}]\n"
    return log.events


def collected(folder: Path) -> dict[str, CollectedLogs]:
    """What is read of the log in each layout, by layout."""
    sources = folder / "logs"
    sources.mkdir()
    for number, layout in enumerate(LAYOUTS.values()):
        text = "".join(layout(event) + "\n" for event in events_of_log())
        (sources / f"log-{number}").write_text(text)
    work = folder / "work"
    work.mkdir()
    logs = unpack(find_event_logs([sources]).logs, work).logs
    of_each = each_application(collect(pieces_of(work), read_in_process))
    assert len(of_each) == len(LAYOUTS)
    by_file = {Path(log.name).name: of_each[app] for app, log in logs.items()}
    return {name: by_file[f"log-{number}"] for number, name in enumerate(LAYOUTS)}


def contents(logs: CollectedLogs) -> Any:
    """All that was read, without the number of the log, in one order; sums to nine digits."""
    (facts,) = logs.applications.values()

    def rows(table: Any) -> list[str]:
        return sorted(
            repr({name: rounded(row[name]) for name in row if name != "app"}) for row in table
        )

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return sorted(value.items())
        return f"{value:.9g}" if isinstance(value, float) and abs(value) < 1e9 else value

    return replace(facts, app=0), rows(logs.batches), rows(logs.stage_runs)


def test_every_layout_of_the_lines_tells_the_same(tmp_path: Path) -> None:
    by_layout = collected(tmp_path)
    expected = contents(by_layout["spark"])
    facts = expected[0]
    start = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    assert (facts.num_lines(start), facts.ids_of(start).seen) == (34, ((0, 33),))
    # Of batches 0, 16 and 32 the plan is kept, and the last of them counts.
    assert "batch#32" in facts.plans[SMALL.run]
    for name, logs in by_layout.items():
        assert contents(logs) == expected, name


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_log_in_place_of_a_profile_is_reported_in_any_layout(layout: str, tmp_path: Path) -> None:
    log = tmp_path / "app-1"
    log.write_text("".join(LAYOUTS[layout](event) + "\n" for event in events_of_log()[:5]))
    with pytest.raises(InputError, match="a Spark event log, not a job profile"):
        load_profile(log)
