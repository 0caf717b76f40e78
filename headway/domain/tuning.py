"""A setting for the code of a query, and what is known after settings were run."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from headway.assumptions.advice import ENOUGH_WIDTH_RATIO
from headway.domain.configuration import Configuration
from headway.domain.plan import StreamAnswer
from headway.domain.profile import JobProfile
from headway.domain.result import Result
from headway.lazy_classes import dataclass
from headway.limits import LARGEST_NUMBER
from headway.units import spark_trigger_text


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySetting:
    """The setting that a user's function must apply to the query that it starts.

    ``build(spark, setting)`` reads its source with ``setting.reader_options``, starts the query
    with ``.trigger(**setting.trigger)`` and ``checkpointLocation`` ``setting.checkpoint``, and
    returns it. The shuffle partitions are set on the session before it is called.

    Parameters
    ----------
    configuration : Configuration
        Trigger, shuffle partitions and rate limit, on the slots of the session.
    rate_per_s : float or None
        The requested input rate, for a source that can replay rows at any rate [rows/s].
    checkpoint : str or None
        A folder for this run only; None if the query keeps its own checkpoint.

    >>> setting = QuerySetting(
    ...     configuration=Configuration(
    ...         executors=1, cores_per_executor=2, shuffle_partitions=8, trigger_s=1.0,
    ...         max_offsets_per_trigger=210_000,
    ...     ),
    ...     rate_per_s=210_000.0,
    ... )
    >>> setting.trigger, setting.reader_options
    ({'processingTime': '1 second'}, {'maxOffsetsPerTrigger': '210000'})
    """

    configuration: Configuration = field(metadata={"key": ""})
    rate_per_s: float | None = None
    checkpoint: str | None = field(default=None, metadata={"key": None})

    def __post_init__(self) -> None:
        if self.rate_per_s is not None and not 0 < self.rate_per_s <= LARGEST_NUMBER:
            raise ValueError(f"rate_per_s is {self.rate_per_s}; expected a positive number")

    @property
    def trigger(self) -> dict[str, str]:
        """For ``DataStreamWriter.trigger``."""
        return {"processingTime": spark_trigger_text(self.configuration.trigger_s)}

    @property
    def reader_options(self) -> dict[str, str]:
        """For ``DataStreamReader.options``, with Kafka's name; other sources use another name."""
        limit = self.configuration.max_offsets_per_trigger
        return {} if limit is None else {"maxOffsetsPerTrigger": str(limit)}

    @property
    def shuffle_partitions(self) -> int:
        """What ``spark.sql.shuffle.partitions`` is set to."""
        return self.configuration.shuffle_partitions


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explored(Result):
    """Result of an exploration; its recordings, state and profile are in ``folder``.

    ``plan`` answers the question, ``width_ratio`` is half the 90% interval of the latency in
    question over its middle, inf if none can be quoted; ``spent_s`` is how long the runs took.
    """

    result_kind = "explored"
    folder: Path
    profile: JobProfile
    plan: StreamAnswer
    num_runs: int
    spent_s: float
    width_ratio: float

    @property
    def is_answered(self) -> bool:
        return self.width_ratio <= ENOUGH_WIDTH_RATIO.value
