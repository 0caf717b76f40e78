"""What the profiling and qualification tools of spark-rapids-tools computed, beside our tables."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.accuracy.published.figures import (
    MS_PER_S,
    NS_PER_S,
    Figure,
    LogTables,
    Mechanism,
)

_RESOURCES = "NVIDIA+spark-rapids-tools/core/src/test/resources"
_LOGS = f"{_RESOURCES}/spark-events-qualification"
_OLD_LOGS = "NVIDIA+spark-rapids/tools/src/test/resources/spark-events-qualification"
_FAILURES_LOG = (
    f"{_RESOURCES}/spark-events-profiling/tasks_executors_fail_compressed_eventlog.zstd"
)

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
LOGS = (_FAILURES_LOG, *_QUALIFIED.values())

_TASK_METRICS = {
    "duration": ("wall_s", MS_PER_S),
    "executorCPUTimeNS": ("cpu_s", NS_PER_S),
    "executorDeserializeTime": ("deserialize_s", MS_PER_S),
    "executorRunTime": ("run_s", MS_PER_S),
    "input_bytesRead": ("input_bytes", 1.0),
    "jvmGCTime": ("gc_s", MS_PER_S),
    "memoryBytesSpilled": ("spilled_bytes", 1.0),
    "peakExecutionMemory": ("peak_memory_bytes", 1.0),
    "sr_fetchWaitTime": ("fetch_wait_s", MS_PER_S),
    "sr_totalBytesRead": ("shuffle_read_bytes", 1.0),
    "sw_bytesWritten": ("shuffle_write_bytes", 1.0),
}


def figures(expected: Path, tables: Mapping[str, LogTables]) -> Iterator[Figure]:
    """All figures that both have.

    Parameters
    ----------
    expected : Path
        The folder of what other tools computed.
    tables : mapping of str to LogTables
        Those of :data:`LOGS`.
    """
    yield from _failures(expected / _RESOURCES / "ProfilingExpectations", tables[_FAILURES_LOG])
    for (answer, application_id), log in _QUALIFIED.items():
        folder = expected / _RESOURCES / "QualificationExpectations" / answer
        (summary,) = (
            row for row in _rows(folder / "apps_summary.csv") if row["App ID"] == application_id
        )
        yield from _application(summary, tables[log], Path(log).name)
        executions = _rows(folder / application_id / "persql.csv")
        yield Figure(
            name="application: SQL executions",
            of=Path(log).name,
            theirs=len(executions),
            ours=tables[log].num_sql_executions,
        )


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def _failures(folder: Path, tables: LogTables) -> Iterator[Figure]:
    of = Path(_FAILURES_LOG).name
    theirs = _rows(folder / "tasks_failure_eventlog_expectation.csv")
    failed = {task["task_id"]: task for task in tables.tasks if not task["succeeded"]}
    yield Figure(
        name="failed tasks: ids",
        of=of,
        theirs=" ".join(sorted(row["taskId"] for row in theirs)),
        ours=" ".join(sorted(str(task_id) for task_id in failed)),
    )
    for row in theirs:
        task = failed[int(row["taskId"])]
        for column, (ours, per_ours) in _TASK_METRICS.items():
            yield Figure(
                name=f"failed task: {column}",
                of=f"{of} task {row['taskId']}",
                theirs=float(row[column]),
                ours=task[ours] * per_ours,
            )
    stages = _rows(folder / "stages_failure_eventlog_expectation.csv")
    yield Figure(
        name="failed stages: ids and tasks",
        of=of,
        theirs=" ".join(f"{r['stageId']}.{r['attemptId']}:{r['numTasks']}" for r in stages),
        ours=" ".join(
            f"{stage['stage_id']}.{stage['attempt_id']}:{stage['num_tasks']}"
            for stage in tables.stages
            if stage["failed"]
        ),
    )
    jobs = _rows(folder / "jobs_failure_eventlog_expectation.csv")
    yield Figure(
        name="failed jobs: ids and SQL executions",
        of=of,
        theirs=" ".join(f"{row['jobID']}:{row['sqlID']}" for row in jobs),
        ours=" ".join(
            f"{job['job_id']}:{job['execution_id']}"
            for job in tables.jobs
            if job["succeeded"] is False
        ),
    )


def _application(summary: Mapping[str, str], tables: LogTables, of: str) -> Iterator[Figure]:
    application = tables.application
    yield Figure(
        name="application: name",
        of=of,
        theirs=summary["App Name"],
        ours=application["application_name"],
    )
    yield from _duration(summary, tables, of)
    sql_stages = _stages_of_sql(tables)
    yield _cpu_percent(summary, tables, sql_stages, of)
    yield Figure(
        name="application: sum of stage durations, ms",
        of=of,
        theirs=float(summary["SQL Stage Durations Sum"]),
        ours=sum(
            stage["completed_s"] - stage["submitted_s"]
            for stage in tables.stages
            if stage["stage_id"] in sql_stages
        ) * MS_PER_S,
    )
    yield Figure(
        name="application: core seconds",
        of=of,
        theirs=float(summary["Total Core Seconds"]),
        ours=math.ceil(_core_seconds(tables)),
    )


def _duration(summary, tables, of):
    a = tables.application
    yield Figure(name="application: duration, ms", of=of, theirs=float(summary["App Duration"]),
       ours=None if a["ended_s"] is None else (a["ended_s"]-a["started_s"])*MS_PER_S, mechanism=Mechanism("", (max(j["ended_s"] or 0 for j in tables.jobs)-a["started_s"])*MS_PER_S))

def _stages_of_sql(tables: LogTables) -> set[int]:
    return {
        stage_id
        for job in tables.jobs
        if job["execution_id"] is not None
        for stage_id in job["stage_ids"]
    }


def _cpu_percent(summary, tables, sql_stages, of):
    tasks = [task for task in tables.tasks if task["stage_id"] in sql_stages]
    cpu=sum(t["cpu_s"] for t in tasks); run=sum(t["run_s"] for t in tasks)
    cpum=sum(math.floor(t["cpu_s"]*1e3+1e-7)/1e3 for t in tasks)
    cst=__import__('collections').Counter()
    for t in tasks: cst[t["stage_id"],t["attempt_id"]]+=t["cpu_s"]
    print(of, summary["Executor CPU Time Percent"], cpu/run*100, 'floor per task',cpum/run*100, 'floor stage', sum(math.floor(v*1e3+1e-6) for v in cst.values())/run/10, len(tasks),len(tables.tasks))
    return Figure(
        name="application: CPU time of run time, per cent",
        of=of,
        theirs=float(summary["Executor CPU Time Percent"]),
        ours=100 * cpu/run, rounding=0.0051,
        mechanism=Mechanism("per task ms", 100*cpum/run)
    )


def _core_seconds(tables: LogTables) -> float:
    total=0
    ended=tables.application["ended_s"]
    if ended is None: ended=max(j["ended_s"] or 0 for j in tables.jobs)
    for e in tables.application["executors"]:
        if e["num_cores"]:
            removed=[x["at_s"] for x in tables.application["executors"] if x["executor_id"]==e["executor_id"] and x["num_cores"] is None]
            total+=((removed or [ended])[0]-e["at_s"])*e["num_cores"]
    return total
