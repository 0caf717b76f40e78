"""Rates at which a run decided whether a job keeps up, where a probe and a verdict disagree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from campaign.record import RESULTS
from result_lines import lines_of

from ordinary.judging import AROUND_LIMIT, NOT_STABLE, STABLE

Row = dict[str, Any]
LIMITS = "ordinary-limits.jsonl"
NO_BATCH_ENDED = {"kept_up": False, "num_batches": 0}
"""What is measured of a run in which fewer than two batches ended after its warm-up."""
_LEAST_ARRIVED_SHARE = 0.95


class AskedRate(NamedTuple):
    """A rate [rows/s] that a job was asked about, on so many cores."""

    workload: str
    cores: int
    rate_per_s: int


def contradictions(row: Row) -> Iterator[tuple[AskedRate, str]]:
    """What a judged line says against the probe: the rate, and the verdict."""
    against_probe = (NOT_STABLE, STABLE)
    for share, verdict, false_one in zip(AROUND_LIMIT, row["verdicts"], against_probe, strict=True):
        if verdict == false_one:
            rate_per_s = round(share * row["limit_per_s"])
            yield AskedRate(row["workload"], row["cores"], rate_per_s), verdict


def decided(results: Path = RESULTS) -> dict[AskedRate, bool]:
    """Whether a run at each rate kept up; not of runs to which fewer rows arrived."""
    return {
        AskedRate(line["workload"], line["cores"], line["rate_per_s"]): line["truth"]["kept_up"]
        for line in lines_of(results / LIMITS)
        if _arrived(line)
    }


def _arrived(line: Row) -> bool:
    """Whether as many rows came as should, or fewer because the query fell behind."""
    truth = line["truth"]
    is_kept_up: bool = truth["kept_up"]
    return not is_kept_up or truth["rows_per_s"] >= _LEAST_ARRIVED_SHARE * line["rate_per_s"]
