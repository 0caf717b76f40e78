"""The bill of settings: their nodes, and the write requests of the checkpoint and the sink."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headway.domain.writes import PlannedWrites, StorePrice
from headway.models.arrays import Array
from headway.models.job.batch_files import (
    LEAST_INTERVAL_S,
    Files,
    batch_interval_s,
    checkpoint_bytes,
    checkpoint_files,
    price_of_job,
    sink_files,
    sink_log_bytes_per_day,
)
from headway.models.stages.task_counts import num_tasks_at
from headway.planner.candidates import BoolArray, Candidates, candidates_at
from headway.units import S_PER_HOUR

_ROUNDED_EXCESS = 1e-9
_LEAST_AMOUNT = 1e-12


def bill_per_hour(settings: Candidates, *, most_often: bool = False) -> Array:
    """Cost of the nodes and of the write requests of settings, as far as prices are known.

    With ``most_often``, batches have no rows, so that they are as short as they can be.

    **(F4)** The bill of an hour: nodes times their price, `3600 (1+e)/T` batches times the write
    requests of their files (F2), (F3) times the price of one, with `e` the batches without rows for
    each batch with rows, as recorded, and the space of the checkpoint (F5). A file that is renamed
    when it is complete takes more requests than one that is written in place: at S3 a PUT, a COPY
    and the LISTs by which the client looks for folders, which cost as much. `T` is the expected
    time between batches, so a trigger interval is a lever of money, and so are shuffle partitions:
    both enter the choice of a setting if the cost is minimised, and a budget is for the whole bill.
    More nodes are tried as long as they alone cost less than the lowest bill so far. A limit of
    files rules out settings that write more in an hour. Rows of a frontier, whose rates differ,
    have settings that keep this limit and the budget even if each batch starts right after one
    without rows.
    """
    question = settings.question
    nodes_per_hour = settings.nodes * (question.space.cost_per_hour(1) or 0.0)
    store_price = question.store_price
    if store_price is None or not (store_price.price_per_write or store_price.byte_price_per_hour):
        return np.asarray(nodes_per_hour)
    written = _written(settings, most_often=most_often)
    price = price_of_job(question.profile, store_price)
    requests_per_hour = written.batches_per_hour * written.per_batch(Files.requests, price)
    bills_per_hour = nodes_per_hour + requests_per_hour * price.price_per_write
    if written.kept_bytes is not None:
        bills_per_hour = bills_per_hour + written.kept_bytes * price.byte_price_per_hour
    return np.asarray(bills_per_hour)


def within_limits(settings: Candidates, *, most_often: bool = False) -> BoolArray:
    """Which settings have a bill within the budget, and files within their limit, if any.

    With ``most_often``, even with batches that follow at once (F4).
    """
    excess = excess_of_limits(settings, most_often=most_often)
    return np.asarray(np.all(excess <= _ROUNDED_EXCESS, axis=0))


def excess_of_limits(settings: Candidates, *, most_often: bool = False) -> Array:
    """Distance of settings from the budget and from the limit of files, a row for each limit.

    It is the logarithm of the bill over the budget, and of the files over their limit; without a
    limit there is no row for it. With ``most_often``, batches have no rows, so that they are as
    short as they can be.
    """
    question = settings.question
    rows: list[Array] = []
    if math.isfinite(question.most_bill_per_hour):
        bills = bill_per_hour(settings, most_often=most_often)
        rows.append(_log_ratio(bills, question.most_bill_per_hour))
    if math.isfinite(question.most_files_per_hour):
        files = files_per_hour(settings, most_often=most_often)
        rows.append(_log_ratio(files, question.most_files_per_hour))
    return np.array(rows).reshape(len(rows), len(settings))


def _log_ratio(values: Array, limit: float) -> Array:
    log_limit = math.log(max(limit, _LEAST_AMOUNT))
    return np.asarray(np.log(np.maximum(values, _LEAST_AMOUNT)) - log_limit)


def files_per_hour(settings: Candidates, *, most_often: bool = False) -> Array:
    """Files that settings write to the checkpoint and, as far as known, to the sink: (F4).

    With ``most_often``, batches have no rows, so that they are as short as they can be.
    """
    written = _written(settings, most_often=most_often)
    sink = 0.0 if written.sink is None else written.sink.total
    return np.asarray(written.batches_per_hour * (written.checkpoint.total + sink))


def planned_writes(setting: Candidates) -> PlannedWrites:
    """Files, requests and space of one setting that is stable: theory.md (F2)-(F6)."""
    store_price, written = setting.question.store_price, _written(setting)
    batches_per_hour = float(written.batches_per_hour[0])
    of_checkpoint = float(written.checkpoint.total[0])
    of_sink = None if written.sink is None else float(written.sink.total[0])
    kept_bytes = None if written.kept_bytes is None else float(written.kept_bytes[0])
    writes = PlannedWrites(
        batches_per_hour=batches_per_hour,
        checkpoint_files_per_batch=of_checkpoint,
        sink_files_per_batch=of_sink,
        files_per_hour=batches_per_hour * (of_checkpoint + (of_sink or 0.0)),
        kept_bytes=kept_bytes,
        sink_log_bytes_per_day=None
        if written.sink_log_bytes_per_day is None
        else float(written.sink_log_bytes_per_day[0]),
    )
    if store_price is None:
        return writes
    price = price_of_job(setting.question.profile, store_price)
    requests_per_hour, lists_per_hour = (
        batches_per_hour * float(written.per_batch(count, price)[0])
        for count in (Files.requests, Files.lists)
    )
    return replace(
        writes,
        requests_per_hour=requests_per_hour,
        lists_per_hour=lists_per_hour,
        cost_per_hour=requests_per_hour * price.price_per_write,
        storage_cost_per_hour=None
        if kept_bytes is None
        else kept_bytes * price.byte_price_per_hour,
        store=price.store,
        prices_of=price.date,
        currency=price.currency,
    )


class _Written(NamedTuple):
    """Expected batches per hour, what each writes, and what is kept of it."""

    batches_per_hour: Array
    checkpoint: Files
    sink: Files | None
    kept_bytes: Array | None
    sink_log_bytes_per_day: Array | None

    def per_batch(self, count: Callable[[Files, StorePrice], Array], price: StorePrice) -> Array:
        """Requests per batch; of a sink of which nothing is known, none."""
        num_requests = count(self.checkpoint, price)
        return num_requests if self.sink is None else num_requests + count(self.sink, price)


def _written(settings: Candidates, *, most_often: bool = False) -> _Written:
    """What settings write; with ``most_often``, with batches without rows."""
    question = settings.question
    if question.profile.declared is not None:
        # Requests are counted for expected durations, not for those that are planned with.
        settings = candidates_at(question.at_confidence(0.5), settings.settings())
    model = settings.durations
    if most_often:
        least_s = model.at_rate(0.0).mean_s(np.zeros(len(settings)))
        least_s = np.maximum(least_s, LEAST_INTERVAL_S)
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
    num_writers = np.array(writers, dtype=float)
    return _Written(
        batches_per_hour,
        checkpoint,
        sink_files(question.profile, num_writers),
        checkpoint_bytes(question.profile, interval_s, rows),
        sink_log_bytes_per_day(question.profile, interval_s, num_writers),
    )
