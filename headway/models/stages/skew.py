"""Key skew: the load of the largest partition, and its effect on a stage."""

from __future__ import annotations

import numpy as np

from headway.lazy_classes import dataclass
from headway.models.arrays import Array, Numeric

_FEWEST_TAIL_KEYS = 30  # per partition: from here on a sum over keys is nearly normal
_TAIL_RATIO = 1.02  # ranks of the tail within this ratio count as equally frequent


@dataclass(frozen=True, slots=True)
class KeyShares:
    """How rows are spread over keys: classes of ``num_keys`` keys that each have a ``share``."""

    share: Array
    num_keys: Array

    def __post_init__(self) -> None:
        share, number = self.share, self.num_keys
        if not (share.ndim == 1 and share.size and share.shape == number.shape):
            raise ValueError("share and num_keys must be 1-D, of one length, and not empty")
        if not (np.all(share >= 0.0) and np.all(number >= 1.0) and np.all(number % 1.0 == 0.0)):
            raise ValueError("need share >= 0, and whole num_keys >= 1")
        if not np.isclose(share @ number, 1.0):
            raise ValueError("share must add up to 1 over all keys")


def zipf_key_shares(num_keys: int, exponent: float, *, num_top_keys: int = 2000) -> KeyShares:
    r"""Keys of which the k-th most frequent has a share in proportion to ``k**-exponent``.

    Parameters
    ----------
    num_keys : int, >= 1
    exponent : float, >= 0: 0 makes all keys equally frequent
    num_top_keys : int, >= 1
        Keys with a class of their own; the others share ``50 * log(num_keys / num_top_keys)``
        classes.

    **(K2)** Zipf frequencies: `p_k ∝ k^(-s)` for the top keys. Beyond them, ranks within 2% of each
    other share a class of mass `∫_(l+1/2)^(h+1/2) x^(-s) dx`.

    >>> float(zipf_key_shares(100_000_000, 1.0).share[0])
    0.0527
    """
    if num_keys < 1 or num_top_keys < 1 or not 0.0 <= exponent < np.inf:
        raise ValueError("need num_keys >= 1, num_top_keys >= 1 and a finite exponent >= 0")
    top = np.arange(1.0, min(num_keys, num_top_keys) + 1.0)
    edge = np.array([top[-1]])
    if num_keys > num_top_keys:
        num_edges = int(np.log(num_keys / top[-1]) / np.log(_TAIL_RATIO)) + 2
        edge = np.unique(np.rint(np.geomspace(top[-1], num_keys, num_edges)))
    low, high = np.log(edge[:-1] + 0.5), np.log(edge[1:] + 0.5)
    # The midpoint rule for the sum of k^-s.
    power, width = 1.0 - exponent, high - low
    count = np.concatenate([np.ones_like(top), np.diff(edge)])
    tail = np.exp(power * low) * (np.expm1(power * width) / power if power else width)
    mass = np.concatenate([top**-exponent, tail])
    share = mass / count / mass.sum()
    return KeyShares(np.minimum.accumulate(share), count)


def random_partition_loads(
    keys: KeyShares, shuffle_partitions: int, *, num_replications: int = 200, seed: int
) -> Array:
    r"""Shares of the rows in each partition if keys are hashed at random.

    Parameters
    ----------
    shuffle_partitions : int, >= 1
    num_replications : int, >= 1, sets of keys to draw, a row for each

    **(K3)** Load of the partitions: top keys are placed at random. The load of the other keys is
    normal with mean `Σ p/P`, variance `Σ p^2/P` and, by the expansion of Cornish and Fisher, third
    moment `Σ p^3/P`. If there are fewer than 30 keys per partition, all are placed at random.

    >>> random_partition_loads(zipf_key_shares(1000, 1.2), 16, seed=1).shape
    (200, 16)
    """
    if shuffle_partitions < 1 or num_replications < 1:
        raise ValueError("need shuffle_partitions >= 1 and num_replications >= 1")
    random = np.random.default_rng(seed)
    single = keys.num_keys == 1.0
    top, tail_share, tail_count = keys.share[single], keys.share[~single], keys.num_keys[~single]
    loads = np.zeros((num_replications, shuffle_partitions))
    if tail_count.sum() < _FEWEST_TAIL_KEYS * shuffle_partitions:
        top = np.concatenate([top, np.repeat(tail_share, tail_count.astype(np.int64))])
    else:
        mean, variance, third = (tail_count @ tail_share**k / shuffle_partitions for k in (1, 2, 3))
        score = random.standard_normal(loads.shape)
        score += third / variance**1.5 * (score**2 - 1.0) / 6.0  # Cornish-Fisher, for few keys
        score -= score.mean(axis=1, keepdims=True)
        loads += np.maximum(mean + np.sqrt(variance) * score, 0.0)
    for replication in loads:
        partition = random.integers(shuffle_partitions, size=len(top))
        replication += np.bincount(partition, top, shuffle_partitions)
    return loads


def combined_rows(share: Array, num_rows: Numeric, num_map_tasks: Numeric) -> Array:
    r"""Rows of each key that are left to shuffle after each map task has combined them.

    Parameters
    ----------
    share : (k,) array, 0 to 1, of each key (and window, if windows overlap)
    num_rows : float or array, > 0
    num_map_tasks : float or array, >= 1, tasks that share the rows evenly

    **(K5)** `M` map tasks that combine `n` rows leave a mean of `M(1-(1-p_k)^(n/M))` rows of key
    `k`. Exact for independent rows.

    Sums, counts and averages combine; sessions, joins and arbitrary state do not.

    >>> combined_rows(np.array([0.9, 0.0999, 0.0001]), 10_000.0, 4)
    array([4.   , 4.   , 0.885])
    """
    rows = np.asarray(num_rows, dtype=np.float64)[..., np.newaxis]
    tasks = np.asarray(num_map_tasks, dtype=np.float64)[..., np.newaxis]
    if not (np.all(rows > 0.0) and np.all(np.isfinite(rows)) and np.all(tasks >= 1.0)):
        raise ValueError("need a finite num_rows > 0 and num_map_tasks >= 1")
    with np.errstate(divide="ignore"):
        absent = np.log1p(-np.minimum(share, 1.0))
    combined: Array = -tasks * np.expm1(rows / tasks * absent)
    return combined


def hot_start_makespan(task_times_s: Array, num_cores: int) -> Array:
    r"""Mean makespan of unequal tasks in random order, on cores that take the next one in line.

    Parameters
    ----------
    task_times_s : (..., P) array, >= 0
    num_cores : int, >= 1

    **(K6)** Mean makespan of tasks `d_j` on `C < P` cores: the longest task starts at
    `U(Σ d-d_max)/C` with `U` uniform, so it is `E max(U(Σ d-d_max)/C+d_max, Σ d/C+(C-1)/(2C) d̄)`,
    in closed form. It is also at least the sum of the `k + 1` shortest of the `kC + 1` longest
    tasks, for every `k`. With `P ≤ C` it is `d_max`.

    >>> float(hot_start_makespan(np.array([8.0, 1.0, 1.0, 1.0, 1.0]), 2))
    9.00
    """
    times = np.sort(np.asarray(task_times_s, dtype=np.float64), axis=-1)[..., ::-1]
    if num_cores < 1 or times.ndim < 1 or not times.size or not np.all(times >= 0.0):
        raise ValueError("need num_cores >= 1 and at least one task, with no negative time")
    longest, total, num_tasks = np.asarray(times[..., 0]), times.sum(axis=-1), times.shape[-1]
    if num_tasks <= num_cores:
        return longest
    latest = (total - longest) / num_cores
    even = (total + 0.5 * (num_cores - 1) * total / num_tasks) / num_cores
    # E max(U latest + longest, even), for U uniform on 0..1.
    late = np.clip(longest + latest - even, 0.0, latest)
    mean: Array = np.maximum(even, longest) + 0.5 * late**2 / np.where(latest > 0.0, latest, 1.0)
    # k+1 of the k C+1 longest tasks share a core, whatever the order.
    for num_others in range(1, (num_tasks - 1) // num_cores + 1):
        last = num_others * num_cores + 1
        mean = np.maximum(mean, times[..., last - num_others - 1 : last].sum(axis=-1))
    return mean
