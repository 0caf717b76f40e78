"""Damaged logs: what is left of a log is what counts.

Every damaged log is read in one pass with the others, and held against a plain recount of its
lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from headway.domain import JobProfile
from headway.formats.profile_file import dump_profile
from headway.profiler.collect import collect
from headway.profiler.engines.in_process import read_in_process
from headway.profiler.logs.sources import find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import pieces_of
from headway.profiler.survey import LogSurvey, surveys
from headway.report.profiles import survey_as_json, survey_as_text
from tests.profiler.event_log import AppLog, Event, Query

SMALL = Query(num_batches=12, noise=0.05)
PROGRESS = "QueryProgressEvent"


@dataclass(frozen=True, kw_only=True)
class Damaged:
    """A log as bytes, and how it came to be."""

    how: str
    content: bytes

    def recount(self) -> dict[str, int]:
        """Things that the remaining lines tell of, each once."""
        jobs, stages, tasks, failed, executions, progress = set(), set(), set(), 0, set(), 0
        for event in self.events():
            kind = event["Event"]
            if kind == "SparkListenerJobStart":
                jobs.add(event["Job ID"])
            elif kind == "SparkListenerStageCompleted":
                info = event["Stage Info"]
                stages.add((info["Stage ID"], info["Stage Attempt ID"]))
            elif kind == "SparkListenerTaskEnd":
                tasks.add(event["Task Info"]["Task ID"])
                failed += event.get("Task End Reason", {}).get("Reason", "Success") != "Success"
            elif kind.endswith("SparkListenerSQLExecutionStart"):
                executions.add(event["executionId"])
            elif kind.endswith(PROGRESS):
                progress += 1
        return {
            "jobs": len(jobs),
            "stages": len(stages),
            "tasks": len(tasks),
            "failed_tasks": failed,
            "sql_executions": len(executions),
            "progress": progress,
        }

    def events(self) -> Iterator[Event]:
        """Lines that are whole JSON objects with an event."""
        for line in self.content.split(b"\n"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and isinstance(event.get("Event"), str):
                yield event


def whole_log() -> list[bytes]:
    return [line.encode() for line in AppLog().add(SMALL).lines]


def joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def cuts_between_events() -> Iterator[Damaged]:
    lines = whole_log()
    for number in range(1, len(lines)):
        yield Damaged(how=f"cut behind event {number}", content=joined(lines[:number]))
        yield Damaged(how=f"begun at event {number}", content=joined(lines[number:]))


def cuts_at_bytes(number: int) -> Iterator[Damaged]:
    content = joined(whole_log())
    rng = np.random.default_rng(20261121)
    for place in rng.integers(1, len(content), number):
        yield Damaged(how=f"cut at byte {place}", content=content[:place])


def lost_doubled_and_shuffled(rounds: int) -> Iterator[Damaged]:
    lines = whole_log()
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        for share in (0.01, 0.35):
            kept = [line for line in lines if rng.random() >= share]
            yield Damaged(how=f"{share:.0%} lost, seed {seed}", content=joined(kept))
        twice = [line for line in lines for _ in range(1 + int(rng.random() < 0.3))]
        yield Damaged(how=f"lines doubled, seed {seed}", content=joined(twice))
        order = rng.permutation(len(lines))
        yield Damaged(how=f"shuffled, seed {seed}", content=joined([lines[at] for at in order]))


def corrupted(rounds: int) -> Iterator[Damaged]:
    content = joined(whole_log())
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        garbled = bytearray(content)
        for place in rng.integers(0, len(content), 20):
            garbled[place] = int(rng.integers(0, 256))
        yield Damaged(how=f"20 bytes garbled, seed {seed}", content=bytes(garbled))


def survey_all(damaged: Sequence[Damaged], folder: Path) -> dict[str, LogSurvey]:
    files = []
    (folder / "logs").mkdir()
    for number, one in enumerate(damaged):
        files.append(folder / "logs" / f"{number:05d}")
        files[-1].write_bytes(one.content)
    found = find_event_logs(files)
    unpacked = unpack(found.logs, folder / "work")
    collected = collect(pieces_of(folder / "work"), read_in_process)
    by_name = {log.name: log for log in surveys(collected, unpacked.logs, "1.0")}
    # What could not be unpacked is said and left no survey.
    refused = {failure.name for failure in (*found.failures, *unpacked.failures)}
    assert refused.isdisjoint(by_name)
    assert set(map(str, files)) == refused | set(by_name)
    return {
        one.how: by_name[str(file)]
        for one, file in zip(damaged, files, strict=True)
        if str(file) in by_name
    }


def assert_says_what_is_left(
    damaged: Sequence[Damaged], surveyed: dict[str, LogSurvey], *, exactly: bool
) -> None:
    for one in damaged:
        survey = surveyed.get(one.how)
        if survey is None or survey.counts is None:
            continue
        counts = {name: getattr(survey.counts, name) for name in one.recount()}
        if exactly:
            assert counts == one.recount(), one.how
        assert survey.coverage is not None
        assert survey.profile is not None or survey.why_not
        assert "Traceback" not in survey_as_text([survey])
        json.loads(survey_as_json([survey], ()))
        if isinstance(survey.profile, JobProfile):
            assert dump_profile(survey.profile)
            (setting,) = survey.profile.settings
            assert setting.rate_per_s == pytest.approx(SMALL.rate_per_s, rel=0.05), one.how
            assert setting.batch_duration_mean_s == pytest.approx(0.45, rel=0.25), one.how


@pytest.fixture(scope="module")
def some_damaged() -> list[Damaged]:
    return [
        *list(cuts_between_events())[::4],
        *cuts_at_bytes(60),
        *lost_doubled_and_shuffled(4),
    ]


def test_what_is_reported_is_what_the_remaining_events_say(
    some_damaged: list[Damaged], tmp_path: Path
) -> None:
    surveyed = survey_all(some_damaged, tmp_path)
    assert_says_what_is_left(some_damaged, surveyed, exactly=True)
    profiled = [how for how, survey in surveyed.items() if survey.profile is not None]
    assert any(how.startswith("35% lost") for how in profiled) or len(profiled) > 20


def test_garbled_bytes_end_in_a_profile_or_a_reason(tmp_path: Path) -> None:
    damaged = list(corrupted(10))
    surveyed = survey_all(damaged, tmp_path)
    assert len(surveyed) == len(damaged)
    for survey in surveyed.values():
        assert survey.profile is not None or survey.why_not


@pytest.mark.robustness
def test_every_cut_and_many_damages(tmp_path: Path) -> None:
    damaged = [
        *cuts_between_events(),
        *cuts_at_bytes(2000),
        *lost_doubled_and_shuffled(50),
    ]
    assert_says_what_is_left(damaged, survey_all(damaged, tmp_path), exactly=True)


@pytest.mark.robustness
def test_many_garbled_logs(tmp_path: Path) -> None:
    damaged = list(corrupted(300))
    surveyed = survey_all(damaged, tmp_path)
    for survey in surveyed.values():
        assert survey.profile is not None or survey.why_not
