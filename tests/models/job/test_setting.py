"""Settled batches and the latency law of a setting: limits, fixed points, laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import (
    Coalescing,
    Drift,
    DriverPhase,
    DurationNoise,
    JobProfile,
    RowsLaw,
)
from headway.models.batches.microbatch import AffineDuration, steady_state
from headway.models.batches.tuple_latency import tuple_latency_quantile
from headway.models.job.bends import bends_through
from headway.models.job.capacity import Capacity
from headway.models.job.certified import certified
from headway.models.job.duration import DurationModel, LevelSpan
from headway.models.job.setting import (
    MOST_BATCH_ROWS,
    SettingLaw,
    after_commit_s,
    allowed_offered_load,
    duration_model,
    load_ratio,
    setting_law,
    settled_batch_rows,
)
from headway.models.laws.inverse import increasing_root
from tests.factories import a_profile

AFFINE = DurationModel(0.5, (LevelSpan("stage", 0.1, ((2e-4, 1.0, 1.0),)),))


def a_law(profile: JobProfile, **changes: Any) -> SettingLaw:
    question = {"rate_per_s": 5000.0, "trigger_s": 1.0, **changes}
    return setting_law(profile, duration_model(profile, 8, 8), **question)


def with_noise(**changes: float) -> JobProfile:
    noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.0)
    return replace(a_profile(), noise=replace(noise, **changes))


def test_settled_rows_of_a_straight_line_are_known() -> None:
    # On the grid: what arrives in an interval. Free running: n = rate (a + b n).
    assert float(settled_batch_rows(AFFINE, 1000.0, 2.0)) == pytest.approx(2000.0)
    assert float(settled_batch_rows(AFFINE, 1000.0, 0.0)) == pytest.approx(600.0 / 0.8)
    assert float(settled_batch_rows(AFFINE, 4000.0, 1.0)) == pytest.approx(2400.0 / 0.2)


@given(
    num_rows=st.lists(st.floats(1.0, 1e6), min_size=3, max_size=12, unique=True),
    steps_s=st.lists(st.floats(0.0, 20.0), min_size=12, max_size=12),
    rates_per_s=st.lists(st.floats(1.0, 1e5), min_size=1, max_size=4),
    trigger_s=st.sampled_from([0.0, 0.5, 3.0]),
)
def test_settled_rows_take_as_long_as_they_took_to_arrive_however_durations_bend(
    num_rows: list[float], steps_s: list[float], rates_per_s: list[float], trigger_s: float
) -> None:
    places = np.array([0.0, *sorted(num_rows)])
    start_s, bends = bends_through(places, np.cumsum([0.1, *steps_s[: len(num_rows)]]))
    model = DurationModel(0.2, (LevelSpan("stage", start_s, (), bends),))
    rates = np.array(rates_per_s)
    rows = settled_batch_rows(model, rates, trigger_s)
    has_bound = rows < MOST_BATCH_ROWS
    arrived = rates * np.maximum(trigger_s, model.mean_s(rows))
    assert rows[has_bound] == pytest.approx(arrived[has_bound], rel=1e-6)
    # Where every larger batch takes longer than its rows took to arrive, there is none.
    assert (arrived[~has_bound] >= rows[~has_bound] * (1.0 - 1e-6)).all()


def test_two_sizes_of_batches_that_lead_to_each_other_are_not_settled() -> None:
    # The line through 10,000 rows leads to 160,000, and that through these below 10,000.
    places, durations_s = (
        np.array([0.0, 1e4, 2e4, 1e5, 2e5]),
        np.array([0.16, 1.15, 2.14, 2.14, 7.14]),
    )
    start_s, bends = bends_through(places, durations_s)
    model = DurationModel(0.0, (LevelSpan("stage", start_s, (), bends),))
    assert float(model.mean_s(1.6e5)) == pytest.approx(5.14)
    assert float(settled_batch_rows(model, 1e4, 1.0)) == pytest.approx(21_400.0)


def test_slower_durations_settle_higher() -> None:
    rows = settled_batch_rows(AFFINE, 1000.0, 0.0, np.array([1.0, 2.0]))
    assert rows == pytest.approx([600.0 / 0.8, 1200.0 / 0.6])


def test_over_capacity_batches_grow_without_bound() -> None:
    assert float(settled_batch_rows(AFFINE, 6000.0, 1.0)) >= 1e15


def test_a_law_below_one_always_settles() -> None:
    curved = DurationModel(0.2, (LevelSpan("stage", 0.0, ((1e-3, 1.0, 0.5),)),))
    rows = float(settled_batch_rows(curved, 1e6, 0.0))
    # n / rate = 0.2 + 0.001 sqrt(n), a quadratic in sqrt(n).
    root = (1e3 + np.sqrt(1e6 + 4 * 2e5)) / 2
    assert rows == pytest.approx(root**2, rel=1e-8)


@given(
    rate=st.floats(0.1, 1e6),
    trigger_s=st.floats(0.0, 30.0),
    exponent=st.floats(0.1, 1.0),
    factor=st.floats(0.3, 3.0),
)
def test_settled_rows_are_a_fixed_point(
    rate: float, trigger_s: float, exponent: float, factor: float
) -> None:
    model = DurationModel(0.3, (LevelSpan("stage", 0.05, ((1e-4, 2.0, exponent),)),))
    rows = float(settled_batch_rows(model, rate, trigger_s, factor))
    if rows < 1e14:
        collected = rate * max(trigger_s, factor * float(model.mean_s(rows)))
        assert rows == pytest.approx(collected, rel=1e-6)


def test_only_the_phases_after_the_commit_are_not_waited_for() -> None:
    phases = (
        DriverPhase(name="wal_commit", mean_s=0.1, sd_s=0.0),
        DriverPhase(name="commit_offsets", mean_s=0.02, sd_s=0.0),
        DriverPhase(name="other", mean_s=0.003, sd_s=0.0),
    )
    assert after_commit_s(replace(a_profile(), driver_phases=phases)) == pytest.approx(0.023)


def test_without_lasting_noise_it_is_the_steady_state_of_the_tangent() -> None:
    profile = with_noise(batch_ratio=0.15)
    model = duration_model(profile, 8, 8)
    rows = 5000.0
    slope_s = float(model.slope_s(rows))
    tangent = AffineDuration(
        float(model.mean_s(rows)) - slope_s * rows,
        slope_s,
        0.15,
        after_commit_s=0.028,  # the factory's offset commit
    )
    state = steady_state(tangent, 5000.0, 1.0)
    law = a_law(profile)
    assert float(law.batch_duration_mean_s()) == pytest.approx(float(state.mean_duration_s))
    assert float(law.tuple_latency_quantile_s(0.99)) == pytest.approx(
        float(tuple_latency_quantile(state, 0.99))
    )


def test_lasting_noise_keeps_the_mean_and_the_spread() -> None:
    shares = (0.0, 0.5, 0.9)
    laws = [a_law(with_noise(batch_ratio=0.2, autocorrelation=share)) for share in shares]
    means = [float(law.batch_duration_mean_s()) for law in laws]
    assert means == pytest.approx([means[0]] * 3, rel=2e-3)
    spreads = [
        float(law.batch_duration_quantile_s(0.95) / law.batch_duration_quantile_s(0.05))
        for law in laws
    ]
    assert spreads == pytest.approx([spreads[0]] * 3, rel=0.05)


def test_quantiles_invert_the_distribution_functions() -> None:
    law = a_law(a_profile(), rate_per_s=np.array([10.0, 5e3, 3e5]), trigger_s=0.5)
    probabilities = np.array([[0.01], [0.5], [0.99], [0.9999]])
    for cdf, quantile_s in (
        (law.tuple_latency_cdf, law.tuple_latency_quantile_s),
        (law.batch_duration_cdf, law.batch_duration_quantile_s),
    ):
        values_s = quantile_s(probabilities)
        assert values_s.shape == (4, 3)
        assert cdf(values_s) == pytest.approx(np.tile(probabilities, (1, 3)), abs=1e-7)
        assert np.all(np.diff(values_s, axis=0) > 0)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, float("nan")])
def test_quantiles_of_nothing_are_refused(q: float) -> None:
    with pytest.raises(ValueError, match="q must"):
        a_law(a_profile()).tuple_latency_quantile_s(q)


def test_beyond_capacity_all_times_are_infinite() -> None:
    law = a_law(a_profile(), rate_per_s=1e9)
    assert not law.is_stable
    assert float(law.batch_duration_mean_s()) == np.inf
    assert float(law.tuple_latency_mean_s()) == np.inf
    assert float(law.tuple_latency_quantile_s(0.5)) == np.inf
    assert float(law.batch_duration_quantile_s(0.5)) == np.inf
    assert float(law.tuple_latency_cdf(1e9)) == 0.0


def test_some_settings_of_many() -> None:
    law = a_law(a_profile(), rate_per_s=np.array([10.0, 5e3, 1e9]))
    some = law.take(np.array([2, 0]))
    assert some.is_stable.tolist() == [False, True]
    assert some.tuple_latency_mean_s()[1] == law.tuple_latency_mean_s()[0]


def test_load_is_the_offered_load_over_the_highest_allowed() -> None:
    profile = replace(
        with_noise(batch_ratio=0.0),
        stages=tuple(
            replace(stage, rows=RowsLaw(scale=1.0, exponent=1.0)) for stage in a_profile().stages
        ),
    )
    model = duration_model(profile, 8, 8)
    offered_load = float(model.slope_s(1.0)) * 1e5
    load = load_ratio(
        profile, model, rate_per_s=1e5, trigger_s=1.0, factor=1.2, highest_offered_load=0.9
    )
    assert float(load) == pytest.approx(1.2 * offered_load / 0.9)
    assert allowed_offered_load(profile.noise.batch_ratio, 0.9) == pytest.approx(0.9)


@pytest.mark.parametrize("autocorrelation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("batch_ratio", [0.05, 0.3, 0.6])
def test_load_tells_stability_without_the_fixed_point(
    batch_ratio: float, autocorrelation: float
) -> None:
    profile = with_noise(batch_ratio=batch_ratio, autocorrelation=autocorrelation)
    model = duration_model(profile, 8, 8)
    rates = np.geomspace(1e4, 1e6, 200)
    for trigger_s in (0.0, 2.0):
        load = load_ratio(
            profile,
            model,
            rate_per_s=rates,
            trigger_s=trigger_s,
            factor=1.0,
            highest_offered_load=1.0,
        )
        stable = setting_law(profile, model, rate_per_s=rates, trigger_s=trigger_s).is_stable
        assert np.all(stable[load < 0.99])
        assert not np.any(stable[load > 1.01])


@given(
    roots=st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=5),
    guess=st.floats(1e-2, 1e4),
)
def test_roots_of_increasing_functions(roots: list[float], guess: float) -> None:
    goals = np.array(roots)
    found = increasing_root(lambda x: np.log1p(x) - np.log1p(goals), np.full(len(roots), guess))
    assert found == pytest.approx(goals, rel=1e-8)
    assert np.all(np.log1p(found) <= np.log1p(goals))


def test_a_step_is_met_from_below_and_a_positive_function_has_no_root() -> None:
    found = increasing_root(
        lambda x: np.where(x > np.array([2.0, -1.0]), 1.0, -1.0), np.full(2, 5.0)
    )
    assert 2.0 * (1 - 1e-5) <= found[0] <= 2.0
    assert found[1] == 0.0


def test_drift_is_not_part_of_the_law() -> None:
    young = replace(a_profile(), drift=Drift(exponent=0.5, reference_age_s=10.0))
    assert float(a_law(young).tuple_latency_mean_s()) == float(
        a_law(a_profile()).tuple_latency_mean_s()
    )


@given(
    rate=st.floats(0.1, 1e6),
    trigger_s=st.sampled_from([0.0, 0.5, 10.0]),
    slots=st.sampled_from([1, 2, 8, 40]),
    per_row_s=st.sampled_from([1e-6, 1e-5, 2e-4]),
)
def test_settled_rows_are_a_fixed_point_with_coalesced_stages(
    rate: float, trigger_s: float, slots: int, per_row_s: float
) -> None:
    stage = replace(
        a_profile().stages[1],
        tasks_rule="coalesced", num_source_tasks=2, task_per_row_s=per_row_s,
        coalescing=Coalescing(
            exchange_bytes_per_row=50.0, advisory_bytes=2**26, smallest_bytes=2**20
        ),
        rows=RowsLaw(scale=1.0, exponent=1.0),
    )  # fmt: skip
    profile = replace(a_profile(), stages=(a_profile().stages[0], stage))
    model = duration_model(profile, slots, 64)
    rows = float(settled_batch_rows(model, rate, trigger_s))
    if rows < 1e14:
        collected = rate * max(trigger_s, float(model.mean_s(rows)))
        assert rows == pytest.approx(collected, rel=1e-6)
    stable_per_s = Capacity(
        profile=profile, model=model,
        configuration=replace(
            profile.baseline, executors=slots, cores_per_executor=1, shuffle_partitions=64,
            trigger_s=trigger_s,
        ),
    ).stable_up_to_per_s  # fmt: skip
    assert float(settled_batch_rows(model, 0.99 * stable_per_s, trigger_s)) < 1e14
    # Were all tasks alike and every slot busy, no more rows could be processed.
    assert stable_per_s <= slots / per_row_s


def test_latencies_by_chains_do_not_need_their_moments() -> None:
    """Beyond its capacity a setting is unstable in any case."""
    per_row_s, trigger_s = np.array([2e-4, 7e-4, 9.9e-4]), np.array([4.0, 2.0, 2.0])
    duration = AffineDuration(1.0, per_row_s, 0.1, lasting_share=0.5)
    law = SettingLaw.of(steady_state(duration, 1000.0, trigger_s, dispersion=0.0))
    chained, without_moments = certified(law), certified(law, with_moments=False)
    assert chained.is_stable.tolist() == [True, True, False]
    for values, values_without in (
        (chained.is_stable, without_moments.is_stable),
        (chained.tuple_latency_cdf(3.0), without_moments.tuple_latency_cdf(3.0)),
        (chained.batch_duration_cdf(2.0), without_moments.batch_duration_cdf(2.0)),
        (chained.saturation_excess, without_moments.saturation_excess),
    ):
        assert values.tolist() == values_without.tolist()
