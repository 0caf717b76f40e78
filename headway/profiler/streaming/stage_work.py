"""What a stage computes, in the words of its operators."""

from __future__ import annotations

from collections.abc import Sequence

from headway.profiler.operator_words import operators_in_words
from headway.profiler.streaming.samples import StageSample


def stage_work(samples: Sequence[StageSample], writes: Sequence[int]) -> str | None:
    """The operators of a stage in the order in which rows pass them; None if none is recorded.

    From the batch that recorded most of them, since those that no row passed are not. Without
    recorded operators, from the scopes of its RDDs. If a batch has several actions
    (``foreachBatch``), it says to which one the stage belongs, of the ``writes`` among its SQL
    executions; one that prepares a table for all of them belongs to none.
    """
    operators = max((sample.operators for sample in samples), key=len)
    kind = samples[0].kind
    scopes = () if kind is None else kind.scopes
    work = operators_in_words(operators, scopes, of_stream=True)
    if len(writes) > 1 and kind is not None and kind.write in writes:
        action = f"action {writes.index(kind.write) + 1} of {len(writes)}"
        return f"{action}: {work}" if work else action
    return work or None
