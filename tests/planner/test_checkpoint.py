"""What a checkpoint fixes stays, and what a new one would win is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway.domain import (
    Arrivals,
    FindingCode,
    JobProfile,
    NodeType,
    Objective,
    StreamAnswer,
    Target,
)
from headway.domain.question import Checkpoint
from headway.errors import InputError
from headway.planner.checkpoint import pinned_partitions
from headway.planner.question import SearchSpace
from tests.factories import a_profile
from tests.planner.jobs import with_memory
from tests.planner.plans import plan
from tests.seeds import first_of

TARGET = Target.parse("p99 <= 2s")
SPACE = SearchSpace(max_nodes=8, cores_per_executor=4)


def pinned_at(partitions: int, spark_version: str = "4.3.0") -> JobProfile:
    profile = a_profile(state_partitions=partitions)
    application = replace(profile.applications[0], spark_version=spark_version)
    return replace(profile, applications=(application,))


def with_partitions(profile: JobProfile, partitions: int) -> JobProfile:
    """The job, profiled at a number of shuffle partitions."""
    run = profile.settings[-1]
    configuration = replace(run.configuration, shuffle_partitions=partitions)
    return replace(profile, settings=(replace(run, configuration=configuration),))


def answer(
    profile: JobProfile, checkpoint: Checkpoint | None, rate_per_s: float = 5000.0
) -> StreamAnswer:
    return plan(profile, Arrivals(rate_per_s=rate_per_s), TARGET, SPACE, checkpoint=checkpoint)


@pytest.mark.parametrize("partitions", first_of([3, 200, 1, 8], 2))
@pytest.mark.parametrize("rate_per_s", [500.0, 50000.0, 1e7])
def test_an_existing_checkpoint_keeps_its_partitions(partitions: int, rate_per_s: float) -> None:
    found = answer(pinned_at(partitions), "existing", rate_per_s)
    assert found.configuration.shuffle_partitions == partitions
    assert all(
        point.configuration is None or point.configuration.shuffle_partitions == partitions
        for point in found.frontier
    )
    if found.feasible:
        rejected = [one.configuration.shuffle_partitions for one in found.rejected]
        ruled = [one.configuration.shuffle_partitions for one in found.rules]
        assert {*rejected, *ruled} <= {partitions}
    (setting,) = [one for one in found.settings if one.setting == "shuffle partitions"]
    assert setting.applies == "new checkpoint"
    assert setting.pinned_by == "the existing checkpoint"


@pytest.mark.parametrize(("version", "offline"), [("4.3.0", True), ("4.1.2", False), ("?", False)])
def test_what_a_new_checkpoint_would_win_is_said(version: str, offline: bool) -> None:
    # 200 tasks of 60 ms on few slots: that many partitions are what makes the batch long.
    found = answer(pinned_at(200, version), "existing")
    (advice,) = [
        one for one in found.advice if "the checkpoint fixes 200 shuffle partitions" in one.text
    ]
    assert ("repartition the state" in advice.text) == offline
    free = answer(pinned_at(200, version), "new")
    assert advice.latency_s is not None
    assert free.nodes < found.nodes or advice.latency_s < found.planned_latency_s
    if free.nodes < found.nodes:
        assert f"would need only {free.nodes} node" in advice.text


@pytest.mark.parametrize(("checkpoint", "partitions"), [(None, 16), ("existing", 16)])
def test_a_new_checkpoint_gains_what_its_partitions_do_and_no_shorter_trigger(
    checkpoint: Checkpoint | None, partitions: int
) -> None:
    profile, space = with_partitions(pinned_at(partitions), partitions), replace(SPACE, max_nodes=1)
    arrivals = Arrivals(rate_per_s=5000.0)
    planned = plan(profile, arrivals, TARGET, space, checkpoint=checkpoint)
    assert planned.configuration.shuffle_partitions == partitions
    trigger_s = planned.configuration.trigger_s
    free = replace(space, trigger_s=trigger_s)
    fixed = f"the checkpoint fixes {partitions} shuffle partitions"
    (advice,) = [advice for advice in planned.advice if advice.text.startswith(fixed)]
    others = [
        plan(profile, arrivals, TARGET, replace(free, shuffle_partitions=number), checkpoint="new")
        for number in free.partition_choices(profile, 1)
        # Fewer than slots would leave some idle for good.
        if number >= free.num_slots(1)
    ]
    assert advice.latency_s == min(other.planned_latency_s for other in others)
    assert advice.latency_s > 0.5 * trigger_s


def test_a_plan_that_costs_the_state_says_whether_the_checkpoint_would_do() -> None:
    profile = with_partitions(a_profile(), 2)
    space, arrivals = replace(SPACE, executors_per_node=2, max_nodes=1), a_profile().arrivals
    target = Target.parse("p99 <= 5s")
    free = plan(profile, arrivals, target, space)
    assert free.configuration.shuffle_partitions >= 8
    (finding,) = [
        finding for finding in free.findings if finding.code is FindingCode.CHECKPOINT_WOULD_DO
    ]
    with_state = plan(profile, arrivals, target, space, checkpoint="existing")
    assert finding.numbers == {"partitions": 2, "latency_s": with_state.planned_latency_s}
    new = plan(profile, arrivals, target, space, checkpoint="new")
    for answer in (new, with_state):
        codes = {finding.code for finding in answer.findings}
        assert FindingCode.CHECKPOINT_WOULD_DO not in codes


@pytest.mark.parametrize(("objective", "today"), [("nodes", 2), ("cost", 2), ("latency", 16)])
def test_what_the_checkpoint_would_do_is_what_a_plan_with_it_says(
    objective: Objective, today: int
) -> None:
    profile = with_partitions(a_profile(), today)
    space, arrivals = replace(SPACE, executors_per_node=2), a_profile().arrivals
    target, node_type = Target.parse("p99 <= 5s"), NodeType.parse("n:cores=8,price=0.2")
    options: dict[str, Any] = {"objective": objective, "node_types": (node_type,)}
    free = plan(profile, arrivals, target, space, **options)
    assert free.configuration.shuffle_partitions != today
    (finding,) = [
        finding for finding in free.findings if finding.code is FindingCode.CHECKPOINT_WOULD_DO
    ]
    with_state = plan(profile, arrivals, target, space, **options, checkpoint="existing")
    assert finding.numbers["latency_s"] == with_state.planned_latency_s
    assert finding.numbers.get("nodes", free.nodes) == with_state.nodes
    assert finding.numbers.get("added_cost_per_hour", 0.0) == pytest.approx(
        (with_state.cost or 0.0) - (free.cost or 0.0)
    )


@pytest.mark.parametrize("limit", ["130ms", "200ms", "250ms"])
def test_without_a_checkpoint_that_is_kept_a_new_one_makes_no_target_feasible(limit: str) -> None:
    """The search has tried every number of shuffle partitions on every number of nodes."""
    num_alike = 0
    for partitions in (1, 2, 4, 8):
        profile = with_partitions(pinned_at(partitions), partitions)
        target = Target.parse(f"p99 <= {limit}")
        free = plan(profile, Arrivals(rate_per_s=5000.0), target, SPACE)
        assert not free.feasible
        num_alike += free.configuration.shuffle_partitions == partitions
        assert not any("a new one with" in advice.text for advice in free.advice)
    assert num_alike > 0


def test_where_only_a_new_checkpoint_meets_the_target_it_says_with_how_many_nodes() -> None:
    profile, space = pinned_at(200), replace(SPACE, max_nodes=2)
    arrivals, target = Arrivals(rate_per_s=5000.0), Target.parse("p99 <= 1s")
    with_state = plan(profile, arrivals, target, space, checkpoint="existing")
    new = plan(profile, arrivals, target, space, checkpoint="new")
    assert new.feasible
    assert not with_state.feasible
    (advice,) = [advice for advice in with_state.advice if "a new one with" in advice.text]
    nodes = "1 node" if new.nodes == 1 else f"{new.nodes} nodes"
    assert f" would meet p99 <= 1.00 s with {nodes}; " in advice.text


def test_of_nodes_that_lower_the_latency_a_new_checkpoint_saves_none() -> None:
    """With fewer of them, the existing checkpoint meets the target, too."""
    profile, arrivals = with_partitions(pinned_at(16), 16), Arrivals(rate_per_s=50_000.0)
    options: dict[str, Any] = {"checkpoint": "existing"}
    fewest = plan(profile, arrivals, TARGET, SPACE, **options)
    fastest = plan(profile, arrivals, TARGET, SPACE, objective="latency", **options)
    assert fewest.nodes < fastest.nodes
    assert not any("would need only" in advice.text for advice in fastest.advice)


def test_a_plan_that_is_free_fixes_nothing() -> None:
    found = answer(pinned_at(200), "new")
    assert not any("the checkpoint fixes" in one.text for one in found.advice)
    assert all(one.pinned_by is None for one in found.settings)


def test_a_query_without_state_is_pinned_by_older_sparks_only() -> None:
    shape = replace(a_profile().shape, stateful_operators=())
    assert pinned_partitions(replace(pinned_at(5), shape=shape)) is None
    assert pinned_partitions(replace(pinned_at(5, "3.5.6"), shape=shape)) == 5
    nothing_known = a_profile()
    assert pinned_partitions(nothing_known) == a_profile().baseline.shuffle_partitions


def test_other_partitions_than_the_checkpoint_holds_are_one_line() -> None:
    space = replace(SPACE, shuffle_partitions=16)
    arrivals = Arrivals(rate_per_s=5000.0)
    with pytest.raises(InputError, match="partitions 16 contradicts checkpoint existing"):
        plan(pinned_at(8), arrivals, TARGET, space, checkpoint="existing")
    same = plan(pinned_at(16), arrivals, TARGET, space, checkpoint="existing")
    assert same.configuration.shuffle_partitions == 16


def test_every_setting_of_a_plan_says_in_words_what_it_is_and_when_it_applies() -> None:
    rocksdb = with_memory(rocksdb=True)
    python = replace(
        rocksdb,
        shape=replace(rocksdb.shape, python_operators=("MapInPandas",)),
        applications=(
            replace(rocksdb.applications[0], properties={"spark.executor.pyspark.memory": "1g"}),
        ),
    )
    settings = plan(
        python, Arrivals(rate_per_s=5000.0), Target.parse("p99 <= 3s"), SearchSpace(max_nodes=4)
    ).settings
    applies = {one.key: str(one.applies) for one in settings}
    assert applies["spark.executor.pyspark.memory"] == "new application"
    assert applies["spark.executor.memoryOverhead"] == "new application"
    assert applies["spark.sql.shuffle.partitions"] == "new checkpoint"
    assert applies["trigger"] == "restart"
    assert not any(one.setting == one.key for one in settings if one.key != "trigger")
