"""Predicted and measured figures of a run under load steps."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tuning_steps import Line, Schedule

from headway.domain import Target
from headway.domain.live import ChangeKind

DECIDED_WITHIN_S = 15.0


class Figure(NamedTuple):
    """What was predicted and what was measured [s]; None where there was no change or prediction.

    ``is_bound`` means that the prediction is an upper bound.
    """

    name: str
    predicted: float | None
    measured: float | None
    is_bound: bool = False

    def is_met(self, within_ratio: float) -> bool:
        """Whether it was as predicted; no change is as predicted if none was predicted."""
        if self.predicted is None or self.measured is None:
            return self.predicted is self.measured
        if self.is_bound:
            return self.measured <= self.predicted
        return abs(self.measured - self.predicted) <= within_ratio * self.predicted

    @property
    def off_ratio(self) -> float | None:
        """How far the measurement was from its prediction; None if one is missing or 0."""
        if not self.predicted or self.measured is None:
            return None
        return self.measured / self.predicted - 1.0


def off_ratio_of(figures: Sequence[Figure]) -> float | None:
    """Median distance of measurements from their predictions; None without any, or of a bound."""
    found = [abs(one.off_ratio) for one in figures if one.off_ratio is not None]
    is_bound = any(one.is_bound for one in figures)
    return None if is_bound or not found else statistics.median(found)


def floor_ratio_of(figures: Sequence[Figure]) -> float | None:
    """The same with each figure predicted by the mean of the others; it needs three figures."""
    found = [one for one in figures if one.off_ratio is not None]
    if len(found) < 3:
        return None
    measured = [float(one.measured or 0.0) for one in found]
    total = sum(measured)
    others = [(total - one) / (len(measured) - 1) for one in measured]
    return off_ratio_of(
        [
            one._replace(predicted=other, measured=value)
            for one, other, value in zip(found, others, measured, strict=True)
        ]
    )


class Rows(NamedTuple):
    """Rows of a batch: the first, the one after the last, and when they started and ended [s]."""

    first: float
    end: float
    started_s: float
    committed_s: float


def schedule_of(run: Line) -> Schedule:
    """The load of a run."""
    return Schedule(tuple(run["rates_per_s"]), tuple(run["from_s"]), run["ends_s"])


def rows_of(run: Line) -> list[Rows]:
    """The batches of a run: rows are numbered as they arrive, and none is left out."""
    found, first = [], 0.0
    for started_s, took_s, rows in run["batches"]:
        found.append(Rows(first, first + rows, started_s, started_s + took_s))
        first += rows
    return found


def changes_of(run: Line) -> list[dict[str, Any]]:
    """The changes that were made for the load, as they were logged."""
    changes = [one["change"] for one in run["audit"] if one["event"] == "applied"]
    return [one for one in changes if one["expected"] is not None]


def late_share(run: Line, at: int) -> float:
    """Share of the rows of one of the three stretches that were late, by their arrival."""
    schedule = schedule_of(run)
    ends = (*schedule.from_s[1:], schedule.ends_s)
    low, high = schedule.arrived(schedule.from_s[at]), schedule.arrived(ends[at])
    rows = late = 0.0
    for one in rows_of(run):
        first, end = max(one.first, low), min(one.end, high)
        if end > first:
            rows += end - first
            late += schedule.late_rows(first, end, one.committed_s, _limit_s(run))
    return late / rows if rows else 0.0


def decision_s(run: Line) -> float | None:
    """From the step up to the first change; None if there was none."""
    changes = changes_of(run)
    if not changes:
        return None
    return float(changes[0]["began_s"] - run["started_s"] - schedule_of(run).from_s[1])


def decision_goal_s(run: Line) -> float:
    """15 s, or the first batch that began after the step up if it took longer."""
    step_s = schedule_of(run).from_s[1]
    took_s = next((took_s for at_s, took_s, _ in run["batches"] if at_s >= step_s), 0.0)
    return max(DECIDED_WITHIN_S, float(took_s))


def figures_of(run: Line) -> Iterator[Figure]:
    """Decision, pause, late rows and the time until the target is kept again, of a run in act."""
    changes, predicted_s = changes_of(run), run["predicted_decision_s"]
    if not changes:
        yield Figure("decision after the step", predicted_s, None)
        return
    yield Figure("decision after the step", predicted_s, decision_s(run))
    # Each change replaces what was expected of the one before.
    last = changes[-1]
    began_s, expected = last["began_s"] - run["started_s"], last["expected"]
    yield Figure("pause", expected["pause_s"], _pause_s(run, last, began_s))
    yield Figure("late arrivals", expected["late_s"], _late_s(run, began_s))
    yield Figure("kept again", expected["back_within_s"], _kept_again_s(run, began_s), True)


def _limit_s(run: Line) -> float:
    return Target.parse(run["target"]).limit_s


def _until_next_step_s(run: Line, began_s: float) -> float:
    return min([float(one) for one in run["from_s"] if one > began_s], default=float(run["ends_s"]))


def _pause_s(run: Line, change: dict[str, Any], began_s: float) -> float | None:
    """How long the query was stopped, plus the excess of its first batch over the following ones.

    The tuner's prior was measured in the same way. Executors that are added stop nothing: then it
    is the excess of the first two batches that began after they arrived over the usual time per
    row, since batches of a backlog have more rows.
    """
    there_s = next(
        one["at_s"] - run["started_s"]
        for one in run["audit"]
        if one["event"] == "applied" and one["change"]["number"] == change["number"]
    )
    is_added = change["kind"] == ChangeKind.ADD
    since_s = there_s if is_added else began_s
    ends_s = _until_next_step_s(run, began_s)
    after: list[tuple[float, int]]
    after = [(took_s, rows) for at_s, took_s, rows in run["batches"] if since_s <= at_s < ends_s]
    num_first = 2 if is_added else 1
    if len(after) < 3 * num_first:
        return None
    first, later = after[:num_first], after[num_first:]
    if is_added:
        per_row_s = statistics.median(took_s / rows for took_s, rows in later)
        return sum(max(took_s - per_row_s * rows, 0.0) for took_s, rows in first)
    usual_s = statistics.median(took_s for took_s, _ in later)
    return float(change["pause_s"] or 0.0) + max(first[0][0] - usual_s, 0.0)


def _late_s(run: Line, began_s: float) -> float:
    """Arrivals since the change began that were late, in seconds of arrivals."""
    schedule, limit_s = schedule_of(run), _limit_s(run)
    ends_s = _until_next_step_s(run, began_s)
    low, high = schedule.arrived(began_s), schedule.arrived(ends_s)
    late = sum(
        schedule.late_rows(max(one.first, low), min(one.end, high), one.committed_s, limit_s)
        for one in rows_of(run)
        if one.end > low and one.first < high
    )
    return late / ((high - low) / (ends_s - began_s))


def _kept_again_s(run: Line, began_s: float) -> float | None:
    """From the change to the end of the last batch with more late rows than the target allows."""
    schedule, limit_s = schedule_of(run), _limit_s(run)
    allowed = 1.0 - (Target.parse(run["target"]).quantile or 1.0)
    ends_s = _until_next_step_s(run, began_s)
    since = [one for one in rows_of(run) if began_s <= one.committed_s and one.started_s < ends_s]
    missed = [
        at
        for at, one in enumerate(since)
        if schedule.late_rows(one.first, one.end, one.committed_s, limit_s)
        > allowed * (one.end - one.first)
    ]
    if missed and missed[-1] == len(since) - 1:
        return None
    return since[missed[-1]].committed_s - began_s if missed else 0.0
