"""Partition count and placement of keys for work that keeps rows of a key in order."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from headway.api.arguments import arrivals_from, job_from, key_counts, require_startable_tasks
from headway.api.predict import RunOptions, configuration_of
from headway.domain import JobProfile
from headway.domain.argument import read_question, takes
from headway.domain.ordered import KeyCounts, OrderedPlan
from headway.domain.query_questions import OrderedQuestion
from headway.errors import InputError, argument
from headway.planner.kinds.ordered import plan_ordered


@takes(OrderedQuestion)
def ordered_plan(
    profile: JobProfile | str | Path,
    keys: KeyCounts | str | Path,
    *,
    stage: str | None = None,
    key_type: str | None = None,
    total_rows: float | None = None,
    **options: Unpack[RunOptions],
) -> OrderedPlan:
    """Shuffle partitions, placement of heavy keys and limits of a stage under skew.

    Parameters
    ----------
    profile : JobProfile or path
        The job, profiled with its work per key.
    keys : KeyCounts or path
        How often each key occurs: a CSV file with the columns ``key`` and ``count``, or JSON lines.
    rate, trigger, executors, cores, partitions, task_cpus
        As in :func:`headway.predict`; as profiled by default.
    stage : str
        The stage behind the exchange; by default the one with the most work.
    key_type : {"string", "int", "long"}
        Spark's type of the key column; by default long for numbers in JSON, else string.
    total_rows : float
        Rows of all keys, if the file has only the most frequent ones; the others are taken as even.

    Raises
    ------
    InputError
        If a file or a value is invalid.
    """
    about_keys = {"keys": keys, "stage": stage, "key_type": key_type, "total_rows": total_rows}
    question = read_question(OrderedQuestion, {**about_keys, **options})
    job = job_from(profile)
    counts = key_counts(question)
    if counts is None:
        raise InputError(
            f"{argument('keys')} is missing; expected a file that says how often each key occurs"
        )
    require_startable_tasks(job, question.task_cpus)
    return plan_ordered(
        job,
        configuration_of(job.baseline, question),
        arrivals_from(job, question.rate_per_s).rate_per_s,
        counts,
        stage_name=question.stage,
    )
