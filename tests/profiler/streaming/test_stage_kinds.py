"""Stages are distinguished by what they compute, in any order, and static tables from streams."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

import headway
from headway.api.results import as_text
from headway.errors import InputError
from headway.planner.tasks import with_source_partitions
from headway.profiler.operators import (
    Operator,
    PlanOperators,
    note_operators,
    operators_of_stage,
    plan_operators,
    reads_operators,
    rows_metric_ids,
    scopes,
)
from headway.profiler.plan_nodes import PlanMetric, PlanNode
from headway.profiler.schema import Accumulable, BatchOf, RddInfo, StageInfo
from headway.profiler.streaming.stage_kinds import (
    StageKind,
    kinds_of_batch,
    levels_of_kinds,
    stage_work,
)
from headway.report.charts import latency_charts
from headway.report.profiles import profile_summary
from tests.factories import a_stage_sample
from tests.profiler.event_log import AppLog, Query, Stage, write_plain

STREAM = Stage(num_tasks=2, per_row_s=30e-6, scopes=("Scan json", "WholeStageCodegen (1)"))
PRODUCTS = Stage(
    num_tasks=3, per_row_s=4e-6, rows_scale=0.0, static_rows=40_000,
    scopes=("Scan parquet", "WholeStageCodegen (2)"),
)  # fmt: skip
JOIN = Stage(
    num_tasks=None, per_row_s=10e-6, static_rows=40_000, scopes=("Exchange",),
    reads_earlier_jobs=True,
)  # fmt: skip
JOINED = Query(
    jobs=((STREAM,), (PRODUCTS,), (JOIN,)), num_swapped=2, operators=(), trigger_s=2.0,
    num_batches=50, rate_per_s=10_000.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> headway.JobProfile:
    """Of two runs at different rates, in which the stream or the table is read first by chance."""
    log = AppLog().add(JOINED)
    log.add(replace(JOINED, rate_per_s=40_000.0, started_s=JOINED.started_s + 200.0, seed=2))
    for stage in log.of("StageCompleted"):
        _shuffle_what_is_read(log, stage["Stage Info"])
    return headway.profile(write_plain(log.lines, tmp_path_factory.mktemp("joined") / "log"))


def _shuffle_what_is_read(log: AppLog, info: dict[str, Any]) -> None:
    """A stage that scans writes all its rows for the exchange."""
    if not info["Parent IDs"]:
        for task in log.of("TaskEnd"):
            if task["Stage ID"] == info["Stage ID"]:
                metrics = task["Task Metrics"]
                rows = metrics["Input Metrics"]["Records Read"]
                metrics["Shuffle Write Metrics"] = {"Shuffle Records Written": rows}


def test_stages_that_swap_places_keep_their_own_costs(joined: headway.JobProfile) -> None:
    stream, products, join = joined.stages
    assert stream.work == "read json"
    assert stream.rows.exponent == pytest.approx(1.0, abs=0.01)
    assert stream.rows.static_rows == 0.0
    assert stream.task_per_row_s == pytest.approx(30e-6, rel=0.1)
    assert products.work == "read parquet"
    assert products.is_static
    assert products.rows.static_rows == pytest.approx(40_000, rel=0.001)
    assert join.rows.static_rows == pytest.approx(40_000, rel=0.001)
    assert join.rows.exponent == pytest.approx(1.0, abs=0.01)
    # The scans run side by side, in either order; the join waits for both.
    assert [stage.level for stage in joined.stages] == [0, 0, 1]


def test_the_summary_says_which_stage_reads_the_same_rows(joined: headway.JobProfile) -> None:
    lines = [line for line in profile_summary(joined).splitlines() if "whatever the rate" in line]
    assert len(lines) == 1
    assert lines[0].startswith("  stage 1 (read parquet): ")
    rows = round(joined.stages[1].rows.static_rows)
    assert lines[0].endswith(f"; it reads {rows:,} rows in every batch, whatever the rate")


def test_a_static_table_is_never_the_source(joined: headway.JobProfile) -> None:
    assert [stage.tasks_rule for stage in joined.stages] == [
        "source", "fixed", "shuffle",
    ]  # fmt: skip
    wider = with_source_partitions(joined, 16)
    assert [stage.num_source_tasks for stage in wider.stages] == [16, 3, None]
    plan = headway.plan(joined, rate="40k/s", target="p99 <= 10s", source_partitions=64)
    assert not any("stage 1" in finding.names.get("stage", "") for finding in plan.findings)


@pytest.mark.parametrize(
    "scans",
    [
        ("Scan Delta Table State #3", "Scan Delta Table State #9"),
        (
            "Scan ExistingRDD Delta Table State #20 - file:///shop/one run/_delta_log",
            "Scan ExistingRDD Delta Table State #20 - s3://shop/another/_delta_log",
        ),
    ],
)
def test_the_log_of_a_table_is_never_the_source(tmp_path: Path, scans: tuple[str, str]) -> None:
    # It grows with every commit, here as fast as the batches.
    log = AppLog()
    for run_number, scan in enumerate(scans):
        commits = replace(PRODUCTS, static_rows=0, rows_scale=0.1, scopes=(scan,))
        query = replace(JOINED, jobs=((STREAM,), (commits,), (JOIN,)), num_swapped=0)
        started_s = query.started_s + 200.0 * run_number
        rate_per_s = (1 + run_number) * 20_000.0
        log.add(replace(query, rate_per_s=rate_per_s, started_s=started_s, seed=1 + run_number))
    _, of_log, _ = headway.profile(write_plain(log.lines, tmp_path / "log")).stages
    assert of_log.is_static
    assert of_log.tasks_rule == "fixed"


def test_every_output_names_the_stages(joined: headway.JobProfile, tmp_path: Path) -> None:
    prediction = headway.predict(joined, rate="20k/s")
    assert prediction.stage_work["stage 1"] == "read parquet"
    assert "stage 1 (read parquet) " in as_text(prediction)
    assert prediction.to_dict()["stage_work"] == dict(prediction.stage_work)
    assert prediction.phase_called("stage 0+stage 1").endswith("+stage 1 (read parquet)")
    assert prediction.phase_called("wait") == "wait"
    (bar,) = latency_charts(prediction)
    slower = replace(
        joined,
        stages=tuple(
            replace(stage, task_per_row_s=2.0 * stage.task_per_row_s, task_fixed_s=0.5)
            for stage in joined.stages
        ),
    )
    difference = headway.diff(joined, slower)
    of_stages = [
        name
        for name in (
            *(segment["name"] for segment in bar["segments"]),
            *(part.name for part in difference.parts),
            *(figure.name for figure in difference.figures),
        )
        if name.startswith("stage ")
    ]
    assert len(of_stages) > 5
    # What the last stage computes is not in the log.
    assert all(re.match(r"stage 2|stage \d \(.+\)", name) for name in of_stages), of_stages
    place = tmp_path / "joined.profile.yaml"
    joined.save(place)
    read_back = headway.load_profile(place)
    assert [(stage.called, stage.is_static) for stage in read_back.stages] == [
        (stage.called, stage.is_static) for stage in joined.stages
    ]


def test_without_operators_stages_differ_by_level(tmp_path: Path) -> None:
    plain = [replace(stage, scopes=()) for stage in (STREAM, JOIN)]
    log = AppLog().add(replace(JOINED, jobs=((plain[0],), (plain[1],)), num_swapped=0))
    profile = headway.profile(write_plain(log.lines, tmp_path / "log"))
    assert [(stage.level, stage.work) for stage in profile.stages] == [
        (0, None), (1, None),
    ]  # fmt: skip


def _node(name: str, metric_id: int, *children: PlanNode, location: str | None = None) -> PlanNode:
    return PlanNode(
        name=name,
        metadata={"Location": location},
        metrics=[PlanMetric(name="number of output rows", accumulator_id=metric_id)],
        children=list(children),
    )


PLAN = _node(
    "SortMergeJoin", 1,
    _node("Exchange", 2, _node("Scan json ", 3, location="InMemoryFileIndex[s3://lake/in/7.json]")),
    _node("Exchange", 4, _node("Scan parquet shop.products", 5)),
)  # fmt: skip


def test_operators_are_those_whose_metrics_a_stage_updates() -> None:
    operators = dict(plan_operators(PLAN, is_replanned=False))
    # Adaptive execution keeps the scans, but not the join.
    joined = _node("BroadcastHashJoin", 9, *(PLAN.children or ()))
    note_operators(operators, plan_operators(joined, is_replanned=True))
    scanned, joined_late, of_all = (
        operators_of_stage(operators, ids) for ids in ((3, 2), (9, 7), (1, 2, 3, 4, 5))
    )
    assert [(operator.name, operator.table) for operator in scanned] == [
        ("Scan json", "in"), ("Exchange", None),
    ]  # fmt: skip
    assert [(operator.name, operator.table) for operator in joined_late] == [
        ("BroadcastHashJoin", "products")
    ]
    assert {operator.is_replanned for operator in of_all} == {False}


def test_plans_that_differ_in_numbers_are_one_and_other_tables_are_not() -> None:
    def scan(metric_id: int, place: str) -> PlanNode:
        of_files = _node("Scan json ", metric_id, location=f"InMemoryFileIndex[{place}]")
        return _node("Filter", metric_id + 1, of_files)

    operators: PlanOperators = {}
    for metric_id, place in ((10, "s3://lake/in"), (20, "s3://lake/in"), (30, "s3://lake/out")):
        note_operators(operators, plan_operators(scan(metric_id, place), is_replanned=False))
    first, second, third = (operators_of_stage(operators, (at, at + 1)) for at in (10, 20, 30))
    assert first == second
    assert [operator.table for operator in first] == ["in", None]
    assert [operator.table for operator in third] == ["out", None]


def test_parts_of_a_log_add_up_in_any_order() -> None:
    joined = _node("BroadcastHashJoin", 9, *(PLAN.children or ()))
    first = dict(plan_operators(PLAN, is_replanned=False))
    second = dict(plan_operators(joined, is_replanned=True))
    one_way: PlanOperators = {}
    other_way: PlanOperators = {}
    for sum_of, parts in ((one_way, (first, second)), (other_way, (second, first))):
        for part in parts:
            note_operators(sum_of, part.items())
    assert one_way == other_way


def _record(stage_id: int, **values: Any) -> dict[str, Any]:
    return {
        "stage_id": stage_id, "execution_id": 3, "parent_ids": [], "scopes": ("Scan parquet",),
        "first_rdd_id": None, "operators": (), **values,
    }  # fmt: skip


def test_stages_of_one_kind_differ_by_their_place_in_the_plan() -> None:
    operators = dict(plan_operators(PLAN, is_replanned=False))
    left, right = (operators_of_stage(operators, ids) for ids in ((2, 3), (4, 5)))
    for first, second in ((left, right), (right, left)):
        batch = [_record(8, operators=first), _record(9, operators=second)]
        rank_of = {kind.rank: stage_id for stage_id, kind in kinds_of_batch(batch, {}).items()}
        assert rank_of[0] == (8 if first is left else 9)
    # Without a plan, in the order in which their RDDs were made.
    batch = [_record(8, first_rdd_id=40), _record(9, first_rdd_id=12)]
    assert {stage_id: kind.rank for stage_id, kind in kinds_of_batch(batch, {}).items()} == {
        8: 1, 9: 0,
    }  # fmt: skip


@pytest.mark.parametrize(("num_tables", "is_read"), [(0, False), (1, False), (2, True)])
def test_plans_with_several_broadcasts_are_read_in_every_batch(
    num_tables: int, is_read: bool
) -> None:
    """Their tables are prepared at the same time, so that the order of RDDs tells nothing."""
    node = '{"nodeName":"BroadcastExchange","simpleString":"BroadcastExchange (4)"}'
    plan = Raw(f'{{"children":[{",".join([node] * num_tables)}]}}'.encode())
    assert reads_operators(BatchOf("run", 2), plan) is is_read


def test_each_write_of_a_batch_has_its_own_stages() -> None:
    batch = [_record(8, execution_id=7), _record(9, execution_id=5)]
    assert {stage_id: kind.write for stage_id, kind in kinds_of_batch(batch, {}).items()} == {
        8: 1, 9: 0,
    }  # fmt: skip


def test_a_table_read_for_all_writes_belongs_to_none(tmp_path: Path) -> None:
    # The broadcast of a table is a job of the query's own execution, before foreachBatch writes.
    stores = replace(PRODUCTS, static_rows=40, num_tasks=1)
    log = AppLog().add(replace(JOINED, jobs=((stores,), (STREAM,), (STREAM,)), num_swapped=0))
    log.add(
        replace(
            JOINED, jobs=((stores,), (STREAM,), (STREAM,)), num_swapped=0, rate_per_s=40_000.0,
            started_s=JOINED.started_s + 200.0, seed=2,
        )
    )  # fmt: skip
    for start in log.of("JobStart"):
        batch, number = divmod(start["Job ID"], 3)
        start["Properties"]["spark.sql.execution.id"] = str(100 * batch + number)
    profile = headway.profile(write_plain(log.lines, tmp_path / "log"))
    assert [stage.work for stage in profile.stages] == [
        "read parquet", "action 1 of 2: read json", "action 2 of 2: read json",
    ]  # fmt: skip


def test_a_state_that_emitted_nothing_is_named() -> None:
    """Metrics of an operator are only recorded once a row has passed it."""
    scopes_of_stage = ("Exchange", "StateStoreRestore", "StateStoreSave", "WholeStageCodegen")
    aggregate = Operator(False, 3, "HashAggregate", None)
    saved = Operator(False, 2, "StateStoreSave", None)
    for operators in ((aggregate,), (aggregate, saved)):
        kind = StageKind(0, True, scopes_of_stage, 0)
        sample = a_stage_sample(level=1, num_tasks=4, rows=100.0, kind=kind, operators=operators)
        assert stage_work(sample.kind, [sample.operators], {0: None}) == "aggregate, update state"


def test_levels_are_those_of_most_batches() -> None:
    scan, table, join = (StageKind(0, name == "join", (name,), 0) for name in ("a", "b", "join"))
    side_by_side = {scan: (0.0, 1.0), table: (0.1, 0.5), join: (1.0, 2.0)}
    # A short scan that had ended before the other one was submitted.
    by_chance = {scan: (0.6, 1.0), table: (0.0, 0.5), join: (1.0, 2.0)}
    levels = levels_of_kinds([side_by_side, by_chance, side_by_side])
    assert levels == {scan: 0, table: 0, join: 1}
    unknown = {scan: (None, None)}
    assert levels_of_kinds([side_by_side, unknown]) == {}


def test_scopes_and_metrics_of_a_stage() -> None:
    info = StageInfo(
        rdds=[RddInfo(rdd_id=4, scope='{"id":"1","name":"Scan json "}'), None, RddInfo(scope="{")],
        accumulables=[Accumulable(accumulator_id=7, name="records read"), None, Accumulable()],
    )
    assert (scopes(info), rows_metric_ids(info)) == (("Scan json",), (7,))
    assert scopes(StageInfo()) is None


def test_source_partitions_change_a_prediction_but_not_its_static_tables(
    joined: headway.JobProfile,
) -> None:
    usual = headway.predict(joined, rate="40k/s")
    wide = headway.predict(joined, rate="40k/s", source_partitions=4)
    same = headway.predict(joined, rate="40k/s", source_partitions=2)
    assert same.tuple_latency == usual.tuple_latency
    # The scan of the stream is split, on the level that it shares with that of the table.
    (level,) = (name for name in usual.phases_s if name.startswith("stage 0"))
    assert wide.phases_s[level] < usual.phases_s[level]
    without = replace(joined, stages=joined.stages[1:])
    with pytest.raises(InputError, match=r"source.partitions.* 8: no stage of the profile"):
        headway.predict(without, rate="40k/s", source_partitions=8)
    with pytest.raises(InputError, match=r"source.partitions.* 8: no stage of the profile"):
        headway.plan(without, rate="40k/s", target="p99 <= 10s", source_partitions=8)
