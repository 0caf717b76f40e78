"""Real-Time Mode from a profile: the models' own figures, and plans that hold what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import headway
from headway.api.page import page
from headway.api.results import as_text
from headway.assumptions.real_time import GAP_RATIOS, MOST_BUSY_RATIO, PATH_RATIOS
from headway.domain import JobProfile, RowsLaw
from headway.domain.real_time import RealTimePlan
from headway.errors import InputError
from headway.models.real_time.latency import real_time_latency
from headway.models.real_time.stages import RealTimeStage
from tests.factories import a_profile

LEVELS = np.array([0.5, 0.95, 0.99])


def a_query(**changes: Any) -> JobProfile:
    """Eight source partitions at 200 us a row, counts at 500 us: those of the model's example."""
    found = a_profile()
    scan, counts = found.stages
    stages = (
        replace(scan, num_source_tasks=8, task_per_row_s=2e-4),
        replace(counts, task_per_row_s=5e-4, rows=RowsLaw(scale=3.5, exponent=0.7)),
    )
    shape = replace(found.shape, sink="KafkaTable", output_mode="update")
    return replace(found, **{"stages": stages, "shape": shape, **changes})


def stateless(**changes: Any) -> JobProfile:
    found = a_query()
    shape = replace(found.shape, stateful_operators=(), state_rows=0)
    return replace(found, **{"stages": found.stages[:1], "shape": shape, **changes})


def planned(profile: JobProfile | None = None, **asked: Any) -> RealTimePlan:
    given = {"rate": 20_000.0, "target": "p99 <= 300ms", **asked}
    return headway.plan(profile or a_query(), mode="real-time", **given)


def test_a_prediction_is_the_model_s_own() -> None:
    found = headway.predict(a_query(), mode="real-time", rate=20_000.0, partitions=20)
    stages = [
        RealTimeStage(num_tasks=8, row_s=2e-4, row_cv=1.0),
        RealTimeStage(num_tasks=20, row_s=5e-4, row_cv=1.0),
    ]
    model = real_time_latency(20_000.0, stages, trigger_s=300.0, gap_s=0.3)
    assert found.tuple_latency is not None
    assert found.num_slots_needed == 28
    assert found.setting.executors == 7
    assert found.busy_ratio == pytest.approx({"scan": 0.5, "aggregate": 0.5})
    assert found.tuple_latency.mean_s == pytest.approx(0.002 + model.mean_s)
    quantiles = (found.tuple_latency.p50_s, found.tuple_latency.p95_s, found.tuple_latency.p99_s)
    assert quantiles == pytest.approx(0.002 + model.quantile_s(LEVELS))
    # The example of `real_time_latency` has 29 ms without a gap.
    assert found.tuple_latency.mean_s - found.gap_mean_s - found.path_s == pytest.approx(
        0.029, abs=5e-4
    )
    assert sum(found.stage_mean_s.values()) + found.gap_mean_s + found.path_s == pytest.approx(
        found.tuple_latency.mean_s
    )
    assert not found.calibrated


def test_where_the_path_is_most_of_the_latency_the_interval_is_that_of_the_path() -> None:
    found = headway.predict(stateless(), mode="real-time", rate=50.0)
    assert found.tuple_latency is not None
    assert found.path_s > 0.8 * found.tuple_latency.mean_s
    low_ratio, high_ratio = PATH_RATIOS.value
    for interval in found.tuple_latency.intervals90_s.values():
        assert interval.high / interval.low > 2.0
        assert interval.low < low_ratio * found.path_s + found.tuple_latency.p99_s - found.path_s
        assert interval.high >= high_ratio * found.path_s


def test_a_plan_counts_on_a_path_as_long_as_its_interval_says() -> None:
    profile, target = stateless(), "p50 <= 3ms"
    assert headway.predict(profile, mode="real-time", rate=50.0).tuple_latency.p50_s < 0.003  # type: ignore[union-attr]
    assert not headway.plan(profile, mode="real-time", rate=50.0, target=target).feasible
    assert headway.plan(profile, mode="real-time", rate=50.0, target=target, path=0.001).feasible


def test_intervals_hold_the_prediction_and_widen_with_the_gap() -> None:
    short = headway.predict(
        a_query(), mode="real-time", rate=20_000.0, partitions=20, trigger="5s"
    ).tuple_latency
    long = headway.predict(
        a_query(), mode="real-time", rate=20_000.0, partitions=20, trigger="10min"
    ).tuple_latency
    assert short is not None and long is not None
    for found in (short, long):
        for name, interval in found.intervals90_s.items():
            assert interval.low <= found.statistics_s[name] <= interval.high
    # A gap in every 5 s reaches the p99, one in 10 min does not.
    assert short.p99_s > 0.2 > long.p99_s


def test_a_plan_keeps_what_it_promises_at_the_worse_end() -> None:
    found = planned()
    assert found.feasible
    assert found.planned_s <= 0.3
    assert max(found.expected.busy_ratio.values()) <= MOST_BUSY_RATIO.value
    assert found.expected.num_slots_needed == 8 + found.setting.shuffle_partitions
    assert found.setting.num_slots >= found.expected.num_slots_needed
    assert found.nodes == found.setting.executors
    assert found.expected.tuple_latency is not None
    assert found.planned_s >= found.expected.tuple_latency.p99_s
    # One partition less would leave a task too busy.
    fewer = planned(partitions=found.setting.shuffle_partitions - 1)
    assert not fewer.feasible and "shuffle partitions is busy" in fewer.binding[0]
    assert found.max_rate_per_s is not None and found.max_rate_per_s >= 20_000.0
    beyond = planned(partitions=found.setting.shuffle_partitions, rate=1.05 * found.max_rate_per_s)
    assert not beyond.feasible


def test_the_max_rate_does_not_depend_on_the_rate_that_was_asked() -> None:
    fixed: dict[str, Any] = {"partitions": 60, "trigger": "600s"}
    rates = [planned(rate=rate, **fixed).max_rate_per_s for rate in (2e3, 5e3, 17e3, 23e3)]
    assert set(rates) == {24_200.0}
    assert planned(rate=24_200.0, **fixed).feasible
    assert not planned(rate=1.005 * 24_200.0, **fixed).feasible


def test_the_reason_comes_before_a_latency_that_is_within_the_limit() -> None:
    plan = planned(rate=26_000.0, target="p99 <= 3s", trigger="600s")
    assert plan.planned_s < 3.0
    for text in (as_text(plan), str(page(plan))):
        reason, latency = text.index("scan: the busiest of 8"), text.index("planned p99")
        assert reason < latency


def test_more_rows_need_no_fewer_nodes() -> None:
    nodes = [planned(rate=rate).nodes for rate in (2_000.0, 10_000.0, 20_000.0, 26_000.0)]
    assert nodes == sorted(nodes)
    assert nodes[0] < nodes[-1]


def test_a_batch_is_so_long_that_its_gap_leaves_the_quantile() -> None:
    usual, strict = planned(), planned(target="p99.9 <= 500ms")
    assert usual.setting.batch_length_s == 300.0
    busy, gap_s = 0.7, GAP_RATIOS.value[1] * 0.3
    assert 300.0 < strict.setting.batch_length_s <= gap_s / ((1 - busy) * 0.001) + 60.0
    assert strict.feasible
    fixed = planned(target="p99 <= 200ms", trigger="5s")
    assert not fixed.feasible and "planned p99" in " ".join(fixed.binding)


def test_what_is_done_again_after_a_failure_bounds_the_batch() -> None:
    bounded = planned(target=["p99 <= 700ms", "catch_up <= 5m after 1m"])
    assert bounded.feasible
    assert 5.0 <= bounded.setting.batch_length_s < 300.0
    never = planned(target=["p99 <= 700ms", "catch_up <= 10s after 30m"])
    assert not never.feasible
    assert any("are repeated" in one for one in never.binding)


def test_a_source_of_too_few_partitions_is_named() -> None:
    found = planned(rate=40_000.0)
    assert not found.feasible
    assert "scan: the busiest of 8 source partitions" in found.binding[0]
    assert planned(rate=40_000.0, source_partitions=16).feasible


def test_a_hot_key_is_named() -> None:
    query = a_query()
    hot = replace(query.stages[1], hot_share_ratio=0.2)
    found = planned(replace(query, stages=(query.stages[0], hot)))
    assert not found.feasible
    assert "hottest key alone" in " ".join(found.binding)


def test_nodes_without_slots_are_named() -> None:
    found = planned(max_nodes=3)
    assert not found.feasible
    assert found.binding


def test_a_target_below_the_shuffle_is_never_met() -> None:
    found = planned(target="p99 <= 20ms")
    assert not found.feasible
    assert "a shuffle holds rows for up to 50 ms on any number of nodes" in found.binding[0]
    assert planned(stateless(), target="p99 <= 20ms").feasible


def test_without_state_the_configuration_has_no_store() -> None:
    found = planned(stateless())
    assert not found.keeps_state
    assert not [key for key in found.spark_conf if "stateStore" in key or "shuffle" in key]
    with_state = planned()
    assert with_state.spark_conf["spark.sql.streaming.stateStore.checkpointFormatVersion"] == "2"
    assert with_state.spark_conf["spark.dynamicAllocation.enabled"] == "false"
    assert with_state.spark_conf["spark.executor.instances"] == str(with_state.setting.executors)


def test_too_few_slots_are_refused_as_spark_does() -> None:
    with pytest.raises(InputError, match=r"28 tasks .* CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"):
        headway.predict(a_query(), mode="real-time", rate=20_000.0, partitions=20, executors=6)


def with_shape(**changes: Any) -> JobProfile:
    found = a_query()
    return replace(found, shape=replace(found.shape, **changes))


def on_spark(version: str, profile: JobProfile) -> JobProfile:
    return replace(profile, applications=(replace(profile.application, spark_version=version),))


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (with_shape(sources=("FileStreamSource[/in]",)), "INPUT_STREAM_NOT_SUPPORTED"),
        (with_shape(sink="ForeachBatchSink"), "sink ForeachBatchSink: expected Kafka"),
        (with_shape(sink="FileSink[/out]"), "OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"),
        (with_shape(output_mode="append"), "OUTPUT_MODE_NOT_SUPPORTED"),
        (with_shape(stateful_operators=("symmetricHashJoin",)), "operator symmetricHashJoin"),
        (with_shape(stateful_operators=("sessionWindowStateStoreSaveExec",)), "sessionWindow"),
        (with_shape(stateful_operators=("dedupeWithinWatermark",)), "dedupeWithinWatermark"),
        (with_shape(python_operators=("ArrowEvalPython",)), "operator ArrowEvalPython"),
        (with_shape(joins=("SortMergeJoin",)), "operator SortMergeJoin"),
        (on_spark("4.0.1", stateless()), "Real-Time Mode needs Spark 4.1 or later"),
        (on_spark("4.2.0", a_query()), "state needs Spark 4.3 or later"),
    ],
)
def test_what_spark_refuses_is_refused(profile: JobProfile, message: str) -> None:
    with pytest.raises(InputError, match=message):
        headway.predict(profile, mode="real-time", rate=1000.0)
    with pytest.raises(InputError, match=message):
        planned(profile)


def test_spark_4_1_runs_a_query_without_state() -> None:
    assert planned(on_spark("4.1.0", stateless())).feasible


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"trigger": "4s"}, "INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL"),
        ({"target": "window p99 <= 9s"}, "Real-Time Mode the latency of rows"),
        ({"target": "batch p99 <= 9s"}, "Real-Time Mode the latency of rows"),
        ({"target": ["p99 <= 1s", "p50 <= 300ms"]}, "one latency of rows"),
        (
            {"target": ["p99 <= 1s", "catch_up <= 1m after 50k/s for 2m"]},
            "one latency of rows",
        ),
        ({"confidence": 2.0}, "confidence"),
        ({"path": -1.0}, "path"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        planned(**asked)


NODE_TYPES = (
    "small:cores=2,memory=32g,price=0.11",
    "usual:cores=4,memory=32g,price=0.2",
    "fast:cores=4,memory=32g,price=0.26,speed=1.4",
)


@pytest.mark.parametrize("objective", ["nodes", "cost", "latency"])
def test_of_several_node_types_the_best_plan_counts(objective: str) -> None:
    """As enumerated: each type alone, then the objective."""
    asked: dict[str, Any] = {"objective": objective, "max_nodes": 40}
    alone = [planned(node_types=[name], **asked) for name in NODE_TYPES]
    orders: dict[str, Callable[[RealTimePlan], Any]] = {
        "nodes": lambda plan: (plan.nodes, plan.cost),
        "cost": lambda plan: (plan.cost, plan.nodes),
        "latency": lambda plan: (plan.planned_s, plan.cost),
    }
    order = orders[objective]
    assert planned(node_types=NODE_TYPES, **asked) == min(alone, key=order)
    assert len({order(plan)[0] for plan in alone}) > 1


def test_a_budget_limits_the_nodes_and_needs_prices() -> None:
    free = planned(node_types=NODE_TYPES[1:2], max_nodes=40)
    assert free.cost is not None and free.cost == pytest.approx(0.2 * free.nodes)
    assert planned(node_types=NODE_TYPES[1:2], max_nodes=40, budget=free.cost) == free
    short = planned(node_types=NODE_TYPES[1:2], max_nodes=40, budget=free.cost - 0.1)
    assert not short.feasible
    with pytest.raises(InputError, match="budget needs the price of a node type"):
        planned(budget=3.0)
    with pytest.raises(InputError, match=r"usual: one node costs 0\.2 per hour, more than"):
        planned(node_types=NODE_TYPES[1:2], budget=0.1)


def test_the_lowest_latency_takes_the_partitions_that_give_it() -> None:
    fewest, fastest = (planned(objective=name, max_nodes=40) for name in ("nodes", "latency"))
    assert fastest.feasible and fastest.planned_s <= fewest.planned_s
    assert fastest.setting.shuffle_partitions >= fewest.setting.shuffle_partitions
    for partitions in (8, 16, 20, 24, 32, 64, 100):
        other = planned(partitions=partitions, max_nodes=40)
        assert not other.feasible or other.planned_s >= fastest.planned_s * 0.98
