"""What Headway plans for at most: the same for options, library calls and files.

Beyond these nobody has a cluster or a query, and an answer would take minutes and gigabytes.
"""

from __future__ import annotations

MOST_NODES = 10_000
MOST_EXECUTORS = 100_000
MOST_CORES = 4_096
"""Cores of a node, an executor, a task."""
MOST_PARTITIONS = 100_000
"""Shuffle partitions, source partitions."""
MOST_INT = 2**31 - 1
"""Where Spark counts in 32 bits."""
MOST_LONG = 2**63 - 1
"""Where Spark counts in 64 bits: rows, bytes, offsets."""
LARGEST_NUMBER = 1e18
"""Of anything else that a file holds."""
MOST_SPREAD_RATIO = 10.0
"""Standard deviation over mean of durations: one in a hundred then takes nearly all the time."""
MOST_RATIO = 1e6
"""A core a million times as fast, a spread a million times the mean."""
LONGEST_S = 10 * 365 * 86_400.0
"""Of a duration: ten years."""
SHORTEST_TRIGGER_S = 1e-3
"""Of a trigger interval that is not 0: Spark drops what is less than a millisecond."""
LONGEST_SUM_S = 1e12
"""Of the times of many tasks together."""
