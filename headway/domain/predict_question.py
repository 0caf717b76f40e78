"""What a prediction is asked for beside a plan: the limits of its batches, and its age."""

from __future__ import annotations

from functools import partial

from headway.domain.argument import argument_of
from headway.domain.argument_values import Count, Duration
from headway.domain.question import (
    WARM_UP_DSTREAMS,
    WARM_UP_REAL_TIME,
    JobQuestion,
    RunQuestion,
    not_for,
)
from headway.lazy_classes import dataclass
from headway.limits import MOST_LONG

_fixed = partial(argument_of, topic="What is fixed")
_rarely_fixed = partial(_fixed, is_rare=True)
_NO_MINIMUM = not_for(
    real_time="Real-Time Mode reads each row as it comes",
    dstreams="DStreams start a batch in each interval",
)


@dataclass(frozen=True, kw_only=True)
class PredictQuestion(JobQuestion, RunQuestion):
    """What a prediction is asked for; None is as profiled.

    >>> from headway.domain.argument import read_question
    >>> read_question(PredictQuestion, {"trigger": 0, "cores": 4}).cores
    4
    """

    max_offsets: int | None = _fixed(
        Count(maximum=MOST_LONG),
        "Rate limit: maximum records per batch (maxOffsetsPerTrigger).",
        not_for=not_for(
            real_time="Real-Time Mode reads all available rows; Spark has no rate limit for it",
            dstreams="DStreams limit rows per second, in the Spark configuration that plan prints",
        ),
    )
    min_offsets: int | None = _rarely_fixed(
        Count(maximum=MOST_LONG),
        "Minimum records per batch (minOffsetsPerTrigger): a trigger waits for so many.",
        not_for=_NO_MINIMUM,
    )
    max_trigger_delay_s: float | None = _rarely_fixed(
        Duration(),
        "With --min-offsets: how long a trigger waits at most (maxTriggerDelay); 15min by default.",
        name="max_trigger_delay",
        not_for=_NO_MINIMUM,
    )
    jvm_age_s: float | None = _rarely_fixed(
        Duration(),
        "Age of the executor JVMs, e.g. 2min.",
        name="jvm_age",
        not_for=not_for(real_time=WARM_UP_REAL_TIME, dstreams=WARM_UP_DSTREAMS),
    )
