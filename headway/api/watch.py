"""A running query compared with its prediction: observed, never changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.api.arguments import job_from, promises_from
from headway.api.file_kinds import is_log
from headway.assumptions import tuning
from headway.assumptions.live import BIN_S
from headway.domain import Arrivals, Configuration, JobProfile, Prediction, Target
from headway.domain.argument_values import EXECUTOR_RANGE, TRIGGER, of_class
from headway.domain.live import Bounds, Look, Reason, Standing
from headway.errors import InputError
from headway.models.job.predict import predict
from headway.profiler.recording.live import Feed, LogFeed, QueryFeed, query_of_session
from headway.runtime.given import require_no_connect
from headway.runtime.tuning.session import require_classic
from headway.tuner.live_query import LiveQuery, Observed
from headway.tuner.live_rule import LiveRule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_QUERY = of_class(str, "the name of a query, or the beginning of its id")


def watch(
    source: SparkSession | StreamingQuery | str | Path,
    *,
    profile: JobProfile | str | Path,
    target: Target | str,
    query: str | None = None,
    executors: tuple[int, int] | str | None = None,
    trigger: float | str | None = None,
) -> Watcher:
    """Watch a running query: compare it with its prediction. It is never changed.

    Parameters
    ----------
    source : SparkSession, StreamingQuery or path
        A session or a query of this process; or a file that :func:`headway.record` writes, or an
        event log that is still being written, rolling or not.
    profile : JobProfile or path
        The profile for its predictions, or an event log, which is profiled first.
    target : Target or str
        Its target: a quantile of rows or of batches, e.g. ``"p99 <= 3s"``.
    query : str, optional
        Name of the query, or the beginning of its id, if there are several; of a profile that is
        an event log, too.
    executors : (int, int), optional
        Minimum and maximum number of executors for a change; by default 1 to twice the current
        number.
    trigger : float or str, optional
        Its trigger interval; by default measured from the starts of its batches.

    Returns
    -------
    Watcher
        ``look()`` reads new batches and reports the status of the query.

    Raises
    ------
    InputError
        If a value is invalid, the session is one of Spark Connect or does not have exactly one such
        query, or the file is not a log.
    """
    first, others = promises_from(target)
    if others:
        raise InputError("target: watch looks at one target; give the latency that matters most")
    if first.quantile is None:
        raise InputError(
            f"target '{first}': late rows are counted; expected a quantile, e.g. 'p99 <= 3s'"
        )
    if query is not None:
        _QUERY.read(query, "query")
    live = LiveQuery(
        feed=_feed_of(source, query),
        profile=job_from(profile, first, [query] if query and is_log(profile) else None),
        target=first,
        trigger_s=None if trigger is None else TRIGGER.read(trigger, "trigger"),
    )
    return Watcher(live, executors=None if executors is None else bounds_of(executors))


def bounds_of(executors: tuple[int, int] | str) -> Bounds:
    """Bounds from the minimum and the maximum of executors."""
    low, high = EXECUTOR_RANGE.read(executors, "executors")
    return Bounds(min_executors=low, max_executors=high)


class Watcher:
    """A query that is watched; made by :func:`watch`."""

    def __init__(self, live: LiveQuery, *, executors: Bounds | None = None) -> None:
        self._live = live
        self._bounds = executors
        self._rule: LiveRule | None = None
        self._rule_query_id: str | None = None

    def look(self) -> Look:
        """Read new batches, and report the status of the query.

        Raises EventLogError if the log is gone.
        """
        live = self._live
        new_batches = live.read()
        running = live.configuration()
        if live.last is not None:
            if self._rule is None or self._rule_query_id != live.last.query_id:
                most = tuning.WATCHED_SIZES_RATIO.value * running.executors
                bounds = self._bounds or Bounds(min_executors=1, max_executors=most)
                self._rule = LiveRule(live=live, bounds=bounds)
                self._rule_query_id = live.last.query_id
            for observed in new_batches:
                self._rule.see(observed, running)
        return self._said(running)

    def _said(self, running: Configuration) -> Look:
        live, rule = self._live, self._rule
        recent = live.recent()
        rate_per_s = live.rate_per_s(recent)
        prediction = None if rate_per_s is None else _predicted(live, running, rate_per_s)
        late_rows = sum(observed.seen.late_rows for observed in live.observed)
        rows = sum(observed.seen.batch_rows for observed in live.observed)
        allowed = 1.0 - (live.target.quantile or 0.0)
        late_ratio = late_rows / rows if rows > 0 else None
        silent_s, ended = 0.0, live.feed.ended
        if live.last is not None and ended is None:
            silent_s = max(time.time() - max(live.last.ended_s, live.feed.idle_s), 0.0)
        proposal = None if rule is None else rule.proposal
        is_feasible = self._is_feasible(running, recent)
        look = Look(
            query=live.label,
            target=live.target,
            standing="learning",
            at_s=time.time(),
            seen_s=recent[-1].batch.ended_s - recent[0].batch.started_s if recent else 0.0,
            num_batches=len(live.observed),
            configuration=running,
            rate_per_s=rate_per_s,
            prediction=prediction,
            latency=live.latency(recent),
            batch_duration=live.durations(recent),
            utilization_ratio=live.utilization_ratio(recent),
            backlog_rows=live.observed[-1].backlog_rows if live.observed else None,
            silent_s=silent_s,
            late_ratio=late_ratio,
            budget_left_ratio=None if late_ratio is None else 1.0 - late_ratio / allowed,
            drift=live.drift(running),
            change=None if rule is None or proposal is None else rule.as_change(running, proposal),
            why_no_change=self._why_no_change(is_feasible),
            is_feasible=is_feasible,
            ended=ended,
        )
        return replace(look, standing=_standing(look))

    def _is_feasible(self, running: Configuration, recent: Sequence[Observed]) -> bool:
        """Whether a setting within bounds meets the target at the rate that arrives now.

        The setting that runs within bounds and was seen to meet it is one.
        """
        live, rule = self._live, self._rule
        if rule is None:
            return True
        late_rows = sum(observed.seen.late_rows for observed in recent)
        rows = sum(observed.seen.batch_rows for observed in recent)
        is_met = late_rows <= (1.0 - (live.target.quantile or 0.0)) * rows
        if is_met and rule.bounds.clipped(running.executors) == running.executors:
            return True
        # A peak that is over is in the forecast for some bins more, not in what arrives.
        newest_per_s = live.rate_per_s(live.recent(BIN_S.value))
        return rule.is_feasible(running, arriving_per_s=newest_per_s)

    def _why_no_change(self, is_feasible: bool) -> str | None:
        decision = None if self._rule is None else self._rule.decision
        if decision is None:
            return Reason.LEARNING.value
        if decision.proposal is not None:
            return None
        if decision.reason is Reason.HOLD and not is_feasible:
            # The rule waits for a second bin before it says so.
            return Reason.AT_MAXIMUM.value
        return decision.reason.value


def _standing(look: Look) -> Standing:
    if look.ended == "failed":
        return "failed"
    if look.num_batches < tuning.LEARNING_BATCHES.value:
        return "learning"
    if not look.is_feasible:
        return "out_of_bounds"
    longest_s = max(look.target.limit_s, look.configuration.trigger_s)
    if look.silent_s > tuning.SILENT_RATIO.value * longest_s + tuning.IDLE_REPORTS_S.value:
        return "silent"
    if look.drift is not None and look.drift.is_alarm:
        return "drifted"
    if look.budget_left_ratio is not None and look.budget_left_ratio < 0.0:
        return "late"
    return "held"


def _predicted(live: LiveQuery, running: Configuration, rate_per_s: float) -> Prediction:
    dispersion_ratio = live.profile.arrivals.dispersion_ratio
    arrivals = Arrivals(rate_per_s=rate_per_s, dispersion_ratio=dispersion_ratio)
    # A rate limit is not on record: what is profiled says nothing of the one that runs.
    configuration = replace(running, max_offsets_per_trigger=None)
    return predict(live.profile, configuration, arrivals, jvm_age_s=live.jvm_age_s)


def _feed_of(source: SparkSession | StreamingQuery | str | Path, query: str | None) -> Feed:
    if isinstance(source, str | Path):
        return LogFeed(source, query)

    session_or_query: Any = source
    if hasattr(session_or_query, "streams"):
        require_classic(session_or_query)
        return QueryFeed(query_of_session(session_or_query, query))
    if not hasattr(session_or_query, "lastProgress"):
        raise InputError(
            f"source is a {type(source).__name__}; expected a session, a streaming query, or the "
            "path of a log"
        )
    require_no_connect(
        session_or_query,
        "does not show what the batches of a query cost",
        "watch in its driver, or watch a recorder's file: headway watch FILE",
    )
    return QueryFeed(session_or_query)
