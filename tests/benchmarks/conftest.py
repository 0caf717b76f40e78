"""Benchmarks are scripts: their folders are on the path while they are tested."""

from __future__ import annotations

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

for folder in (
    BENCHMARKS,
    BENCHMARKS / "accuracy",
    BENCHMARKS / "sharing",
    BENCHMARKS / "scheduling",
    BENCHMARKS / "ordered",
    BENCHMARKS / "tuning",
):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
