"""Real-Time Mode: what its batches cost in addition to the processing of rows."""

from __future__ import annotations

from headway.assumptions import Assumption, seconds

PATH_S = seconds(
    name="Time of a row through source and sink in Real-Time Mode",
    value=0.002,
    source="measured, Spark 4.3: median from one Kafka topic to another; docs/kafka-accuracy.md",
    influences="latencies of Real-Time Mode (N9)",
)
PATH_RATIOS = Assumption(
    name="Ends of the 90% interval of that time, over the time",
    value=(0.5, 2.0),
    source="judgement: it was measured in one session; gaps of four sessions on that machine "
    "differed by nearly a factor of two; docs/kafka-accuracy.md",
    influences="intervals and margins of Real-Time Mode (N9, N10)",
)
STATELESS_GAP_S = seconds(
    name="Gap between two batches of Real-Time Mode, without state",
    value=0.2,
    source="measured, Spark 4.3: 195 and 214 ms; docs/kafka-accuracy.md",
    influences="latencies and batch length of Real-Time Mode (N7, N10)",
)
STATEFUL_GAP_S = seconds(
    name="Gap between two batches of Real-Time Mode, with state",
    value=0.3,
    source="measured, Spark 4.3: 240 and 319 ms, a small state in RocksDB; docs/kafka-accuracy.md",
    influences="latencies and batch length of Real-Time Mode (N7, N10)",
)
GAP_RATIOS = Assumption(
    name="Ends of the 90% interval of a gap, over the gap",
    value=(0.49, 2.2),
    source="lower end: four sessions on one machine, with means of 0.56 to 1.02 as their p99 "
    "imply, a spread of logarithms of 0.31 between sessions and 0.13 within one, Student's t; "
    "upper end: judgement, since other disks and a larger state take longer; "
    "docs/kafka-accuracy.md",
    influences="intervals and margins of Real-Time Mode (N9, N10)",
)
ROW_CV = Assumption(
    name="Coefficient of variation of the time of a row in Real-Time Mode",
    value=1.0,
    source="judgement: tasks of batches only show the mean of many rows",
    influences="waits of rows in Real-Time Mode (N9)",
)
MOST_BUSY_RATIO = Assumption(
    name="Maximum busy share of a task in Real-Time Mode",
    value=0.7,
    source="simulation: above it, the p99 behind a shuffle is off by up to 12% (N8)",
    influences="shuffle partitions of plans of Real-Time Mode (N10)",
)
BATCH_LENGTH_S = seconds(
    name="Default batch length of Real-Time Mode",
    value=300.0,
    source="Spark 4.3: default of the real-time trigger",
    influences="plans of Real-Time Mode, and the work that is repeated after a failure (N10)",
)
SHORTEST_BATCH_S = seconds(
    name="Minimum batch length of Real-Time Mode",
    value=5.0,
    source="Spark 4.3: spark.sql.streaming.realTimeMode.minBatchDuration",
    influences="which batch lengths are refused",
)
