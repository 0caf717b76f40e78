"""Logs of a running query as Spark would write them, of batches that follow a profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from headway.domain import JobProfile
from headway.models.job.setting import duration_model
from headway.profiler import schema
from tests.factories import a_profile

JVM_AGE_S = 300.0
QUERY_ID = "3f1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a"
RUN_ID = "11111111-0d51-4a0e-9d1d-1f2e3d4c5b6a"
BEGIN_S = 1_800_000_000.0


@dataclass
class FakeQuery:
    """A query on a grid of triggers that reads all there is, from a source like Kafka."""

    profile: JobProfile
    rate_per_s: float
    trigger_s: float = 1.0
    factor: float = 1.0
    num_slots: int = 8
    num_partitions: int = 8
    name: str = "orders"
    query_id: str = QUERY_ID
    seed: int = 1
    jvm_age_s: float = JVM_AGE_S
    peak: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.at_s, self.read, self.batch_id = BEGIN_S, 0, 0

    def head(self, executors: int = 2, cores: int = 4) -> Iterator[str]:
        """What a log begins with."""
        yield json.dumps({"Event": schema.RECORDER_START})
        yield json.dumps({"Event": schema.LOG_START, "Spark Version": "4.3.0"})
        yield json.dumps(
            {
                "Event": schema.APPLICATION_START,
                "App Name": "orders",
                "App ID": "app-1",
                "Timestamp": int(BEGIN_S * 1000),
            }
        )
        for number in range(executors):
            yield json.dumps(
                {
                    "Event": schema.EXECUTOR_ADDED,
                    "Timestamp": int((BEGIN_S - self.jvm_age_s) * 1000),
                    "Executor ID": str(number),
                    "Executor Info": {"Total Cores": cores},
                }
            )

    def arrived_rows(self, until_s: float) -> float:
        """Rows until then, with more during ``peak``: its start and end [s], and its rate."""
        start_s, end_s, rate_per_s = self.peak
        in_peak_s = min(max(until_s - start_s, 0.0), end_s - start_s)
        return self.rate_per_s * until_s + (rate_per_s - self.rate_per_s) * in_peak_s

    def batches(self, number: int) -> Iterator[str]:
        """The progress of so many batches more."""
        model = duration_model(self.profile, self.num_slots, self.num_partitions)
        noise = self.profile.noise.batch_ratio
        for _ in range(number):
            started_s = self.at_s
            latest = int(self.arrived_rows(started_s - BEGIN_S + self.trigger_s))
            rows = latest - self.read
            mean_s = self.factor * float(model.mean_s(float(max(rows, 1))))
            mean_s *= self.profile.age_factor(started_s - BEGIN_S + self.jvm_age_s)
            duration_s = mean_s * float(np.exp(noise * self.random.standard_normal()))
            yield self.line(started_s, duration_s, self.read, latest, latest)
            self.read, self.batch_id = latest, self.batch_id + 1
            grid_s = self.trigger_s * (np.floor(started_s / self.trigger_s) + 1)
            self.at_s = float(max(started_s + duration_s, grid_s))

    def line(self, started_s: float, duration_s: float, start: int, end: int, latest: int) -> str:
        """One progress event."""
        at = datetime.fromtimestamp(round(started_s, 3), UTC)
        ms = round(duration_s * 1000)
        rows = end - start
        return json.dumps(
            {
                "Event": schema.QUERY_PROGRESS,
                "progress": {
                    "id": self.query_id,
                    "runId": RUN_ID,
                    "name": self.name,
                    "timestamp": at.strftime("%Y-%m-%dT%H:%M:%S.")
                    + f"{at.microsecond // 1000:03}Z",
                    "batchId": self.batch_id,
                    "numInputRows": rows,
                    "durationMs": {
                        "addBatch": max(ms - 60, 0),
                        "commitOffsets": min(28, ms),
                        "triggerExecution": ms,
                    },
                    "stateOperators": [
                        {"operatorName": "stateStoreSave", "numShufflePartitions": 8}
                    ],
                    "sources": [
                        {
                            "description": "KafkaV2[Subscribe[orders]]",
                            "startOffset": {"orders": {"0": start}},
                            "endOffset": {"orders": {"0": end}},
                            "latestOffset": {"orders": {"0": latest}},
                            "numInputRows": rows,
                        }
                    ],
                    "sink": {"description": "FileSink[/data/out]"},
                },
            }
        )


def a_log(num_batches: int = 120, rate_per_s: float = 5000.0, **of_query: float) -> str:
    """The text of a whole log."""
    query = FakeQuery(a_profile(), rate_per_s, **of_query)  # type: ignore[arg-type]
    return "\n".join([*query.head(), *query.batches(num_batches)]) + "\n"
