"""What sparklens computed about a published log, beside our tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from published.figures import MS_PER_S, Figure, LogTables, Rows

_FILES = "qubole+sparklens/src/test/event-history-test-files"
_LOG = f"{_FILES}/local-1532512550423"
LOGS = (_LOG,)

_METRICS = {
    "taskDuration": ("task time, ms", "wall_s", MS_PER_S),
    "executorRuntime": ("run time, ms", "run_s", MS_PER_S),
    "jvmGCTime": ("garbage collection, ms", "gc_s", MS_PER_S),
    "shuffleReadFetchWaitTime": ("shuffle fetch wait, ms", "fetch_wait_s", MS_PER_S),
    "inputBytesRead": ("input, bytes", "input_bytes", 1.0),
    "shuffleReadBytesRead": ("shuffle read, bytes", "shuffle_read_bytes", 1.0),
    "shuffleWriteBytesWritten": ("shuffle write, bytes", "shuffle_write_bytes", 1.0),
    "memoryBytesSpilled": ("spilled from memory, bytes", "spilled_bytes", 1.0),
    "peakExecutionMemory": ("peak execution memory, bytes", "peak_memory_bytes", 1.0),
}


def answers() -> list[str]:
    """The files that are compared, below the folder of what other tools computed."""
    return [f"{_LOG}.sparklens.json"]


def figures(expected: Path, tables: Mapping[str, LogTables]) -> Iterator[Figure]:
    """All figures that both have, by the folder of what other tools computed and our tables."""
    answer = json.loads((expected / f"{_LOG}.sparklens.json").read_text())
    ours = tables[_LOG]
    application = ours.application
    info = answer["appInfo"]
    for name, theirs, value in (
        ("application: id", info["applicationID"], application["application_id"]),
        ("application: start, ms", info["startTime"], application["started_s"] * MS_PER_S),
        ("application: end, ms", info["endTime"], application["ended_s"] * MS_PER_S),
    ):
        yield Figure(name=name, of="application", theirs=theirs, ours=value)
    yield from _metrics("application", answer["appMetrics"], ours.tasks)
    for executor_id, executor in answer["executorMap"].items():
        yield from _executor(executor_id, executor, ours)
    for job_id, job in answer["jobMap"].items():
        yield from _job(int(job_id), job, ours)
    for stage_id, stage in answer["stageMap"].items():
        yield from _stage(int(stage_id), stage, ours)
        yield Figure(
            name="stage: job",
            of=f"stage {stage_id}",
            theirs=answer["stageIDToJobID"][stage_id],
            ours=_run(int(stage_id), ours)["job_id"],
        )


def _executor(executor_id: str, answer: Mapping[str, Any], tables: LogTables) -> Iterator[Figure]:
    of = f"executor {executor_id}"
    (said,) = (
        event for event in tables.application["executors"] if event["executor_id"] == executor_id
    )
    yield Figure(name="executor: cores", of=of, theirs=answer["cores"], ours=said["num_cores"])
    yield Figure(
        name="executor: added, ms", of=of, theirs=answer["startTime"], ours=said["at_s"] * MS_PER_S
    )
    tasks = [task for task in tables.tasks if task["executor_id"] == executor_id]
    yield from _metrics(of, answer["executorMetrics"], tasks)


def _job(job_id: int, answer: Mapping[str, Any], tables: LogTables) -> Iterator[Figure]:
    of = f"job {job_id}"
    (job,) = (job for job in tables.jobs if job["job_id"] == job_id)
    for name, theirs, ours in (
        ("job: start, ms", answer["startTime"], job["submitted_s"] * MS_PER_S),
        ("job: end, ms", answer["endTime"], job["ended_s"] * MS_PER_S),
        ("job: stages", " ".join(sorted(answer["stageMap"])), " ".join(map(str, job["stage_ids"]))),
    ):
        yield Figure(name=name, of=of, theirs=theirs, ours=ours)
    tasks = [task for task in tables.tasks if task["stage_id"] in job["stage_ids"]]
    yield from _metrics(of, answer["jobMetrics"], tasks)


def _stage(stage_id: int, answer: Mapping[str, Any], tables: LogTables) -> Iterator[Figure]:
    of = f"stage {stage_id}"
    (stage,) = (stage for stage in tables.stages if stage["stage_id"] == stage_id)
    run = _run(stage_id, tables)
    tasks = tables.tasks_of(stage_id, 0)
    by_index = sorted(tasks, key=lambda task: int(task["partition_id"]))
    squares_ms2 = (run["task_sd_s"] * MS_PER_S) ** 2 * (run["num_finished"] - 1)
    for name, theirs, ours in (
        ("stage: start, ms", answer["startTime"], stage["submitted_s"] * MS_PER_S),
        ("stage: end, ms", answer["endTime"], stage["completed_s"] * MS_PER_S),
        ("stage: tasks", answer["numberOfTasks"], stage["num_tasks"]),
        ("stage: parents", str(answer["parentStageIDs"]), str(stage["parent_ids"])),
        ("stage: first launch, ms", answer["minTaskLaunchTime"], run["first_launch_s"] * MS_PER_S),
        (
            "stage: first launch to last finish, ms",
            answer["maxTaskFinishTime"] - answer["minTaskLaunchTime"],
            run["launch_to_finish_s"] * MS_PER_S,
        ),
        (
            "stage: run time of each task, ms",
            answer["taskExecutionTimes"],
            str([round(task["run_s"] * MS_PER_S) for task in by_index]).replace(" ", ""),
        ),
        (
            "stage: mean task time, ms",
            answer["stageMetrics"]["map"]["taskDuration"]["mean"],
            run["task_mean_s"] * MS_PER_S,
        ),
        (
            "stage: longest task, ms",
            answer["stageMetrics"]["map"]["taskDuration"]["max"],
            run["task_max_s"] * MS_PER_S,
        ),
        (
            "stage: squared deviations of task times, ms2",
            answer["stageMetrics"]["map"]["taskDuration"]["variance"],
            squares_ms2,
        ),
    ):
        yield Figure(name=name, of=of, theirs=theirs, ours=ours)
    yield from _metrics(of, answer["stageMetrics"], tasks)


def _run(stage_id: int, tables: LogTables) -> Mapping[str, Any]:
    (run,) = (run for run in tables.stage_runs if run["stage_id"] == stage_id)
    return run


def _metrics(of: str, answer: Mapping[str, Any], tasks: Rows) -> Iterator[Figure]:
    """Sum, minimum and maximum of each metric over the tasks of the application, a job etc."""
    yield Figure(name="tasks", of=of, theirs=answer["count"], ours=len(tasks))
    for metric, (name, column, per_ours) in _METRICS.items():
        values = [task[column] * per_ours for task in tasks]
        theirs = answer["map"][metric]
        for key, what, ours in (
            ("value", "sum", sum(values)),
            ("min", "minimum", min(values)),
            ("max", "maximum", max(values)),
        ):
            yield Figure(name=f"{what} of {name}", of=of, theirs=theirs[key], ours=ours)
