"""Arrivals that are late until a changed query has worked off its backlog."""

from __future__ import annotations

from headway.models.job.change_pause import pause_late_s


def catch_up_late_s(
    backlog_rows: float,
    rate_per_s: float,
    *,
    drained_now_per_s: float,
    drained_then_per_s: float,
    wait_s: float,
    pause_s: float,
    slack_s: float,
) -> float:
    r"""Seconds of arrivals that are late from the start of a change until the target is kept again.

    A load above 0.98 after the change counts as 0.98.

    Parameters
    ----------
    backlog_rows : float, >= 0, rows that wait beyond the usual
    rate_per_s : float, > 0
    drained_now_per_s, drained_then_per_s : float, > 0, rows of large batches before and after it
    wait_s : float, >= 0, time until the change takes effect; until then the query runs as before
    pause_s : float, >= 0, how much longer than usual rows wait because of the change itself
    slack_s : float, >= 0, limit of the target less the planned latency

    **(A19)** A queue that is drained in order, in the fluid limit. A row that arrives at `t` has
    `n + λt` rows before it, with `n` the backlog. They are processed at `μ` until the change takes
    effect after `T`, and at `μ'` from then on, after the pause `p`. The arrival of the row that is
    next at `T` is at `t* = (μT - n)/λ`, at least 0 and at most `T`. Until then rows wait `(n +
    λt)/μ - t`, until the backlog has gone, and are late while that exceeds the slack `s`. The next
    one waits `w = T - t* + p`, or `T + p + (n - μT)/μ'` if `n > μT`, and by (A7) the arrivals of
    `max(0, w - s)/(1 - λ/μ')` seconds after it are late. Without backlog and wait this is (A7).

    New executors arrive after 2 s; meanwhile the backlog grows:

    >>> drained = {"drained_now_per_s": 450.0, "drained_then_per_s": 1350.0}
    >>> late_s = catch_up_late_s(9000.0, 800.0, **drained, wait_s=2.0, pause_s=0.0, slack_s=1.0)
    >>> round(late_s, 2)
    17.18
    """
    rates = (rate_per_s, drained_now_per_s, drained_then_per_s)
    amounts = (backlog_rows, wait_s, pause_s, slack_s)
    if not (all(rate > 0.0 for rate in rates) and all(amount >= 0.0 for amount in amounts)):
        raise ValueError("need rates above 0, and backlog, wait, pause and slack of 0 or more")
    drained_rows = drained_now_per_s * wait_s
    load_ratio = rate_per_s / drained_then_per_s
    if backlog_rows > drained_rows:
        left_s = (backlog_rows - drained_rows) / drained_then_per_s
        return pause_late_s(wait_s + pause_s + left_s, slack_s, load_ratio)
    next_s = min((drained_rows - backlog_rows) / rate_per_s, wait_s)
    gone_s = next_s
    if rate_per_s < drained_now_per_s:
        gone_s = min(backlog_rows / (drained_now_per_s - rate_per_s), next_s)
    first_s, per_s = backlog_rows / drained_now_per_s, rate_per_s / drained_now_per_s - 1.0
    before_s = gone_s * _share_above(slack_s, first_s, first_s + per_s * gone_s)
    return before_s + pause_late_s(wait_s - next_s + pause_s, slack_s, load_ratio)


def _share_above(limit_s: float, first_s: float, last_s: float) -> float:
    """Share of a stretch in which a delay that changes evenly exceeds a limit."""
    low_s, high_s = min(first_s, last_s), max(first_s, last_s)
    if low_s > limit_s or high_s <= limit_s:
        return float(low_s > limit_s)
    return (high_s - limit_s) / (high_s - low_s)
