"""Batches of another shape: stages that most batches do not run, or lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from headway.assumptions.fits import LEAST_BATCHES
from headway.profiler.streaming.samples import BatchSample
from headway.profiler.streaming.stage_kinds import StageKind, stage_work
from headway.units import counted, format_duration

_MOST_SHAPES = 3


def other_shapes(batches: Sequence[BatchSample], signature: tuple[StageKind, ...]) -> str:
    """What the profile says of the batches of a run that do not have the usual stages.

    Each other shape with its number of batches, the stages that it lacks or has beside the usual
    ones, and, if there are enough of them, how long they took compared with the usual ones.
    """
    usual = [batch for batch in batches if batch.signature == signature]
    counts = Counter(batch.signature for batch in batches if batch.signature != signature)
    texts = []
    for shape, num_batches in counts.most_common(_MOST_SHAPES):
        of_shape = [batch for batch in batches if batch.signature == shape]
        missing = _stages(usual, Counter(signature) - Counter(shape))
        added = _stages(of_shape, Counter(shape) - Counter(signature))
        if missing == added:
            parts = [f"with another plan of {added}"]
        else:
            parts = [f"without {missing}"] if missing else []
            parts += [f"with {added}"] if added else []
        if num_batches >= LEAST_BATCHES.value and usual:
            parts.append(_durations(of_shape, usual))
        texts.append(f"{num_batches} {', '.join(parts)}")
    if len(counts) > _MOST_SHAPES:
        num_remaining = sum(num for _, num in counts.most_common()[_MOST_SHAPES:])
        texts.append(f"{num_remaining} of {counted(len(counts) - _MOST_SHAPES, 'further shape')}")
    return (
        f"{counts.total()} of {counted(len(batches), 'batch', 'batches')} left out of the fit, "
        "since they ran other stages (such as with an empty side, in another branch of "
        f"foreachBatch, or by a plan that adaptive execution changed): {'; '.join(texts)}"
    )


def _stages(batches: Sequence[BatchSample], kinds: Counter[StageKind]) -> str:
    """Stages in words, each once, by a batch that has them."""
    words = []
    for kind in sorted(kinds):
        sample = next(
            stage
            for batch in batches
            for of_stage, stage in zip(batch.kinds, batch.stages, strict=True)
            if of_stage == kind
        )
        words.append(f"'{stage_work(kind, [sample.operators], {}) or ', '.join(kind.scopes)}'")
    return " and ".join(dict.fromkeys(words))


def _durations(batches: Sequence[BatchSample], usual: Sequence[BatchSample]) -> str:
    of_shape_s, usual_s = (
        float(np.mean([batch.duration_s for batch in group])) for group in (batches, usual)
    )
    rows, usual_rows = (
        float(np.mean([batch.num_rows for batch in group])) for group in (batches, usual)
    )
    return (
        f"{format_duration(of_shape_s)} for {rows:,.0f} rows on average, the usual ones "
        f"{format_duration(usual_s)} for {usual_rows:,.0f}"
    )
