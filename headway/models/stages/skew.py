"""Key skew: which partition a key goes to, how full the fullest gets, what that does to a stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import exprel

from headway.models.arrays import Array, Numeric

Int32Array: TypeAlias = NDArray[np.int32]
Words: TypeAlias = NDArray[np.uint32]
KeyKind: TypeAlias = Literal["int", "long", "string"]

SPARK_SEED = 42
_FEWEST_TAIL_KEYS = 30  # per partition: from here on a sum over keys is close to normal
_TAIL_RATIO = 1.02  # ranks of the tail within this ratio count as equally frequent
_WORD_BITS = 32


def spark_hash(
    values: Sequence[str] | Sequence[int] | NDArray[np.int64],
    kind: KeyKind,
    seed: int | Int32Array = SPARK_SEED,
) -> Int32Array:
    r"""What Spark's ``hash`` makes of a column of keys.

    Parameters
    ----------
    values : n keys
        Strings, or integers that fit the kind.
    kind : {"int", "long", "string"}
        Spark's type: int stands for byte, short, boolean and date too, long for timestamp (in
        microseconds). The column ``window`` is two longs, its start and its end.
    seed : int or (n,) array
        42 for the first column, the hash so far for each further one.

    Returns
    -------
    (n,) int32 array
        Hashes.

    Raises
    ------
    ValueError
        If a key does not fit its kind.

    Notes
    -----
    theory.md (K1).

    Examples
    --------
    >>> spark_hash(["a", "Grüße"], "string").tolist()
    [1485273170, 1598803708]
    >>> spark_hash([7], "long", spark_hash(["a"], "string")).tolist()
    [165437524]
    """
    start = np.broadcast_to(np.asarray(seed).astype(np.int32).view(np.uint32), (len(values),))
    if kind == "string":
        return _string_hash([str(value).encode() for value in values], start)
    wide = np.asarray(values)
    narrow = wide.astype(np.int32 if kind == "int" else np.int64)
    if not np.issubdtype(wide.dtype, np.integer) or np.any(wide != narrow):
        raise ValueError(f"values must be integers that fit {kind}")
    if kind == "int":
        return _finished(_mixed(start, narrow.view(np.uint32)), 4)
    bits = narrow.view(np.uint64)
    low, high = bits.astype(np.uint32), (bits >> np.uint64(_WORD_BITS)).astype(np.uint32)
    return _finished(_mixed(_mixed(start, low), high), 8)


def _string_hash(texts: list[bytes], start: Words) -> Int32Array:
    length = np.array([len(text) for text in texts], dtype=np.int64)
    hashes = np.empty(length.shape, dtype=np.int32)
    for num_bytes in np.unique(length).tolist():
        chosen = np.flatnonzero(length == num_bytes)
        joined = b"".join(texts[index] for index in chosen)
        text = np.frombuffer(joined, dtype=np.int8).reshape(len(chosen), num_bytes)
        num_whole = num_bytes - num_bytes % 4
        state = start[chosen]
        for word in np.ascontiguousarray(text[:, :num_whole]).view("<u4").T:
            state = _mixed(state, word)
        # Spark takes the bytes left over one by one, with their sign; the published hash does not.
        for byte in text[:, num_whole:].astype(np.int32).T:
            state = _mixed(state, byte.view(np.uint32))
        hashes[chosen] = _finished(state, num_bytes)
    return hashes


def _mixed(state: Words, word: Words) -> Words:
    scrambled = _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotated(state ^ scrambled, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _rotated(word: Words, num_bits: int) -> Words:
    return (word << np.uint32(num_bits)) | (word >> np.uint32(_WORD_BITS - num_bits))


def _finished(state: Words, num_bytes: int) -> Int32Array:
    value = state ^ np.uint32(num_bytes)
    value = (value ^ (value >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    value = (value ^ (value >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (value ^ (value >> np.uint32(16))).view(np.int32)


def known_partition_loads(hashes: Int32Array, weights: Array, num_partitions: int) -> Array:
    r"""Share of the rows in each partition, keys and their frequencies being known. Exact.

    Parameters
    ----------
    hashes : (k,) int32 array
        Hash of each key.
    weights : (k,) array, >= 0
        Rows of each key in any unit, not all 0.
    num_partitions : int, >= 1
        Shuffle partitions. [-]

    Returns
    -------
    (num_partitions,) array
        Shares, which add up to 1. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (K1).

    Examples
    --------
    >>> hashes = spark_hash(["a", "ab", "abc"], "string")
    >>> known_partition_loads(hashes, np.array([2.0, 1.0, 1.0]), 4)
    array([0.25, 0.  , 0.5 , 0.25])
    """
    rows = np.asarray(weights, dtype=np.float64)
    if rows.shape != np.shape(hashes) or not (np.all(rows >= 0.0) and 0.0 < rows.sum() < np.inf):
        raise ValueError("need a weight >= 0 for each hash, not all 0")
    if num_partitions < 1:
        raise ValueError("num_partitions must be at least 1")
    # Spark's pmod, like this remainder, has the sign of the divisor.
    partition = np.mod(np.asarray(hashes).astype(np.int64), num_partitions)
    loads: Array = np.bincount(partition, rows, num_partitions) / rows.sum()
    return loads


@dataclass(frozen=True, slots=True)
class KeyShares:
    """How rows are spread over keys: classes of keys that are equally frequent."""

    share: Array
    """Share of the rows that one key of the class has, >= 0. [-]"""
    num_keys: Array
    """Keys of the class, >= 1. [-]"""

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
        Keys. [-]
    exponent : float, >= 0
        0 makes all keys equally frequent. [-]
    num_top_keys : int, >= 1
        Keys with a class of their own; the others share classes. [-]

    Returns
    -------
    KeyShares
        Of about ``num_top_keys + 50 * log(num_keys / num_top_keys)`` classes.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (K2). Fit for any number of keys: the tail is an integral.

    Examples
    --------
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
    # The midpoint rule for the sum of k^-s; exprel is (e^x - 1)/x, at s = 1 too.
    power, width = 1.0 - exponent, high - low
    count = np.concatenate([np.ones_like(top), np.diff(edge)])
    tail = np.exp(power * low) * width * exprel(power * width)
    mass = np.concatenate([top**-exponent, tail])
    share = mass / count / mass.sum()
    return KeyShares(np.minimum.accumulate(share), count)


def random_partition_loads(
    keys: KeyShares, num_partitions: int, *, num_replications: int = 200, seed: int
) -> Array:
    r"""Shares of the rows in each partition, keys being hashed anywhere.

    Parameters
    ----------
    keys : KeyShares
        Frequencies of the keys.
    num_partitions : int, >= 1
        Shuffle partitions, P. [-]
    num_replications : int, >= 1
        Sets of keys to draw. [-]
    seed : int
        Seed of the generator.

    Returns
    -------
    (num_replications, num_partitions) array
        Shares; each row adds up to 1. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (K3).

    Examples
    --------
    >>> random_partition_loads(zipf_key_shares(1000, 1.2), 16, seed=1).shape
    (200, 16)
    """
    if num_partitions < 1 or num_replications < 1:
        raise ValueError("need num_partitions >= 1 and num_replications >= 1")
    random = np.random.default_rng(seed)
    single = keys.num_keys == 1.0
    top, tail_share, tail_count = keys.share[single], keys.share[~single], keys.num_keys[~single]
    loads = np.zeros((num_replications, num_partitions))
    if tail_count.sum() < _FEWEST_TAIL_KEYS * num_partitions:
        top = np.concatenate([top, np.repeat(tail_share, tail_count.astype(np.int64))])
    else:
        mean, variance, third = (tail_count @ tail_share**k / num_partitions for k in (1, 2, 3))
        score = random.standard_normal(loads.shape)
        score += third / variance**1.5 * (score**2 - 1.0) / 6.0  # Cornish-Fisher, for few keys
        score -= score.mean(axis=1, keepdims=True)
        loads += np.maximum(mean + np.sqrt(variance) * score, 0.0)
    for replication in loads:
        place = random.integers(num_partitions, size=len(top))
        replication += np.bincount(place, top, num_partitions)
    return loads


def max_load_bound(top_share: Numeric, num_partitions: Numeric) -> Array:
    r"""Least mean load of the fullest partition, from the most frequent key alone.

    Parameters
    ----------
    top_share : float or array, 0 to 1
        Share of the rows that the most frequent key has. [-]
    num_partitions : float or array, >= 1
        Shuffle partitions. [-]

    Returns
    -------
    array
        Inputs broadcast, share of all rows. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (K4). Close if ``top_share * num_partitions >= 2``.

    Examples
    --------
    >>> float(max_load_bound(0.05, 200))
    0.05475
    """
    share, number = np.asarray(top_share, dtype=np.float64), np.asarray(num_partitions)
    if not (np.all(share >= 0.0) and np.all(share <= 1.0) and np.all(number >= 1)):
        raise ValueError("need top_share in 0..1 and num_partitions >= 1")
    bound: Array = share + (1.0 - share) / number
    return bound


def combined_rows(keys: KeyShares, num_rows: Numeric, num_map_tasks: Numeric) -> Array:
    r"""Rows that are left to shuffle after each map task has combined rows of one key.

    Parameters
    ----------
    keys : KeyShares
        Frequencies of the keys (of key and window, where windows overlap).
    num_rows : float or array, > 0
        Rows of the batch. [-]
    num_map_tasks : float or array, >= 1
        Tasks that share them evenly. [-]

    Returns
    -------
    array
        Inputs broadcast, mean number of rows. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (K5). Sums, counts and averages combine; sessions, joins and arbitrary state do not.

    Examples
    --------
    >>> float(combined_rows(zipf_key_shares(1000, 0.0), 100_000.0, 4))
    4000.0
    """
    rows = np.asarray(num_rows, dtype=np.float64)[..., np.newaxis]
    tasks = np.asarray(num_map_tasks, dtype=np.float64)[..., np.newaxis]
    if not (np.all(rows > 0.0) and np.all(np.isfinite(rows)) and np.all(tasks >= 1.0)):
        raise ValueError("need a finite num_rows > 0 and num_map_tasks >= 1")
    with np.errstate(divide="ignore"):
        absent = np.log1p(-np.minimum(keys.share, 1.0))
    combined: Array = (-tasks * keys.num_keys * np.expm1(rows / tasks * absent)).sum(axis=-1)
    return combined


def hot_start_makespan(task_times_s: Array, num_cores: int) -> Array:
    r"""Mean makespan of unequal tasks in any order, on cores that take the next one in line.

    Parameters
    ----------
    task_times_s : (..., P) array, >= 0
        Task times, as from the loads of P partitions. [s]
    num_cores : int, >= 1
        Cores. [-]

    Returns
    -------
    (...) array
        Mean over the place of the longest task in line. [s]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (K6). Meant for skew; when the order is known, play it.

    Examples
    --------
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
