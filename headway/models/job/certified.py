"""The law of a few settings by the chain of their batches: what is printed goes by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.predictions import (
    HIGHEST_QUOTED_UTILIZATION_RATIO,
    LEAST_CERTIFIED_OVERRUN_RATIO,
)
from headway.models.arrays import Array, Numeric
from headway.models.batches.batch_chain import BatchChain, batch_chain
from headway.models.batches.microbatch import BoolArray, state_at
from headway.models.job.setting import SettingLaw

_FASTER = 0.99
_NEAREST = HIGHEST_QUOTED_UTILIZATION_RATIO.value
#: Of the mean latency without noise at the highest load that is quoted: (B5).
_MOST_AMPLIFICATION = 1.0 / (1.0 - _NEAREST) + _NEAREST / (0.5 + _NEAREST)


@dataclass(frozen=True, slots=True)
class CertifiedLaw(SettingLaw):
    """Durations and latencies at a few settings in a row, by (T4) where batches overrun.

    ``chains`` has None for a setting whose batches hardly do, or that has no law.
    """

    chains: tuple[BatchChain | None, ...]

    @property
    def amplification_ratio(self) -> Array:
        """How much the logarithm of the mean latency grows for that of all durations (P3)."""
        state = self.state
        faster = replace(
            state,
            fixed_s=state.fixed_s * _FASTER,
            offered_load_ratio=state.offered_load_ratio * _FASTER,
        )
        amplified = SettingLaw.amplification_ratio.__get__(self).copy()
        for place, chain in enumerate(self.chains):
            if chain is not None:
                there = batch_chain(state_at(faster, np.array([place])))
                assert there is not None
                ratio = there.latency_mean_s / chain.latency_mean_s
                amplified[place] = np.log(ratio) / np.log(_FASTER)
        return np.asarray(amplified)

    @property
    def is_quotable(self) -> BoolArray:
        """Whether small errors move latencies little, and the mean is not that of rare moments."""
        usual = self.tuple_latency_mean_s() <= self.tuple_latency_quantile_s(0.99)
        near = self.offered_load_ratio > _NEAREST
        near |= self.amplification_ratio > _MOST_AMPLIFICATION
        return np.asarray(self.is_stable & usual & ~near)

    def batch_duration_cdf(self, x_s: Numeric) -> Array:
        """Share of batches that take at most ``x_s``; 0 where unstable."""
        return self._chained(SettingLaw.batch_duration_cdf(self, x_s), x_s, BatchChain.duration_cdf)

    def batch_duration_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the batch duration [s]; ``inf`` where unstable."""
        by_moments_s = SettingLaw.batch_duration_quantile_s(self, q)
        return self._chained(by_moments_s, q, BatchChain.duration_quantile_s)

    def tuple_latency_cdf(self, x_s: Numeric) -> Array:
        """Share of rows with a latency of at most ``x_s``."""
        return self._chained(SettingLaw.tuple_latency_cdf(self, x_s), x_s, BatchChain.latency_cdf)

    def tuple_latency_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the tuple latency [s]; ``inf`` where unstable."""
        by_moments_s = SettingLaw.tuple_latency_quantile_s(self, q)
        return self._chained(by_moments_s, q, BatchChain.latency_quantile_s)

    def tuple_latency_mean_s(self) -> Array:
        """Mean tuple latency [s]; ``inf`` where unstable."""
        mean_s = SettingLaw.tuple_latency_mean_s(self).copy()
        for place, chain in enumerate(self.chains):
            if chain is not None:
                mean_s[place] = chain.latency_mean_s
        return np.asarray(mean_s)

    def take(self, chosen: NDArray[np.intp] | BoolArray) -> CertifiedLaw:
        """The law at some of the settings."""
        places = np.arange(len(self.chains))[chosen]
        return CertifiedLaw(
            state_at(self.state, chosen), tuple(self.chains[place] for place in places)
        )

    def _chained(
        self,
        by_moments: Array,
        asked: Numeric,
        of_chain: Callable[[BatchChain, Numeric], Array],
    ) -> Array:
        """What the moments say, and where there is a chain, what it says."""
        values = np.broadcast_to(np.asarray(asked, dtype=np.float64), by_moments.shape)
        certified_values = by_moments.copy()
        for place, chain in enumerate(self.chains):
            if chain is not None:
                certified_values[..., place] = of_chain(chain, values[..., place])
        return np.asarray(certified_values)


def certified(law: SettingLaw) -> CertifiedLaw:
    """The law of a few settings in a row by the chain of their batches.

    Parameters
    ----------
    law : SettingLaw
        Of some settings, by moments.

    Returns
    -------
    CertifiedLaw
        Its state has the moments of the chain, so that windows go by them too.

    Notes
    -----
    theory.md (T4).

    Examples
    --------
    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> duration = AffineDuration(1.0, 7e-4, 0.1, lasting_share=0.75, persistence_ratio=0.95)
    >>> law = certified(SettingLaw(steady_state(duration, 1000.0, [0.0], dispersion=0.0)))
    >>> law.tuple_latency_mean_s().round(2)
    array([5.81])
    """
    state = law.state
    overruns = state.overrun_probability > LEAST_CERTIFIED_OVERRUN_RATIO.value
    chains = tuple(
        batch_chain(state_at(state, np.array([place]))) if overruns[place] else None
        for place in range(len(overruns))
    )
    changed = {
        name: getattr(state, name).copy()
        for name in (
            *("mean_duration_s", "sd_duration_s", "mean_interval_s", "mean_square_interval_s2"),
            *("overrun_probability", "utilization_ratio", "is_stable"),
        )
    }
    for place in np.flatnonzero(overruns):
        for name, value in _moments(chains[place]).items():
            changed[name][place] = value
    return CertifiedLaw(replace(state, **changed), chains)


def _moments(chain: BatchChain | None) -> dict[str, float]:
    """The fields of a `SteadyState` that a chain changes; beyond its range there is no law."""
    if chain is None:
        unbounded = np.inf
        return {
            "mean_duration_s": unbounded,
            "sd_duration_s": unbounded,
            "mean_interval_s": unbounded,
            "mean_square_interval_s2": unbounded,
            "overrun_probability": 1.0,
            "utilization_ratio": 1.0,
            "is_stable": False,
        }
    return {
        "mean_duration_s": chain.duration_mean_s,
        "sd_duration_s": chain.duration_sd_s,
        "mean_interval_s": chain.interval_mean_s,
        "mean_square_interval_s2": chain.interval_mean_square_s2,
        "overrun_probability": chain.overrun_probability,
        "utilization_ratio": min(chain.duration_mean_s / chain.interval_mean_s, 1.0),
        "is_stable": True,
    }
