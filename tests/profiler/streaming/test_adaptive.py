"""Adaptive execution is recognised by its plan and its numbers of tasks, and a note says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.domain import Coalescing, TasksRule
from headway.models.job.switches import without_coalescing
from headway.models.stages.task_counts import coalesced_tasks
from headway.planner.tasks import with_usual_tasks
from headway.profiler.plan_text import read_plan
from headway.profiler.streaming.adaptive import adaptive_settings
from tests.profiler.event_log import AppLog, Query, Stage, write_plain

RULE = Coalescing(exchange_bytes_per_row=100.0, advisory_bytes=2**26, smallest_bytes=2**20)
READ = Stage(num_tasks=2, per_row_s=10e-6, scopes=("Scan json",))


def by_rule(size_bytes: int) -> int:
    return coalesced_tasks(RULE, size_bytes, 4, 64)


def enriched(tasks_of_bytes: Callable[[int], int] = by_rule, **changes: object) -> Query:
    """A join without state whose exchange was coalesced from 64 partitions."""
    join = Stage(
        num_tasks=None, per_row_s=20e-6, bytes_per_row=100, tasks_of_bytes=tasks_of_bytes,
        scopes=("AQEShuffleRead",), reads_earlier_jobs=True,
    )  # fmt: skip
    query = Query(
        jobs=((READ,), (join,)), operators=(), partitions=64, num_batches=60, rate_per_s=2_000.0,
        load=((20.0, 10_000.0), (40.0, 50_000.0)), is_adaptive=True,
    )  # fmt: skip
    return replace(query, **changes)  # type: ignore[arg-type]


def profile_of(query: Query, folder: Path, **properties: str) -> headway.JobProfile:
    log = AppLog().add(query)
    for event in log.of("EnvironmentUpdate"):
        event["Spark Properties"] |= {
            key.replace("_", "."): text for key, text in properties.items()
        }
    return headway.profile(write_plain(log.lines, folder / "log"))


def test_a_coalesced_stage_is_recognised(tmp_path: Path) -> None:
    profile = profile_of(enriched(), tmp_path)
    join = profile.stages[1]
    assert join.tasks_rule == "coalesced"
    assert join.coalescing is not None
    assert join.coalescing.exchange_bytes_per_row == pytest.approx(100.0)
    assert replace(join.coalescing, exchange_bytes_per_row=100.0) == RULE
    assert join.task_per_row_s == pytest.approx(20e-6, rel=0.15)
    (note,) = [note for note in profile.notes if "adaptive execution" in note]
    assert "as many as there are cores" in note
    assert "less than 1m or more than 64m" in note
    place = tmp_path / "job.profile.yaml"
    profile.save(place)
    assert headway.load_profile(place).stages[1].coalescing == join.coalescing


def test_a_small_batch_is_predicted_with_few_tasks(tmp_path: Path) -> None:
    profile = profile_of(enriched(), tmp_path)
    # 5,000 rows of 100 bytes are less than a task may have, on any number of cores.
    small, wide = (
        headway.predict(profile, rate="5k/s", trigger="1s", executors=executors)
        for executors in (1, 8)
    )
    assert small.phases_s["stage 1"] == pytest.approx(wide.phases_s["stage 1"], rel=0.05)
    # 600,000 rows are 57 tasks of a mebibyte: more cores help.
    few, many = (
        headway.predict(profile, rate="40k/s", trigger="15s", executors=executors)
        for executors in (1, 8)
    )
    assert few.phases_s["stage 1"] > 3 * many.phases_s["stage 1"]


@pytest.mark.parametrize(
    ("query", "properties", "rule"),
    [
        (enriched(is_adaptive=False), {}, "fixed"),
        (enriched(), {"spark_sql_adaptive_coalescePartitions_enabled": "false"}, "fixed"),
        # A session may have settings that the log of the application lacks.
        (enriched(lambda _: 7), {}, "fixed"),
        (enriched(lambda _: 64), {}, "shuffle"),
        (enriched(lambda _: 64, operators=("stateStoreSave",)), {}, "shuffle"),
        # One task for less than a mebibyte, as if there were but one partition.
        (enriched(rate_per_s=5000.0, load=(), partitions=1), {}, "coalesced"),
        (
            enriched(rate_per_s=5000.0, load=(), partitions=1, operators=("stateStoreSave",)),
            {},
            "shuffle",
        ),
    ],
)
def test_tasks_that_the_rule_does_not_explain_are_not_coalesced(
    query: Query, properties: dict[str, str], rule: TasksRule, tmp_path: Path
) -> None:
    profile = profile_of(query, tmp_path, **properties)
    assert profile.stages[1].tasks_rule == rule
    is_noted = any("adaptive execution" in note for note in profile.notes)
    assert is_noted is (rule == "coalesced")


@pytest.mark.parametrize("operator", ["StateStoreSave", "StreamingGlobalLimit"])
def test_a_stage_with_state_is_never_coalesced(operator: str, tmp_path: Path) -> None:
    query = enriched(lambda _: 1)
    held = replace(query.jobs[1][0], scopes=(operator,))
    profile = profile_of(replace(query, jobs=(query.jobs[0], (held,))), tmp_path)
    assert profile.stages[1].tasks_rule == "fixed"


def test_settings_are_those_of_the_application() -> None:
    def of(version: str = "4.1.0", **stated: str) -> tuple[object, ...] | None:
        prefix = "spark.sql.adaptive."
        rule = adaptive_settings(
            {prefix + key.replace("_", "."): text for key, text in stated.items()}, version
        )
        if rule is None:
            return None
        sizes_bytes = (rule.advisory_bytes, rule.smallest_bytes)
        return (*sizes_bytes, rule.parallelism, rule.initial_partitions)

    assert of() == (64 * 2**20, 2**20, None, None)
    assert of("3.1.2") == (64 * 2**20, 16, None, None)
    assert of(enabled="false") is None
    assert of(coalescePartitions_parallelismFirst="false") == (64 * 2**20, 2**20, 1, None)
    assert of(
        coalescePartitions_minPartitionNum="12", advisoryPartitionSizeInBytes="8388608",
        coalescePartitions_minPartitionSize="100k", coalescePartitions_initialPartitionNum="500",
    ) == (8 * 2**20, 100 * 2**10, 12, 500)  # fmt: skip
    # Values that Spark would refuse are as if they were not set.
    assert of(advisoryPartitionSizeInBytes="much", coalescePartitions_minPartitionNum="-1") == of()


def test_other_rules_take_its_place(tmp_path: Path) -> None:
    profile = profile_of(enriched(), tmp_path)
    usual, off = with_usual_tasks(profile).stages[1], without_coalescing(profile).stages[1]
    assert (usual.tasks_rule, usual.num_source_tasks) == (
        "fixed", profile.stages[1].num_source_tasks,
    )  # fmt: skip
    assert (off.tasks_rule, off.num_source_tasks) == ("shuffle", None)


def test_the_text_of_a_plan_says_that_it_is_adaptive() -> None:
    plan = "== Physical Plan ==\nWriteToDataSourceV2 (3)\n+- {} (2)\n   +- Exchange (1)\n"
    assert read_plan(plan.format("AdaptiveSparkPlan")).is_adaptive
    assert not read_plan(plan.format("Project")).is_adaptive
