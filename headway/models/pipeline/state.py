"""Update costs of rows whose key is in memory and of rows whose key is on disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.stages.skew import KeyShares, zipf_key_shares


@dataclass(frozen=True, kw_only=True, eq=False)
class ReducerState:
    """State of all reducers together; each keeps its most frequent keys in memory.

    ``memory_bytes`` are those of one reducer, ``key_bytes`` those of a key with its state.
    ``num_keys`` are keys over all reducers, whose frequencies have ``exponent``, as in
    `zipf_key_shares`. ``on_disk_s`` is the time to update a row whose key is on disk. All are
    positive; ``exponent`` may be 0.
    """

    memory_bytes: float
    key_bytes: float
    num_keys: int
    exponent: float
    on_disk_s: float

    @cached_property
    def _keys(self) -> KeyShares:
        return zipf_key_shares(self.num_keys, self.exponent)

    def disk_share(self, num_reducers: Numeric) -> Array:
        """Share of the rows whose key is on disk. [-]"""
        keys = self._keys
        num_in_memory = np.asarray(num_reducers, dtype=np.float64) * (
            self.memory_bytes / self.key_bytes
        )
        ranks = np.concatenate([[0.0], np.cumsum(keys.num_keys)])
        mass = np.concatenate([[0.0], np.cumsum(keys.num_keys * keys.share)])
        share: Array = np.maximum(1.0 - np.interp(np.floor(num_in_memory), ranks, mass), 0.0)
        return share


def two_group_update(
    in_memory_s: Numeric, on_disk_s: Numeric, disk_share: Numeric, rows: Numeric, noise_cv: Numeric
) -> tuple[Array, Array]:
    r"""Update time per row, and noise of a batch, if rows have two different costs.

    The noise includes that of the groups.

    Parameters
    ----------
    in_memory_s, on_disk_s : float or (n,) array, > 0
        Update of a row whose key is in memory, and of one whose key is on disk. [s/row]
    disk_share : float or (n,) array, 0 to 1, share of rows whose key is on disk
    rows : float or (n,) array, > 0, rows of a fetched batch
    noise_cv : float or (n,) array, >= 0
        Noise of the time of a batch, relative to it, in addition to that of the groups.

    **(L14)** A share `d` of the rows has its key on disk (VLDB'15, 4), so the mean update time is
    `u_r = (1-d)c_m + d c_d`. The number of these rows in a batch of `n` is binomial, which adds
    `d(1-d)(c_d-c_m)^2/(n u_r^2)` to the squared variation of the batch's time. Each reducer keeps
    its most frequent keys in memory: `d` is the share of rows of all keys except the `R_t Y/k` most
    frequent ones, with `Y` the memory of a reducer and `k` that of a key.

    >>> [float(value) for value in two_group_update(2e-6, 20e-6, 0.1, 1000.0, 0.0)]
    [3.8e-06, 0.0449]
    """
    share = np.asarray(disk_share, dtype=np.float64)
    mean = (1.0 - share) * in_memory_s + share * on_disk_s
    difference_s = np.asarray(on_disk_s, dtype=np.float64) - in_memory_s
    groups = share * (1.0 - share) * difference_s**2 / (rows * mean**2)
    return mean, np.sqrt(np.asarray(noise_cv, dtype=np.float64) ** 2 + groups)
