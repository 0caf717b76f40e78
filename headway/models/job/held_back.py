"""Triggers that wait for a minimum number of rows: Kafka's minOffsetsPerTrigger."""

from __future__ import annotations

import math

from headway.assumptions.resources import MOST_TRIGGER_DELAY_S

_NEXT_TRIGGER_RATIO = 1e-9


def held_back_trigger_s(
    trigger_s: float, rate_per_s: float, min_rows: float, max_delay_s: float | None = None
) -> float:
    """The trigger interval at which a query effectively runs if batches have a minimum of rows.

    Parameters
    ----------
    trigger_s : float, >= 0
        Trigger interval of the query; 0 is as fast as possible. [s]
    rate_per_s : float, > 0
        Rows that arrive per second, evenly.
    min_rows : float, > 0
        Minimum rows of a batch (``minOffsetsPerTrigger``).
    max_delay_s : float or None, > 0
        How long a trigger waits at most (``maxTriggerDelay``); None is Spark's default. [s]

    Returns
    -------
    float
        [s]

    Notes
    -----
    **(Y10)** A source with a minimum of `N` rows gives a batch nothing before so many have arrived,
    or a delay `d` has passed since the last batch: the query waits for `t = min(N/λ, d)`. It looks
    at each trigger, so batches start every `B ⌈t/B⌉` with a trigger interval `B`, and every `t`
    without. Its latencies are those of this interval, if batches are not longer than it.

    Source: ``ReadMinRows`` and Kafka's ``KafkaMicroBatchStream`` of Spark (4.3, 2026).

    Examples
    --------
    >>> held_back_trigger_s(0.5, 2000.0, 4100.0), held_back_trigger_s(0.5, 2000.0, 4000.0)
    (2.5, 2.0)
    >>> held_back_trigger_s(0.0, 2000.0, 4100.0), held_back_trigger_s(0.0, 1.0, 1e6, 10.0)
    (2.05, 10.0)
    """
    longest_s = MOST_TRIGGER_DELAY_S.value if max_delay_s is None else max_delay_s
    wait_s = min(min_rows / rate_per_s, longest_s)
    if trigger_s == 0.0:
        return wait_s
    # A quotient of equal times may be a whole number but for its last digit.
    num_triggers = math.ceil(wait_s / trigger_s * (1.0 - _NEXT_TRIGGER_RATIO))
    return trigger_s * max(num_triggers, 1)
