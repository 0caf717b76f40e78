"""Inputs of the mini-batch pipeline (a job, its nodes, its settings, its state), and the loads."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric
from headway.models.stages.skew import KeyShares, zipf_key_shares


def _require_numbers(noun: object, *may_be_zero: str) -> None:
    """Require finite fields of a dataclass, all above zero except for those named."""
    for field in fields(noun):  # type: ignore[arg-type]  # it is a dataclass
        value = np.asarray(getattr(noun, field.name), dtype=np.float64)
        if not (np.all(np.isfinite(value)) and np.all(value >= 0.0)):
            raise ValueError(f"{field.name} must be finite and not negative")
        if field.name not in may_be_zero and not np.all(value > 0.0):
            raise ValueError(f"{field.name} must be positive")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineJob:
    """Costs of a map and a reduce function, in seconds on a dedicated core, and bytes."""

    map_per_row_s: Numeric  # Map function on one input row, > 0. [s/row]
    reduce_per_row_s: Numeric  # Update function on one row of map output, > 0. [s/row]
    outputs_per_row: Numeric  # Rows of map output per input row, > 0. [-]
    input_row_bytes: Numeric  # Input row on the network, >= 0. [B]
    shuffle_row_bytes: Numeric  # Row of map output on disk and network, >= 0. [B]
    shuffle_fixed_s: Numeric  # To pack a batch for all reducers, beyond its rows, >= 0. [s]
    fetch_fixed_s: Numeric  # Reducer's work per poll, >= 0. [s]
    batch_fixed_s: Numeric  # Reducer's work per fetched batch beyond its rows, >= 0. [s]
    map_cv: Numeric  # Noise of the map time of an input batch, relative to it, >= 0. [-]
    reduce_cv: Numeric  # Noise of the reduce time of a fetched batch, relative to it, >= 0. [-]

    def __post_init__(self) -> None:
        _require_numbers(
            self,
            *("input_row_bytes", "shuffle_row_bytes", "shuffle_fixed_s", "fetch_fixed_s"),
            *("batch_fixed_s", "map_cv", "reduce_cv"),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineNodes:
    """Hardware of a node (all nodes are equal) and of the link out of a distributor."""

    num_cores: Numeric  # Cores of a node, > 0. [-]
    link_bytes_per_s: Numeric  # Network link into a node, shared by its reducers, > 0. [B/s]
    stream_bytes_per_s: Numeric  # Maximum rate at which one reducer can fetch, > 0. [B/s]
    disk_bytes_per_s: Numeric  # Writing to the disk of a node, shared by its mappers, > 0. [B/s]
    disk_write_s: Numeric  # Fixed time of a write, >= 0. [s]
    distributor_bytes_per_s: Numeric  # Network link out of a distributor, > 0. [B/s]

    def __post_init__(self) -> None:
        _require_numbers(self, "disk_write_s")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineSetting:
    """Settings: degrees of parallelism and granularity of batches."""

    num_nodes: Numeric  # S, whole. [-]
    mappers_per_node: Numeric  # M, whole. [-]
    reducers_per_node: Numeric  # R, whole. [-]
    num_distributors: Numeric  # Each hands its batches to the mappers in turn; whole. [-]
    input_period_s: Numeric  # B_in: a distributor packs a batch this often, > 0. [s]
    shuffle_period_s: Numeric  # B_sh: a mapper packs a shuffle batch this often, > 0. [s]
    poll_period_s: Numeric  # B_ch: a reducer requests shuffle batches this often, > 0. [s]

    def __post_init__(self) -> None:
        _require_numbers(self)
        for name in ("num_nodes", "mappers_per_node", "reducers_per_node", "num_distributors"):
            value = np.asarray(getattr(self, name))
            if not np.all(value == np.round(value)):
                raise ValueError(f"{name} must be whole")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finalizing:
    """The finalize function of a windowed job, run for each key when a window is complete."""

    num_keys: Numeric  # Keys of a window at one reducer, >= 1. [-]
    per_key_s: Numeric  # Time of a core per key, > 0. [s]
    slide_s: Numeric  # Time between two window ends, > 0. [s]

    def __post_init__(self) -> None:
        _require_numbers(self)
        if not np.all(np.asarray(self.num_keys) >= 1.0):
            raise ValueError("num_keys must be at least 1")

    @property
    def window_s(self) -> Numeric:
        """Time of a core to finalize one window at one reducer. [s]"""
        return self.num_keys * self.per_key_s

    def time_to_key(self, window_s: Array) -> tuple[Array, Array]:
        """Mean and variance of the time until any one key of a window is finalized: (L12)."""
        keys = np.asarray(self.num_keys, dtype=np.float64)
        return 0.5 * (1.0 + 1.0 / keys) * window_s, (1.0 - 1.0 / keys**2) * window_s**2 / 12.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pipeline:
    """A job on its nodes at a setting and an input rate. Numbers may be arrays and broadcast."""

    job: PipelineJob
    nodes: PipelineNodes
    setting: PipelineSetting
    rate_per_s: Numeric  # Input rows of all distributors together, > 0. [rows/s]
    dispersion: Numeric  # Variance over mean of the rows of an input batch, >= 0; 1 is Poisson. [-]
    finalizing: Finalizing | None = None  # For windowed jobs; its work takes time of the reducers.

    def __post_init__(self) -> None:
        rate, dispersion = np.asarray(self.rate_per_s), np.asarray(self.dispersion)
        if not (np.all(np.isfinite(rate)) and np.all(rate > 0.0)):
            raise ValueError("rate_per_s must be finite and positive")
        if not (np.all(np.isfinite(dispersion)) and np.all(dispersion >= 0.0)):
            raise ValueError("dispersion must be finite and not negative")


class PipelineLoads(NamedTuple):
    """Batches and their work; times are on a dedicated core, link or disk.

    ``stable`` is false if a thread's own resource is overloaded.
    """

    num_mappers: Array  # On all nodes. [-]
    num_reducers: Array  # On all nodes. [-]
    map_period_s: Array  # Time between input batches of one mapper. [s]
    input_transfer_s: Array  # Transfer of an input batch through the link of its distributor. [s]
    input_transfer_busy: Array  # Share of time that this link is busy. [-]
    map_s: Array  # Map function on one input batch. [s]
    map_busy: Array  # Share of time that a mapper is busy, packing included. [-]
    write_s: Array  # Writing a shuffle batch of a mapper, for all reducers, to disk. [s]
    disk_busy: Array  # Share of time that a disk writes. [-]
    batches_per_poll: Array  # Shuffle batches that a poll finds on average, over all mappers. [-]
    fetch_s: Array  # Transfer of one of them through the network, at the rate of a stream. [s]
    fetch_busy: Array  # Share of time that a reducer fetches. [-]
    streams_per_link: Array  # Streams that fill the link of a node. [-]
    reduce_rows_s: Array  # Update function on the rows of one fetched batch. [s]
    reduce_s: Array  # The same with the fixed work per batch. [s]
    poll_fixed_s: Array  # Fixed work per poll. [s]
    update_busy: Array  # Share of time that a reducer updates or polls. [-]
    reduce_busy: Array  # The same, with finalizing. [-]
    input_rows_scv: Array  # Squared variation of the rows of an input batch. [-]
    shuffle_rows_scv: Array  # Squared variation of the rows of a shuffle batch. [-]
    stable: NDArray[np.bool_]  # Whether each thread and resource, taken alone, has time left. [-]


def pipeline_loads(pipeline: Pipeline) -> PipelineLoads:
    r"""Rows and work per batch, and how busy each part is, all of one shape.

    **(L1)** An input batch has `λ B_in/D_n` rows, and a mapper gets one every `A = B_in M_t/D_n`. A
    shuffle batch has `α λ B_sh/M_t` rows, a share `1/R_t` of them for each reducer. A poll finds
    `K = M_t B_ch/B_sh` batches. Counts have the squared variation `v = φ/(input rows)`. Stable only
    if each thread, disk and link, and the cores of a node, have time left.

    Input batches go to the mappers in turn; map output is spread evenly over the reducers.
    """
    job, nodes, setting = pipeline.job, pipeline.nodes, pipeline.setting
    rate = np.asarray(pipeline.rate_per_s, dtype=np.float64)
    mappers = np.asarray(setting.num_nodes, dtype=np.float64) * setting.mappers_per_node
    reducers = np.asarray(setting.num_nodes, dtype=np.float64) * setting.reducers_per_node
    input_rows = rate * setting.input_period_s / setting.num_distributors
    mapper_rows = rate * setting.shuffle_period_s / mappers
    output_rows = job.outputs_per_row * mapper_rows
    map_period = (
        np.asarray(setting.input_period_s, dtype=np.float64) * mappers / setting.num_distributors
    )
    per_poll = mappers * setting.poll_period_s / setting.shuffle_period_s
    input_transfer = input_rows * job.input_row_bytes / nodes.distributor_bytes_per_s
    write = nodes.disk_write_s + output_rows * job.shuffle_row_bytes / nodes.disk_bytes_per_s
    fetch = output_rows / reducers * job.shuffle_row_bytes / nodes.stream_bytes_per_s
    map_time = input_rows * job.map_per_row_s
    reduce_rows = output_rows / reducers * job.reduce_per_row_s
    reduce = reduce_rows + job.batch_fixed_s
    update_busy = (reduce * per_poll + job.fetch_fixed_s) / setting.poll_period_s
    map_busy = map_time / map_period + np.divide(job.shuffle_fixed_s, setting.shuffle_period_s)
    windows = pipeline.finalizing
    final_busy: Numeric = 0.0 if windows is None else windows.window_s / windows.slide_s
    reduce_busy = update_busy + final_busy
    disk_busy = setting.mappers_per_node * write / setting.shuffle_period_s
    fetch_busy = per_poll * fetch / setting.poll_period_s
    streams = np.divide(nodes.link_bytes_per_s, nodes.stream_bytes_per_s)
    transfer_busy = input_transfer / setting.input_period_s
    cores = setting.mappers_per_node * map_busy + setting.reducers_per_node * reduce_busy
    stable = (
        (map_busy < 1.0)
        & (reduce_busy < 1.0)
        & (disk_busy < 1.0)
        & (transfer_busy < 1.0)
        & (fetch_busy < 1.0)
        & (setting.reducers_per_node * fetch_busy < streams)
        & (cores < nodes.num_cores)
    )
    arrays = np.broadcast_arrays(
        mappers,
        reducers,
        map_period,
        input_transfer,
        transfer_busy,
        map_time,
        map_busy,
        write,
        disk_busy,
        per_poll,
        fetch,
        fetch_busy,
        streams,
        reduce_rows,
        reduce,
        job.fetch_fixed_s,
        update_busy,
        reduce_busy,
        pipeline.dispersion / input_rows,
        pipeline.dispersion / mapper_rows,
        stable,
    )
    return PipelineLoads(*arrays)


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
    in_memory_s, on_disk_s : float or (n,) array, > 0, update of a row with its key there [s/row]
    disk_share : float or (n,) array, 0 to 1, share of rows whose key is on disk
    rows : float or (n,) array, > 0, rows of a fetched batch
    noise_cv : float or (n,) array, >= 0, of the time of a batch, without that of the groups

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
