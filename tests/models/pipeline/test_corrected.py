"""The 12 phases, corrected and as published: golden values, limits, laws, and the simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.pipeline.corrected import tuple_latency, window_latency
from headway.models.pipeline.latency import PHASES
from headway.models.pipeline.parameters import Finalizing, Pipeline, PipelineSetting, pipeline_loads
from headway.models.simulation.pipeline import simulate_pipeline
from tests.models.pipeline.pipeline_cases import pipeline, published, published_window
from tests.seeds import examples

LEVELS = np.array([0.5, 0.95, 0.99])
SHORT = 1e-6


# The design's table: shuffle and poll period, busy share; mean less the 6.5 ms that its map stage
# took, sd with FIFO order, sd of independent phases.
@pytest.mark.parametrize(
    ("shuffle", "poll", "busy", "mean", "sd", "independent_sd"),
    [
        (0.2, 0.2, 0.3, 0.2325, 0.0687, 0.0835),
        (0.2, 0.13, 0.3, 0.1865, 0.0615, 0.0698),
        (0.3, 0.4, 0.3, 0.4125, 0.1161, 0.1484),
        (0.2, 0.2, 0.6, 0.2625, 0.0582, 0.0887),
        (0.2, 0.2, 0.8, 0.2825, 0.0532, 0.0938),
        (0.1, 0.3, 0.6, 0.2925, 0.0436, 0.1051),
    ],
)
def test_latencies_are_those_of_the_table(
    shuffle: float, poll: float, busy: float, mean: float, sd: float, independent_sd: float
) -> None:
    latency = tuple_latency(pipeline(shuffle, poll, busy, map_busy=SHORT))
    # Formulas there hold for many mappers. Here there are 8, whose batches share a poll at random:
    # a batch is not ahead of itself, and the number ahead has a spread.
    assert float(latency.mean_s) == pytest.approx(mean, abs=0.002)
    assert float(latency.sd_s) == pytest.approx(sd, rel=0.11)
    alone = latency.with_independent_phases()
    assert float(alone.sd_s) == pytest.approx(independent_sd, rel=0.09)
    assert float(alone.mean_s) == float(latency.mean_s)
    assert float(latency.variance_s2) < float(alone.variance_s2)


def test_many_mappers_are_the_two_uniform_waits() -> None:
    shuffle, poll, busy, mappers = 0.2, 0.3, 0.6, 2000
    case = pipeline(shuffle, poll, busy, map_busy=SHORT, mappers=mappers // 8, num_cores=1000)
    latency = tuple_latency(case)
    service = busy * shuffle / mappers
    widths = (shuffle - service, poll * (1.0 - busy))
    assert [float(w) for w in latency.uniform_widths_s] == pytest.approx(list(widths), rel=1e-3)
    per_poll = mappers * poll / shuffle
    mean = 0.0025 + (shuffle + service + poll + (per_poll - 1.0) * service) / 2.0
    assert float(latency.mean_s) == pytest.approx(mean, rel=1e-3)
    variance = (0.005**2 + widths[0] ** 2 + widths[1] ** 2) / 12.0
    assert float(latency.variance_s2) == pytest.approx(variance, rel=2e-3)


def test_one_batch_at_a_time_is_fifo_in_the_batch() -> None:
    # One mapper, one reducer, and hardly any wait for the poll: L = B - x (1 - S / B).
    case = pipeline(1.0, 1e-3, 0.5, map_busy=SHORT, num_nodes=1)
    latency = tuple_latency(case)
    assert float(latency.mean_s) == pytest.approx(0.75, abs=0.004)
    assert float(latency.variance_s2) == pytest.approx(0.25 / 12.0, rel=0.01)


def test_batches_that_vary_together() -> None:
    # Disk, network and half of the update share the rows of one batch; all other waits are short.
    slow = pipeline(
        1.0, 1e-3, 0.2, map_busy=SHORT, num_nodes=1, dispersion=0.04 * 8000.0,
        shuffle_row_bytes=1e9 * 0.1 / 8000.0,
    )  # fmt: skip
    latency = tuple_latency(slow)
    by_name = {part.name: part for part in latency.parts}
    scv = 0.04
    loads = pipeline_loads(slow)
    assert float(loads.shuffle_rows_scv) == pytest.approx(scv)
    write_s, fetch_s, reduce_s = 0.1, 0.1, 0.2
    for name, time_s in (("write of the shuffle batch", write_s), (PHASES[9], fetch_s)):
        assert float(by_name[name].mean_s) == pytest.approx(time_s * (1.0 + scv))
    common = scv * (write_s + fetch_s + reduce_s / 2.0) ** 2
    place = ((1.0 - reduce_s) ** 2 + reduce_s**2 * scv) / 12.0
    assert float(latency.variance_s2) == pytest.approx(common + place, rel=0.02)


def test_window_of_many_mappers_waits_for_a_whole_shuffle_period() -> None:
    final = Finalizing(num_keys=1, per_key_s=1e-9, slide_s=5.0)
    case = pipeline(0.2, 0.3, 1e-4, map_busy=SHORT, mappers=500, num_cores=1000, finalizing=final)
    assert float(window_latency(case).mean_s) == pytest.approx(0.2 + 0.005 + 0.15, rel=0.01)


def test_settings_broadcast() -> None:
    shuffle, poll = np.array([[0.1], [0.2]]), np.array([0.1, 0.3, 1.0])
    final = Finalizing(num_keys=10, per_key_s=0.01, slide_s=5.0)
    together = pipeline(shuffle, poll, 0.5, noise=0.2, dispersion=2.0, finalizing=final)
    for model in (
        tuple_latency, window_latency, published, published_window,
    ):  # fmt: skip
        latency = model(together)
        quantiles = latency.quantile_s(0.99)
        assert latency.mean_s.shape == quantiles.shape == (2, 3)
        for index in ((0, 0), (1, 2)):
            alone = model(
                pipeline(
                    float(shuffle[index[0], 0]), float(poll[index[1]]), 0.5,
                    noise=0.2, dispersion=2.0, finalizing=final,
                )
            )  # fmt: skip
            assert float(latency.mean_s[index]) == pytest.approx(float(alone.mean_s))
            assert float(quantiles[index]) == pytest.approx(float(alone.quantile_s(0.99)))


@pytest.mark.parametrize(
    "case",
    [
        pipeline(reduce_busy=1.0),
        pipeline(map_busy=1.0),
        pipeline(mappers=4, reducers=4, num_cores=4, reduce_busy=0.71),
        pipeline(shuffle_row_bytes=1e7),
        pipeline(poll_period_s=0.01, fetch_fixed_s=0.01),
        pipeline(shuffle_period_s=0.01, batch_fixed_s=0.01),
        pipeline(input_row_bytes=1.1e6),
        pipeline(finalizing=Finalizing(num_keys=100, per_key_s=0.01, slide_s=1.0)),
    ],
)
def test_overload_is_infinite(case: Pipeline) -> None:
    for model in (tuple_latency, published):
        latency = model(case)
        assert not latency.is_stable
        assert np.all(np.isinf(latency.quantile_s(LEVELS)))
        assert np.all(latency.cdf(100.0) == 0.0)
        assert all(np.isinf(part.mean_s) for part in latency.parts)
    if case.finalizing is not None:
        assert np.isinf(window_latency(case).mean_s)
        assert np.isinf(published_window(case).mean_s)


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """Pipelines of every kind, at five rising rates, stable or not."""
    period = st.sampled_from([0.01, 0.05, 0.13, 0.2, 1.0])
    case = pipeline(
        draw(period),
        draw(period),
        draw(st.floats(0.001, 1.2)),
        map_busy=draw(st.floats(0.001, 1.2)),
        num_nodes=draw(st.integers(1, 4)),
        mappers=draw(st.integers(1, 5)),
        reducers=draw(st.integers(1, 5)),
        num_cores=draw(st.integers(1, 8)),
        noise=draw(st.sampled_from([0.0, 0.1, 0.5])),
        dispersion=draw(st.sampled_from([0.0, 1.0, 20.0])),
        finalizing=Finalizing(
            num_keys=draw(st.integers(1, 100)), per_key_s=draw(st.floats(1e-6, 0.1)), slide_s=10.0
        ),
        shuffle_row_bytes=draw(st.floats(0.0, 1e6)),
        input_row_bytes=draw(st.floats(0.0, 1e5)),
        fetch_fixed_s=draw(st.sampled_from([0.0, 0.003])),
        batch_fixed_s=draw(st.sampled_from([0.0, 0.001])),
        shuffle_fixed_s=draw(st.sampled_from([0.0, 0.001])),
    )
    return replace(case, rate_per_s=case.rate_per_s * np.array([0.1, 0.4, 0.7, 0.85, 1.0]))


@examples(8, 15)
@given(pipelines())
def test_quantiles_increase_and_overload_has_none(case: Pipeline) -> None:
    for model in (
        tuple_latency, window_latency, published, published_window,
    ):  # fmt: skip
        latency = model(case)
        quantiles = latency.quantile_s(LEVELS[:, np.newaxis])
        assert not np.any(np.isnan(quantiles))
        assert not np.any(np.isnan(latency.variance_s2))
        assert np.all(latency.mean_s > 0.0)
        assert np.all(latency.variance_s2 >= 0.0)
        assert np.all(quantiles[1:] >= quantiles[:-1])
        assert np.all(np.isinf(quantiles) == ~latency.is_stable)
        # An overloaded pipeline does not recover at a higher rate.
        assert np.all(np.diff(latency.is_stable.astype(int)) <= 0)
        total = sum(part.mean_s for part in latency.parts)
        assert np.allclose(np.minimum(total, 1e9), np.minimum(latency.mean_s, 1e9))


@examples(8, 15)
@given(pipelines())
def test_latency_rises_with_the_rate(case: Pipeline) -> None:
    # Rows of a batch vary less, in proportion, at a higher rate: only without that is it a law.
    steady = replace(case, dispersion=0.0)
    for model in (tuple_latency, published):
        mean = np.minimum(model(steady).mean_s, 1e9)
        assert np.all(mean[1:] >= mean[:-1] * (1.0 - 1e-9))


@dataclass(frozen=True, slots=True)
class Errors:
    """Corrected over simulated, less one; and the standard error of the simulated mean."""

    mean: float
    sd: float
    p99: float
    standard_error: float


def errors(case: Pipeline, *, num_runs: int, length_s: float) -> Errors:
    runs = [
        simulate_pipeline(
            case, length_s=length_s, seed=seed, warmup_s=2.0, num_rows=20_000,
            most_jobs_per_fetch=24,
        ).latency_s
        for seed in range(num_runs)
    ]  # fmt: skip
    rows, latency = np.concatenate(runs), tuple_latency(case)
    spread = float(np.std([run.mean() for run in runs], ddof=1))
    return Errors(
        mean=float(latency.mean_s) / rows.mean() - 1.0,
        sd=float(latency.sd_s) / rows.std() - 1.0,
        p99=float(latency.quantile_s(0.99)) / float(np.quantile(rows, 0.99)) - 1.0,
        standard_error=spread / rows.mean() / num_runs**0.5,
    )


@pytest.mark.parametrize(
    ("case", "mean_error", "p99_error"),
    [
        (pipeline(0.2, 0.2, 0.3), 0.02, 0.02),
        (pipeline(0.2, 0.13, 0.6, noise=0.2), 0.015, 0.02),
        (pipeline(0.1, 0.3, 0.6, dispersion=5.0), 0.015, 0.015),
        (pipeline(0.2, 0.2, 0.2, shuffle_row_bytes=6e5), 0.025, 0.02),
        (
            pipeline(
                0.1, 0.05, 0.4, shuffle_fixed_s=0.005, fetch_fixed_s=0.01, batch_fixed_s=0.001
            ),
            0.02,
            0.02,
        ),
        (pipeline(0.2, 0.2, 0.45, num_nodes=2, mappers=4, reducers=4, num_cores=4), 0.04, 0.03),
    ],
)  # fmt: skip
def test_against_simulation(case: Pipeline, mean_error: float, p99_error: float) -> None:
    error = errors(case, num_runs=2, length_s=3.0)
    assert abs(error.mean) < mean_error
    assert abs(error.p99) < p99_error


def test_independent_phases_are_what_is_wrong() -> None:
    case = pipeline(0.2, 0.2, 0.6)
    trace = simulate_pipeline(case, length_s=4.0, seed=1, warmup_s=1.0, num_rows=20_000)
    latency, true_s = (
        tuple_latency(case),
        float(np.quantile(trace.latency_s, 0.99, method="inverted_cdf")),
    )
    assert float(latency.quantile_s(0.99)) == pytest.approx(true_s, rel=0.03)
    assert float(latency.with_independent_phases().quantile_s(0.99)) > 1.14 * true_s


@pytest.mark.statistical
@pytest.mark.parametrize("shuffle", [0.02, 0.2, 1.0])
@pytest.mark.parametrize("poll", [0.02, 0.2, 1.0])
@pytest.mark.parametrize("busy", [0.3, 0.6, 0.85])
def test_grid_against_simulation(shuffle: float, poll: float, busy: float) -> None:
    # Phases of the clocks last for a whole run: means of runs differ by up to 5%.
    error = errors(
        pipeline(shuffle, poll, busy, noise=0.2),
        num_runs=8,
        length_s=4.0 + 8.0 * max(shuffle, poll),
    )
    assert abs(error.mean) < 0.015 + 2.0 * error.standard_error
    assert abs(error.sd) < 0.08
    assert abs(error.p99) < 0.03 + 2.0 * error.standard_error


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mappers", "reducers", "cores"), [(2, 2, 2), (4, 4, 4), (6, 2, 4), (2, 6, 4)]
)
@pytest.mark.parametrize(("utilization", "mean_error"), [(0.6, 0.05), (0.75, 0.055), (0.9, 0.07)])
@pytest.mark.parametrize(("shuffle", "poll"), [(0.2, 0.2), (0.05, 0.2), (0.2, 0.05)])
def test_shared_cores_against_simulation(
    mappers: int, reducers: int, cores: int, utilization: float, mean_error: float,
    shuffle: float, poll: float,
) -> None:  # fmt: skip
    busy = (utilization * cores - 0.3 * mappers) / reducers
    if busy > 0.9:
        pytest.skip("one reducer alone is too busy")
    case = pipeline(
        shuffle, poll, busy, num_nodes=2, mappers=mappers, reducers=reducers, num_cores=cores,
        noise=0.2,
    )  # fmt: skip
    error = errors(case, num_runs=6, length_s=6.0)
    assert abs(error.mean) < mean_error
    assert abs(error.p99) < 0.07


WINDOWS = [
    (0.2, 0.2, 0.3, 0.03, 0.03),
    (0.2, 0.2, 0.6, 0.03, 0.04),
    (0.1, 0.4, 0.4, 0.03, 0.03),
    (0.5, 0.1, 0.4, 0.04, 0.1),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("shuffle", "poll", "busy", "mean_error", "p99_error"), WINDOWS)
def test_windows_against_simulation(
    shuffle: float, poll: float, busy: float, mean_error: float, p99_error: float
) -> None:
    final = Finalizing(num_keys=1000, per_key_s=1e-4, slide_s=2.0)
    case = pipeline(shuffle, poll, busy, num_nodes=4, noise=0.2, finalizing=final)
    times = np.concatenate(
        [
            simulate_pipeline(
                case, length_s=4.0, seed=seed, warmup_s=3.0, num_rows=10
            ).window_latency_s
            for seed in range(60)
        ]
    )
    latency = window_latency(case)
    assert float(latency.mean_s) == pytest.approx(times.mean(), rel=mean_error)
    assert float(latency.quantile_s(0.99)) == pytest.approx(
        float(np.quantile(times, 0.99)), rel=p99_error
    )


def test_a_long_finalize_against_simulation() -> None:
    final = Finalizing(num_keys=1000, per_key_s=2e-3, slide_s=10.0)
    case = pipeline(0.2, 0.2, 0.3, num_nodes=4, finalizing=final)
    times = simulate_pipeline(
        case, length_s=21.0, seed=1, warmup_s=0.0, num_rows=10
    ).window_latency_s
    latency = window_latency(case)
    assert len(times) == 2 * 4 * 64
    assert float(latency.mean_s) == pytest.approx(times.mean(), rel=0.08)
    assert float(latency.quantile_s(0.99)) == pytest.approx(
        float(np.quantile(times, 0.99)), rel=0.05
    )


def test_refusals() -> None:
    with pytest.raises(ValueError, match="finalizing"):
        window_latency(pipeline())
    with pytest.raises(ValueError, match="finalizing"):
        published_window(pipeline())
    with pytest.raises(ValueError, match="poll_period_s must be positive"):
        pipeline(poll_period_s=0.0)
    with pytest.raises(ValueError, match="finite"):
        pipeline(fetch_fixed_s=float("nan"))
    with pytest.raises(ValueError, match="rate_per_s"):
        replace(pipeline(), rate_per_s=0.0)
    with pytest.raises(ValueError, match="whole"):
        PipelineSetting(
            num_nodes=1.5, mappers_per_node=1, reducers_per_node=1, num_distributors=1,
            input_period_s=0.1, shuffle_period_s=0.1, poll_period_s=0.1,
        )  # fmt: skip
    with pytest.raises(ValueError, match="num_keys"):
        Finalizing(num_keys=0.5, per_key_s=1.0, slide_s=1.0)
