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


def require_followed_live(asked: Configuration, batches: Sequence[LiveBatch]) -> Configuration:
    """The setting as it runs: the requested one, with the partitions of its checkpoint.

    Raises
    ------
    InputError
        If the function that started the query ignores its setting; names the part.
    """
    if not batches:
        return asked
    limit = asked.max_offsets_per_trigger
    most_rows = max(one.num_rows for one in batches)
    if limit is not None and most_rows > (1.0 + IGNORED_LIMIT_RATIO.value) * limit:
        raise _ignored(
            f"at most {counted(limit, 'row')} per batch",
            f"{most_rows:,}; give the reader .options(**setting.reader_options)",
        )
    starts = np.array([one.started_s for one in batches])
    durations = np.array([one.duration_s for one in batches])
    against = contradiction(asked.trigger_s, starts, durations)
    if against is not None:
        raise _ignored(
            f"a trigger of {format_duration(asked.trigger_s)}",
            f"another one ({against}); start it with .trigger(**setting.trigger)",
        )
    # Those of state are in the checkpoint, whatever the session says.
    fixed = [one.shuffle_partitions for one in batches if one.shuffle_partitions is not None]
    return replace(asked, shuffle_partitions=fixed[-1]) if fixed else asked


def _ignored(asked: str, ran: str) -> InputError:
    return InputError(
        f"the query ignores its setting: asked for {asked}, it ran with {ran}. It is left alone"
    )
