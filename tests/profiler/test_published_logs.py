"""Every event log that other projects published, against plain recounts and what other tools said.

All logs are read in one pass; what they hold was counted line by line beforehand.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from headway.domain import JobProfile
from headway.formats.profile_file import dump_profile, load_any_profile, save_profile
from headway.profiler.collect import collect
from headway.profiler.contents import ApplicationFacts
from headway.profiler.engines.in_process import read_in_process
from headway.profiler.logs.sources import EventLog, find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import pieces_of
from headway.profiler.survey import LogSurvey, surveys
from headway.report.profiles import survey_as_json, survey_as_text
from headway.units import counted
from tests.shared_data import EVENT_LOGS, SHARED, needs

if TYPE_CHECKING:
    from published.figures import LogTables

ROOT = Path(__file__).parents[2]
DATA, LOGS = SHARED / "data", EVENT_LOGS
ENTRIES: Sequence[dict[str, Any]] = (
    json.loads((DATA / "manifest.json").read_text())["eventlogs"] if DATA.exists() else []
)

pytestmark = needs(
    DATA, stand_in="tests/profiler/test_recorded_logs.py::test_counts_are_those_of_the_lines"
)
every_file = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["file"]))

NVIDIA = "NVIDIA+spark-rapids-tools/core/src/test/resources"
SPARK = "axiomsl+spark/core/src/test/resources/spark-events"
STREAMING = "axiomsl+spark/sql/core/src/test/resources/structured-streaming"
SPARKLINT = "groupon+sparklint/src/test/resources"
HISTORY = "kubeflow+mcp-apache-spark-history-server/examples/basic/events"

ROLLING = f"{NVIDIA}/spark-events-qualification/eventlog_v2_local-1623876083964"
DATABRICKS = f"{NVIDIA}/spark-events-qualification/db_sim_eventlog"
SPARK_3_5 = tuple(
    f"{HISTORY}/eventlog_v2_spark-{number}"
    for number in ("110be3a8424d4a2789cb88134418217b", "bcec39f6201b42b9925124595baad260")
)
PARTS = {
    ROLLING: (
        f"{ROLLING}/events_1_local-1623876083964.zstd",
        f"{ROLLING}/events_2_local-1623876083964.zstd",
    ),
    DATABRICKS: (f"{DATABRICKS}/eventlog-2021-06-15--15-00.gz", f"{DATABRICKS}/eventlog"),
}

STATUS_FILES = {
    f"{ROLLING}/appstatus_local-1623876083964",
    *(f"{folder}/appstatus_{folder.rpartition('_')[2]}" for folder in SPARK_3_5),
}
NO_LOG = f"{SPARKLINT}/invalid_log_file"
NO_EVENT = f"{SPARKLINT}/file_event_log_test_simple"
NOTHING_RAN = {
    f"{SPARK}/local-1430917381535_1",
    f"{SPARK}/local-1430917381535_2",
    f"{STREAMING}/query-event-logs-version-2.0.0.txt",
    f"{STREAMING}/query-event-logs-version-2.0.1.txt",
    f"{SPARKLINT}/file_event_log_test_state_events",
}
# 50 tasks of a stage had finished when the executors that held their output were lost: Spark then
# writes a second TaskEnd for each of them, with the reason Resubmitted and without metrics.
LINES_ABOUT_A_TASK_AGAIN = {
    f"{NVIDIA}/spark-events-profiling/tasks_executors_fail_compressed_eventlog.zstd": 50
}


@dataclass(frozen=True, kw_only=True)
class Published:
    """What one pass over all logs gave, by file; a folder whose files make one log is one too."""

    surveys: Mapping[str, LogSurvey]
    facts: Mapping[str, ApplicationFacts]
    refused: Mapping[str, str]
    tables: Mapping[str, LogTables]


@pytest.fixture(scope="module", autouse=True)
def benchmarks() -> Iterator[None]:
    """The benchmarks can be imported as they import each other."""
    with pytest.MonkeyPatch.context() as patch:
        for folder in ("benchmarks", "benchmarks/accuracy"):
            patch.syspath_prepend(str(ROOT / folder))
        yield


@pytest.fixture(scope="module")
def published(benchmarks: None, tmp_path_factory: pytest.TempPathFactory) -> Published:
    from published.figures import tables_of_logs
    from published_logs import wanted_logs

    names: list[str] = []
    logs: list[EventLog] = []
    refused: dict[str, str] = {}
    for name in (*(str(entry["file"]) for entry in ENTRIES), *PARTS):
        found = find_event_logs([LOGS / name])
        for failure in found.failures:
            refused[name] = failure.why
        names += [name] * len(found.logs)
        logs += found.logs
    folder = tmp_path_factory.mktemp("published")
    unpacked = unpack(logs, folder)
    by_path = {log.name: name for name, log in zip(names, logs, strict=True)}
    refused.update({by_path[failure.name]: failure.why for failure in unpacked.failures})
    pieces, engine = pieces_of(folder), read_in_process
    collected = collect(pieces, engine)
    tables = tables_of_logs(
        pieces, engine, collected, {name: names.index(name) for name in wanted_logs()}
    )
    surveyed = surveys(collected, unpacked.logs, "1.0")
    return Published(
        surveys={names[app]: one for app, one in zip(unpacked.logs, surveyed, strict=True)},
        facts={names[app]: facts for app, facts in collected.applications.items()},
        refused=refused,
        tables=tables,
    )


def lines_of(entry: Mapping[str, Any]) -> list[str]:
    content: bytes = (LOGS / entry["file"]).read_bytes()
    if entry["codec"] == "gzip":
        content = gzip.decompress(content)
    elif entry["codec"] == "zstd":
        reader = zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True)
        content = bytes(reader.read())
    return content.decode().splitlines()


def sql_executions_of(entry: Mapping[str, Any]) -> set[int]:
    return {
        json.loads(line)["executionId"]
        for line in lines_of(entry)
        if "SparkListenerSQLExecutionStart" in line[:120]
    }


@every_file
def test_a_file_is_surveyed_or_refused_in_one_line(
    entry: dict[str, Any], published: Published
) -> None:
    file = entry["file"]
    if file in STATUS_FILES | {NO_LOG}:
        assert "\n" not in published.refused[file]
        assert "expected" in published.refused[file]
        assert file not in published.surveys
        return
    assert file not in published.refused
    survey = published.surveys[file]
    if file in NOTHING_RAN | {NO_EVENT}:
        assert survey.profile is None
        assert survey.why_not
        assert "\n" not in survey.why_not
    else:
        assert survey.profile is not None, survey.why_not
        assert not survey.why_not
        assert isinstance(survey.profile, JobProfile) == (entry["progress"] > 0)


@every_file
def test_counts_are_those_of_the_lines(entry: dict[str, Any], published: Published) -> None:
    survey = published.surveys.get(entry["file"])
    if survey is None or survey.counts is None or survey.coverage is None:
        sections = ("jobs", "stages_done", "tasks", "progress", "app_end")
        assert not any(entry[name] for name in sections)
        return
    counts = survey.counts
    assert {
        "jobs": counts.jobs,
        "stages_done": counts.stages,
        "tasks": counts.tasks + LINES_ABOUT_A_TASK_AGAIN.get(entry["file"], 0),
        "tasks_failed": counts.failed_tasks + LINES_ABOUT_A_TASK_AGAIN.get(entry["file"], 0),
        "progress": counts.progress,
        "bad_lines": survey.coverage.damaged_lines,
        "app_end": survey.coverage.has_end,
    } == {
        name: entry[name]
        for name in (
            "jobs",
            "stages_done",
            "tasks",
            "tasks_failed",
            "progress",
            "bad_lines",
            "app_end",
        )
    }
    assert counts.sql_executions == len(sql_executions_of(entry))


@every_file
def test_executors_and_cores_are_those_that_were_added(
    entry: dict[str, Any], published: Published
) -> None:
    facts = published.facts.get(entry["file"])
    if facts is None:
        assert (entry["executors"], entry["cores"]) == (0, 0)
        return
    # The driver of a local application is an executor to us; the manifest counts its cores only.
    others = [one for one in facts.executors if one.executor_id != "driver"]
    assert len(others) == entry["executors"]
    assert sum(one.num_cores for one in facts.executors) == entry["cores"]


@every_file
def test_surveys_render(entry: dict[str, Any], published: Published) -> None:
    survey = published.surveys.get(entry["file"])
    if survey is None:
        assert entry["file"] in published.refused
        return
    text = survey_as_text([survey])
    assert survey.name in text
    (rendered,) = json.loads(survey_as_json([survey], ()))["logs"]
    assert rendered["profiled"] == (survey.profile is not None)
    if survey.counts is not None:
        jobs, stages = counted(survey.counts.jobs, "job"), counted(survey.counts.stages, "stage")
        assert f"{jobs}, {stages}" in text
        assert rendered["counts"]["tasks"] == survey.counts.tasks


@every_file
def test_profiles_load_as_they_were_saved(
    entry: dict[str, Any], published: Published, tmp_path: Path
) -> None:
    survey = published.surveys.get(entry["file"])
    if survey is None or survey.profile is None:
        assert entry["file"] in STATUS_FILES | NOTHING_RAN | {NO_LOG, NO_EVENT}
        return
    save_profile(survey.profile, tmp_path / "profile.yaml")
    loaded = load_any_profile(tmp_path / "profile.yaml")
    assert type(loaded) is type(survey.profile)
    assert dump_profile(loaded) == dump_profile(survey.profile)


@pytest.mark.parametrize("folder", PARTS)
def test_parts_of_one_application_make_one_log(folder: str, published: Published) -> None:
    parts = [entry for entry in ENTRIES if entry["file"] in PARTS[folder]]
    survey = published.surveys[folder]
    assert survey.counts is not None
    assert survey.coverage is not None
    assert (survey.counts.jobs, survey.counts.stages, survey.counts.tasks) == tuple(
        sum(part[name] for part in parts) for name in ("jobs", "stages_done", "tasks")
    )
    assert survey.coverage.has_start
    assert survey.coverage.has_end
    assert not survey.coverage.in_progress


def test_the_folder_of_all_logs_gives_each_log_once(tmp_path: Path) -> None:
    found = find_event_logs([LOGS])
    assert found.failures == ()
    by_name = {
        Path(log.name).relative_to(LOGS).as_posix(): {
            Path(str(file)).relative_to(LOGS).as_posix() for file in log.files
        }
        for log in found.logs
    }
    assert len(by_name) == len(found.logs)
    in_folders = {**{folder: set(parts) for folder, parts in PARTS.items()}}
    for folder in SPARK_3_5:
        in_folders[folder] = {f"{folder}/events_1_{folder.rpartition('_')[2]}"}
    parts = {part for of_folder in in_folders.values() for part in of_folder}
    alone = {entry["file"] for entry in ENTRIES if entry["file"] not in parts | STATUS_FILES}
    assert by_name == {**in_folders, **{file: {file} for file in alone}}
    unpacked = unpack(found.logs, tmp_path)
    assert not unpacked.pending
    assert [failure.name for failure in unpacked.failures] == [str(LOGS / NO_LOG)]


def test_no_difference_to_other_tools_is_unexplained(published: Published) -> None:
    from published_logs import TOOLS, compared

    for tool in TOOLS:
        figures = compared(tool, DATA / "expected", published.tables)
        assert [figure for figure in figures if not figure.is_explained] == []
        assert sum(figure.is_equal for figure in figures) > 0.9 * len(figures)
        assert sum(not figure.is_zero for figure in figures) > 50


def test_a_wrong_figure_would_show(published: Published) -> None:
    from published_logs import TOOLS, compared

    def slower(tables: LogTables) -> LogTables:
        tasks = [{**task, "run_s": task["run_s"] + 0.001} for task in tables.tasks]
        return tables._replace(tasks=tasks)

    slowed = {name: slower(tables) for name, tables in published.tables.items()}
    for tool in TOOLS:
        figures = compared(tool, DATA / "expected", slowed)
        assert any("run time" in figure.name for figure in figures if not figure.is_explained)


def test_every_answer_of_other_tools_is_compared_or_has_a_reason() -> None:
    from published_logs import NOT_COMPARED_FILES, TOOLS, why_not_compared

    answers = {
        path.relative_to(DATA / "expected").as_posix()
        for path in (DATA / "expected").rglob("*")
        if path.is_file()
    }
    used = {answer for tool in TOOLS for answer in tool.answers}
    assert used <= answers
    reasons = {answer: why_not_compared(answer) for answer in answers - used}
    assert [answer for answer, why in reasons.items() if why is None] == []
    assert set(reasons.values()) == set(NOT_COMPARED_FILES.values())
