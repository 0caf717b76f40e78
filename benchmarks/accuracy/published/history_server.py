"""What Spark's History Server answered about published logs, compared with our tables.

Its answers do not name the application they are about; the requests that Spark's own tests made
do. Of several answers about one thing, all are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from published.figures import (
    MS_PER_S,
    Figure,
    LogTables,
    Mechanism,
    Rows,
    Value,
)
from published.history_server_metrics import METRICS, QUANTILES

_ANSWERS = "axiomsl+spark/core/src/test/resources/HistoryServerExpectations"
_SUFFIX = "_expectation.json"
_LOGS = "axiomsl+spark/core/src/test/resources/spark-events"

_SHELL = "local-1422981780767"
_MANY_TASKS = "local-1430917381534"
_NODE_EXCLUDED = "app-20161116163331-0000"
_NODE_INCLUDED = "app-20161115172038-0000"
_STAGE_EXCLUDED = "app-20180109111548-0000"
_STAGE_NODE_EXCLUDED = "application_1516285256255_0012"
_EXECUTORMETRICS = "application_1553914137147_0018"

LOGS = tuple(
    f"{_LOGS}/{name}"
    for name in (
        _SHELL,
        _MANY_TASKS,
        _NODE_EXCLUDED,
        _NODE_INCLUDED,
        _STAGE_EXCLUDED,
        _STAGE_NODE_EXCLUDED,
        _EXECUTORMETRICS,
        "application_1578436911597_0052",
        "local-1422981759269",
        "local-1425081759269",
        "local-1430917381535_1",
        "local-1430917381535_2",
    )
)

_JOBS = {
    "job_list_json": _SHELL,
    "one_job_json": _SHELL,
    "succeeded_job_list_json": _SHELL,
    "succeeded_failed_job_list_json": _SHELL,
}
_STAGES = {
    "stage_list_json": _SHELL,
    "complete_stage_list_json": _SHELL,
    "failed_stage_list_json": _SHELL,
    "one_stage_json": _SHELL,
    "one_stage_json_with_details": _SHELL,
    "one_stage_attempt_json": _SHELL,
    "one_stage_attempt_json_details_with_failed_task": _SHELL,
    "excludeOnFailure_for_stage": _STAGE_EXCLUDED,
    "excludeOnFailure_node_for_stage": _STAGE_NODE_EXCLUDED,
}
_TASKS = {
    "stage_task_list": _MANY_TASKS,
    "stage_task_list_w__offset___length": _MANY_TASKS,
    "stage_task_list_w__sortBy": _MANY_TASKS,
    "stage_task_list_w__sortBy_short_names___runtime": _MANY_TASKS,
    "stage_task_list_w__sortBy_short_names__runtime": _MANY_TASKS,
    "stage_task_list_w__status": _NODE_INCLUDED,
    "stage_task_list_w__status___offset___length": _MANY_TASKS,
    "stage_task_list_w__status___sortBy_short_names__runtime": _MANY_TASKS,
}
_SUMMARIES = {
    "stage_task_summary_w_shuffle_write": 0,
    "stage_task_summary_w__custom_quantiles": 0,
    "stage_task_summary_w_shuffle_read": 1,
}
_EXECUTORS = {
    "executor_list_json": _SHELL,
    "executor_memory_usage": _NODE_EXCLUDED,
    "executor_node_excludeOnFailure": _NODE_EXCLUDED,
    "executor_node_excludeOnFailure_unexcluding": _NODE_INCLUDED,
    "executor_list_with_executor_metrics_json": _EXECUTORMETRICS,
}

_FAILED_TASKS = "the History Server includes the figures of failed tasks, but our sums do not"
_PEAKS_ADDED = "the History Server adds up the peaks of all tasks, but ours is that of one"
_DRIVER_UPTIME = "for a driver, the History Server reports the uptime, but we the time of its tasks"
_DRIVER_COLLECTION = (
    "for a driver, the History Server reports the value of its executor metrics, but we that of "
    "its tasks; logs from before Spark 1.4 have no executor metrics"
)


def answers() -> list[str]:
    """The files that are compared, below the folder of what other tools computed."""
    names = (
        "completed_app_list_json", "app_environment",
        *_JOBS, *_STAGES, *_TASKS, *_SUMMARIES, *_EXECUTORS,
    )  # fmt: skip
    return [f"{_ANSWERS}/{name}{_SUFFIX}" for name in names]


def figures(expected: Path, tables: Mapping[str, LogTables]) -> Iterator[Figure]:
    """All figures that both have, by the folder of what other tools computed and our tables."""
    folder = expected / _ANSWERS
    logs = {log.removeprefix(f"{_LOGS}/"): tables[log] for log in LOGS}
    yield from _applications(_answer(folder, "completed_app_list_json"), logs)
    yield from _environment(_answer(folder, "app_environment"), logs[_NODE_EXCLUDED])
    for answer, log in _JOBS.items():
        for job in _as_list(_answer(folder, answer)):
            yield from _job(job, logs[log], f"{log} job {job['jobId']}")
    for answer, log in _STAGES.items():
        for stage in _as_list(_answer(folder, answer)):
            yield from _stage(stage, logs[log], f"{log} stage {stage['stageId']}")
    for answer, log in _TASKS.items():
        by_id = {task["task_id"]: task for task in logs[log].tasks}
        for task in _as_list(_answer(folder, answer)):
            yield from _task(task, by_id[task["taskId"]], f"{log} task {task['taskId']}")
    for answer, stage_id in _SUMMARIES.items():
        tasks = logs[_MANY_TASKS].tasks_of(stage_id, 0)
        yield from _summary(_answer(folder, answer), tasks, f"{_MANY_TASKS} stage {stage_id}")
    for answer, log in _EXECUTORS.items():
        for executor in _as_list(_answer(folder, answer)):
            yield from _executor(executor, logs[log], f"{log} executor {executor['id']}")


def _answer(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}{_SUFFIX}").read_text())


def _as_list(answer: Any) -> list[dict[str, Any]]:
    return answer if isinstance(answer, list) else [answer]


def _applications(
    answer: Sequence[Mapping[str, Any]], logs: Mapping[str, LogTables]
) -> Iterator[Figure]:
    attempts = {
        (application["id"], attempt["startTimeEpoch"]): (application, attempt)
        for application in answer
        for attempt in application["attempts"]
    }
    for log, tables in logs.items():
        ours = tables.application
        key = (ours["application_id"], round(ours["started_s"] * MS_PER_S))
        application, attempt = attempts[key]
        ended_ms = ours["ended_s"] * MS_PER_S
        started_ms = ours["started_s"] * MS_PER_S
        yield _figure("application: start, ms", log, attempt["startTimeEpoch"], started_ms)
        yield _figure("application: end, ms", log, attempt["endTimeEpoch"], ended_ms)
        yield _figure("application: duration, ms", log, attempt["duration"], ended_ms - started_ms)
        yield _figure("application: name", log, application["name"], ours["application_name"])
        yield _figure(
            "application: Spark version",
            log,
            attempt["appSparkVersion"],
            ours["spark_version"] or "",
        )


def _environment(answer: Mapping[str, Any], tables: LogTables) -> Iterator[Figure]:
    ours = tables.application
    yield _figure(
        "environment: Java version",
        _NODE_EXCLUDED,
        answer["runtime"]["javaVersion"],
        ours["java_version"],
    )
    theirs = dict(answer["sparkProperties"])
    for key, value in sorted(ours["properties"].items()):
        yield _figure("environment: properties", f"{_NODE_EXCLUDED} {key}", theirs[key], value)


def _job(answer: Mapping[str, Any], tables: LogTables, of: str) -> Iterator[Figure]:
    (job,) = (job for job in tables.jobs if job["job_id"] == answer["jobId"])
    stages = [stage for stage in tables.stages if stage["stage_id"] in job["stage_ids"]]
    tasks = [task for task in tables.tasks if task["stage_id"] in job["stage_ids"]]
    num_finished = sum(task["succeeded"] for task in tasks)
    status = {True: "SUCCEEDED", False: "FAILED", None: "RUNNING"}[job["succeeded"]]
    for name, theirs, ours in (
        ("job: status", answer["status"], status),
        ("job: stages", _listed(answer["stageIds"]), _listed(job["stage_ids"])),
        ("job: tasks", answer["numTasks"], sum(stage["num_tasks"] for stage in stages)),
        ("job: tasks finished", answer["numCompletedTasks"], num_finished),
        ("job: tasks failed", answer["numFailedTasks"], len(tasks) - num_finished),
        (
            "job: stages finished",
            answer["numCompletedStages"],
            sum(not stage["failed"] for stage in stages),
        ),
        ("job: stages failed", answer["numFailedStages"], sum(s["failed"] for s in stages)),
    ):
        yield _figure(name, of, theirs, ours)


def _stage(answer: Mapping[str, Any], tables: LogTables, of: str) -> Iterator[Figure]:
    key = (answer["stageId"], answer["attemptId"])
    (stage,) = (row for row in tables.stages if (row["stage_id"], row["attempt_id"]) == key)
    (run,) = (row for row in tables.stage_runs if (row["stage_id"], row["attempt_id"]) == key)
    tasks = tables.tasks_of(*key)
    first_launch_s = min(task["launched_s"] for task in tasks)
    for name, theirs, ours in (
        ("stage: status", answer["status"], "FAILED" if stage["failed"] else "COMPLETE"),
        ("stage: tasks", answer["numTasks"], stage["num_tasks"]),
        ("stage: tasks finished", answer["numCompleteTasks"], run["num_finished"]),
        ("stage: tasks failed", answer["numFailedTasks"], run["num_failed"]),
        ("stage: submitted, ms", _ms(answer["submissionTime"]), stage["submitted_s"] * MS_PER_S),
        ("stage: completed, ms", _ms(answer["completionTime"]), stage["completed_s"] * MS_PER_S),
        (
            "stage: first launch, ms",
            _ms(answer["firstTaskLaunchedTime"]),
            first_launch_s * MS_PER_S,
        ),
    ):
        yield _figure(name, of, theirs, ours)
    for metric in METRICS:
        theirs = sum(answer[place] for place in metric.of_stage)
        total = sum(task[metric.column] for task in tasks) * metric.per_ours
        if metric.column != "peak_memory_bytes":
            yield _figure(f"sum over tasks: {metric.name}", of, theirs, total)
        if metric.column in run:
            why = _PEAKS_ADDED if metric.column == "peak_memory_bytes" else _FAILED_TASKS
            yield _figure(
                f"sum of stage: {metric.name}",
                of,
                theirs,
                run[metric.column] * metric.per_ours if run["num_finished"] else 0.0,
                Mechanism(why, total),
            )
    for executor_id, summary in answer.get("executorSummary", {}).items():
        yield from _executor_in_stage(
            summary,
            [task for task in tasks if task["executor_id"] == executor_id],
            f"{of} executor {executor_id}",
        )
    by_id = {task["task_id"]: task for task in tasks}
    for task in answer.get("tasks", {}).values():
        yield from _task(task, by_id[task["taskId"]], f"{of} task {task['taskId']}")


def _executor_in_stage(answer: Mapping[str, Any], tasks: Rows, of: str) -> Iterator[Figure]:
    num_finished = sum(task["succeeded"] for task in tasks)
    for name, theirs, ours in (
        ("tasks finished", answer["succeededTasks"], num_finished),
        ("tasks failed", answer["failedTasks"], len(tasks) - num_finished),
        ("task time, ms", answer["taskTime"], _total(tasks, "wall_s") * MS_PER_S),
        ("input, bytes", answer["inputBytes"], _total(tasks, "input_bytes")),
        ("shuffle read, bytes", answer["shuffleRead"], _total(tasks, "shuffle_read_bytes")),
        ("shuffle write, bytes", answer["shuffleWrite"], _total(tasks, "shuffle_write_bytes")),
        ("spilled, bytes", answer["memoryBytesSpilled"], _total(tasks, "spilled_bytes")),
    ):
        yield _figure(f"executor in a stage: {name}", of, theirs, ours)


def _task(answer: Mapping[str, Any], task: Mapping[str, Any], of: str) -> Iterator[Figure]:
    for name, theirs, ours in (
        ("task: status", answer["status"], "SUCCESS" if task["succeeded"] else "FAILED"),
        ("task: partition", answer["index"], task["partition_id"]),
        ("task: executor", answer["executorId"], task["executor_id"]),
        ("task: launched, ms", _ms(answer["launchTime"]), task["launched_s"] * MS_PER_S),
        ("task: duration, ms", answer["duration"], task["wall_s"] * MS_PER_S),
        (
            "task: scheduler delay, ms",
            answer["schedulerDelay"],
            task["scheduler_delay_s"] * MS_PER_S,
        ),
    ):
        yield _figure(name, of, theirs, ours)
    for metric in METRICS:
        theirs = sum(_at(answer["taskMetrics"], place) for place in metric.of_task)
        ours = task[metric.column] * metric.per_ours
        yield _figure(f"task: {metric.name}", of, theirs, ours)


def _summary(answer: Mapping[str, Any], tasks: Rows, of: str) -> Iterator[Figure]:
    """Quantiles as the History Server takes them: one of the values, the rank rounded down."""
    finished = [task for task in tasks if task["succeeded"]]
    for place, (column, per_ours) in QUANTILES.items():
        ordered = sorted(task[column] * per_ours for task in finished)
        values = _at(answer, place.split("."))
        for quantile, theirs in zip(answer["quantiles"], values, strict=True):
            ours = ordered[min(int(quantile * len(ordered)), len(ordered) - 1)]
            yield _figure(f"quantile over tasks: {place}", f"{of} {quantile}", theirs, ours)


def _executor(answer: Mapping[str, Any], tables: LogTables, of: str) -> Iterator[Figure]:
    said = [
        event for event in tables.application["executors"] if event["executor_id"] == answer["id"]
    ]
    tasks = [task for task in tables.tasks if task["executor_id"] == answer["id"]]
    num_finished = sum(task["succeeded"] for task in tasks)
    uptime_ms = tables.duration_s * MS_PER_S
    cores = max((event["num_cores"] for event in said if event["num_cores"]), default=0)
    for name, theirs, ours in (
        ("cores", answer["totalCores"], cores),
        ("tasks", answer["totalTasks"], len(tasks)),
        ("tasks finished", answer["completedTasks"], num_finished),
        ("tasks failed", answer["failedTasks"], len(tasks) - num_finished),
        ("input, bytes", answer["totalInputBytes"], _total(tasks, "input_bytes")),
        ("shuffle read, bytes", answer["totalShuffleRead"], _total(tasks, "shuffle_read_bytes")),
        ("shuffle write, bytes", answer["totalShuffleWrite"], _total(tasks, "shuffle_write_bytes")),
    ):
        yield _figure(f"executor: {name}", of, theirs, ours)
    added = [event["at_s"] for event in said if event["num_cores"] is not None]
    if added:
        yield _figure("executor: added, ms", of, _ms(answer["addTime"]), min(added) * MS_PER_S)
    is_driver = answer["id"] == "driver"
    yield _figure(
        "executor: task time, ms",
        of,
        answer["totalDuration"],
        _total(tasks, "wall_s") * MS_PER_S,
        Mechanism(_DRIVER_UPTIME, uptime_ms) if is_driver else None,
    )
    yield _figure(
        "executor: garbage collection, ms",
        of,
        answer["totalGCTime"],
        _total(tasks, "gc_s") * MS_PER_S,
        _driver_collection(answer) if is_driver else None,
    )


def _driver_collection(answer: Mapping[str, Any]) -> Mechanism | None:
    peaks = answer.get("peakMemoryMetrics")
    return None if peaks is None else Mechanism(_DRIVER_COLLECTION, peaks["TotalGCTime"])


def _figure(
    name: str, of: str, theirs: Value, ours: Value, mechanism: Mechanism | None = None
) -> Figure:
    return Figure(name=name, of=of, theirs=theirs, ours=ours, mechanism=mechanism)


def _total(tasks: Rows, column: str) -> float:
    return float(sum(task[column] for task in tasks))


def _at(answer: Mapping[str, Any], place: Iterable[str]) -> Any:
    found: Any = answer
    for key in place:
        found = found[key]
    return found


def _listed(numbers: Iterable[int]) -> str:
    return " ".join(str(number) for number in sorted(numbers))


def _ms(text: str) -> float:
    """Milliseconds since the epoch of an instant as the History Server writes it."""
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC)
    return moment.timestamp() * MS_PER_S
