"""Rows that a source deletes before they are read: the longest outage that loses none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway.domain import CatchUp, Configuration, Finding, FindingCode, Promise
from headway.errors import InputError, argument
from headway.planner.candidates import Candidates
from headway.planner.recovery import NO_START, Pace, start_after_outage
from headway.units import format_duration

_STEPS = 60


def require_rows_kept(promises: Iterable[Promise], retention_s: float | None) -> None:
    """Refuse a target on an outage that is as long as the source keeps rows."""
    for outage_s in _outages_s(promises):
        if retention_s is not None and outage_s >= retention_s:
            raise InputError(
                f"{argument('retention')} {format_duration(retention_s)}: an outage of "
                f"{format_duration(outage_s)} loses rows on any number of nodes, for the source "
                "deletes them before they are read; expected a longer retention (retention.ms of "
                "the topic), or a target after a shorter outage"
            )


def retention_findings(setting: Candidates, configuration: Configuration) -> Iterator[Finding]:
    """The longest outage after which no row is lost, and whether one of the targets is longer.

    ``setting`` is the chosen one on its own, and ``configuration`` is the same with its rate limit.

    **(P36)** Retention: the source keeps a row for `K`. After an outage `τ` and a restart that
    takes `R`, the first batch has `n_0 = min(N, λ(τ + R))` rows, with `N` the rate limit. They must
    be there until it has ended, for a failure reads them again; later batches are of younger rows,
    as the backlog gets smaller. So no row is lost if `τ + R + f D(n_0) ≤ K`, and the longest such
    `τ` is found by bisection. `R` is what passes before the first batch and what that takes longer
    than its rows, `a_J + a_S + f (x + L)` of (Z2); it is left out if no start in a fresh JVM is on
    record. An outage of `K` or more is refused.
    """
    question = setting.question
    retention_s, profile = question.retention_s, question.profile
    if retention_s is None:
        return
    pace = Pace.of(profile, configuration, float(setting.planned_ratio(question.rate_per_s)[0]))
    start = start_after_outage(profile, configuration.size, pace)
    restart_s = float(start.before_s) + float(start.longer_s)

    def first_batch_s(outage_s: float) -> float:
        rows = question.rate_per_s * (outage_s + restart_s)
        if configuration.max_offsets_per_trigger is not None:
            rows = min(rows, float(configuration.max_offsets_per_trigger))
        return float(pace.duration_s(rows))

    low_s, high_s = 0.0, retention_s
    for _ in range(_STEPS):
        middle_s = 0.5 * (low_s + high_s)
        is_kept = middle_s + restart_s + first_batch_s(middle_s) <= retention_s
        low_s, high_s = (middle_s, high_s) if is_kept else (low_s, middle_s)
    numbers = {
        "outage_s": low_s,
        "retention_s": retention_s,
        "first_batch_s": first_batch_s(low_s),
        **({} if start is NO_START else {"restart_s": restart_s}),
    }
    longest_s = max(_outages_s(question.also), default=0.0)
    if longest_s > low_s:
        yield Finding(
            code=FindingCode.RETENTION_LOSES_ROWS,
            numbers={**numbers, "planned_outage_s": longest_s},
        )
    yield Finding(code=FindingCode.OUTAGE_SURVIVED, numbers=numbers)


def _outages_s(promises: Iterable[Promise]) -> Iterator[float]:
    """Lengths of the outages that targets are about."""
    for promise in promises:
        if isinstance(promise, CatchUp) and promise.outage_s is not None:
            yield promise.outage_s
