"""Rate traces that tuning is simulated on: nine fixed beforehand, the others drawn from seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headway.models.arrays import Array
from headway.models.simulation.closed_loop import LoopTrace

_HOUR_S = 3600.0
_DAY_S = 24.0 * _HOUR_S
_PIECE_S = 60.0
_DAYS = 4
# How much a day differs from the others.
_DAY_RATIO = 0.1
#: Kinds that repeat every day where a trace lasts for days.
DAILY_KINDS = ("step", "random steps", "ramp", "spikes", "day")
#: Kinds on which a change must not be taken back within half an hour.
CALM_KINDS = ("step", "ramp", "costs", "outage", "day")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTrace:
    """A trace with its name, its kind, and its number of load steps (None: it has none)."""

    name: str
    kind: str
    trace: LoopTrace
    num_steps: int | None = None


def _pieces(length_s: float, rate_of: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Edges of pieces of a minute, and the rate in the middle of each."""
    edges = np.arange(0.0, length_s + 0.5 * _PIECE_S, _PIECE_S)
    return edges, np.maximum(rate_of(0.5 * (edges[1:] + edges[:-1])), 100.0)


def _noisy(rates: Array, ratio: float, random: np.random.Generator) -> Array:
    return rates * np.exp(ratio * random.standard_normal(len(rates)) - 0.5 * ratio**2)


def _daily(
    rate_of: Callable[[Array], Array], days: int, random: np.random.Generator
) -> Callable[[Array], Array]:
    """The same every day, but for the height of each."""
    heights = np.exp(_DAY_RATIO * random.standard_normal(days) - 0.5 * _DAY_RATIO**2)
    return lambda at_s: rate_of(at_s % _DAY_S) * heights[(at_s // _DAY_S).astype(int)]


def _levels(levels: list[float], each_s: float) -> Callable[[Array], Array]:
    return lambda at_s: np.asarray(levels)[
        np.minimum((at_s // each_s).astype(int), len(levels) - 1)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Parameters of a trace; each kind uses those that it needs."""

    low: float
    high: float
    hours: float
    noise_ratio: float
    seed: int
    num_levels: int = 6
    width_s: float = 120.0
    every_s: float = 1800.0
    decay_s: float = 1200.0
    outage_s: float = 300.0
    cost_ratio: float = 1.6
    days: int = 1


def trace_of(kind: str, shape: Shape) -> NamedTrace:
    """The trace of a kind and shape; rates in rows per second."""
    random = np.random.default_rng([shape.seed, sorted(_RATES).index(kind)])
    rate_of, num_steps = _RATES[kind](shape, random)
    length_s = shape.hours * _HOUR_S * shape.days
    if shape.days > 1:
        rate_of = _daily(rate_of, shape.days, random)
        num_steps = None if num_steps is None else num_steps * shape.days
    edges, rates = _pieces(length_s, rate_of)
    costs: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    if kind == "costs":
        rise = np.linspace(0.25, 0.75, 11) * length_s
        costs += tuple(zip(rise.tolist(), np.linspace(1.0, shape.cost_ratio, 11), strict=True))
    outages = ((0.25 * length_s, 0.25 * length_s + shape.outage_s),) if kind == "outage" else ()
    return NamedTrace(
        name=kind if shape.days == 1 else f"{kind}, {shape.days} days",
        kind=kind,
        trace=LoopTrace(
            edges_s=edges,
            rates_per_s=_noisy(rates, shape.noise_ratio, random),
            cost_ratio=costs,
            outages_s=outages,
        ),
        num_steps=num_steps,
    )


_Made = tuple[Callable[[Array], Array], int | None]


def _step(shape: Shape, _: np.random.Generator) -> _Made:
    return _levels([shape.low, shape.high, shape.low], shape.hours * _HOUR_S / 3.0), 2


def _random_steps(shape: Shape, random: np.random.Generator) -> _Made:
    levels = random.uniform(shape.low, shape.high, shape.num_levels).tolist()
    each_s = shape.hours * _HOUR_S / shape.num_levels
    return _levels(levels, each_s), shape.num_levels - 1


def _ramp(shape: Shape, _: np.random.Generator) -> _Made:
    half_s = shape.hours * _HOUR_S / 2.0
    rise = shape.high - shape.low
    return lambda at_s: shape.low + rise * (1.0 - np.abs(at_s - half_s) / half_s), None


def _spikes(shape: Shape, _: np.random.Generator) -> _Made:
    num = 2 * int(shape.hours * _HOUR_S // shape.every_s)

    def rates(at_s: Array) -> Array:
        is_spike = (at_s + 0.5 * shape.every_s) % shape.every_s < shape.width_s
        return np.where(is_spike, shape.high, shape.low)

    return rates, num


def _flash(shape: Shape, _: np.random.Generator) -> _Made:
    begin_s = 0.25 * shape.hours * _HOUR_S

    def rates(at_s: Array) -> Array:
        since_s = np.maximum(at_s - begin_s, 0.0)
        crowd = (shape.high - shape.low) * np.exp(-since_s / shape.decay_s)
        return shape.low + np.where(at_s >= begin_s, crowd, 0.0)

    return rates, None


def _flat(shape: Shape, _: np.random.Generator) -> _Made:
    return lambda at_s: np.full_like(at_s, shape.low), None


def _day(shape: Shape, _: np.random.Generator) -> _Made:
    middle, swing = 0.5 * (shape.high + shape.low), 0.5 * (shape.high - shape.low)
    length_s = shape.hours * _HOUR_S
    return lambda at_s: middle - swing * np.cos(2.0 * np.pi * at_s / length_s), None


_RATES: dict[str, Callable[[Shape, np.random.Generator], _Made]] = {
    "step": _step,
    "random steps": _random_steps,
    "ramp": _ramp,
    "spikes": _spikes,
    "flash crowd": _flash,
    "outage": _flat,
    "costs": _flat,
    "noise": _flat,
    "day": _day,
}


def fixed_traces() -> list[NamedTrace]:
    """The nine that were fixed before the rule was written."""
    even = 0.03
    return [
        trace_of("step", Shape(low=60e3, high=200e3, hours=4, noise_ratio=even, seed=1)),
        trace_of("random steps", Shape(low=30e3, high=250e3, hours=6, noise_ratio=even, seed=2)),
        trace_of("ramp", Shape(low=50e3, high=250e3, hours=4, noise_ratio=even, seed=3)),
        trace_of("spikes", Shape(low=80e3, high=220e3, hours=5, noise_ratio=even, seed=4)),
        trace_of("flash crowd", Shape(low=40e3, high=200e3, hours=4, noise_ratio=even, seed=5)),
        trace_of("outage", Shape(low=80e3, high=80e3, hours=4, noise_ratio=even, seed=6)),
        trace_of("costs", Shape(low=130e3, high=130e3, hours=5, noise_ratio=even, seed=7)),
        trace_of("noise", Shape(low=110e3, high=110e3, hours=6, noise_ratio=0.25, seed=8)),
        trace_of("day", Shape(low=30e3, high=250e3, hours=24, noise_ratio=0.05, seed=9)),
    ]


def drawn_traces(seed: int) -> list[NamedTrace]:
    """Nine others, one of each kind; the seed decides everything else."""
    random = np.random.default_rng(seed)
    return [trace_of(kind, _drawn(kind, random)) for kind in _RATES]


def long_traces(seed: int) -> list[NamedTrace]:
    """Nine more: the kinds that can repeat daily for four days, with spikes hours apart."""
    random = np.random.default_rng([seed, _DAYS])
    shapes = {kind: _drawn(kind, random) for kind in _RATES}
    for kind in DAILY_KINDS:
        shapes[kind] = replace(shapes[kind], hours=24.0, days=_DAYS)
    shapes["spikes"] = replace(
        shapes["spikes"],
        width_s=float(60.0 * random.integers(5, 31)),
        every_s=float(_HOUR_S * random.integers(2, 9)),
    )
    traces = [trace_of(kind, shape) for kind, shape in shapes.items()]
    return [one if "," in one.name else replace(one, name=f"{one.name}, again") for one in traces]


def _drawn(kind: str, random: np.random.Generator) -> Shape:
    low, high = sorted(random.uniform(25e3, 250e3, 2).tolist())
    if high < 1.5 * low:
        low = high / 1.5
    return Shape(
        low=low,
        high=high,
        hours=24.0 if kind == "day" else float(random.integers(3, 9)),
        noise_ratio=float(random.uniform(0.15, 0.4) if kind == "noise"
                          else random.uniform(0.01, 0.1)),
        seed=int(random.integers(1, 2**31)),
        num_levels=int(random.integers(3, 9)),
        width_s=float(60.0 * random.integers(1, 8)),
        every_s=float(60.0 * random.integers(15, 61)),
        decay_s=float(random.uniform(300.0, 2400.0)),
        outage_s=float(60.0 * random.integers(2, 11)),
        cost_ratio=float(random.uniform(1.2, 1.9)),
    )  # fmt: skip
