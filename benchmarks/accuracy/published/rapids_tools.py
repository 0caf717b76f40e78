"""What the profiling and qualification tools of spark-rapids-tools computed, beside our tables."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from published.figures import (
    MS_PER_S,
    NS_PER_S,
    Figure,
    LogTables,
    Mechanism,
    Rows,
)

_RESOURCES = "NVIDIA+spark-rapids-tools/core/src/test/resources"
_LOGS = f"{_RESOURCES}/spark-events-qualification"
_OLD_LOGS = "NVIDIA+spark-rapids/tools/src/test/resources/spark-events-qualification"
_FAILURES = f"{_RESOURCES}/spark-events-profiling/tasks_executors_fail_compressed_eventlog.zstd"

# Which log an answer is about: the tool names the application only, which several logs share.
_QUALIFIED = {
    ("nested_dsv2", "local-1630045673160"): f"{_LOGS}/eventlog_nested_dsv2",
    ("db_eventlog_rolling", "local-1623876083964"): f"{_LOGS}/db_sim_eventlog",
    ("eventlog_rolling", "local-1623876083964"): f"{_LOGS}/eventlog_v2_local-1623876083964",
    ("simple_udf", "local-1622043423018"): f"{_LOGS}/dsAndDf_eventlog.zstd",
    ("simple_udf", "local-1651187225439"): f"{_LOGS}/dataset_eventlog",
    ("simple_udf", "local-1651188809790"): f"{_LOGS}/udf_dataset_eventlog",
    ("truncated_1_end", "local-1622043423018"): f"{_LOGS}/truncated_eventlog",
    ("nds_q86_test", "app-20210319163812-1778"): f"{_OLD_LOGS}/nds_q86_test.zstd",
    ("nds_q86_fail_test", "app-20210319163812-1778"): f"{_OLD_LOGS}/nds_q86_fail_test.zstd",
    ("writeformat_eventlog", "local-1629442299891"): f"{_LOGS}/writeformat_eventlog",
}
LOGS = (_FAILURES, *_QUALIFIED.values())

_TASKS = "tasks_failure_eventlog_expectation.csv"
_STAGES = "stages_failure_eventlog_expectation.csv"
_JOBS = "jobs_failure_eventlog_expectation.csv"
_FAILURE_ANSWERS = (_TASKS, _STAGES, _JOBS)
_TASK_METRICS = {
    "duration": ("duration, ms", "wall_s", MS_PER_S),
    "executorRunTime": ("run time, ms", "run_s", MS_PER_S),
    "executorCPUTimeNS": ("CPU time, ns", "cpu_s", NS_PER_S),
    "jvmGCTime": ("garbage collection, ms", "gc_s", MS_PER_S),
    "executorDeserializeTime": ("deserialization, ms", "deserialize_s", MS_PER_S),
    "sr_fetchWaitTime": ("shuffle fetch wait, ms", "fetch_wait_s", MS_PER_S),
    "input_bytesRead": ("input, bytes", "input_bytes", 1.0),
    "sr_totalBytesRead": ("shuffle read, bytes", "shuffle_read_bytes", 1.0),
    "sw_bytesWritten": ("shuffle write, bytes", "shuffle_write_bytes", 1.0),
    "memoryBytesSpilled": ("spilled from memory, bytes", "spilled_bytes", 1.0),
    "peakExecutionMemory": ("peak execution memory, bytes", "peak_memory_bytes", 1.0),
}

_FAILED_EXECUTIONS = (
    "the tool omits SQL executions with a failed job, but we count all that ran tasks"
)
_CUT_DIGITS = (
    "the tool truncates the CPU time to whole milliseconds, rounds the percentage to two digits "
    "and truncates it to two, which lowers the last one if the binary fraction is slightly too low"
)
_HALF_PERCENT_DIGIT = 0.005


def answers() -> list[str]:
    """The files that are compared, below the folder of what other tools computed."""
    of_failures = [f"{_RESOURCES}/ProfilingExpectations/{name}" for name in _FAILURE_ANSWERS]
    folders = {f"{_RESOURCES}/QualificationExpectations/{answer}": None for answer, _ in _QUALIFIED}
    return [
        *of_failures,
        *(f"{folder}/apps_summary.csv" for folder in folders),
        *(
            f"{_RESOURCES}/QualificationExpectations/{answer}/{application_id}/persql.csv"
            for answer, application_id in _QUALIFIED
        ),
    ]


def figures(expected: Path, tables: Mapping[str, LogTables]) -> Iterator[Figure]:
    """All figures that both have, by the folder of what other tools computed and our tables."""
    yield from _failures(expected / _RESOURCES / "ProfilingExpectations", tables[_FAILURES])
    for (answer, application_id), log in _QUALIFIED.items():
        folder = expected / _RESOURCES / "QualificationExpectations" / answer
        (summary,) = (
            row for row in _rows(folder / "apps_summary.csv") if row["App ID"] == application_id
        )
        yield from _application(summary, tables[log], Path(log).name)
        yield Figure(
            name="application: SQL executions",
            of=Path(log).name,
            theirs=len(_rows(folder / application_id / "persql.csv")),
            ours=tables[log].num_sql_executions,
        )


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def _failures(folder: Path, tables: LogTables) -> Iterator[Figure]:
    of = Path(_FAILURES).name
    rows = _rows(folder / _TASKS)
    failed = {str(task["task_id"]): task for task in tables.tasks if not task["succeeded"]}
    yield Figure(
        name="failed tasks: which",
        of=of,
        theirs=" ".join(sorted(row["taskId"] for row in rows)),
        ours=" ".join(sorted(failed)),
    )
    for row in rows:
        for column, (name, ours, per_ours) in _TASK_METRICS.items():
            yield Figure(
                name=f"failed task: {name}",
                of=f"{of} task {row['taskId']}",
                theirs=float(row[column]),
                ours=failed[row["taskId"]][ours] * per_ours,
            )
    rows = _rows(folder / _STAGES)
    yield Figure(
        name="failed stages: which, of how many tasks",
        of=of,
        theirs=" ".join(f"{row['stageId']}.{row['attemptId']}:{row['numTasks']}" for row in rows),
        ours=" ".join(
            f"{stage['stage_id']}.{stage['attempt_id']}:{stage['num_tasks']}"
            for stage in tables.stages
            if stage["failed"]
        ),
    )
    rows = _rows(folder / _JOBS)
    yield Figure(
        name="failed jobs: which, of which SQL execution",
        of=of,
        theirs=" ".join(f"{row['jobID']}:{row['sqlID']}" for row in rows),
        ours=" ".join(
            f"{job['job_id']}:{job['execution_id']}"
            for job in tables.jobs
            if job["succeeded"] is False
        ),
    )


def _application(summary: Mapping[str, str], tables: LogTables, of: str) -> Iterator[Figure]:
    yield Figure(
        name="application: name",
        of=of,
        theirs=summary["App Name"],
        ours=tables.application["application_name"],
    )
    # Otherwise the log has no end, and the tool guesses one.
    if summary["App Duration Estimated"] == "false":
        yield Figure(
            name="application: duration, ms",
            of=of,
            theirs=float(summary["App Duration"]),
            ours=tables.duration_s * MS_PER_S,
        )
        yield Figure(
            name="application: core seconds, s",
            of=of,
            theirs=float(summary["Total Core Seconds"]),
            ours=math.ceil(_core_seconds(tables)),
        )
    jobs = [job for job in tables.jobs if job["execution_id"] is not None]
    stage_ids = _stage_ids(jobs)
    yield Figure(
        name="SQL: sum of stage durations, ms",
        of=of,
        theirs=float(summary["SQL Stage Durations Sum"]),
        ours=sum(
            (stage["completed_s"] - stage["submitted_s"]) * MS_PER_S
            for stage in tables.stages
            if stage["stage_id"] in stage_ids
        ),
    )
    failed = {job["execution_id"] for job in jobs if job["succeeded"] is False}
    kept = _stage_ids([job for job in jobs if job["execution_id"] not in failed])
    yield Figure(
        name="SQL: CPU time of run time, per cent",
        of=of,
        theirs=float(summary["Executor CPU Time Percent"]),
        ours=_cpu_percent(_tasks_of(tables, stage_ids)),
        rounding=_HALF_PERCENT_DIGIT,
        mechanism=Mechanism(
            _FAILED_EXECUTIONS if failed else _CUT_DIGITS,
            _cpu_percent_cut(_tasks_of(tables, kept)),
        ),
    )


def _stage_ids(jobs: Rows) -> set[int]:
    return {stage_id for job in jobs for stage_id in job["stage_ids"]}


def _tasks_of(tables: LogTables, stage_ids: set[int]) -> Rows:
    return [task for task in tables.tasks if task["stage_id"] in stage_ids]


def _cpu_percent(tasks: Rows) -> float:
    cpu_s, run_s = (float(sum(task[name] for task in tasks)) for name in ("cpu_s", "run_s"))
    return 100 * cpu_s / run_s


def _cpu_percent_cut(tasks: Rows) -> float:
    """The same as the tool computes it, digit by digit."""
    cpu_ms = int(sum(round(task["cpu_s"] * NS_PER_S) for task in tasks) // 1e6)
    run_ms = sum(round(task["run_s"] * MS_PER_S) for task in tasks)
    rounded = round(100 * cpu_ms / run_ms, 2) if run_ms else 0.0
    return math.floor(rounded * 100) / 100


def _core_seconds(tables: LogTables) -> float:
    """Cores times the presence of each executor, those that stayed until the end."""
    events = tables.application["executors"]
    removed_s = {one["executor_id"]: one["at_s"] for one in events if one["num_cores"] is None}
    ended_s = tables.application["ended_s"]
    return float(
        sum(
            (removed_s.get(one["executor_id"], ended_s) - one["at_s"]) * one["num_cores"]
            for one in events
            if one["num_cores"] is not None
        )
    )
