"""Micro-batches: latency of a row by the fixed point of mean and variance, and windows."""

from __future__ import annotations

from itertools import product

import numpy as np

from formulas.cells import Cell, Family, Judged, judged
from headway.models.batches.batch_chain import batch_chain
from headway.models.batches.microbatch import AffineDuration, steady_state
from headway.models.batches.tuple_latency import tuple_latency_mean, tuple_latency_quantile
from headway.models.batches.windows import append_window_latency, update_window_latency
from tests.oracles.microbatch import MicrobatchTrace, simulate_microbatch
from tests.oracles.microbatch_runs import simulate_microbatch_runs
from tests.oracles.tail_index import LATENCY_HAS_VARIANCE, tail_index
from tests.oracles.windows import OutputMode, RowStream, simulate_windows

_RATE_PER_S = 1e6
_NUM_RUNS, _NUM_BATCHES = 500, 1_000
_NUM_REPLICATIONS = 4
_LAG_S, _WATERMARK_DELAY_S, _ROWS_PER_S = 0.5, 10.0, 100.0


def _traces(
    duration: AffineDuration, trigger_s: float, memory: float = 0.0
) -> list[MicrobatchTrace]:
    return [
        simulate_microbatch_runs(
            duration,
            _RATE_PER_S,
            trigger_s,
            num_runs=_NUM_RUNS,
            num_batches=_NUM_BATCHES,
            num_warmup_batches=400,
            seed=seed,
            dispersion=0.0,
            autocorrelation=memory,
        )
        for seed in range(_NUM_REPLICATIONS)
    ]


def _trigger_s(offered_load: float, utilization: float) -> float:
    """Trigger interval at which batches with a fixed time of 1 s give this utilization. [s]"""
    return 1.0 / (utilization - offered_load) if utilization else 0.0


def simulated_fixed_point(
    offered_load: float, noise: float, utilization: float, memory: float = 0.0
) -> Cell:
    """The fast path: fixed point of mean and variance."""
    duration = AffineDuration(1.0, offered_load / _RATE_PER_S, noise)
    trigger_s = _trigger_s(offered_load, utilization)
    traces = _traces(duration, trigger_s, memory)
    state = steady_state(duration, _RATE_PER_S, trigger_s, 0.0)
    cell = {
        "mean": judged(
            float(tuple_latency_mean(state)), [trace.latency_mean_s() for trace in traces]
        )
    }
    for q, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        cell[name] = judged(
            float(tuple_latency_quantile(state, q)),
            [float(trace.latency_quantile_s(q)) for trace in traces],
        )
    return cell


def simulated_extreme(offered_load: float, noise: float, utilization: float, memory: float) -> Cell:
    """The same for strong or correlated noise: mean and p99 only."""
    if not _has_variance(offered_load, noise, memory):
        return {}
    cell = simulated_fixed_point(offered_load, noise, utilization, memory)
    return {name: cell[name] for name in ("mean", "p99")}


def simulated_chain(
    offered_load: float, noise: float, utilization: float, share: float, persistence: float
) -> Cell:
    """The chain of (duration, slow level); the mean only if the latency has a variance."""
    duration = AffineDuration(
        1.0,
        offered_load / _RATE_PER_S,
        noise,
        lasting_share=share,
        persistence_ratio=persistence,
    )
    trigger_s = _trigger_s(offered_load, utilization)
    traces = _traces(duration, trigger_s)
    chain = batch_chain(steady_state(duration, _RATE_PER_S, trigger_s, 0.0))
    assert chain is not None
    p99_s = [float(trace.latency_quantile_s(0.99)) for trace in traces]
    cell = {"p99": judged(float(chain.latency_quantile_s(0.99)), p99_s)}
    if tail_index(offered_load, noise, share, persistence) > LATENCY_HAS_VARIANCE:
        mean_s = [trace.latency_mean_s() for trace in traces]
        cell = {"mean": judged(chain.latency_mean_s, mean_s), **cell}
    return cell


def _has_variance(offered_load: float, noise: float, memory: float) -> bool:
    """Whether durations have a finite variance."""
    return tail_index(offered_load, noise, 1.0, memory) > 2.0


def simulated_windows(
    offered_load: float, noise: float, utilization: float, mode: OutputMode, phases: int
) -> Cell:
    """Windows whose ends fall on one, two or all places of the trigger grid."""
    trigger_s = round(_trigger_s(offered_load, utilization), 1)
    # A free-running query has no trigger grid.
    slide_s = {1: 3.0, 2: 1.5, 0: 1.618}[phases] * (trigger_s or 3.0)
    duration = AffineDuration(1.0, offered_load / _RATE_PER_S, noise)
    trace = simulate_microbatch(
        duration, _RATE_PER_S, trigger_s, num_batches=20_000, seed=3, dispersion=0.0
    )
    span_s = float(np.maximum(trace.duration_s, trigger_s).sum())
    simulated_runs = simulate_windows(
        np.arange(slide_s, 0.9 * span_s, slide_s),
        trace.duration_s,
        trigger_s,
        RowStream(rate_per_s=_ROWS_PER_S, lag_s=_LAG_S),
        mode=mode,
        seed=5,
        length_s=slide_s,
        watermark_delay_s=_WATERMARK_DELAY_S,
    )
    latency_s = simulated_runs.latency_s[50:-50]
    state = steady_state(duration, _RATE_PER_S, trigger_s, 0.0)
    gap_s = 1.0 / _ROWS_PER_S
    law = (
        append_window_latency(state, slide_s, _WATERMARK_DELAY_S, _LAG_S + gap_s)
        if mode == "append"
        else update_window_latency(state, slide_s, _LAG_S - gap_s)
    )
    chance = float(latency_s.std() / latency_s.mean() / np.sqrt(len(latency_s)))
    p99_s = float(np.quantile(latency_s, 0.99))
    return {
        f"mean, {mode}": Judged(
            formula=float(law.mean_s), simulated=float(latency_s.mean()), chance_ratio=chance
        ),
        f"p99, {mode}": Judged(formula=float(law.quantile_s(0.99)), simulated=p99_s),
    }


def _cells(
    offered_loads: tuple[float, ...], noises: tuple[float, ...], utilizations: tuple[float, ...]
) -> dict[str, tuple[object, ...]]:
    return {
        f"r {offered_load:g}, c {noise:g}, "
        + (f"u {utilization:g}" if utilization else "free running"): (
            offered_load,
            noise,
            utilization,
        )
        for offered_load, noise, utilization in product(offered_loads, noises, utilizations)
        if not utilization or utilization > offered_load
    }


_UTILIZATIONS = (0.0, 0.5, 0.8, 0.9, 0.95, 1.0, 1.1, 1.3)
_NUM_SIMULATED = _NUM_REPLICATIONS * _NUM_RUNS
_SIMULATION = f"{_NUM_SIMULATED:,} runs of {_NUM_BATCHES:,} batches each, on the epoch grid (S2)"
_LIGHT = _cells((0.1, 0.3, 0.5, 0.7), (0.03, 0.1), _UTILIZATIONS)
_NOISY = _cells((0.1, 0.3, 0.5, 0.7), (0.3,), _UTILIZATIONS)
_HEAVY = _cells((0.8, 0.9), (0.1, 0.2, 0.3), (0.0, 0.95, 1.0, 1.1))
_LASTING = _cells((0.3, 0.7), (0.1, 0.3), (0.0, 0.8, 0.95))
_WINDOWED = _cells((0.2, 0.5), (0.03, 0.1), (0.0, 0.6, 0.8, 0.9, 1.0, 1.1, 1.3))

ROWS_LIGHT = Family(
    title="Latency of a row, noise up to 0.1",
    equations="theory.md (B1)-(B6)",
    over="offered load r 0.1-0.7, nominal utilization u 0.5-1.3 and free running",
    judge=_SIMULATION,
    cells=_LIGHT,
    simulate=simulated_fixed_point,
)
ROWS_NOISY = Family(
    title="Latency of a row, noise 0.3",
    equations="theory.md (B1)-(B6)",
    over="offered load r 0.1-0.7, nominal utilization u 0.5-1.3 and free running",
    judge=_SIMULATION,
    cells=_NOISY,
    simulate=simulated_fixed_point,
)
ROWS_HEAVY = Family(
    title="Latency of a row close to capacity",
    equations="theory.md (B1)-(B6)",
    over="offered load r 0.8 and 0.9, noise c 0.1-0.3, utilization u 0.95-1.1 and free running",
    judge=_SIMULATION,
    cells={name: (*cell, 0.0) for name, cell in _HEAVY.items()},
    simulate=simulated_extreme,
)
ROWS_LASTING = Family(
    title="Latency of a row, noise that lasts",
    equations="theory.md (B1)-(B6), which assume independent noise in each batch",
    over=(
        "correlation 0.5 and 0.9 of successive durations, offered load r 0.3 and 0.7, noise c 0.1 "
        "and 0.3; without cells of infinite variance"
    ),
    judge=_SIMULATION,
    cells={
        f"{name}, correlation {memory:g}": (*cell, memory)
        for (name, cell), memory in product(_LASTING.items(), (0.5, 0.9))
    },
    simulate=simulated_extreme,
)
ROWS_CHAIN = Family(
    title="Latency of a row by the chain of (duration, slow level)",
    equations="theory.md (T4)",
    over=(
        "a share of 0, 0.5 and 0.9 of the noise lasts, with a ratio of 0.95 from batch to batch; "
        "offered load r 0.3 and 0.7, noise c 0.1 and 0.3; means only if the latency has a variance"
    ),
    judge=_SIMULATION,
    cells={
        f"{name}, share {share:g}": (*cell, share, 0.95)
        for (name, cell), share in product(_LASTING.items(), (0.0, 0.5, 0.9))
    },
    simulate=simulated_chain,
)
WINDOWS = Family(
    title="Latency of a window",
    equations="theory.md (W1)-(W3)",
    over=(
        "append and update mode, offered load 0.2 and 0.5, noise 0.03 and 0.1, utilization 0.6-1.3 "
        "and free running, window ends at one, two or all places of the trigger grid"
    ),
    judge="20,000 batches and their windows (S3)",
    cells={
        f"{name}, {mode}, {phases or 'all'} place(s)": (*cell, mode, phases)
        for (name, cell), mode, phases in product(
            _WINDOWED.items(), ("append", "update"), (1, 2, 0)
        )
    },
    simulate=simulated_windows,
)
