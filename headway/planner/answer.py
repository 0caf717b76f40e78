"""From the result of the search to a plan: prediction, memory, driver, Spark configuration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from headway.assumptions.resources import DRIVER_HEAP_BYTES
from headway.domain import (
    Application,
    Configuration,
    Finding,
    FindingCode,
    JobProfile,
    LevelTime,
    MemoryPlan,
    PlannedDurations,
    PlannedRate,
    StageTerm,
    StreamAnswer,
)
from headway.domain.configuration import idle_cores
from headway.domain.finding import OF_PROFILE
from headway.domain.plan_parts import PlannedDriver
from headway.models.estimation.batch_noise import noise_ratio_at
from headway.models.job.declared import figures_at
from headway.models.job.driver_load import driver_cores, driver_work, planned_driver
from headway.models.job.predict import predict
from headway.models.job.setting import after_commit_s, duration_model, settled_batch_rows
from headway.planner.bill import planned_writes
from headway.planner.candidates import Candidates
from headway.planner.checkpoint import changes_from_today, profiled_values_of_query, when_applied
from headway.planner.explained_setting import ExplainedSetting
from headway.planner.memory import memory_plan, overhead_bytes
from headway.planner.profiled_memory import profiled_memory
from headway.planner.purchase import Offer, reserve_findings
from headway.planner.rate_limit import RateLimit
from headway.planner.spark_settings import planned_settings
from headway.planner.switches import changes_of_switches, settings_of_switches
from headway.sparkconf import KNOBS, query_options, resource_settings, spark_conf
from headway.sparkconf.conflicts import DRIVER_CORES_KEY, DRIVER_HEAP_KEY
from headway.sparkconf.container import (
    OFF_HEAP_KEY,
    OFF_HEAP_SIZE_KEY,
    OVERHEAD_KEY,
    PYTHON_MEMORY_KEY,
    memory_setting_bytes,
)
from headway.sparkconf.rocksdb import rocksdb_conf
from headway.units import spark_memory_text


def plan_fields(
    offer: Offer,
    setting: Candidates,
    explained: ExplainedSetting,
    *,
    refused: tuple[str, ...],
    findings: Iterable[Finding],
    limit: RateLimit | Finding | None = None,
) -> dict[str, Any]:
    """The plan of a setting, feasible or not, by its fields, without those that explain it.

    ``findings`` are those of the search, ``limit`` its rate limit, or why it has none.
    """
    question, configuration = offer.question, explained.configuration
    profile = question.profile
    expected = figures_at(profile, 0.0)
    # Growth is a finding about the plan, which has it once.
    prediction = predict(replace(expected, growth=None), configuration, profile.arrivals)
    memory = memory_plan(profile, question.space, configuration.executors)
    driver = _driver_of(explained) if prediction.stable else None
    conf = _conf(profile, configuration, memory) | resource_settings(profile.application.properties)
    if driver is not None:
        conf |= _driver_conf(profile.application, driver)
    if configuration.task_cpus != profile.baseline.task_cpus:
        # Even if it is Spark's default, since the job may still be submitted with another number.
        conf[KNOBS["task_cpus"].key] = str(configuration.task_cpus)
    options = query_options(configuration, limit[1] if isinstance(limit, tuple) else {})
    changes = (*changes_from_today(profile, configuration, conf), *changes_of_switches(offer))
    switch_conf, switch_options = settings_of_switches(offer)
    conf, options = conf | switch_conf, options | switch_options
    planned_ratio = float(setting.planned_ratio(question.rate_per_s)[0])
    return dict[str, Any](
        target=question.target,
        arrivals=profile.arrivals,
        nodes=explained.nodes,
        configuration=configuration,
        prediction=prediction,
        planned_latency_s=explained.latency_s,
        findings=(
            *findings,
            *_resource_findings(offer, memory, configuration),
            *([limit] if isinstance(limit, Finding) else []),
            *(finding for finding in prediction.findings if finding.code in OF_PROFILE),
        ),
        changes=changes,
        spark_conf=conf,
        query_options=options,
        confidence=question.confidence,
        also=question.also,
        objective=question.objective,
        node_type=offer.node_type,
        cost_per_hour=question.space.cost_per_hour(explained.nodes),
        refused_node_types=refused,
        settings=planned_settings(
            {**conf, **options},
            profiled_values_of_query(profile),
            lambda knob: when_applied(knob, profile),
            keeps_checkpoint=question.checkpoint == "existing",
        ),
        memory=memory,
        budget_per_hour=offer.budget_per_hour,
        durations=_durations(profile, configuration, planned_ratio),
        spark_version=profile.application.spark_version,
        declared=profile.declared,
        writes=planned_writes(explained.under(question)) if prediction.stable else None,
        driver=driver,
    )


def in_short(plan: StreamAnswer) -> PlannedRate:
    """A plan in short, beside those for other rates."""
    if not plan.feasible:
        return PlannedRate(rate_per_s=plan.rate_per_s)
    return PlannedRate(
        rate_per_s=plan.rate_per_s,
        nodes=plan.nodes,
        node_type=None if plan.node_type is None else plan.node_type.name,
        cost_per_hour=plan.cost_per_hour,
        bill_per_hour=plan.cost,
        configuration=plan.configuration,
        predicted=plan.prediction.latency(plan.target.metric),
        planned_latency_s=plan.planned_latency_s,
    )


def _driver_of(setting: ExplainedSetting) -> PlannedDriver:
    """The driver of a query that is alone in its application: theory.md (U1)-(U4).

    A driver that has fewer cores than the query needs gets as many as it needs. That of a profiled
    local run is the executor, too; the planned one is not.
    """
    profile, configuration = setting.question.profile, setting.configuration
    work = driver_work(
        profile,
        configuration.size,
        batch_rows=setting.rows,
        interval_s=max(configuration.trigger_s, setting.duration_s),
        has_tasks=False,
    )
    needed = planned_driver([work])
    return planned_driver([work], max(needed.needed_cores, driver_cores(profile.application)))


def _driver_conf(application: Application, driver: PlannedDriver) -> dict[str, str]:
    """The settings of a driver that needs more than it had, or than Spark gives it by default.

    >>> driver = PlannedDriver(
    ...     num_queries=30, busy_cores=1.2, cores=3, needed_cores=3, knee_queries=75.0,
    ...     knee_low_queries=60.0, knee_high_queries=93.0, heap_bytes=2**31,
    ... )
    >>> _driver_conf(Application(id="app-1", name="a", spark_version="4.0.1"), driver)
    {'spark.driver.cores': '3', 'spark.driver.memory': '2g'}
    """
    conf = {}
    if driver.needed_cores > driver_cores(application):
        conf[DRIVER_CORES_KEY] = str(driver.needed_cores)
    stated_bytes = memory_setting_bytes(application.properties.get(DRIVER_HEAP_KEY))
    if application.is_local or stated_bytes is None:
        stated_bytes = DRIVER_HEAP_BYTES.value
    if driver.heap_bytes > stated_bytes:
        conf[DRIVER_HEAP_KEY] = spark_memory_text(driver.heap_bytes)
    return conf


def _conf(
    profile: JobProfile, configuration: Configuration, memory: MemoryPlan | None
) -> dict[str, str]:
    if memory is None:
        profiled = profiled_memory(profile.applications[-1])
        text = spark_memory_text(profiled.heap_bytes) if profiled.is_heap_set else None
        return spark_conf(configuration, executor_memory=text)
    conf = spark_conf(configuration, executor_memory=spark_memory_text(memory.heap_bytes))
    if memory.python_bytes:
        conf[PYTHON_MEMORY_KEY] = spark_memory_text(memory.python_bytes)
    if memory.overhead_bytes > overhead_bytes(memory.heap_bytes, 0):
        # Spark's own computation ignores state outside the heap, and on some platforms Python.
        conf[OVERHEAD_KEY] = spark_memory_text(memory.overhead_bytes)
    if memory.rocksdb is not None:
        conf |= rocksdb_conf(memory.rocksdb)
    if memory.off_heap_bytes:
        conf[OFF_HEAP_KEY] = "true"
        conf[OFF_HEAP_SIZE_KEY] = spark_memory_text(memory.off_heap_bytes)
    return conf


def _resource_findings(
    offer: Offer, memory: MemoryPlan | None, configuration: Configuration
) -> Iterator[Finding]:
    """Findings about the nodes, the cores and the memory."""
    node_type, profile = offer.node_type, offer.question.profile
    if node_type is not None:
        yield from reserve_findings(node_type)
    if node_type is not None and node_type.core_speed_ratio != 1.0:
        yield Finding(
            code=FindingCode.CORE_SPEED_ASSUMED,
            numbers={"core_speed_ratio": node_type.core_speed_ratio},
            names={"node_type": node_type.name, "provenance": profile.provenance},
        )
    per_task, cores = configuration.task_cpus, configuration.cores_per_executor
    num_idle = idle_cores(cores, per_task)
    if num_idle >= 1:
        numbers = {"idle_cores": num_idle, "cores_per_executor": cores}
        yield Finding(code=FindingCode.IDLE_CORES, numbers=numbers | {"task_cpus": per_task})
    if memory is not None:
        yield from _memory_findings(memory, profile)


def _memory_findings(memory: MemoryPlan, profile: JobProfile) -> Iterator[Finding]:
    if profile.memory is None:
        yield Finding(code=FindingCode.NO_MEMORY_PEAKS)
    if memory.is_measured_locally:
        yield Finding(code=FindingCode.LOCAL_MEMORY_PEAKS)
    if memory.parts and memory.heap_bytes < memory.needed_heap_bytes:
        needed = {"needed_heap_bytes": memory.needed_heap_bytes}
        yield Finding(
            code=FindingCode.HEAP_BELOW_NEED,
            numbers={"heap_bytes": memory.heap_bytes} | needed,
            names={
                "reason": memory.reason,
                "need": "measured peak" if profile.memory else "recorded state",
            },
        )
    if profile.shape.python_operators and not memory.python_bytes:
        yield Finding(
            code=FindingCode.PYTHON_MEMORY_UNKNOWN,
            numbers={"overhead_bytes": memory.overhead_bytes},
            names={"key": PYTHON_MEMORY_KEY},
        )


def _durations(
    profile: JobProfile, configuration: Configuration, planned_ratio: float
) -> PlannedDurations:
    """Expected and planned durations; ``profile`` contains the planned figures."""
    expected = figures_at(profile, 0.0)
    size = configuration.size
    model = duration_model(expected, *size)
    rows = settled_batch_rows(model, profile.arrivals.rate_per_s, configuration.trigger_s)
    planned = duration_model(expected, *size, batch_rows=float(rows))

    def longer_ratio(other_profile: JobProfile) -> float:
        """How much longer a batch is expected to take with other figures."""
        return float(duration_model(other_profile, *size).mean_s(rows) / model.mean_s(rows))

    return PlannedDurations(
        driver_s=model.driver_s,
        after_commit_s=after_commit_s(profile),
        levels=tuple(
            LevelTime(
                name=level.name,
                fixed_s=float(level.fixed_s),
                terms=tuple(
                    StageTerm(per_row_s=float(per_row_s), scale=scale, exponent=exponent)
                    for per_row_s, scale, exponent in level.stage_terms
                ),
            )
            for level in planned.levels
        ),
        batch_noise_ratio=float(noise_ratio_at(profile.noise, model.mean_s(rows))),
        autocorrelation=profile.noise.autocorrelation,
        run_to_run_ratio=math.hypot(
            profile.noise.run_to_run_ratio, math.log(longer_ratio(figures_at(profile, 1.0)))
        ),
        planned_ratio=planned_ratio * longer_ratio(profile),
    )
