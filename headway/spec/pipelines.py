"""A pipeline of mini-batches from its file, in the numbers that models and planner use."""

from __future__ import annotations

from typing import TypeVar

import headway.models.pipeline.parameters as parameters
from headway.assumptions.planning import PIPELINE_PERIODS_S
from headway.errors import InputError
from headway.planner.kinds.pipelines import PipelineRound, PipelineSpace
from headway.spec.kinds.pipelines import (
    MicroBatchPipeline,
    PipelineRoundEntry,
    PipelineSettingEntry,
)

_MOST_SETTINGS = 50_000
OfSpace = TypeVar("OfSpace", int, float)


def rounds_of(pipeline: MicroBatchPipeline) -> tuple[PipelineRound, ...]:
    """The rounds, each with its share of the input rate."""
    rounds, ratio = [], 1.0
    for round_entry in pipeline.rounds:
        rounds.append(_round(pipeline, round_entry, ratio))
        ratio *= round_entry.outputs * round_entry.results
    return tuple(rounds)


def pipelines_of(pipeline: MicroBatchPipeline) -> tuple[parameters.Pipeline, ...]:
    """Each round at its setting and its own input rate."""
    return tuple(
        pipeline_round.at(
            _setting(pipeline, declared.setting or pipeline.setting), pipeline.rate_per_s
        )
        for pipeline_round, declared in zip(rounds_of(pipeline), pipeline.rounds, strict=True)
    )


def space_of(pipeline: MicroBatchPipeline) -> PipelineSpace:
    """What a plan of a round may choose from.

    Raises InputError if that is more than can be searched.
    """
    search, cores = pipeline.search, pipeline.node.cores
    periods_s = PIPELINE_PERIODS_S.value
    space = PipelineSpace(
        max_nodes=search.max_nodes,
        num_distributors=pipeline.distributors,
        mappers=_rising(search.mappers or thread_counts(cores)),
        reducers=_rising(search.reducers or thread_counts(cores)),
        input_periods_s=_rising(search.input_periods_s or (pipeline.setting.input_period_s,)),
        shuffle_periods_s=_rising(search.shuffle_periods_s or periods_s),
        poll_periods_s=_rising(search.poll_periods_s or periods_s),
    )
    if space.num_settings > _MOST_SETTINGS:
        raise InputError(
            f"search: {space.num_settings:,} settings of each number of nodes; expected at most "
            f"{_MOST_SETTINGS:,}: give shorter lists"
        )
    return space


def thread_counts(cores: int) -> tuple[int, ...]:
    """Mappers or reducers that a plan tries on a node: each up to 8, then in steps of a quarter.

    >>> thread_counts(20)
    (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20)
    """
    counts = [1]
    while counts[-1] < cores:
        counts.append(min(counts[-1] + max(1, counts[-1] // 4), cores))
    return tuple(counts)


def _rising(values: tuple[OfSpace, ...]) -> tuple[OfSpace, ...]:
    return tuple(sorted(set(values)))


def _setting(
    pipeline: MicroBatchPipeline, entry: PipelineSettingEntry
) -> parameters.PipelineSetting:
    return parameters.PipelineSetting(
        num_nodes=entry.nodes,
        mappers_per_node=entry.mappers,
        reducers_per_node=entry.reducers,
        num_distributors=pipeline.distributors,
        input_period_s=entry.input_period_s,
        shuffle_period_s=entry.shuffle_period_s,
        poll_period_s=entry.poll_period_s,
    )


def _round(
    pipeline: MicroBatchPipeline, round_entry: PipelineRoundEntry, ratio: float
) -> PipelineRound:
    node, windows, state = pipeline.node, round_entry.windows, round_entry.state
    return PipelineRound(
        job=parameters.PipelineJob(
            map_per_row_s=round_entry.map_s,
            reduce_per_row_s=round_entry.reduce_s,
            outputs_per_row=round_entry.outputs,
            input_row_bytes=round_entry.input_row_bytes,
            shuffle_row_bytes=round_entry.shuffle_row_bytes,
            shuffle_fixed_s=round_entry.packing_s,
            fetch_fixed_s=round_entry.per_poll_s,
            batch_fixed_s=round_entry.per_batch_s,
            map_cv=round_entry.map_noise_ratio,
            reduce_cv=round_entry.reduce_noise_ratio,
        ),
        nodes=parameters.PipelineNodes(
            num_cores=node.cores,
            link_bytes_per_s=node.network_bytes_per_s,
            stream_bytes_per_s=node.stream_bytes_per_s or node.network_bytes_per_s,
            disk_bytes_per_s=node.disk_bytes_per_s,
            disk_write_s=node.write_s,
            distributor_bytes_per_s=node.distributor_bytes_per_s or node.network_bytes_per_s,
        ),
        dispersion=pipeline.dispersion_ratio,
        rate_ratio=ratio,
        windows=None
        if windows is None
        else parameters.Finalizing(
            num_keys=windows.keys, per_key_s=windows.finalize_s, slide_s=windows.slide_s
        ),
        state=None
        if state is None
        else parameters.ReducerState(
            num_keys=state.keys,
            exponent=state.zipf,
            memory_bytes=state.memory_bytes,
            key_bytes=state.key_bytes,
            on_disk_s=state.on_disk_s,
        ),
    )
