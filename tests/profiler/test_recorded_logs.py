"""Each log that was recorded here, against a plain recount of its lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.domain import JobProfile
from headway.formats.profile_file import dump_profile, load_any_profile, save_profile
from headway.profiler.survey import LogSurvey
from headway.report.profiles import survey_as_json, survey_as_text
from tests.shared_data import RECORDED, lines_of_recorded

#: What is given to be read, and the file that holds its lines.
LOGS = {
    **{file.parent: file for file in RECORDED.glob("eventlog_v2_*/events_1_*")},
    **{file: file for file in sorted(RECORDED.glob("dstreams/*"))},
}
PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
SQL_START = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
every_log = pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)


@pytest.fixture(scope="module")
def surveyed() -> Mapping[Path, LogSurvey]:
    found = headway.survey([*LOGS])
    assert found.failures == ()
    return {Path(log.name): log for log in found.logs}


def events_in(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of_recorded(LOGS[log])]


def test_there_are_logs_of_both_kinds(surveyed: Mapping[Path, LogSurvey]) -> None:
    assert set(surveyed) == set(LOGS)
    kinds = Counter(type(log.profile) is JobProfile for log in surveyed.values())
    assert kinds == {True: 1, False: 3}


@every_log
def test_counts_are_those_of_the_lines(log: Path, surveyed: Mapping[Path, LogSurvey]) -> None:
    events, survey = events_in(log), surveyed[log]
    of_kind = Counter(event["Event"].removeprefix("SparkListener") for event in events)
    ends = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    assert survey.counts is not None
    assert survey.counts.jobs == of_kind["JobStart"]
    assert survey.counts.stages == of_kind["StageCompleted"]
    assert survey.counts.tasks == len(ends)
    failed = [event for event in ends if event["Task End Reason"]["Reason"] != "Success"]
    assert survey.counts.failed_tasks == len(failed)
    assert survey.counts.progress == of_kind[PROGRESS]
    executions = {event["executionId"] for event in events if event["Event"] == SQL_START}
    assert survey.counts.sql_executions == len(executions)
    assert survey.coverage is not None
    assert survey.coverage.damaged_lines == 0
    assert survey.coverage.has_end


@every_log
def test_surveys_are_printed(log: Path, surveyed: Mapping[Path, LogSurvey]) -> None:
    survey = surveyed[log]
    assert survey.name in survey_as_text([survey])
    (rendered,) = json.loads(survey_as_json([survey], ()))["logs"]
    assert rendered["profiled"]
    assert survey.counts is not None
    assert rendered["counts"]["tasks"] == survey.counts.tasks


@every_log
def test_profiles_load_as_they_were_saved(
    log: Path, surveyed: Mapping[Path, LogSurvey], tmp_path: Path
) -> None:
    profile = surveyed[log].profile
    assert profile is not None
    save_profile(profile, tmp_path / "profile.yaml")
    loaded = load_any_profile(tmp_path / "profile.yaml")
    assert type(loaded) is type(profile)
    assert dump_profile(loaded) == dump_profile(profile)
