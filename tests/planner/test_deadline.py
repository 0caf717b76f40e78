"""Batch jobs planned for a deadline, against the simulation of their stages."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import headway
from headway.api.page import page as page_of
from headway.api.result_kinds import sheet_of
from headway.cli.main import run
from headway.domain import (
    ApplicationProfile,
    BatchAnswer,
    Cluster,
    Deadline,
    DeadlinePlan,
    FindingCode,
    NodeType,
    RecordedStage,
)
from headway.domain.configuration import task_slots
from headway.emitters import ALL_FORMATS
from headway.emitters.submission import Submission
from headway.errors import InputError
from headway.formats.as_json import deadline_json, json_text
from headway.formats.from_json import parse_any_plan
from headway.formats.profile_file import dump_profile
from headway.planner.kinds.batch_run_time import BatchRunTime
from headway.planner.kinds.deadline import _OfBatchJob, fewest_in_time, plan_for_deadline
from headway.planner.kinds.recorded_job import job_stages
from headway.planner.question import SearchSpace
from headway.report.sheet_text import sheet_text
from headway.words import all_words
from tests.domain.test_application_profile import a_batch_application, a_recorded_stage
from tests.factories import a_configuration, a_profile, load_application_profile
from tests.oracles.stage_dag import simulated_lognormal_stage_dag

NIGHTLY = Path(__file__).parents[2] / "examples" / "nightly-totals.profile.yaml"

TEN_MINUTES = Deadline(limit_s=600.0)
NODE = SearchSpace(max_nodes=40, executors_per_node=1, cores_per_executor=4)


def a_long_job() -> ApplicationProfile:
    """Two stages of many tasks behind each other, as run on eight cores."""
    first = a_recorded_stage(
        num_tasks=200, num_finished=200, task_mean_s=4.0, task_sd_s=1.0,
        task_max_s=8.0, task_fixed_s=0.05, submitted_s=5.0, completed_s=110.0,
    )  # fmt: skip
    second = replace(first, id=1, job=1, submitted_s=112.0, completed_s=216.0)
    profile = a_batch_application(stages=(first, second), duration_s=228.0, driver_only_s=20.0)
    return replace(profile, cluster=Cluster(executors=2, executors_mean=2.0, cores_per_executor=4))


def answer(limit_s: float, **options: object) -> BatchAnswer:
    return plan_for_deadline(
        a_long_job(),
        Deadline(limit_s=limit_s),
        [NODE],
        **options,  # type: ignore[arg-type]
    )


def test_the_profiled_run_is_modelled_as_it_was() -> None:
    found = answer(1e4)
    assert found.frontier[1].nodes == 2
    assert found.frontier[1].mean_s == pytest.approx(228.0)
    assert found.modelled_ratio == pytest.approx(1.0, abs=0.05)


def test_stages_without_parents_follow_the_one_that_ended_before_them() -> None:
    first, second = job_stages(a_long_job().stages)
    assert first.parents == ()
    assert second.parents == (0,)


def test_more_nodes_take_less_time_and_a_laxer_deadline_fewer_nodes() -> None:
    means_s = [point.mean_s for point in answer(100.0).frontier]
    assert all(later <= earlier * 1.001 for earlier, later in pairwise(means_s))
    nodes = [answer(limit_s).nodes for limit_s in (105.0, 120.0, 200.0, 400.0)]
    assert nodes == sorted(nodes, reverse=True)
    assert nodes[0] > nodes[-1]


@pytest.mark.parametrize("limit_s", [105.0, 130.0, 260.0])
def test_the_fewest_nodes_are_those_of_a_scan_and_hold_when_simulated(limit_s: float) -> None:
    found = answer(limit_s)
    assert found.feasible
    in_time = [point.nodes for point in found.frontier if point.planned_s <= limit_s]
    assert found.nodes == in_time[0]
    stages = tuple(job_stages(a_long_job().stages))
    simulated = simulated_lognormal_stage_dag(
        [(stage.num_tasks, stage.mean_s, stage.cv) for stage in stages],
        [stage.parents for stage in stages],
        found.executors * 4,
        num_replications=100,
        seed=1,
    )
    assert (simulated.run_time_s + 20.0 <= limit_s).mean() >= 0.95


def recorded_with_two_cores_a_task() -> ApplicationProfile:
    """The recorded example, which took 72.8 s on two slots, as four cores of two cores a task."""
    recorded = load_application_profile(NIGHTLY)
    cluster = replace(recorded.cluster, cores_per_executor=4, task_cpus=2)
    return replace(recorded, cluster=cluster)


def test_a_size_that_ran_longer_than_the_deadline_does_not_keep_it() -> None:
    profile = recorded_with_two_cores_a_task()
    assert profile.duration_s == pytest.approx(72.845)
    assert profile.cluster.num_slots == 2
    found = headway.plan(profile, target="deadline <= 60s", max_nodes=1)
    assert not found.feasible
    assert found.run.mean_s == pytest.approx(72.845, rel=1e-6)
    assert found.run.planned_s > 72.845


def test_cores_of_a_task_are_planned_with_emitted_and_shown() -> None:
    profile = recorded_with_two_cores_a_task()
    found = headway.plan(profile, target="deadline <= 60s")
    assert found.feasible
    assert found.nodes > 1
    assert found.task_cpus == 2
    assert found.spark_conf["spark.task.cpus"] == "2"
    assert "cores per task" not in {change.setting for change in found.changes}
    assert "x 4 cores (2 per task)" in sheet_text(sheet_of(found))
    asked = Submission(node_type="m6i.xlarge", image="i", main="s3://b/a.py")
    for name, chosen in ALL_FORMATS.items():
        if name != "declarative-pipelines":  # for streams alone
            assert "spark.task.cpus" in chosen.render(found, version="0", submission=asked), name


def test_fewer_cores_a_task_are_more_slots_and_a_change() -> None:
    profile = recorded_with_two_cores_a_task()
    found = headway.plan(profile, target="deadline <= 60s", task_cpus=1, max_nodes=1)
    # Spark's default is spelt out: the job may still be submitted with two.
    assert found.spark_conf["spark.task.cpus"] == "1"
    (change,) = [each for each in found.changes if each.setting == "cores per task"]
    assert (change.before, change.after) == ("2", "1")
    with pytest.raises(InputError, match=r"4 cores has no room for a task of 8"):
        headway.plan(profile, target="deadline <= 60s", task_cpus=8)


@given(executors=st.integers(1, 50), cores=st.integers(1, 64), task_cpus=st.integers(1, 64))
def test_every_noun_counts_the_same_slots(executors: int, cores: int, task_cpus: int) -> None:
    assume(task_cpus <= cores)
    slots = executors * (cores // task_cpus)
    size = {"cores_per_executor": cores, "task_cpus": task_cpus}
    assert task_slots(executors, **size) == slots
    assert Cluster(executors=executors, executors_mean=1.0, **size).num_slots == slots
    assert a_configuration(executors=executors, **size).num_slots == slots
    space = SearchSpace(max_nodes=executors, executors_per_node=1, **size)  # type: ignore[arg-type]
    assert space.num_slots(executors) == slots


def test_profiles_of_earlier_versions_name_the_cores_of_a_task_otherwise(tmp_path: Path) -> None:
    then = dump_profile(recorded_with_two_cores_a_task()).replace("task_cpus", "cpus_per_task")
    assert "cpus_per_task: 2" in then
    path = tmp_path / "then.profile.yaml"
    path.write_text(then, encoding="utf-8")
    assert load_application_profile(path).cluster.task_cpus == 2
    path.write_text(then.replace("cpus_per_task: 2", "cpus_per_task: two"), encoding="utf-8")
    with pytest.raises(InputError, match=r"cluster\.cpus_per_task: got 'two'"):
        load_application_profile(path)


def test_a_recorded_heap_without_unit_is_mebibytes_as_spark_reads_it() -> None:
    profile = a_long_job()
    application = replace(profile.application, executor_memory="4096")
    found = headway.plan(replace(profile, application=application), target="deadline <= 2m")
    assert found.spark_conf["spark.executor.memory"] == "4g"


def test_many_node_counts_are_thinned_without_missing_the_fewest() -> None:
    few = replace(NODE, max_nodes=400, cores_per_executor=1)
    wide = plan_for_deadline(a_long_job(), Deadline(limit_s=60.0), [few])
    near = replace(few, max_nodes=wide.nodes)
    assert len(wide.frontier) <= 64
    assert plan_for_deadline(a_long_job(), Deadline(limit_s=60.0), [near]).nodes == wide.nodes
    less = replace(few, max_nodes=wide.nodes - 1)
    assert not plan_for_deadline(a_long_job(), Deadline(limit_s=60.0), [less]).feasible


def test_a_deadline_below_the_longest_chain_is_out_of_reach() -> None:
    found = answer(25.0)
    assert not found.feasible
    assert found.floor_s > 25.0
    assert "no number of nodes suffices" in found.binding[1]


def test_the_cheapest_run_may_take_fewer_or_more_nodes() -> None:
    types = [
        replace(NODE, node_type=NodeType(name="slow", cores=4, price_per_hour=0.1)),
        replace(
            NODE,
            node_type=NodeType(name="fast", cores=4, price_per_hour=0.15, core_speed_ratio=2.0),
        ),
    ]
    plan_of = partial(plan_for_deadline, a_long_job(), Deadline(limit_s=150.0), types)
    cheapest, fewest = plan_of(objective="cost"), plan_of(objective="nodes")
    assert cheapest.run.cost_per_run is not None
    assert fewest.run.cost_per_run is not None
    assert cheapest.run.cost_per_run <= fewest.run.cost_per_run
    assert fewest.nodes <= cheapest.nodes
    assert cheapest.node_type is not None
    assert cheapest.node_type.name == "fast"


def test_what_has_no_deadline_is_one_line() -> None:
    streams = replace(a_long_job(), kind="batch")
    unknown = replace(streams, cluster=Cluster(executors=2, executors_mean=2.0))
    with pytest.raises(InputError, match="number of cores per executor is unknown"):
        plan_for_deadline(unknown, Deadline(limit_s=10.0), [NODE])


@pytest.fixture
def job_file(tmp_path: Path) -> str:
    path = tmp_path / "nightly.profile.yaml"
    path.write_text(dump_profile(a_long_job()), encoding="utf-8")
    return str(path)


def test_the_command_plans_and_prints(capsys: pytest.CaptureFixture[str], job_file: str) -> None:
    arguments = ["plan", job_file, "--target", "deadline <= 2m"]
    assert run(arguments) == 0
    text = capsys.readouterr().out
    assert "meet deadline <= 2 min" in text or "meets deadline <= 2 min" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert run([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "headway.deadline-plan/v1"
    assert found["feasible"] is True
    assert run(["plan", job_file, "--target", "deadline <= 10s"]) == 3
    assert "infeasible" in capsys.readouterr().out


def test_the_call_takes_node_types(job_file: str) -> None:
    found = headway.plan(
        job_file,
        target="deadline <= 2m",
        node_types=["m:cores=8,price=0.4"],
        objective="cost",
    )
    assert found.cores_per_executor == 4
    assert found.executors == 2 * found.nodes


@pytest.mark.parametrize(
    "options",
    [
        ["--target", "deadline <= 2m", "--target", "p99 <= 3s"],
        ["--target", "deadline <= soon"],
        ["--target", "deadline <= 0s"],
        ["--target", "deadline <= 2m", "--objective", "cost"],
        ["--target", "deadline <= 2m", "--node-cores", "1"],
    ],
    ids=" ".join,
)
def test_usage_that_makes_no_sense(
    capsys: pytest.CaptureFixture[str], job_file: str, options: list[str]
) -> None:
    assert run(["plan", job_file, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "internal error" not in err


def test_profiles_of_the_wrong_kind_are_reported(
    capsys: pytest.CaptureFixture[str], job_file: str, tmp_path: Path
) -> None:
    stream = tmp_path / "stream.profile.yaml"
    stream.write_text(dump_profile(a_profile()), encoding="utf-8")
    assert run(["plan", str(stream), "--target", "deadline <= 2m"]) == 2
    assert run(["plan", job_file, "--rate", "5k/s", "--target", "p99 <= 2s"]) == 2
    assert run(["plan", job_file, "--rate", "5k/s"]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 3


@pytest.mark.parametrize("cores", [4, 1])
def test_of_hundreds_of_nodes_the_fewest_are_still_those_of_a_scan(cores: int) -> None:
    """Also where only counts between two rows of the table are in time."""
    profile, space = a_long_job(), replace(NODE, max_nodes=150, cores_per_executor=cores)
    job = BatchRunTime.of(profile, 8)
    offer = _OfBatchJob(job=job, deadline=TEN_MINUTES, space=space, confidence=0.95)
    every = [offer.point(nodes) for nodes in range(1, space.max_nodes + 1)]
    in_table = {point.nodes for point in plan_for_deadline(profile, TEN_MINUTES, [space]).frontier}
    assert len(in_table) < len(every)
    between = 0
    for last in every[::7]:
        deadline = Deadline(limit_s=last.planned_s)
        first = next(point for point in every if point.planned_s <= last.planned_s)
        assert fewest_in_time(profile, deadline, space, 0.95) == first.nodes
        found = plan_for_deadline(profile, deadline, [space])
        assert (found.feasible, found.nodes) == (True, first.nodes)
        between += not any(
            point.planned_s <= last.planned_s for point in every if point.nodes in in_table
        )
    shortest_s = min(point.planned_s for point in every)
    assert fewest_in_time(profile, Deadline(limit_s=shortest_s * 0.999), space, 0.95) is None
    assert between or cores != 1


def competing_stages() -> ApplicationProfile:
    """Four stages of which three are ready at once: followed in the mean, they seem to dawdle."""
    job = a_long_job()
    first = job.stages[0]

    def stage(number: int, tasks: int, mean_s: float, parents: tuple[int, ...]) -> RecordedStage:
        return replace(
            first,
            id=number,
            parents=parents,
            num_tasks=tasks,
            task_mean_s=mean_s,
            task_sd_s=0.1 * mean_s,
        )

    shapes = ((295, 5.0, ()), (146, 3.0, (0,)), (14, 8.0, ()), (145, 6.0, ()))
    stages = tuple(stage(number, *shape) for number, shape in enumerate(shapes))
    return replace(job, stages=stages)


#: The model predicts 0.1% more with more nodes.
BUSY_DRIVER = replace(competing_stages(), duration_s=1228.0, driver_only_s=1020.0)


@pytest.mark.parametrize(
    "profile",
    [a_long_job(), competing_stages(), BUSY_DRIVER],
    ids=["long", "competing", "driver"],
)
def test_a_table_that_gets_worse_with_more_nodes_says_why(profile: ApplicationProfile) -> None:
    deadline = Deadline.parse("deadline <= 10m")
    space = SearchSpace(max_nodes=60, executors_per_node=1, cores_per_executor=4)
    found = plan_for_deadline(profile, deadline, [space])
    codes = {one.code: one.numbers for one in found.findings}
    planned_s = [point.planned_s for point in found.frontier]
    means_s = [point.mean_s for point in found.frontier]
    best = int(np.argmin(planned_s))
    if FindingCode.MORE_NODES_LESS_SURE in codes:
        numbers = codes[FindingCode.MORE_NODES_LESS_SURE]
        assert numbers["nodes"] == found.frontier[best].nodes
        assert numbers["planned_s"] == planned_s[best]
        assert numbers["mean_s"] == means_s[best]
        assert numbers["lowest_mean_s"] == min(means_s[best + 1 :])
    else:
        assert all(later <= earlier for earlier, later in pairwise(planned_s[best:]))
    # A rise of "0%" is none.
    rising = any(
        round(later / min(means_s[:place]), 2) > 1.0 for place, later in enumerate(means_s) if place
    )
    assert rising == (FindingCode.MODEL_RISES in codes)
    text = sheet_text(sheet_of(found))
    assert ("* a longer planned run time than with fewer nodes" in text) == any(
        later > 1.001 * min(planned_s[:place]) for place, later in enumerate(planned_s) if place
    )
    read = parse_any_plan(json_text(deadline_json(found)), name="plan")
    assert isinstance(read, DeadlinePlan)
    assert {one.code for one in read.findings} == set(codes)
    assert all_words(read.findings) == all_words(found.findings)


def test_a_run_takes_no_longer_with_more_slots_when_it_is_simulated() -> None:
    """Where the model rises it errs: the schedule itself does not."""
    stages = tuple(job_stages(competing_stages().stages))
    simulated_s = [
        simulated_lognormal_stage_dag(
            [(stage.num_tasks, stage.mean_s, stage.cv) for stage in stages],
            [stage.parents for stage in stages],
            slots,
            num_replications=40,
            seed=3,
        ).run_time_s.mean()
        for slots in (100, 140, 180, 196, 200, 220, 240)
    ]
    assert all(later <= 1.01 * earlier for earlier, later in pairwise(simulated_s))


def test_text_table_and_page_have_the_row_of_the_plan_itself() -> None:
    """A table of many numbers of nodes shows some of them, and that of the plan always."""
    space = SearchSpace(max_nodes=20, executors_per_node=1, cores_per_executor=4)
    plan = plan_for_deadline(a_long_job(), Deadline(limit_s=150.0), [space])
    assert plan.feasible
    others = tuple(point for point in plan.frontier if point.nodes != plan.nodes)
    plan = replace(plan, frontier=others)
    table = plan.to_pandas()
    assert list(table[table["is_plan"]]["nodes"]) == [plan.nodes]
    assert list(table["nodes"]) == sorted(table["nodes"])
    assert sum(line.startswith("  > ") for line in sheet_text(sheet_of(plan)).splitlines()) == 1
    assert f"{plan.nodes}, the plan" in page_of(plan)
