"""Small valid nouns for tests; every keyword replaces a field."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from headway.domain import (
    Application,
    ApplicationProfile,
    Arrivals,
    Change,
    Configuration,
    Drift,
    DriverPhase,
    DurationNoise,
    Finding,
    FindingCode,
    FrontierPoint,
    InfeasiblePlan,
    Interval,
    JobProfile,
    LatencyDistribution,
    ObservedSetting,
    Plan,
    PlannedSetting,
    Prediction,
    QueryShape,
    Rejection,
    RowsLaw,
    StageObserved,
    StageProfile,
    StreamAnswer,
    Target,
)
from headway.formats.profile_file import load_any_profile
from headway.profiler.streaming.samples import StageSample


def load_application_profile(path: Path) -> ApplicationProfile:
    """The profile of a batch or DStreams application in a file."""
    profile = load_any_profile(path)
    assert isinstance(profile, ApplicationProfile)
    return profile


def a_configuration(**changes: Any) -> Configuration:
    """Two executors of four cores, eight partitions, a trigger of one second, no rate limit."""
    return replace(
        Configuration(executors=2, cores_per_executor=4, shuffle_partitions=8, trigger_s=1.0),
        **changes,
    )


def a_shuffle_stage(**changes: Any) -> StageProfile:
    """Tasks of 50 ms and 10 us per row behind an exchange, all alike."""
    return replace(
        StageProfile(
            name="reduce",
            level=1,
            tasks_rule="shuffle",
            rows=RowsLaw(scale=1.0, exponent=1.0),
            task_fixed_s=0.05,
            task_per_row_s=1e-5,
            task_noise_ratio=0.0,
            separation="batches",
        ),
        **changes,
    )


def a_profile(**changes: Any) -> JobProfile:
    """A counting query: a map stage of four source tasks, a stateful stage behind the exchange."""
    return replace(
        JobProfile(
            headway_version="0.1.0",
            applications=(
                Application(
                    id="app-20260101000000-0001",
                    name="orders",
                    spark_version="4.3.0",
                    executor_memory="8g",
                ),
            ),
            shape=QueryShape(
                sources=("KafkaV2[Subscribe[orders]]",),
                sink="noop",
                stateful_operators=("stateStoreSave",),
                state_rows=1000,
                watermarked=True,
            ),
            arrivals=Arrivals(rate_per_s=5000.0),
            driver_phases=(
                DriverPhase(name="latest_offset", mean_s=0.002, sd_s=0.0005),
                DriverPhase(name="query_planning", mean_s=0.021, sd_s=0.004),
                DriverPhase(name="wal_commit", mean_s=0.03, sd_s=0.006),
                DriverPhase(name="commit_offsets", mean_s=0.028, sd_s=0.005),
            ),
            stages=(
                StageProfile(
                    name="scan",
                    level=0,
                    tasks_rule="source",
                    num_source_tasks=4,
                    rows=RowsLaw(scale=1.0, exponent=1.0),
                    task_fixed_s=0.01,
                    task_per_row_s=2e-6,
                    task_per_partition_s=1e-4,
                    task_noise_ratio=0.2,
                    separation="batches",
                ),
                StageProfile(
                    name="aggregate",
                    level=1,
                    tasks_rule="shuffle",
                    rows=RowsLaw(scale=3.5, exponent=0.7),
                    task_fixed_s=0.06,
                    task_per_row_s=1.25e-5,
                    task_noise_ratio=0.25,
                    separation="parts",
                ),
            ),
            noise=DurationNoise(batch_ratio=0.08, autocorrelation=0.3, run_to_run_ratio=0.05),
            drift=Drift(exponent=0.1, reference_age_s=300.0),
            settings=(
                ObservedSetting(
                    query_id="3f1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a",
                    query_name="orders",
                    configuration=a_configuration(),
                    rate_per_s=5000.0,
                    num_batches=120,
                    num_batches_cut=5,
                    jvm_age_s=300.0,
                    rows_per_batch_low=4900.0,
                    rows_per_batch_high=5100.0,
                    batch_duration_mean_s=0.31,
                    batch_duration_sd_s=0.03,
                    modelled_duration_mean_s=0.3,
                ),
            ),
        ),
        **changes,
    )


def about_stage(name: str) -> Finding:
    """A finding that names a stage, in whose words the name comes first."""
    numbers = {"source_tasks": 1, "slots": 8}
    return Finding(code=FindingCode.IDLE_SLOTS, numbers=numbers, names={"stage": name})


def a_prediction(**changes: Any) -> Prediction:
    """A stable, calibrated prediction with a p99 tuple latency of 2.3 s."""
    return replace(
        Prediction(
            configuration=a_configuration(),
            arrivals=Arrivals(rate_per_s=50000.0),
            stable=True,
            utilization_ratio=0.61,
            calibrated=True,
            batch_duration=LatencyDistribution(mean_s=0.6, p50_s=0.59, p95_s=0.7, p99_s=0.8),
            tuple_latency=LatencyDistribution(
                mean_s=1.2,
                p50_s=1.1,
                p95_s=1.9,
                p99_s=2.3,
                interval90_mean_s=Interval(low=1.1, high=1.3),
                interval90_p99_s=Interval(low=2.1, high=2.6),
            ),
            window_latency=None,
            phases_s={"wait": 0.5, "plan": 0.1, "add_batch": 0.6},
            sustainable_rate_per_s=80000.0,
        ),
        **changes,
    )


def a_plan(**changes: Any) -> Plan:
    """A feasible plan for p99 <= 3 s at 50k/s: two nodes, trigger 2 s, a rate limit."""
    configuration = a_configuration(trigger_s=2.0, max_offsets_per_trigger=100_000)
    return replace(
        Plan(
            target=Target.parse("p99 <= 3s"),
            arrivals=Arrivals(rate_per_s=50000.0),
            nodes=2,
            configuration=configuration,
            prediction=a_prediction(configuration=configuration),
            planned_latency_s=2.6,
            frontier=(
                FrontierPoint(
                    nodes=1, sustainable_rate_per_s=31000.0, configuration=None, calibrated=True
                ),
                FrontierPoint(
                    nodes=2,
                    sustainable_rate_per_s=80000.0,
                    configuration=configuration,
                    calibrated=True,
                ),
            ),
            chosen=FrontierPoint(
                nodes=2,
                sustainable_rate_per_s=80000.0,
                configuration=configuration,
                calibrated=True,
            ),
            binding=("stage aggregate holds the slots for 61% of a batch",),
            rejected=(
                Rejection(
                    change="1 node less",
                    configuration=replace(configuration, executors=1),
                    reason="p99 4.10 s > 3.00 s",
                    latency_s=4.1,
                ),
            ),
            changes=(
                Change(
                    setting="executors",
                    before="1",
                    after="2",
                    applies="new application",
                ),
                Change(
                    setting="trigger",
                    before="1 seconds",
                    after="2 seconds",
                    applies="restart",
                ),
            ),
            spark_conf={
                "spark.executor.instances": "2",
                "spark.executor.cores": "4",
                "spark.executor.memory": "8g",
                "spark.dynamicAllocation.enabled": "false",
                "spark.sql.shuffle.partitions": "8",
            },
            query_options={"trigger": "2 seconds", "maxOffsetsPerTrigger": "100000"},
            settings=tuple(
                PlannedSetting(
                    setting=setting,
                    key=key,
                    value=value,
                    applies="new application",
                    profiled=value,
                )
                for setting, key, value in (
                    ("cores per executor", "spark.executor.cores", "4"),
                    ("executor memory", "spark.executor.memory", "8g"),
                    ("shuffle partitions", "spark.sql.shuffle.partitions", "8"),
                )
            ),
        ),
        **changes,
    )


def an_infeasible_plan(**changes: Any) -> InfeasiblePlan:
    """The same setting as the nearest to what nothing keeps; no setting comes below 400 ms."""
    plan = a_plan()
    shared = {
        each.name: getattr(plan, each.name)
        for each in fields(plan)
        if each.name not in ("rejected", "rules", "after_start")
    }
    return InfeasiblePlan(**{**shared, "floor_s": 0.4, **changes})


def kept(answer: StreamAnswer) -> Plan:
    """The answer, which is feasible."""
    assert answer.feasible, answer.binding
    return answer


def a_stage_sample(*, level: int, num_tasks: int, rows: float, **seen: Any) -> StageSample:
    """A stage of one batch with its rows spread evenly; what a test does not name is nothing."""
    nothing = dict.fromkeys((field.name for field in fields(StageSample)), 0.0)
    even = {
        "level": level, "has_parents": level > 0, "has_tasks": True, "num_tasks": num_tasks,
        "num_seen": num_tasks, "rows_read": rows, "rows_largest": rows / num_tasks,
        "python_s": None, "kind": None, "operators": (),
    }  # fmt: skip
    return StageSample(**(nothing | even | seen))


def a_stage_observed(cpu_ratio: float = 0.9, *, python_ratio: float | None = None) -> StageObserved:
    """Tasks that neither shuffle nor spill."""
    return StageObserved(
        rows_written_ratio=1.0,
        input_bytes_per_row=0.0,
        shuffle_read_bytes_per_row=0.0,
        shuffle_write_bytes_per_row=0.0,
        spilled_bytes_per_row=0.0,
        cpu_ratio=cpu_ratio,
        gc_ratio=0.01,
        python_ratio=python_ratio,
        scheduler_delay_s=0.001,
        largest_task_ratio=1.1,
    )
