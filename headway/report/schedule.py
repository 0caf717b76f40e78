"""Verdicts about queries that take turns, and replays of a gate's log, in words and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headway.domain import Policy, plan_parts
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.codec import EXACT, data_of
from headway.report.driver import driver_text
from headway.units import counted, format_duration

if TYPE_CHECKING:
    from headway.domain.scheduling import Replay
    from headway.turns.scheduling import PolicyFigures, QueryFigures, Verdict

_HEAD = ("policy", "at once", "mean", "p99", "targets met", "cores busy")
_RECOMMENDED = "* the recommended policy"
_SHOWN_VERDICTS = {
    plan_parts.Verdict.KEPT: "met",
    plan_parts.Verdict.TOO_CLOSE: "too close to tell",
    plan_parts.Verdict.NOT_KEPT: "missed",
}
_QUERY_HEAD = ("query", "window mean", "p99", "row mean", "p99", "target")


def schedule_sheet(verdict: Verdict) -> Sheet:
    """The answer first, then each policy, then each query under the best one."""
    shown = verdict.recommended or verdict.sparks_best
    rows = tuple(_row(figures, verdict) for figures in verdict.figures)
    return Sheet(
        about="Headway verdict on a schedule",
        headline=headline(verdict),
        verdict=verdict.recommended is not None,
        sections=(
            Section(texts=tuple(_advice(verdict)), close=True),
            Section(head=_HEAD, rows=rows, right=(1, 2, 3, 4, 5)),
            Section(texts=() if verdict.recommended is None else (_RECOMMENDED,), close=True),
            Section(texts=(f"Predicted for each query under {_name(shown)}:",)),
            Section(
                head=_QUERY_HEAD,
                rows=tuple(_query_row(query, shown) for query in shown.queries),
                right=(1, 2, 3, 4),
            ),
        ),
    )


def schedule_json(verdict: Verdict) -> dict[str, object]:
    """A verdict as data for :func:`headway.formats.as_json.json_text`."""
    recommended = verdict.recommended
    names = [query.name for query in verdict.ungated.queries]
    return {
        "pays": recommended is not None,
        "policy": None if recommended is None else recommended.policy,
        "at_once": None if recommended is None else recommended.at_once,
        **data_of(verdict, EXACT),
        "offsets_s": dict(zip(names, verdict.offsets_s, strict=True)),
        "policies": [
            {
                "policy": figures.policy,
                "free_running": figures.free_running,
                "at_once": None if figures.policy is None else figures.at_once,
                "mean_s": figures.mean_s if figures.keeps_up else None,
                "p99_s": figures.p99_s if figures.keeps_up else None,
                "stable": figures.keeps_up,
                "busy_ratio": figures.busy_ratio,
                "simulated_s": figures.simulated_s,
                "targets_met": figures.num_met,
                "targets_too_close": figures.num_too_close,
                "queries": data_of(figures.queries, EXACT),
            }
            for figures in verdict.figures
        ],
    }


def replay_sheet(replay: Replay) -> Sheet:
    """Whether the decisions of a log are reproduced, and the errors of the durations."""
    decisions = counted(replay.num_decisions, "decision")
    same = f"The log replays exactly: {decisions}, none different ({replay.policy})."
    if replay.num_differing:
        same = f"Different from the log: {replay.num_differing} of {decisions} ({replay.policy})."
    batches = counted(replay.num_batches, "batch", "batches")
    predicted, measured = map(format_duration, (replay.predicted_mean_s, replay.observed_mean_s))
    durations = f"{batches}: predicted {predicted}, measured {measured} on average."
    return Sheet(
        about="Headway replay of a schedule",
        headline=same,
        verdict=not replay.num_differing,
        sections=(Section(texts=(durations,), close=True),),
    )


def replay_json(replay: Replay) -> dict[str, object]:
    """A replay as data."""
    return {"schema": "headway.schedule-replay/v1", **data_of(replay, EXACT)}


def headline(verdict: Verdict) -> str:
    """Whether taking turns pays off, in a sentence."""
    best, ungated = verdict.recommended, verdict.sparks_best
    if best is not None:
        gain = "without it the queries fall behind"
        if ungated.keeps_up:
            now, before = map(format_duration, (best.mean_s, ungated.mean_s))
            change = f"{-100 * verdict.gain_ratio:+.0f}%"
            gain = f"mean latency {now} instead of {before} ({change})"
        instead = "" if best.num_met == ungated.num_met else f" instead of {ungated.num_met}"
        return (
            f"Taking turns pays: policy {best.policy}, {best.at_once} at once; {gain}, targets of "
            f"{best.num_met} of {counted(len(best.queries), 'query', 'queries')} met{instead}."
        )
    if not any(figures.keeps_up for figures in verdict.figures):
        return (
            f"{_cores_text(verdict.cores)} too few for these queries: the backlog grows under "
            "every policy. Add cores, or shed rows (headway.shed)."
        )
    shorter = " with a shorter trigger" if ungated.free_running else ""
    percent = round(100 * verdict.gain_ratio)
    best_policy = (
        f"the best policy lowers it by {percent}%" if percent > 0 else "no policy lowers it"
    )
    return (
        f"Not worth it: Spark by itself has a mean latency of {format_duration(ungated.mean_s)}"
        f"{shorter}; {best_policy}."
    )


def _cores_text(cores: float) -> str:
    return "1 core is" if cores == 1 else f"{cores:g} cores are"


def _advice(verdict: Verdict) -> Iterator[str]:
    if verdict.driver is not None:
        yield driver_text(verdict.driver)
    if verdict.aligned:
        spread = verdict.spread_mean_s
        shorter = "" if spread is None else f": mean latency {format_duration(spread)} predicted"
        yield (
            "All windows end at the same time, so there is little to order. Shift the startTime of "
            f"the windows apart and use the policy promise{shorter}."
        )
    if verdict.nodes_with is not None and verdict.nodes_without is not None:
        without = f"{verdict.nodes_without} with Spark by itself"
        yield f"Nodes that meet all targets: {without}, {verdict.nodes_with} with the policy."
    shown = verdict.recommended or verdict.sparks_best
    if shown.num_too_close:
        yield (
            f"Too close to tell under {_name(shown)}: in {format_duration(shown.simulated_s)} of "
            "simulated time, the share of late windows or rows differs from the allowed one by "
            "less than its statistical error. More cores or a looser target would settle it."
        )
    best = verdict.recommended
    if best is not None and best.policy is Policy.STAGGER:
        offsets = ", ".join(
            f"{query.name} {format_duration(offset)}"
            for query, offset in zip(best.queries, verdict.offsets_s, strict=True)
        )
        yield f"Offsets from the trigger grid: {offsets}."


def _row(figures: PolicyFigures, verdict: Verdict) -> tuple[str, ...]:
    mean, p99 = map(format_duration, (figures.mean_s, figures.p99_s))
    return (
        _name(figures) + (" *" if figures is verdict.recommended else ""),
        "any" if figures.policy is None else str(figures.at_once),
        *((mean, p99) if figures.keeps_up else ("grows", "grows")),
        _targets_met(figures),
        f"{100 * figures.busy_ratio:.0f}%",
    )


def _targets_met(figures: PolicyFigures) -> str:
    met = f"{figures.num_met} of {len(figures.queries)}"
    return f"{met}, {figures.num_too_close} too close" if figures.num_too_close else met


def _query_row(query: QueryFigures, figures: PolicyFigures) -> tuple[str, ...]:
    times = (query.window_mean_s, query.window_p99_s, query.row_mean_s, query.row_p99_s)
    shown_times = ["-" if time_s is None else format_duration(time_s) for time_s in times]
    if not figures.keeps_up:
        shown_times = [*(["grows" if query.has_windows else "-"] * 2), "grows", "grows"]
    return query.name, *shown_times, _SHOWN_VERDICTS[query.verdict]


def _name(figures: PolicyFigures) -> str:
    if figures.policy is not None:
        return str(figures.policy)
    return "Spark, as fast as possible" if figures.free_running else "Spark as it is"


KINDS = {
    "schedule": Kind(sheet=schedule_sheet, data=schedule_json, main="policies"),
    "schedule-replay": Kind(sheet=replay_sheet, data=replay_json),
}
