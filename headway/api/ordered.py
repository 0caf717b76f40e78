"""Partition count and placement of keys for work that keeps rows of a key in order."""

from __future__ import annotations

from pathlib import Path

from headway.api.arguments import arrivals_from, job_from, key_counts
from headway.api.predict import configuration_of
from headway.domain import JobProfile
from headway.domain.argument import read_question
from headway.domain.ordered import KeyCounts, OrderedPlan
from headway.domain.question import PredictQuestion
from headway.errors import InputError
from headway.planner.ordered import plan_ordered


def ordered_plan(
    profile: JobProfile | str | Path,
    keys: KeyCounts | str | Path,
    *,
    rate: float | str | None = None,
    trigger: float | str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    stage: str | None = None,
    key_type: str | None = None,
    total_rows: float | None = None,
) -> OrderedPlan:
    """Shuffle partitions, placement of heavy keys and limits of a stage under skew.

    Parameters
    ----------
    profile : JobProfile or path
        The job, profiled with its work per key.
    keys : KeyCounts or path
        How often each key occurs: a CSV file with the columns ``key`` and ``count``, or JSON lines.
    rate, trigger, executors, cores, partitions
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

    job = job_from(profile)
    counts = key_counts(keys, key_type=key_type, total_rows=total_rows)
    if counts is None:
        raise InputError("keys is missing; expected a file that says how often each key occurs")
    configuration = configuration_of(
        job.baseline,
        read_question(
            PredictQuestion,
            {"trigger": trigger, "executors": executors, "cores": cores, "partitions": partitions},
        ),
    )
    return plan_ordered(
        job, configuration, arrivals_from(job, rate).rate_per_s, counts, stage_name=stage
    )
