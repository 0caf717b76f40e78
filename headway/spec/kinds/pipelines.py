"""Pipelines of mini-batches: distributors, mappers and reducers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.domain.target import Metric, Target
from headway.limits import MOST_RATIO
from headway.spec.forms import entry
from headway.spec.forms.kinds import ListOf, Nested, Number, whole
from headway.spec.forms.quantities import (
    CORES,
    DURATION,
    DURATION_OR_ZERO,
    DURATION_PER_ROW,
    NODES,
    RATE,
    SHARE,
    SIZE,
    SIZE_OR_ZERO,
    SIZE_PER_S,
    TARGET,
)

_LONGEST_SERIES = 20
PER_ROW = Number(words="rows per row, above 0", above=True, high=MOST_RATIO)
EXPONENT = Number(words="an exponent, 0 to 10", high=10.0)
LATENCY_TARGET = replace(
    TARGET,
    words="a latency target, e.g. 'p99 <= 3s', 'mean <= 1s', 'window p99 <= 3s'",
    parse=Target.parse,
    examples=("p99 <= 3s", "mean <= 1s", "window p99 <= 3s"),
    pattern=r"^\s*((tuple|window)\s+)?(mean|p[0-9.]+)\s*<=?\s*.+$",
)
_KEYS = whole(low=1, high=10**9)
_THREADS = whole(low=1, high=1_000)
_LISTED_THREADS = ListOf(item=_THREADS, least=1, most=40, or_one=True)
_PERIODS = ListOf(item=DURATION, least=1, most=40, or_one=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineNodeEntry:
    """A node (all are equal), and the network link out of a distributor."""

    cores: int = entry(CORES, "Cores of a node.")
    network_bytes_per_s: float = entry(
        SIZE_PER_S, "Network link into a node, which its reducers share."
    )
    stream_bytes_per_s: float | None = entry(
        SIZE_PER_S, "Maximum that one reducer can fetch. Default: the whole link.", default=None
    )
    disk_bytes_per_s: float = entry(
        SIZE_PER_S, "Write rate of the disk of a node, which its mappers share."
    )
    write_s: float = entry(DURATION_OR_ZERO, "Fixed time of a write. Default 0s.", default=0.0)
    distributor_bytes_per_s: float | None = entry(
        SIZE_PER_S, "Network link out of a distributor. Default: as into a node.", default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettingEntry:
    """Degrees of parallelism and periods: what a plan chooses."""

    nodes: int = entry(NODES, "Nodes.")
    mappers: int = entry(_THREADS, "Mappers on each node.")
    reducers: int = entry(_THREADS, "Reducers on each node.")
    input_period_s: float = entry(
        DURATION, "A distributor packs a batch this often. Default 5ms.", default=0.005
    )
    shuffle_period_s: float = entry(DURATION, "A mapper packs a shuffle batch this often.")
    poll_period_s: float = entry(DURATION, "A reducer asks for shuffle batches this often.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineWindowsEntry:
    """Windows, and the function that runs for each key when one is complete."""

    slide_s: float = entry(DURATION, "Time between the ends of two windows.")
    keys: int = entry(_KEYS, "Keys of a window, over all reducers together.")
    finalize_s: float = entry(DURATION_PER_ROW, "Time of a core per key.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStateEntry:
    """State of the reducers: what does not fit into memory is on disk, the rarest keys first."""

    memory_bytes: int = entry(SIZE, "Memory of one reducer for state.")
    key_bytes: int = entry(SIZE, "Memory of a key with its state.")
    keys: int = entry(_KEYS, "Keys, over all reducers together.")
    zipf: float = entry(
        EXPONENT, "Zipf exponent of the key frequencies; 0 is uniform. Default 0.", default=0.0
    )
    on_disk_s: float = entry(
        DURATION_PER_ROW, "Time to update a row whose key is on disk, instead of `reduce`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRoundEntry:
    """A map function and a reduce function, with what they cost."""

    map_s: float = entry(DURATION_PER_ROW, "Map function, time of a core per input row.")
    reduce_s: float = entry(
        DURATION_PER_ROW, "Update function, time of a core per row of map output."
    )
    outputs: float = entry(
        PER_ROW, "Rows of map output per input row, above 0. Default 1.", default=1.0
    )
    results: float = entry(
        PER_ROW, "Rows that go on to the next round per row of map output, above 0. Default 1.",
        default=1.0,
    )  # fmt: skip
    input_row_bytes: int = entry(
        SIZE_OR_ZERO, "Size of an input row on the network. Default 0b.", default=0
    )
    shuffle_row_bytes: int = entry(
        SIZE_OR_ZERO, "Size of a row of map output on disk and network. Default 0b.", default=0
    )
    packing_s: float = entry(
        DURATION_OR_ZERO, "Mapper's fixed work per shuffle batch. Default 0s.", default=0.0
    )
    per_poll_s: float = entry(
        DURATION_OR_ZERO, "Reducer's fixed work per poll. Default 0s.", default=0.0
    )
    per_batch_s: float = entry(
        DURATION_OR_ZERO, "Reducer's fixed work per fetched batch. Default 0s.", default=0.0
    )
    map_noise_ratio: float = entry(
        SHARE, "Noise of the map time of a batch in proportion to it. Default 0%.", default=0.0
    )
    reduce_noise_ratio: float = entry(
        SHARE, "Noise of the update time of a batch in proportion to it. Default 0%.", default=0.0
    )
    windows: PipelineWindowsEntry | None = entry(
        Nested(PipelineWindowsEntry), "Windows, if results are computed per window.", default=None
    )
    state: PipelineStateEntry | None = entry(
        Nested(PipelineStateEntry), "State that may not fit into memory. Default: it does.",
        default=None,
    )  # fmt: skip
    setting: PipelineSettingEntry | None = entry(
        Nested(PipelineSettingEntry), "Setting of this round. Default: that of the pipeline.",
        default=None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSearchEntry:
    """What a plan may choose from."""

    max_nodes: int = entry(NODES, "Maximum number of nodes, of a round. Default 50.", default=50)
    mappers: tuple[int, ...] = entry(
        _LISTED_THREADS, "Mappers on each node. Default: up to the cores of a node.", default=()
    )
    reducers: tuple[int, ...] = entry(
        _LISTED_THREADS, "Reducers on each node. Default: up to the cores of a node.", default=()
    )
    input_periods_s: tuple[float, ...] = entry(
        _PERIODS, "Input periods. Default: that of the setting.", key="input_period", default=()
    )
    shuffle_periods_s: tuple[float, ...] = entry(
        _PERIODS, "Shuffle periods. Default: 10ms to 1s.", key="shuffle_period", default=()
    )
    poll_periods_s: tuple[float, ...] = entry(
        _PERIODS, "Poll periods. Default: 10ms to 1s.", key="poll_period", default=()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchPipeline:
    """A pipeline of mini-batches: distributors, mappers and reducers, as in VLDB'15."""

    rate_per_s: float = entry(RATE, "Input rate.")
    dispersion_ratio: float = entry(
        Number(words="variance over mean of row counts, 0 or more", high=MOST_RATIO),
        "Variance over mean of the rows of an input batch. Default 1, Poisson.",
        default=1.0,
    )
    target: Target | None = entry(
        LATENCY_TARGET, "Target, `mean <= 1s`, `p99 <= 3s` or `window p99 <= 3s`.", default=None
    )
    node: PipelineNodeEntry = entry(Nested(PipelineNodeEntry), "A node; all are equal.")
    distributors: int = entry(
        NODES, "Distributors, which deal batches to mappers. Default 1.", default=1
    )
    setting: PipelineSettingEntry = entry(
        Nested(PipelineSettingEntry), "Current setting, which `predict` and `simulate` use."
    )
    rounds: tuple[PipelineRoundEntry, ...] = entry(
        ListOf(item=Nested(PipelineRoundEntry), least=1, most=_LONGEST_SERIES, or_one=True),
        "Pairs of a map and a reduce function, each fed by the one before.",
        key="job",
    )
    search: PipelineSearchEntry = entry(
        Nested(PipelineSearchEntry), "What a plan may choose from.", default=PipelineSearchEntry()
    )

    def __post_init__(self) -> None:
        if len(self.rounds) > 1 and any(
            round_entry.windows is not None for round_entry in self.rounds
        ):
            raise ValueError(
                "job: windows in a pipeline of several rounds are not modelled; expected one round"
            )
        if self.target is not None:
            require_modelled(self.target, windowed=self.is_windowed)

    @property
    def is_windowed(self) -> bool:
        return self.rounds[-1].windows is not None


def require_modelled(target: object, *, windowed: bool) -> None:
    """Refuse a target of another kind than the latency that a pipeline has, as a ValueError."""
    expected = "'window p99 <= 3s'" if windowed else "'p99 <= 3s' or 'mean <= 1s'"
    metric = Metric.WINDOW if windowed else Metric.TUPLE
    if not isinstance(target, Target) or target.metric is not metric:
        why = "its results come by the window" if windowed else "it has no windows"
        raise ValueError(f"target {target}: not of this pipeline, {why}; expected e.g. {expected}")
