"""What a prediction is asked for beside a plan: the limits of its batches, and its age."""

from __future__ import annotations

from functools import partial

from headway.domain.argument import JobKind, Topic, argument_of
from headway.domain.argument_values import Count, Duration
from headway.domain.question import NOT_FOR_PIPELINES, JobQuestion, RunQuestion
from headway.lazy_classes import dataclass
from headway.limits import MOST_LONG

_fixed = partial(argument_of, topic=Topic.FIXED)
_rarely_fixed = partial(argument_of, topic=Topic.FIXED, is_rare=True)
_READS_ALL = "Real-Time Mode reads all available rows; Spark has no rate limit for it"
_NO_MINIMUM = {
    JobKind.REAL_TIME: "Real-Time Mode reads each row as it comes",
    JobKind.DSTREAMS: "DStreams start a batch in each interval",
    JobKind.PIPELINE: NOT_FOR_PIPELINES,
}


@dataclass(frozen=True, kw_only=True)
class PredictQuestion(JobQuestion, RunQuestion):
    """What a prediction is asked for; None is as profiled.

    Examples
    --------
    >>> from headway.domain.argument import read_question
    >>> read_question(PredictQuestion, {"trigger": 0, "cores": 4}).cores
    4
    """

    max_offsets: int | None = _fixed(
        Count(maximum=MOST_LONG),
        "Rate limit: maximum records per batch (maxOffsetsPerTrigger).",
        not_for={
            JobKind.REAL_TIME: _READS_ALL,
            JobKind.DSTREAMS: "DStreams limit rows per second, in the Spark configuration that "
            "plan prints",
            JobKind.PIPELINE: NOT_FOR_PIPELINES,
        },
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
        not_for={
            JobKind.REAL_TIME: "the warm-up of Real-Time Mode is not modelled",
            JobKind.DSTREAMS: "the warm-up of DStreams batches is not modelled",
            JobKind.PIPELINE: NOT_FOR_PIPELINES,
        },
    )
