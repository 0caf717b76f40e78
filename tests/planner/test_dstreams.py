"""DStreams applications: predictions and plans against the simulation and real runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.api.profile import profile_and_tables
from headway.cli.main import run
from headway.domain import ApplicationProfile
from headway.domain.dstreams import DStreamsPrediction
from headway.errors import InputError
from headway.formats.profile_file import save_profile
from headway.models.laws.distributions import lognormal_quantile
from headway.planner.kinds.dstreams_batches import DStreamsBatches
from tests.oracles.dstreams import simulate_dstreams
from tests.oracles.queue import correlated_lognormal_s

RUNS = Path(__file__).parents[1] / "data" / "recorded" / "dstreams"
# Three runs of one application on local[2]: 300 rows/s in batches of 2 s, twice the rate, and twice
# the batch interval.
FITTED, TWICE_THE_RATE, TWICE_THE_INTERVAL = (
    RUNS / f"local-{number}.zstd" for number in (1795353927117, 1795354114194, 1795354313917)
)


def profiled(log: Path) -> ApplicationProfile:
    profile = profile_and_tables(log, None)[0]
    assert isinstance(profile, ApplicationProfile)
    return profile


@pytest.fixture(scope="module")
def fitted() -> ApplicationProfile:
    return profiled(FITTED)


@pytest.fixture(scope="module")
def slower() -> ApplicationProfile:
    return profiled(TWICE_THE_INTERVAL)


@pytest.fixture
def file(fitted: ApplicationProfile, tmp_path: Path) -> str:
    save_profile(fitted, tmp_path / "dstreams.yaml")
    return str(tmp_path / "dstreams.yaml")


def test_as_profiled_it_takes_what_it_took(fitted: ApplicationProfile) -> None:
    assert fitted.dstreams is not None
    found = headway.predict(fitted)
    assert found.rate_per_s == pytest.approx(300.0)
    assert found.processing_time is not None
    assert found.processing_time.mean_s == pytest.approx(
        fitted.dstreams.processing_time.mean_s, rel=0.05
    )
    assert found.tuple_latency is not None
    assert sum(found.phases_s.values()) == pytest.approx(found.tuple_latency.mean_s)


def test_a_run_at_twice_the_interval_is_reported(
    fitted: ApplicationProfile, slower: ApplicationProfile
) -> None:
    assert slower.dstreams is not None
    found = headway.predict(fitted, trigger="4s").processing_time
    seen = slower.dstreams.processing_time
    assert found is not None
    assert found.interval90_mean_s is not None
    assert found.mean_s == pytest.approx(seen.mean_s, rel=0.2)
    assert found.interval90_mean_s.low <= seen.mean_s <= found.interval90_mean_s.high


def test_a_run_at_twice_the_rate_fell_behind_as_predicted(fitted: ApplicationProfile) -> None:
    busier = profiled(TWICE_THE_RATE)
    assert busier.dstreams is not None
    assert any("could not keep up" in note for note in busier.notes)
    found = headway.predict(fitted, rate="600/s")
    assert not found.stable
    assert found.tuple_latency is None
    seen_busy = busier.dstreams.processing_time.mean_s / 2.0
    assert found.offered_load_ratio == pytest.approx(seen_busy, rel=0.2)
    assert found.utilization_ratio == 1.0


def test_the_rows_of_the_slower_run_waited_as_predicted(slower: ApplicationProfile) -> None:
    """Medians: a backlog of the start is in the means on record, and in no steady state."""
    assert slower.dstreams is not None
    found = headway.predict(slower)
    assert found.tuple_latency is not None
    times = slower.dstreams
    median_s = 2.0 + times.scheduling_delay.p50_s + times.processing_time.p50_s
    assert found.tuple_latency.p50_s == pytest.approx(median_s, rel=0.15)


@pytest.mark.parametrize(("jobs", "error"), [(1, 0.02), (2, 0.1)])
def test_latencies_are_those_of_the_simulation(
    slower: ApplicationProfile, jobs: int, error: float
) -> None:
    batches = DStreamsBatches.of(slower)
    setting = replace(batches.profiled_setting, concurrent_jobs=jobs, batch_interval_s=3.0)
    work = batches.jobs(setting, 1.0)
    trace = simulate_dstreams(
        3.0,
        correlated_lognormal_s(
            work.job.mean_s, float(np.sqrt(work.job.scv)), 0.0, num_values=200_000, seed=3
        ).reshape(-1, work.num_jobs),
        num_concurrent=jobs,
        num_warmup=5_000,
    )
    found = headway.predict(slower, trigger=3.0, concurrent_jobs=jobs)
    assert found.tuple_latency is not None
    begun_s = found.phases_s["start of the batch"]
    assert found.tuple_latency.mean_s - begun_s == pytest.approx(trace.tuple_mean_s, rel=error)
    p99_s = float(trace.tuple_quantile_s(0.99))
    assert found.tuple_latency.p99_s - begun_s == pytest.approx(p99_s, rel=error)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.75, 0.85])
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("interval_s", [1.5, 3.0, 8.0])
def test_a_little_more_rate_makes_no_jump_and_no_mean_is_above_its_p99(
    slower: ApplicationProfile, interval_s: float, jobs: int, load: float
) -> None:
    def at(rate_per_s: float) -> DStreamsPrediction:
        return headway.predict(slower, rate=rate_per_s, trigger=interval_s, concurrent_jobs=jobs)

    highest_per_s = at(1.0).sustainable_rate_per_s
    assert highest_per_s is not None
    found = [at(load * highest_per_s * 1.01**power) for power in range(3)]
    for law in ("processing_time", "tuple_latency"):
        figures = [getattr(one, law) for one in found]
        assert all(one.mean_s <= one.p99_s for one in figures)
        logs = np.log([[one.mean_s, one.p99_s] for one in figures])
        assert np.all(np.abs(np.diff(logs, n=2, axis=0)) <= 0.02)


def test_quantiles_of_the_processing_time_are_a_lognormal(slower: ApplicationProfile) -> None:
    assert slower.dstreams is not None
    found = headway.predict(slower).processing_time
    assert found is not None
    cv = slower.dstreams.processing_time.sd_s / slower.dstreams.processing_time.mean_s
    assert found.p95_s == pytest.approx(float(lognormal_quantile(0.95, found.mean_s, cv)))


def test_the_fewest_nodes_are_those_of_trying_all(slower: ApplicationProfile) -> None:
    plan = headway.plan(slower, rate=500.0, target="p99 <= 12s", trigger="4s", max_nodes=6)
    tried = [
        headway.plan(
            slower, rate=500.0, target="p99 <= 12s", trigger="4s", max_nodes=nodes
        ).feasible
        for nodes in range(1, 7)
    ]
    assert plan.feasible
    assert plan.nodes == tried.index(True) + 1
    assert plan.planned_s <= 12.0
    assert plan.point.expected_s <= plan.planned_s
    assert plan.spark_conf["spark.executor.instances"] == str(plan.nodes)
    assert plan.max_rate_per_s is not None
    assert plan.max_rate_per_s >= 500.0


@pytest.mark.parametrize("trigger", [2.0, 4.0])
def test_fewer_rows_need_no_more_nodes(slower: ApplicationProfile, trigger: float) -> None:
    """Nor are they less certain to be in time, however far they are from the profiled rows."""
    plans = [
        headway.plan(slower, rate=rate, target="p99 <= 12s", trigger=trigger, cores=2, max_nodes=9)
        for rate in np.geomspace(0.5, 400.0, 8)
    ]
    assert plans[-1].feasible
    assert [plan.nodes for plan in plans] == sorted(plan.nodes for plan in plans)
    assert all(plan.max_rate_per_s == plans[0].max_rate_per_s for plan in plans[:2])
    for plan in plans:
        assert plan.expected.tuple_latency is not None
        interval = plan.expected.tuple_latency.interval90_p99_s
        assert interval is not None
        assert interval.high == pytest.approx(plan.planned_s)


def test_rates_up_to_the_planned_one_are_kept_and_no_others(slower: ApplicationProfile) -> None:
    plan = headway.plan(slower, rate=300.0, target="p99 <= 12s", trigger="4s", max_nodes=1)
    assert plan.feasible
    assert plan.max_rate_per_s is not None
    for ratio, kept in ((0.98, True), (1.05, False)):
        rate_per_s = ratio * plan.max_rate_per_s
        again = headway.plan(
            slower, rate=rate_per_s, target="p99 <= 12s", trigger="4s", max_nodes=1
        )
        assert again.feasible is kept


def test_the_rate_limit_lets_batches_of_its_size_keep_up(slower: ApplicationProfile) -> None:
    plan = headway.plan(slower, rate=300.0, target="p99 <= 12s", max_nodes=2)
    limit = int(plan.spark_conf["spark.streaming.kafka.maxRatePerPartition"])
    read = max(stage.num_tasks for stage in slower.stages if not stage.parents)
    assert limit * read >= 1.2 * 300.0
    assert (
        headway.predict(
            slower, rate=limit * read, executors=plan.setting.executors
        ).utilization_ratio
        < 1.0
    )


def test_nothing_in_reach_is_reported_with_what_comes_nearest(slower: ApplicationProfile) -> None:
    plan = headway.plan(slower, rate=300.0, target="p99 <= 200ms", max_nodes=3)
    assert not plan.feasible
    assert plan.planned_s > 0.2
    assert plan.binding[0].startswith("the best is")


def test_receivers_hold_slots_and_cut_blocks(slower: ApplicationProfile) -> None:
    assert slower.dstreams is not None
    with_receiver = replace(slower, dstreams=replace(slower.dstreams, num_receivers=1))
    alone, beside = (headway.predict(one, rate=150.0) for one in (slower, with_receiver))
    assert beside.setting.num_slots == alone.setting.num_slots - 1
    assert beside.phases_s["wait for the batch"] == pytest.approx(2.0 + 0.2)
    # A longer batch has more blocks, each of the same rows.
    batches = DStreamsBatches.of(with_receiver)
    longer = replace(batches.profiled_setting, batch_interval_s=8.0)
    assert (
        batches.jobs(longer, 1.0).work_s > 1.3 * batches.jobs(batches.profiled_setting, 1.0).work_s
    )
    plan = headway.plan(with_receiver, rate=200.0, target="p99 <= 15s", max_nodes=3)
    assert "spark.streaming.receiver.maxRate" in plan.spark_conf
    full = replace(slower, dstreams=replace(slower.dstreams, num_receivers=2))
    with pytest.raises(InputError, match="2 receivers took every slot"):
        headway.predict(full)


def test_a_log_without_counted_rows_is_planned_for_its_own_rate(slower: ApplicationProfile) -> None:
    assert slower.dstreams is not None
    uncounted = replace(slower, dstreams=replace(slower.dstreams, rows_per_batch=None))
    with pytest.raises(InputError, match="leave out rate"):
        headway.predict(uncounted, rate=100.0)
    plan = headway.plan(uncounted, rate=None, target="p99 <= 15s", max_nodes=2)
    assert plan.feasible
    assert plan.max_rate_per_s is None
    assert not any("maxRate" in key for key in plan.spark_conf)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("window p99 <= 5s", "the latency of rows"),
        ("catch_up <= 5m after 10m", "recovery"),
        ("deadline <= 5m", "a deadline is for batch jobs"),
    ],
)
def test_what_is_not_modelled_is_refused(
    slower: ApplicationProfile, target: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        headway.plan(slower, rate=100.0, target=target)


def test_the_commands_speak_of_dstreams(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(*arguments: str) -> tuple[int, str]:
        code = run(arguments)
        said = capsys.readouterr()
        return code, said.out + said.err

    code, text = asked("predict", file, "--trigger", "4s")
    assert code == 0
    assert "batch interval 4.00 s" in text
    code, text = asked("predict", file, "--trigger", "4s", "--json")
    printed = json.loads(text)
    assert (printed["schema"], printed["configuration"]["trigger_s"]) == (
        "headway.dstreams-prediction/v1",
        4.0,
    )
    code, text = asked("plan", file, "--rate", "300/s", "--target", "p99 <= 8s")
    assert code == 0
    assert "2 nodes meet p99 <= 8.00 s at 300/s" in text
    code, text = asked(
        "plan", file, "--rate", "300/s", "--target", "p99 <= 8s", "--format", "spark-defaults"
    )
    assert "spark.executor.instances" in text
    code, text = asked("plan", file, "--rate", "300/s", "--target", "p99 <= 200ms", "--json")
    assert code == 3
    assert json.loads(text)["feasible"] is False
    for refused in (("--partitions", "4"), ("--checkpoint", "new"), ("--budget", "3")):
        code, text = asked("plan", file, "--rate", "300/s", "--target", "p99 <= 8s", *refused)
        assert code == 2
        assert refused[0] in text
    code, text = asked("predict", file, "--partitions", "4")
    assert code == 2
    assert "the application's own code" in text


NODE_TYPES = (
    "small:cores=2,memory=16g,price=0.11",
    "usual:cores=4,memory=16g,price=0.2",
    "fast:cores=4,memory=16g,price=0.19,speed=1.5",
)


@pytest.mark.parametrize("objective", ["nodes", "cost", "latency"])
def test_of_several_node_types_the_best_plan_counts(
    slower: ApplicationProfile, objective: str
) -> None:
    """As enumerated: each type alone, then the objective."""

    def planned(*names: str) -> Any:
        return headway.plan(
            slower,
            rate=500.0,
            target="p99 <= 12s",
            trigger="4s",
            max_nodes=6,
            node_types=names,
            objective=objective,
        )

    order: Callable[[Any], Any] = {
        "nodes": lambda plan: (plan.nodes, plan.cost),
        "cost": lambda plan: (plan.cost, plan.nodes),
        "latency": lambda plan: (plan.planned_s, plan.cost),
    }[objective]
    alone = [planned(name) for name in NODE_TYPES]
    assert all(plan.feasible for plan in alone)
    assert planned(*NODE_TYPES) == min(alone, key=order)


def test_a_budget_limits_the_nodes(slower: ApplicationProfile) -> None:
    asked: dict[str, Any] = {
        "rate": 500.0, "target": "p99 <= 12s", "trigger": "4s", "node_types": NODE_TYPES[:1],
    }  # fmt: skip
    free = headway.plan(slower, max_nodes=6, **asked)
    assert free.feasible and free.nodes > 1
    assert headway.plan(slower, budget=0.11 * free.nodes, **asked).nodes == free.nodes
    assert not headway.plan(slower, budget=0.11 * free.nodes - 0.01, **asked).feasible


def test_more_nodes_to_choose_from_give_no_higher_latency(slower: ApplicationProfile) -> None:
    """Of many numbers of nodes some are tried first, then those around the best of them."""
    planned_s = [
        headway.plan(
            slower,
            rate=300.0,
            target="p99 <= 60s",
            objective="latency",
            cores=1,
            max_nodes=max_nodes,
        ).planned_s
        for max_nodes in (2, 4, 12, 25, 30, 47, 200)
    ]
    assert planned_s == sorted(planned_s, reverse=True)
