"""State of a stream-stream join once it is full, from a log that ends before that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.assumptions.fits import FULL_JOIN_RATIO
from headway.domain import Finding, FindingCode, JobProfile

_JOIN = "StreamingSymmetricHashJoin"


def full_join_rows(profile: JobProfile) -> float | None:
    """Rows that a join keeps at the profiled rate once it is full; None if that is not known.

    Notes
    -----
    **(Z3)** A join of two streams keeps each row of both sides until the watermark has passed it by
    its range of event time: `S = v λ (w + H)`, with the delay `w` of the watermark, the longer
    reach `H` of the range (T8), and the state rows `v` that are written per row. After a batch, the
    `u` rows that it wrote are there, too. It is what a log of a query that has just begun cannot
    show. If its state still grows and is below nine tenths of that, the plan is made for the full
    state, which is proportional to the rate, and no longer grows. Nothing is known if there are
    other stateful operators, or if one side is never cleaned up.

    Examples
    --------
    >>> from headway.formats.profile_file import load_profile
    >>> full_join_rows(load_profile("examples/word-count.profile.yaml")) is None
    True
    """
    shape, state = profile.shape, profile.state
    if state is None or not profile.settings or len(shape.chain) != 1:
        return None
    (operator,) = shape.chain
    if operator.name != _JOIN or operator.holds_back_s is None or shape.watermark_delay_s is None:
        return None
    last = profile.settings[-1]
    batch_rows = last.rows_per_batch_middle
    written_ratio = 1.0 if state.updated_rows is None else state.updated_rows / batch_rows
    return written_ratio * last.rate_per_s * (shape.watermark_delay_s + operator.holds_back_s)


def with_full_join(profile: JobProfile) -> JobProfile:
    """The job with the state of its join as it will be, if it was still growing: theory.md (Z3)."""
    state, rows = profile.state, full_join_rows(profile)
    if state is None or rows is None or not state.rows or not state.growth_per_s > 0:
        return profile
    rows += state.updated_rows or 0.0
    if state.rows >= FULL_JOIN_RATIO.value * rows:
        return profile
    full = replace(
        state,
        rows=round(rows),
        memory_bytes=round(state.memory_bytes * rows / state.rows),
        growth_per_s=0.0,
        rate_exponent=1.0,
    )
    return replace(profile, state=full)


def join_findings(profile: JobProfile) -> Iterator[Finding]:
    """That a plan is made for a fuller join than the log shows: theory.md (Z3)."""
    state, seen_rows = profile.state, profile.shape.state_rows
    if state is None or state.rate_exponent != 1.0 or full_join_rows(profile) is None:
        return
    if 0 < seen_rows < FULL_JOIN_RATIO.value * state.rows:
        yield Finding(
            code=FindingCode.JOIN_NOT_FULL,
            numbers={"state_rows": float(seen_rows), "full_state_rows": profile.num_state_rows},
        )
