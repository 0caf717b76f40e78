"""The partition to which Spark assigns a key, and the bucket of ``headway.ordered``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array

Int32Array: TypeAlias = NDArray[np.int32]
Int64Array: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint32]
Words64: TypeAlias = NDArray[np.uint64]
AnyWords = TypeVar("AnyWords", Words, Words64)
Keys: TypeAlias = Sequence[str] | Sequence[int] | NDArray[np.int64]
KeyKind: TypeAlias = Literal["int", "long", "string"]

SPARK_SEED = 42
_WORD_BITS = 32
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)  # fmt: skip
_BLOCK, _WORD, _HALF = 32, 8, 4


def spark_hash(values: Keys, kind: KeyKind, seed: int | Int32Array = SPARK_SEED) -> Int32Array:
    r"""Spark's ``hash`` of a column of keys.

    Parameters
    ----------
    values : n keys, strings, or integers that fit the kind; others raise ``ValueError``
    kind : {"int", "long", "string"}
        Spark's type; int also covers byte, short, boolean and date, and long also timestamp (in
        microseconds). The column ``window`` is two longs, its start and its end.
    seed : int or (n,) array: 42 for the first column, the hash so far for each further one

    **(K1)** Spark assigns a key to partition `pmod(Murmur3_(x86, 32)(key, 42), P)`. Integers are
    hashed as one word, longs as low and high word, strings as UTF-8 in whole words, then byte by
    byte with sign. Further columns start from the hash so far; a null leaves it unchanged. Exact;
    compared with Spark 4.3.0.

    >>> spark_hash(["a", "Grüße"], "string").tolist()
    [1485273170, 1598803708]
    >>> spark_hash([7], "long", spark_hash(["a"], "string")).tolist()
    [165437524]
    """
    start = np.broadcast_to(np.asarray(seed).astype(np.int32).view(np.uint32), (len(values),))
    if kind == "string":
        return _string_hash(values, start)
    wide = np.asarray(values)
    narrow = wide.astype(np.int32 if kind == "int" else np.int64)
    if not np.issubdtype(wide.dtype, np.integer) or np.any(wide != narrow):
        raise ValueError(f"values must be integers that fit {kind}")
    if kind == "int":
        return _finished(_mixed(start, narrow.view(np.uint32)), 4)
    bits = narrow.view(np.uint64)
    low, high = bits.astype(np.uint32), (bits >> np.uint64(_WORD_BITS)).astype(np.uint32)
    return _finished(_mixed(_mixed(start, low), high), 8)


def utf8_by_length(values: Keys) -> Iterator[tuple[NDArray[np.intp], NDArray[np.uint8]]]:
    """For each length in UTF-8 (K1), the indices of the keys that have it, and their bytes."""
    texts = [str(value).encode() for value in values]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    for num_bytes in np.unique(lengths).tolist():
        indices = np.flatnonzero(lengths == num_bytes)
        joined = b"".join(texts[index] for index in indices)
        yield indices, np.frombuffer(joined, dtype=np.uint8).reshape(len(indices), num_bytes)


def _string_hash(values: Keys, start: Words) -> Int32Array:
    hashes = np.empty(len(values), dtype=np.int32)
    for indices, text in utf8_by_length(values):
        num_bytes = text.shape[1]
        num_whole = num_bytes - num_bytes % 4
        state = start[indices]
        for word in np.ascontiguousarray(text[:, :num_whole]).view("<u4").T:
            state = _mixed(state, word)
        # Spark hashes the remaining bytes one by one, with their sign; the published hash does not.
        for byte in text[:, num_whole:].view(np.int8).astype(np.int32).T:
            state = _mixed(state, byte.view(np.uint32))
        hashes[indices] = _finished(state, num_bytes)
    return hashes


def _mixed(state: Words, word: Words) -> Words:
    scrambled = _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotated(state ^ scrambled, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _rotated(word: AnyWords, num_bits: int) -> AnyWords:
    kind, size = word.dtype.type, 8 * word.dtype.itemsize
    rotated: AnyWords = (word << kind(num_bits)) | (word >> kind(size - num_bits))
    return rotated


def _finished(state: Words, num_bytes: int) -> Int32Array:
    value = state ^ np.uint32(num_bytes)
    value = (value ^ (value >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    value = (value ^ (value >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (value ^ (value >> np.uint32(16))).view(np.int32)


def known_partition_loads(
    hashes: Int32Array | NDArray[np.int64], weights: Array, shuffle_partitions: int
) -> Array:
    r"""Share of the rows in each partition for known keys and frequencies. Exact (K1).

    Parameters
    ----------
    hashes : (k,) int32 or int64 array
    weights : (k,) array, >= 0, rows of each key in any unit, not all 0
    shuffle_partitions : int, >= 1

    >>> hashes = spark_hash(["a", "ab", "abc"], "string")
    >>> known_partition_loads(hashes, np.array([2.0, 1.0, 1.0]), 4)
    array([0.25, 0.  , 0.5 , 0.25])
    """
    rows = np.asarray(weights, dtype=np.float64)
    if rows.shape != np.shape(hashes) or not (np.all(rows >= 0.0) and 0.0 < rows.sum() < np.inf):
        raise ValueError("need a weight >= 0 for each hash, not all 0")
    if shuffle_partitions < 1:
        raise ValueError("shuffle_partitions must be at least 1")
    # Spark's pmod, like this remainder, has the sign of the divisor.
    partition = np.mod(np.asarray(hashes).astype(np.int64), shuffle_partitions)
    loads: Array = np.bincount(partition, rows, shuffle_partitions) / rows.sum()
    return loads


def spark_xxhash64(values: Keys, kind: KeyKind) -> Int64Array:
    r"""Spark's ``xxhash64`` of a column of keys.

    Parameters
    ----------
    values : n keys, strings, or integers that fit the kind
    kind : {"int", "long", "string"}

    **(K12)** Ordered streams assign a key that is not placed to bucket `pmod(XXH64(key, 42), P)` of
    (K7). Integers are hashed as one half word, longs as one word, strings as UTF-8. Exact; longs
    are compared with the tasks of Spark 4.3.0, strings with the published hash.

    >>> spark_xxhash64(["Spark"], "string").tolist(), spark_xxhash64([0], "long").tolist()
    ([-4294468057691064905], [-5252525462095825812])
    """
    if kind == "string":
        return _hashed_texts(values)
    narrow = np.asarray(values).astype(np.int32 if kind == "int" else np.int64)
    size = _HALF if kind == "int" else _WORD
    state = np.full(narrow.shape, np.uint64(SPARK_SEED) + _P5 + np.uint64(size))
    if kind == "int":
        return _finished64(_with_half(state, narrow.view(np.uint32).astype(np.uint64)))
    return _finished64(_with_word(state, narrow.view(np.uint64)))


def _hashed_texts(values: Keys) -> Int64Array:
    hashes = np.empty(len(values), dtype=np.int64)
    for indices, text in utf8_by_length(values):
        num_bytes = text.shape[1]
        blocks = num_bytes - num_bytes % _BLOCK
        words = num_bytes - num_bytes % _WORD
        state = _of_blocks(text[:, :blocks]) + np.uint64(num_bytes)
        for word in np.ascontiguousarray(text[:, blocks:words]).view("<u8").T:
            state = _with_word(state, word)
        if num_bytes - words >= _HALF:
            half = np.ascontiguousarray(text[:, words : words + _HALF]).view("<u4")[:, 0]
            state, words = _with_half(state, half.astype(np.uint64)), words + _HALF
        for byte in text[:, words:].astype(np.uint64).T:
            state = _rotated(state ^ (byte * _P5), 11) * _P1
        hashes[indices] = _finished64(state)
    return hashes


def _of_blocks(text: NDArray[np.uint8]) -> Words64:
    """Hash state after the blocks of 32 bytes; a short text has none."""
    seed = np.full(len(text), np.uint64(SPARK_SEED))
    if not text.shape[1]:
        return seed + _P5
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    for index, word in enumerate(np.ascontiguousarray(text).view("<u8").T):
        lanes[index % 4] = _rotated(lanes[index % 4] + word * _P2, 31) * _P1
    first, second, third, fourth = lanes
    state = _rotated(first, 1) + _rotated(second, 7) + _rotated(third, 12) + _rotated(fourth, 18)
    for lane in lanes:
        state = (state ^ (_rotated(lane * _P2, 31) * _P1)) * _P1 + _P4
    return state


def _with_word(state: Words64, word: Words64) -> Words64:
    return _rotated(state ^ (_rotated(word * _P2, 31) * _P1), 27) * _P1 + _P4


def _with_half(state: Words64, half: Words64) -> Words64:
    return _rotated(state ^ (half * _P1), 23) * _P2 + _P3


def _finished64(state: Words64) -> Int64Array:
    value = (state ^ (state >> np.uint64(33))) * _P2
    value = (value ^ (value >> np.uint64(29))) * _P3
    return (value ^ (value >> np.uint64(32))).view(np.int64)
