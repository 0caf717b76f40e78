"""The bill of settings: their nodes, and the write requests of the checkpoint and the sink."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from headway.domain.writes import PlannedWrites, StorePrice
from headway.models.arrays import Array
from headway.models.job.batch_files import (
    LEAST_INTERVAL_S,
    Files,
    batch_interval_s,
    checkpoint_files,
    sink_files,
)
from headway.models.stages.coalescing import num_tasks_at
from headway.planner.candidates import BoolArray, Candidates, candidates_at
from headway.units import S_PER_HOUR

_ROUNDED_RATIO = 1.0 + 1e-9


def bill_per_hour(settings: Candidates) -> Array:
    """Cost of the nodes and of the write requests of settings, as far as prices are known.

    Notes
    -----
    **(F4)** The bill of an hour: nodes times their price, and `3600 (1+e)/T` batches times the
    write requests of their files (F2), (F3) times the price of one, with `e` the batches without
    rows for each batch with rows, as recorded. A file that is renamed when it is complete takes
    more requests than one that is written in place: at S3 a PUT and a COPY. `T` is the expected
    time between batches, so a trigger interval is a lever of money, and so are shuffle partitions:
    both enter the choice of a setting if the cost is minimised, and a budget is for the whole bill.
    More nodes are tried as long as they alone cost less than the lowest bill so far. A limit of
    files rules out settings that write more in an hour; rows of a frontier, whose rates differ,
    have settings that do not even if each batch starts right after one without rows.
    """
    question = settings.question
    nodes_per_hour = settings.nodes * (question.space.cost_per_hour(1) or 0.0)
    charges = question.charges
    if charges is None or charges.price.price_per_write == 0:
        return np.asarray(nodes_per_hour)
    batches_per_hour, checkpoint, sink = _files(settings)
    requests_per_hour = batches_per_hour * _num_requests(checkpoint, sink, charges.price)
    return np.asarray(nodes_per_hour + requests_per_hour * charges.price.price_per_write)


def within_limits(settings: Candidates, bills_per_hour: Array | None = None) -> BoolArray:
    """Which settings have a bill within the budget, and files within their limit, if any.

    ``bills_per_hour`` are their bills, if these are known already.
    """
    question, is_within = settings.question, np.ones(len(settings), dtype=bool)
    if not len(settings):
        return is_within
    if question.charges is not None and question.charges.budget_per_hour is not None:
        bills = bill_per_hour(settings) if bills_per_hour is None else bills_per_hour
        is_within &= bills <= question.charges.budget_per_hour * _ROUNDED_RATIO
    if math.isfinite(question.most_files_per_hour):
        is_within &= files_per_hour(settings) <= question.most_files_per_hour * _ROUNDED_RATIO
    return is_within


def within_limits_at_any_rate(settings: Candidates) -> BoolArray:
    """Which settings keep a limit of files even with batches that follow at once: (F4)."""
    most_per_hour = settings.question.most_files_per_hour
    if math.isinf(most_per_hour):
        return np.ones(len(settings), dtype=bool)
    files = files_per_hour(settings, most_often=True)
    return np.asarray(files <= most_per_hour * _ROUNDED_RATIO)


def files_per_hour(settings: Candidates, *, most_often: bool = False) -> Array:
    """Files that settings write to the checkpoint and, as far as known, to the sink: (F4).

    With ``most_often``, batches have no rows, so that they are as short as they can be.
    """
    batches_per_hour, checkpoint, sink = _files(settings, most_often=most_often)
    per_batch = checkpoint.total if sink is None else checkpoint.total + sink.total
    return np.asarray(batches_per_hour * per_batch)


def planned_writes(setting: Candidates) -> PlannedWrites:
    """Files and requests of one setting that is stable: theory.md (F2)-(F4)."""
    charges = setting.question.charges
    each_per_hour, checkpoint, sink = _files(setting)
    batches_per_hour = float(each_per_hour[0])
    of_checkpoint = float(checkpoint.total[0])
    of_sink = None if sink is None else float(sink.total[0])
    writes = PlannedWrites(
        batches_per_hour=batches_per_hour,
        checkpoint_files_per_batch=of_checkpoint,
        sink_files_per_batch=of_sink,
        files_per_hour=batches_per_hour * (of_checkpoint + (of_sink or 0.0)),
    )
    if charges is None:
        return writes
    num_requests = _num_requests(checkpoint, sink, charges.price)
    requests_per_hour = batches_per_hour * float(num_requests[0])
    return replace(
        writes,
        requests_per_hour=requests_per_hour,
        cost_per_hour=requests_per_hour * charges.price.price_per_write,
        store=charges.price.store,
        prices_of=charges.price.date,
    )


def _num_requests(checkpoint: Files, sink: Files | None, price: StorePrice) -> Array:
    """Write requests per batch; of a sink of which nothing is known, none."""
    num_requests = checkpoint.requests(price)
    return num_requests if sink is None else num_requests + sink.requests(price)


def _files(
    settings: Candidates, *, most_often: bool = False
) -> tuple[Array, Files, Files | None]:
    """Expected batches per hour, and what each writes to the checkpoint and the sink."""
    question = settings.question
    if question.profile.declared is not None:
        # Requests are counted for expected durations, not for those that are planned with.
        settings = candidates_at(question.at_confidence(0.5), settings.settings())
    model = settings.durations.model(num_axes=1)
    if most_often:
        least_s = np.maximum(model.mean_s(np.zeros(len(settings))), LEAST_INTERVAL_S)
        interval_s = np.maximum(settings.trigger_s, least_s)
    else:
        interval_s = batch_interval_s(model, question.rate_per_s, settings.trigger_s)
    last_stage, rows = question.profile.stages[-1], interval_s * question.rate_per_s
    columns = rows.tolist(), settings.num_slots.tolist(), settings.partitions.tolist()
    writers = [num_tasks_at(last_stage, *setting) for setting in zip(*columns, strict=True)]
    checkpoint = checkpoint_files(
        question.profile, settings.partitions.astype(np.float64), interval_s
    )
    empty = question.profile.empty_batches
    batches_per_hour = S_PER_HOUR / interval_s * (1.0 + (empty.num_per_batch if empty else 0.0))
    return (
        batches_per_hour,
        checkpoint,
        sink_files(question.profile, np.array(writers, dtype=float)),
    )
