"""Plans from declared figures: what they are unsure of is what was stated, and nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.api.plan import plan
from headway.api.predict import predict
from headway.api.results import as_text
from headway.cli.main import run
from headway.domain import (
    Z90,
    Configuration,
    JobProfile,
    StatedRange,
    StreamAnswer,
)
from headway.formats.as_json import plan_json
from headway.formats.from_json import plan_from_json
from headway.models.arrays import Array
from headway.models.job.declared import figures_at
from headway.models.laws.distributions import uniform_mixture_quantile
from headway.report.explanation import explanation_text
from headway.spec.declared import declared_profile
from headway.spec.forms.quantities import COST, Quantity
from headway.spec.kinds.jobs import DeclaredStream
from tests.oracles.list_scheduling import list_scheduling_makespan
from tests.seeds import examples

TARGET_S = 2.0
RATE_PER_S = 100_000.0
NODE = "n4:cores=4,price=0.2"


def orders(**changed: object) -> DeclaredStream:
    """12 Kafka partitions, 20 us and 10 us a row, 10 ms tasks, 150 ms of the driver."""
    figures: dict[str, object] = {
        "task_per_row_s": COST.about(20e-6),
        "shuffle_task_per_row_s": COST.about(10e-6),
        "task_fixed_s": COST.about(0.01),
        "driver_s": COST.about(0.15),
        "source_partitions": 12,
    }
    return DeclaredStream(**(figures | changed))  # type: ignore[arg-type]


def profile_of(declared: DeclaredStream, rate_per_s: float = RATE_PER_S) -> JobProfile:
    return declared_profile("orders", declared, Quantity.exactly(rate_per_s))


def planned(profile: JobProfile, rate_per_s: float = RATE_PER_S, **asked: Any) -> StreamAnswer:
    answer: StreamAnswer = plan(
        profile,
        rate=rate_per_s,
        target=f"p99 <= {TARGET_S}s",
        max_nodes=20,
        node_types=[NODE],
        **asked,
    )
    return answer


@pytest.fixture(scope="module")
def answer() -> StreamAnswer:
    return planned(profile_of(orders()))


def simulated_p99_s(profile: JobProfile, configuration: Configuration, seed: int) -> float:
    """The latency that 99 of 100 rows stay below, task by task on the slots, batch by batch."""
    random, trigger_s = np.random.default_rng(seed), configuration.trigger_s
    rate_per_s, slots = profile.arrivals.rate_per_s, configuration.num_slots
    start, before, stretches = 0.0, -1.0, []
    for batch in range(600):
        rows = rate_per_s * (start - before)
        duration_s = sum(phase.mean_s for phase in profile.driver_phases)
        for stage in profile.stages:
            num_tasks = stage.num_tasks(configuration.shuffle_partitions)
            mean_s = stage.task_fixed_s + stage.task_per_row_s * stage.rows.rows(rows) / num_tasks
            times_s = mean_s * _lognormal(random, stage.task_noise_ratio, num_tasks)
            duration_s += float(list_scheduling_makespan(times_s, slots))
        duration_s *= float(_lognormal(random, profile.noise.batch_ratio, 1)[0])
        if duration_s > 60.0:
            return math.inf
        if batch >= 50:
            stretches.append((duration_s, duration_s + start - before, rows))
        before, end = start, start + duration_s
        on_grid = trigger_s * (math.floor(start / trigger_s + 1e-9) + 1.0) if trigger_s else end
        start = max(end, on_grid)
    low, high, weight = np.array(stretches).T
    return float(uniform_mixture_quantile(0.99, low, high, weight))


def _lognormal(random: np.random.Generator, cv: float, count: int) -> Array:
    sigma = math.sqrt(math.log1p(cv**2))
    return np.asarray(random.lognormal(-0.5 * sigma**2, sigma, count))


def test_the_plan_is_what_an_expert_says(answer: StreamAnswer) -> None:
    assert answer.feasible
    assert answer.nodes in (3, 4)
    assert 12 <= answer.configuration.shuffle_partitions <= 24
    assert 0.5 <= answer.configuration.trigger_s <= 1.0


def test_the_planned_setting_keeps_the_promise_when_simulated(answer: StreamAnswer) -> None:
    """At the upper end of every range, which is what the plan is for, and so in the middle too."""
    profile = profile_of(orders())
    for score in (0.0, Z90):
        at = figures_at(profile, score)
        assert simulated_p99_s(at, answer.configuration, seed=1) <= TARGET_S
    assert answer.planned_latency_s == pytest.approx(
        simulated_p99_s(figures_at(profile, Z90), answer.configuration, seed=2), rel=0.1
    )


def test_one_node_less_keeps_it_with_no_setting_when_simulated(answer: StreamAnswer) -> None:
    profile = figures_at(profile_of(orders()), Z90)
    for partitions in (8, 12, 16, 24, 32):
        for trigger_s in (0.0, 0.25, 0.5, 1.0):
            fewer = replace(
                answer.configuration,
                executors=answer.nodes - 1,
                shuffle_partitions=partitions,
                trigger_s=trigger_s,
            )
            assert simulated_p99_s(profile, fewer, seed=3) > TARGET_S, (partitions, trigger_s)


def test_the_rate_that_was_declared_is_nothing_that_was_seen(answer: StreamAnswer) -> None:
    """The same job declared at 1k/s has the same frontier."""
    small = planned(profile_of(orders(), 1000.0), 1000.0)
    rates = {point.nodes: point.sustainable_rate_per_s for point in answer.frontier}
    again = {point.nodes: point.sustainable_rate_per_s for point in small.frontier}
    common = sorted(rates.keys() & again.keys())
    assert len(common) >= 3
    for nodes in common:
        assert again[nodes] == pytest.approx(rates[nodes], rel=1e-3)


def test_figures_that_are_certain_leave_no_interval() -> None:
    certain = {
        name: Quantity.exactly(value)
        for name, value in {
            "task_per_row_s": 20e-6,
            "shuffle_task_per_row_s": 10e-6,
            "task_fixed_s": 0.01,
            "driver_s": 0.15,
        }.items()
    }
    found = planned(profile_of(orders(**certain)))
    latency = found.prediction.tuple_latency
    assert latency is not None
    assert latency.interval90_p99_s is not None
    assert latency.interval90_p99_s.low == pytest.approx(latency.p99_s)
    assert latency.interval90_p99_s.high == pytest.approx(latency.p99_s)
    assert found.planned_latency_s == pytest.approx(latency.p99_s, rel=1e-3)
    assert found.nodes <= planned(profile_of(orders())).nodes


def test_only_the_figure_that_is_unsure_widens_the_answer() -> None:
    """A driver that may take 300 ms adds 150 ms to a batch, however many rows it has."""
    sure = {
        "task_per_row_s": Quantity.exactly(20e-6),
        "shuffle_task_per_row_s": Quantity.exactly(10e-6),
        "task_fixed_s": Quantity.exactly(0.01),
    }
    driver = Quantity(low=0.1, mid=0.15, high=0.3)
    prediction = predict(
        profile_of(orders(**sure, driver_s=driver)), trigger="2s", executors=4, partitions=16
    )
    batch = prediction.batch_duration
    assert batch is not None
    assert batch.interval90_mean_s is not None
    assert batch.interval90_mean_s.high - batch.mean_s == pytest.approx(0.15, abs=0.005)
    assert batch.mean_s - batch.interval90_mean_s.low == pytest.approx(0.05, abs=0.005)


def test_nothing_is_changed_against_a_run_that_never_was(answer: StreamAnswer) -> None:
    assert answer.changes == ()
    assert not answer.prediction.calibrated
    assert answer.prediction.provenance == "declared"
    text = as_text(answer)
    assert "profiled" not in text
    assert "Based on declared costs: nothing was measured." in text
    assert "at the 95% end of each declared range" in " ".join(text.split())
    assert "profiled" not in explanation_text(answer)
    assert "Declared costs" in explanation_text(answer)


def test_the_declared_figures_are_in_the_plan(answer: StreamAnswer) -> None:
    data = json.loads(json.dumps(plan_json(answer)))
    assert data["prediction"]["provenance"] == "declared"
    assert data["declared"]["driver"] == {"low_s": 0.1, "mid_s": 0.15, "high_s": 0.225}
    assert plan_from_json(data).declared is not None
    del data["declared"], data["prediction"]["provenance"]
    assert plan_from_json(data).declared is None


def test_the_default_of_a_plain_value_is_a_stated_range(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(
        "apiVersion: headway/v1\nkind: StreamingJob\nmetadata: {name: orders}\nspec:\n"
        "  declared: {source_partitions: 12, task_per_row: 20us, shuffle_task_per_row: 10us}\n"
        "  rate: 100k/s\n  target: p99 <= 2s\n"
        "  cluster: {node: {name: n, cores: 4, memory: 16g, price_per_hour: 0.2}, max_nodes: 20}\n"
    )
    assert run(["plan", str(path)]) == 0
    assert run(["plan", str(path), "--strict"]) == 5


def test_an_existing_checkpoint_needs_its_partitions_stated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(
        "apiVersion: headway/v1\nkind: StreamingJob\nmetadata: {name: orders}\nspec:\n"
        "  declared: {source_partitions: 12, task_per_row: 20us, shuffle_task_per_row: 10us}\n"
        "  rate: 10k/s\n  target: p99 <= 2s\n  checkpoint: existing\n"
    )
    assert run(["plan", str(path)]) == 2
    assert "do not state them; add shuffle_partitions" in capsys.readouterr().err
    path.write_text(path.read_text().replace("{source_", "{shuffle_partitions: 16, source_"))
    assert run(["plan", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["configuration"]["shuffle_partitions"] == 16


@examples(30, 200)
@given(
    mid_s=st.floats(1e-9, 1e3),
    below=st.floats(0.0, 1.0),
    above=st.floats(1.0, 1e3),
    scores=st.lists(st.floats(-4.0, 4.0), min_size=2, max_size=2).map(sorted),
)
def test_a_range_is_met_at_its_ends_and_grows_between(
    mid_s: float, below: float, above: float, scores: list[float]
) -> None:
    found = StatedRange(low_s=below * mid_s, mid_s=mid_s, high_s=above * mid_s)
    assert found.at(0.0) == mid_s
    assert found.at(Z90) == pytest.approx(found.high_s)
    assert found.at(-Z90) == pytest.approx(found.low_s)
    low_s, high_s = (found.at(score) for score in scores)
    assert 0.0 <= low_s <= high_s * (1 + 1e-12)
