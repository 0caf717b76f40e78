"""What the driver and the cores of tasks allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import headway
from headway.domain import (
    Arrivals,
    DefaultParallelism,
    NodeType,
    RecordSplits,
    SourceTasks,
    StreamAnswer,
    Target,
)
from headway.errors import InputError
from headway.planner.question import SearchSpace
from headway.planner.tasks import launch_ratio, launches_per_s, most_launches_per_s
from headway.words import all_words
from tests.factories import a_configuration, a_profile
from tests.planner.plans import plan

TARGET = Target.parse("p99 <= 3.2s")
ARRIVALS = Arrivals(rate_per_s=5000.0)


def planned(space: SearchSpace) -> StreamAnswer:
    return plan(a_profile(), ARRIVALS, TARGET, space, confidence=0.5)


def test_settings_that_launch_more_than_drivers_manage_are_out_with_the_number() -> None:
    space = SearchSpace(max_nodes=2, cores_per_executor=1000, shuffle_partitions=6000)
    found = planned(space)
    assert found.feasible
    assert found.configuration.trigger_s * 4500.0 >= 6004
    reasons = [one.reason for one in found.rejected if "task launches/s" in one.reason]
    assert reasons
    assert "above the driver's maximum of 4,500" in reasons[0]
    assert not planned(replace(space, trigger_s=1.0)).feasible
    assert planned(replace(space, trigger_s=1.5)).feasible


def test_a_driver_that_was_seen_to_launch_more_manages_more() -> None:
    assert most_launches_per_s(a_profile()) == 4500.0
    seen = replace(
        a_profile().settings[0],
        configuration=a_configuration(shuffle_partitions=7996, trigger_s=0.5),
        batch_duration_mean_s=0.8,
    )
    assert most_launches_per_s(replace(a_profile(), settings=(seen,))) == pytest.approx(10_000.0)


def test_a_source_with_a_task_per_core_launches_as_many() -> None:
    per_core = SourceTasks(parallelism=DefaultParallelism())
    source, *others = a_profile().stages
    job = replace(a_profile(), stages=(replace(source, source_tasks=per_core), *others))
    slots, partitions = np.array([10, 6000]), np.array([8, 8])
    setting = slots, partitions, np.array([100.0, 100.0]), np.array([1.0, 1.0])
    assert launches_per_s(job, *setting) - launches_per_s(a_profile(), *setting) == pytest.approx(
        slots - source.num_source_tasks
    )
    assert (launch_ratio(job, *setting) > 1.0).tolist() == [False, True]


def test_a_longer_trigger_is_advised_only_where_it_saves_launches() -> None:
    """A task for every 1000 rows is launched as often at any trigger interval."""
    source, *others = a_profile().stages
    records = RecordSplits(topic_partitions=4, max_records=1000)
    by_rows = replace(source, source_tasks=SourceTasks(records=records))
    cases = (
        (replace(source, num_source_tasks=2000), 5000.0, "p99 <= 2s", True),
        (by_rows, 3e6, "p99 <= 30s", False),
    )
    for stage, rate, target, saves in cases:
        job = replace(a_profile(), stages=(stage, *others))
        plan = headway.plan(job, rate=rate, target=target, trigger=1.0, cores=8, max_nodes=10)
        (text,) = [advice.text for advice in plan.advice if "driver launches" in advice.text]
        assert ("a trigger interval of" in text) is saves


def test_tasks_of_several_cores_leave_fewer_slots() -> None:
    one = headway.plan(a_profile(), rate=5000.0, target=TARGET, cores=4)
    two = headway.plan(a_profile(), rate=5000.0, target=TARGET, cores=4, task_cpus=2)
    assert one.configuration.num_slots == 4 * one.configuration.executors
    assert two.configuration.num_slots == 2 * two.configuration.executors
    assert two.spark_conf["spark.task.cpus"] == "2"
    assert "spark.task.cpus" not in one.spark_conf
    assert two.nodes >= one.nodes


def test_cores_that_no_task_can_use_are_reported() -> None:
    found = headway.plan(a_profile(), rate=5000.0, target=TARGET, cores=5, task_cpus=2)
    assert found.configuration.num_slots == 2 * found.configuration.executors
    assert any("1 core of the 5" in text for text in all_words(found.findings))


def test_a_task_that_fits_no_executor_is_refused_by_name() -> None:
    with pytest.raises(
        InputError, match=r"2 cores has no room for a task of 4 \(spark.task.cpus\)"
    ):
        headway.plan(a_profile(), rate=5000.0, target=TARGET, cores=2, task_cpus=4)
    with pytest.raises(ValueError, match="task_cpus"):
        a_configuration(task_cpus=5)


def test_executors_on_nodes_make_whole_tasks() -> None:
    kind = NodeType(name="n", cores=12, price_per_hour=1.0)
    profile = replace(
        a_profile(),
        settings=(
            replace(
                a_profile().settings[0],
                configuration=a_configuration(cores_per_executor=3, task_cpus=2),
            ),
        ),
    )
    found = headway.plan(profile, rate=5000.0, target=TARGET, cores=None, node_types=[kind])
    assert found.configuration.task_cpus == 2
    assert found.configuration.cores_per_executor % 2 == 0
