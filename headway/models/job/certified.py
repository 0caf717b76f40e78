"""Distributions at a few settings by the chain of their batches, for all printed figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.predictions import (
    HIGHEST_QUOTED_UTILIZATION_RATIO,
    LEAST_CERTIFIED_OVERRUN_RATIO,
)
from headway.lazy_classes import Identity, changed, dataclass
from headway.models.arrays import Array, Numeric
from headway.models.batches.batch_chain import BatchChain, batch_chain
from headway.models.batches.microbatch import BoolArray
from headway.models.job.setting import SettingLaw, joined_laws

_NEAREST = HIGHEST_QUOTED_UTILIZATION_RATIO.value
#: Amplification of the mean latency without noise at the highest quoted load: (B5).
_MOST_AMPLIFICATION = 1.0 / (1.0 - _NEAREST) + _NEAREST / (0.5 + _NEAREST)
_USUAL_SHARE, _LEAST_BEYOND, _MOST_CUT_SHARE = 0.99, 1e-16, 0.5
_SURELY_WITHIN = 0.95
_TIMES = ("mean_duration_s", "sd_duration_s", "mean_interval_s", "mean_square_interval_s2")
_SHARES = ("overrun_probability", "utilization_ratio")


@dataclass(frozen=True, slots=True)
class CertifiedLaw(SettingLaw):
    """Durations and latencies at a few settings in a row, by (T4) where batches overrun."""

    chains: tuple[BatchChain | None, ...]  # None if batches hardly overrun, or have no distribution

    @property
    def amplification_ratio(self) -> Array:
        """Growth of the logarithm of the mean latency over that of all durations (P3)."""
        of_each = attrgetter("amplification_ratio")
        return self._chained(of_each, of_each)

    @property
    def saturation_excess(self) -> Array:
        """How far a setting is beyond the quoted range; at most 0 inside, ``inf`` where unstable.

        Beyond it, small errors change latencies a lot, or a mean is dominated by rare events.
        """
        return np.maximum(self.saturation_but_for_gain, self._gain_excess)

    @property
    def _gain_excess(self) -> Array:
        """How far the gain of errors, which requires further chains, is beyond that range.

        Where it is surely within, that of a gain that is somewhat too large.
        """
        gain = self._chained(
            attrgetter("amplification_ratio"), attrgetter("most_amplification_ratio")
        )
        unsure = np.flatnonzero(gain > _SURELY_WITHIN * _MOST_AMPLIFICATION)
        if len(unsure):
            gain[unsure] = self.take(unsure).amplification_ratio
        # Grids of two settings differ: a gain close to zero may be computed as negative.
        return np.log(np.maximum(gain, _LEAST_BEYOND) / _MOST_AMPLIFICATION)

    @property
    def saturation_but_for_gain(self) -> Array:
        """The same by the load and by rare events only."""
        rows, batches = (
            1.0 - share_within(np.where(self.is_stable, mean_s, 1.0))
            for share_within, mean_s in (
                (self.tuple_latency_cdf, self.tuple_latency_mean_s()),
                (self.batch_duration_cdf, self.batch_duration_mean_s()),
            )
        )
        tail_share = np.maximum(np.minimum(rows, batches), _LEAST_BEYOND)
        unusual = np.log((1.0 - _USUAL_SHARE) / tail_share)
        load = np.log(
            np.maximum(self.offered_load_ratio, _LEAST_BEYOND) / self.allowed_offered_load
        )
        # Where no mean exists, the gain is that of the grid, and falls again at higher rates.
        cut_share = [0.0 if chain is None else chain.cut_share for chain in self.chains]
        cut = np.log(np.maximum(cut_share, _LEAST_BEYOND) / _MOST_CUT_SHARE)
        return np.where(self.is_stable, np.maximum.reduce([unusual, load, cut]), np.inf)

    @property
    def is_quotable(self) -> BoolArray:
        """Whether small errors change latencies little, and no mean is dominated by rare events."""
        quotable = np.asarray(self.saturation_but_for_gain <= 0.0)
        but_for_gain = np.flatnonzero(quotable)
        if len(but_for_gain):
            quotable[but_for_gain] = self.take(but_for_gain)._gain_excess <= 0.0
        return quotable

    def batch_duration_cdf(self, x_s: Numeric) -> Array:
        """Share of batches that take at most ``x_s``; 0 where unstable."""
        return self._chained(SettingLaw.batch_duration_cdf, BatchChain.duration_cdf, x_s)

    def batch_duration_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the batch duration [s]; ``inf`` where unstable."""
        return self._chained(
            SettingLaw.batch_duration_quantile_s, BatchChain.duration_quantile_s, q
        )

    def tuple_latency_cdf(self, x_s: Numeric) -> Array:
        """Share of rows with a latency of at most ``x_s``."""
        return self._chained(SettingLaw.tuple_latency_cdf, BatchChain.latency_cdf, x_s)

    def tuple_latency_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the tuple latency [s]; ``inf`` where unstable."""
        return self._chained(SettingLaw.tuple_latency_quantile_s, BatchChain.latency_quantile_s, q)

    def tuple_latency_mean_s(self) -> Array:
        """Mean tuple latency [s]; ``inf`` where unstable."""
        return self._chained(SettingLaw.tuple_latency_mean_s, attrgetter("latency_mean_s"))

    def take(self, selection: NDArray[np.intp] | BoolArray) -> CertifiedLaw:
        """The distributions at some of the settings."""
        indices = np.arange(len(self.chains))[selection]
        chains = tuple(self.chains[index] for index in indices)
        return _with_chains(SettingLaw.take(self, selection), chains)

    def with_others(self, others: CertifiedLaw) -> CertifiedLaw:
        """The distributions at these settings, then those at some others."""
        return _with_chains(joined_laws([self, others]), self.chains + others.chains)

    def _chained(
        self,
        of_moments: Callable[..., Array],
        of_chain: Callable[..., Array | float],
        *points: Numeric,
    ) -> Array:
        """Values by the chain of each setting, or by its moments if there is no chain."""
        shape = np.broadcast_shapes(*map(np.shape, points), (len(self.chains),))
        arrays, values = [np.broadcast_to(point, shape) for point in points], np.empty(shape)
        unchained = [index for index, chain in enumerate(self.chains) if chain is None]
        if unchained:
            law = SettingLaw.take(self, np.array(unchained))
            values[..., unchained] = of_moments(law, *(array[..., unchained] for array in arrays))
        for index, chain in enumerate(self.chains):
            if chain is not None:
                values[..., index] = of_chain(chain, *(array[..., index] for array in arrays))
        return values


def certified(law: SettingLaw, *, with_moments: bool = True) -> CertifiedLaw:
    """Distributions at a few settings in a row by the chain of their batches (T4).

    Its state has the moments of the chain, so that windows use them, too.

    Parameters
    ----------
    with_moments : bool, optional
        Whether its state has them, which takes a tenth of the time. Latencies of rows and durations
        of batches are by the chains in any case.

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> duration = AffineDuration(1.0, 7e-4, 0.1, lasting_share=0.75, persistence_ratio=0.95)
    >>> law = certified(SettingLaw.of(steady_state(duration, 1000.0, [0.0], dispersion=0.0)))
    >>> law.tuple_latency_mean_s().round(2)
    array([5.81])
    """
    if len(law.is_stable) == 1:
        return _certified_one(Identity(law), with_moments)
    return _certified(law, with_moments)


@lru_cache(maxsize=64)
def _certified_one(of_law: Identity, with_moments: bool) -> CertifiedLaw:
    (law,) = of_law.nouns
    return _certified(law, with_moments)


def _certified(law: SettingLaw, with_moments: bool) -> CertifiedLaw:
    overruns = law.overrun_probability > LEAST_CERTIFIED_OVERRUN_RATIO.value
    chains = tuple(
        batch_chain(law.take(np.array([index]))) if overruns[index] else None
        for index in range(len(overruns))
    )
    moments = {name: getattr(law, name).copy() for name in _moments(None)}
    for index in np.flatnonzero(overruns).tolist():
        if with_moments or chains[index] is None:
            for name, value in _moments(chains[index]).items():
                moments[name][index] = value
    return _with_chains(changed(law, **moments), chains)


def _with_chains(law: SettingLaw, chains: tuple[BatchChain | None, ...]) -> CertifiedLaw:
    values = {field.name: getattr(law, field.name) for field in fields(SettingLaw)}
    return CertifiedLaw(**values, chains=chains)


def _moments(chain: BatchChain | None) -> dict[str, float]:
    """The fields of a `SteadyState` that a chain changes; outside its range all is unstable."""
    if chain is None:
        return dict.fromkeys(_TIMES, np.inf) | dict.fromkeys(_SHARES, 1.0) | {"is_stable": False}
    return {
        "mean_duration_s": chain.mean_duration_s,
        "sd_duration_s": chain.sd_duration_s,
        "mean_interval_s": chain.mean_interval_s,
        "mean_square_interval_s2": chain.mean_square_interval_s2,
        "overrun_probability": chain.overrun_probability,
        "utilization_ratio": min(chain.mean_duration_s / chain.mean_interval_s, 1.0),
        "is_stable": True,
    }
