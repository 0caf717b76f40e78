"""The bucket to which ``headway.ordered`` assigns a key: Spark's 64-bit hash."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.models.stages.spark_hash import SPARK_SEED, KeyKind, Keys, utf8_by_length

Int64Array: TypeAlias = NDArray[np.int64]
_Words: TypeAlias = NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)  # fmt: skip
_BLOCK, _WORD, _HALF = 32, 8, 4


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
        return _finished(_with_half(state, narrow.view(np.uint32).astype(np.uint64)))
    return _finished(_with_word(state, narrow.view(np.uint64)))


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
        hashes[indices] = _finished(state)
    return hashes


def _of_blocks(text: NDArray[np.uint8]) -> _Words:
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


def _with_word(state: _Words, word: _Words) -> _Words:
    return _rotated(state ^ (_rotated(word * _P2, 31) * _P1), 27) * _P1 + _P4


def _with_half(state: _Words, half: _Words) -> _Words:
    return _rotated(state ^ (half * _P1), 23) * _P2 + _P3


def _rotated(words: _Words, num_bits: int) -> _Words:
    return (words << np.uint64(num_bits)) | (words >> np.uint64(64 - num_bits))


def _finished(state: _Words) -> Int64Array:
    value = (state ^ (state >> np.uint64(33))) * _P2
    value = (value ^ (value >> np.uint64(29))) * _P3
    return (value ^ (value >> np.uint64(32))).view(np.int64)
