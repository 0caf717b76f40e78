"""The running setting compared with the requested one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.assumptions.advice import IGNORED_LIMIT_RATIO
from headway.domain import Configuration
from headway.domain.watched import LiveBatch
from headway.errors import InputError
from headway.profiler.streaming.trigger import contradiction
from headway.units import counted, format_duration


def require_followed_live(
    requested_setting: Configuration, batches: Sequence[LiveBatch]
) -> Configuration:
    """The setting as it runs: the requested one, with the partitions of its checkpoint.

    Raises
    ------
    InputError
        If the function that started the query ignores its setting; names the part.
    """
    if not batches:
        return requested_setting
    limit = requested_setting.max_offsets_per_trigger
    most_rows = max(batch.num_rows for batch in batches)
    if limit is not None and most_rows > (1.0 + IGNORED_LIMIT_RATIO.value) * limit:
        raise _ignored(
            f"at most {counted(limit, 'row')} per batch",
            f"{most_rows:,}; give the reader .options(**setting.reader_options)",
        )
    starts = np.array([batch.started_s for batch in batches])
    durations = np.array([batch.duration_s for batch in batches])
    contradiction_text = contradiction(requested_setting.trigger_s, starts, durations)
    if contradiction_text is not None:
        raise _ignored(
            f"a trigger of {format_duration(requested_setting.trigger_s)}",
            f"another one ({contradiction_text}); start it with .trigger(**setting.trigger)",
        )
    # Those of state are in the checkpoint, whatever the session says.
    checkpoint_partitions = [
        batch.shuffle_partitions for batch in batches if batch.shuffle_partitions is not None
    ]
    return (
        replace(requested_setting, shuffle_partitions=checkpoint_partitions[-1])
        if checkpoint_partitions
        else requested_setting
    )


def _ignored(requested: str, observed: str) -> InputError:
    return InputError(
        f"the query ignores its setting: asked for {requested}, it ran with {observed}. It is left "
        "alone"
    )
