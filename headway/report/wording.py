"""Sentences and figures that terminal and page share."""

from __future__ import annotations

import math
from collections.abc import Iterator

from headway.assumptions.advice import OVERRUNS_SHOWN_RATIO
from headway.digits import format_money, format_rate_down
from headway.domain import (
    NOT_QUOTED,
    Answer,
    Applies,
    Configuration,
    Finding,
    FindingCode,
    Interval,
    LatencyDistribution,
    Metric,
    NodeType,
    Plan,
    Prediction,
    Provenance,
    Rejection,
    StreamAnswer,
    Verdict,
)
from headway.domain.sheet import Section
from headway.report.after_start import after_start_fact
from headway.report.frontier import failing_promises, max_rate_text
from headway.report.infeasible import infeasible_facts
from headway.units import HOURS_PER_MONTH, counted, format_duration, format_rate, spark_trigger_text
from headway.words import all_words, as_sentence, certainty_text, words_of
from headway.words.predictions import FAR_OUTSIDE, duration_against

APPLIES = {
    Applies.RESTART: "when the query restarts",
    Applies.NEW_APPLICATION: "when the application is submitted again",
    Applies.NEW_CHECKPOINT: "only with a new checkpoint; an existing one keeps its value",
}
METRIC_NAMES = {
    Metric.TUPLE: "tuple latency",
    Metric.BATCH: "batch duration",
    Metric.WINDOW: "window latency",
}

_ALL_BUT_SURE = 0.99


def percent(ratio: float) -> str:
    """A share for people.

    Examples
    --------
    >>> percent(0.614), percent(0.003), percent(0.0)
    ('61%', '<1%', '0%')
    """
    if 0 < ratio < 0.005:
        return "<1%"
    return f"{ratio:.0%}"


def interval_text(interval: Interval) -> str:
    """Both ends of an interval.

    Examples
    --------
    >>> interval_text(Interval(low=0.9, high=1.2))
    '900 ms to 1.20 s'
    """
    if math.isinf(interval.high):
        return f"{format_duration(interval.low)} or more"
    return f"{format_duration(interval.low)} to {format_duration(interval.high)}"


def latencies(prediction: Prediction) -> dict[str, LatencyDistribution]:
    """The distributions that may be quoted, by name; none if the setting is not stable."""
    if not prediction.is_quotable:
        return {}
    distributions = {
        Metric.TUPLE: prediction.tuple_latency,
        Metric.WINDOW: prediction.window_latency,
        Metric.BATCH: prediction.batch_duration,
    }
    return {
        METRIC_NAMES[metric]: distribution
        for metric, distribution in distributions.items()
        if distribution is not None
    }


def trigger_words(trigger_s: float) -> str:
    """The trigger interval in words.

    Examples
    --------
    >>> trigger_words(2.0), trigger_words(0.25), trigger_words(0.0)
    ('every 2 s', 'every 250 ms', 'as fast as possible')
    """
    if trigger_s == 0:
        return "as fast as possible"
    number, unit = spark_trigger_text(trigger_s).split()
    return f"every {number} {'ms' if unit.startswith('milli') else 's'}"


def per_task_text(task_cpus: float) -> str:
    """Cores per task, to follow the cores of an executor; empty if it is Spark's default of one.

    Examples
    --------
    >>> per_task_text(2), per_task_text(1)
    (' (2 per task)', '')
    """
    return "" if task_cpus == 1 else f" ({task_cpus} per task)"


def setting_text(configuration: Configuration) -> str:
    """A setting in one line.

    Examples
    --------
    >>> setting_text(
    ...     Configuration(executors=2, cores_per_executor=4, shuffle_partitions=8, trigger_s=2)
    ... )
    '2 executors x 4 cores, 8 shuffle partitions, trigger every 2 s'
    """
    executors = counted(configuration.executors, "executor")
    cores = counted(configuration.cores_per_executor, "core")
    parts = [
        f"{executors} x {cores}{per_task_text(configuration.task_cpus)}",
        counted(configuration.shuffle_partitions, "shuffle partition"),
        f"trigger {trigger_words(configuration.trigger_s)}",
    ]
    if configuration.max_offsets_per_trigger is not None:
        parts.append(f"at most {counted(configuration.max_offsets_per_trigger, 'row')} per batch")
    return ", ".join(parts)


def brief_setting_text(configuration: Configuration) -> str:
    """A setting for a table cell.

    Examples
    --------
    >>> brief_setting_text(
    ...     Configuration(executors=2, cores_per_executor=4, shuffle_partitions=8, trigger_s=0)
    ... )
    '2 x 4 cores, 8 shuffle partitions, as fast as possible'
    """
    text = (
        f"{configuration.executors:,} x {counted(configuration.cores_per_executor, 'core')}, "
        f"{counted(configuration.shuffle_partitions, 'shuffle partition')}, "
        f"{trigger_words(configuration.trigger_s)}"
    )
    limit = configuration.max_offsets_per_trigger
    return text if limit is None else f"{text}, max {counted(limit, 'row')}"


def stability_text(prediction: Prediction) -> str:
    """Whether the setting keeps up with the input rate, and up to which rate it would.

    Before that, that batches grow, if they do.
    """
    growth = all_words(finding for finding in prediction.findings if finding.code.is_growth)
    return " ".join([*map(as_sentence, growth), _stability(prediction)])


def _stability(prediction: Prediction) -> str:
    rate = format_rate(prediction.arrivals.rate_per_s)
    max_rate_per_s = prediction.sustainable_rate_per_s
    if not prediction.stable and not prediction.is_close_to_saturation:
        bound = "not stable at any rate"
        if max_rate_per_s > 0:
            bound = f"stable up to {format_rate_down(max_rate_per_s)}"
        if not prediction.is_surely_unstable:
            return (
                f"Not expected to be stable at {rate}, so there is no latency; but {FAR_OUTSIDE}. "
                f"This configuration is {bound} as far as is known."
            )
        return (
            f"Not stable at {rate}: the backlog grows without bound, so there is no latency. "
            f"This configuration is {bound}."
        )
    not_quoted = next(
        (finding for finding in prediction.findings if finding.code in NOT_QUOTED), None
    )
    if not_quoted is not None:
        return as_sentence(words_of(not_quoted))
    has_room = prediction.arrivals.rate_per_s <= max_rate_per_s < math.inf
    bound = f"; stable up to {format_rate_down(max_rate_per_s)}" if has_room else ""
    load = load_text(prediction)
    overrun = prediction.overrun_probability
    if _found(prediction, FindingCode.MOSTLY_OVERRUNS) is not None:
        return (
            f"Keeps up with {rate}, but {percent(overrun)} of the batches overrun the trigger "
            f"interval; {load}{bound}."
        )
    if overrun >= OVERRUNS_SHOWN_RATIO.value:
        load += f", {percent(overrun)} of the batches overrun the trigger interval"
    gain_ratio = prediction.gain_ratio
    if gain_ratio is not None:
        load += f"; errors in batch durations count {gain_ratio:.1f} times in the latency"
    stable = "Expected to be stable" if prediction.is_far_from_one_size else "Stable"
    return f"{stable} at {rate}: {load}{bound}."


def load_text(prediction: Prediction) -> str:
    """Share of time that the query is busy; as fast as possible also what is offered to it."""
    text = f"utilisation {percent(prediction.utilization_ratio)}"
    load = prediction.offered_load_ratio
    if prediction.configuration.trigger_s > 0 or load is None:
        return text
    return f"{text}, offered load {percent(load)}"


def _found(prediction: Prediction, code: FindingCode) -> Finding | None:
    return next((finding for finding in prediction.findings if finding.code is code), None)


def prediction_notes(prediction: Prediction) -> tuple[str, ...]:
    """Findings about a prediction besides its stability, without repetition."""
    stability_codes = (FindingCode.OVER_CAPACITY, *NOT_QUOTED)
    findings = [
        finding
        for finding in prediction.findings
        if not (finding.code in stability_codes or finding.code.is_growth)
    ]
    return tuple(dict.fromkeys(all_words(findings)))


def caution_text(prediction: Prediction) -> str | None:
    """The caution about extrapolated numbers; None within the profiled range."""
    if prediction.calibrated or not prediction.is_quotable:
        return None
    if prediction.provenance is Provenance.DECLARED:
        return "Based on declared costs: nothing was measured."
    return "Extrapolated: outside the profiled range, see the notes."


def headline(plan: StreamAnswer) -> str:
    """The answer in one sentence."""
    rate = format_rate(plan.arrivals.rate_per_s)
    growth = _plan_finding(plan, FindingCode.BATCHES_GROW)
    if growth is not None:
        return as_sentence(words_of(growth)).removesuffix(".")
    if not plan.feasible:
        if plan.verdict is Verdict.TOO_CLOSE and plan.kept_probability is not None:
            all_targets = " and ".join(map(str, plan.promises))
            certainty = certainty_text(plan.kept_probability, plan.confidence)
            return f"infeasible: {all_targets} at {rate} is {certainty}"
        return f"infeasible: no configuration meets {failing_promises(plan)} at {rate}"
    verb = "meets" if plan.nodes == 1 else "meet"
    answer = f"{counted(plan.nodes, 'node')} {verb} {plan.target} at {rate}"
    ending = _plan_finding(plan, FindingCode.GROWTH_ENDS_PROMISE)
    if ending is not None:
        return f"{answer} until {ending.names['until']}, as its batches take longer and longer"
    broken = _plan_finding(plan, FindingCode.STATE_BREAKS_PROMISE)
    if broken is None:
        return answer
    time_left = format_duration(broken.numbers["missed_after_s"])
    return f"{answer} for {time_left}, until the growing state makes it miss the target"


def cautions(plan: StreamAnswer) -> tuple[str, ...]:
    """Cautions that a reader of the headline must know, in words."""
    return all_words(finding for finding in plan.findings if finding.code.is_caution)


def _plan_finding(plan: StreamAnswer, code: FindingCode) -> Finding | None:
    return next((finding for finding in plan.findings if finding.code is code), None)


def promise_text(plan: Plan) -> str:
    """The planned latency of a feasible plan, compared with the limit."""
    limit_s = plan.target.limit_s
    planned, limit = duration_against(plan.planned_latency_s, limit_s), format_duration(limit_s)
    return f"up to {planned} of {limit}, {_margin_text(plan)}{likely_text(plan.kept_probability)}"


def likely_text(probability: float | None) -> str:
    """Probability that the targets are met, as an addition to a text."""
    if probability is None:
        return ""
    if probability > _ALL_BUT_SURE:
        return f"; met with more than {_ALL_BUT_SURE:.0%} probability"
    if probability < 1.0 - _ALL_BUT_SURE:
        return f"; met with less than {1.0 - _ALL_BUT_SURE:.0%} probability"
    return f"; met with {probability:.0%} probability"


def _margin_text(plan: StreamAnswer) -> str:
    if plan.declared is None:
        return "including the safety margin"
    return f"at the {plan.confidence:.0%} end of each declared range"


def facts(plan: StreamAnswer) -> tuple[tuple[str, str], ...]:
    """The facts right under the headline, as label and text."""
    rows = [
        ("configuration", setting_text(plan.configuration)),
        ("max rate within target", max_rate_text(plan)),
    ]
    if plan.node_type is not None:
        rows.append(("nodes", _bought_text(plan)))
    if plan.also:
        rows.append(("also met" if plan.feasible else "other targets", _also_text(plan)))
    if plan.feasible:
        return (*rows, *after_start_fact(plan))
    return (*infeasible_facts(plan), *rows)


def purchase_facts(
    max_rate_per_s: float | None, node_type: NodeType | None, cost_per_hour: float | None
) -> Iterator[tuple[str, str]]:
    """What a plan carries, on which nodes, at what cost; only what is known."""
    if max_rate_per_s is not None:
        yield "max rate within target", format_rate(max_rate_per_s)
    if node_type is not None:
        yield "node type", node_type.name
    if cost_per_hour is not None:
        yield "cost per hour", format_money(cost_per_hour)


def notes(plan: StreamAnswer) -> tuple[str, ...]:
    """Findings about the plan and its prediction besides the headline, each once."""
    plan_notes = all_words(
        finding
        for finding in plan.findings
        if not (finding.code.is_caution or finding.code.is_growth)
    )
    return tuple(dict.fromkeys((*plan_notes, *prediction_notes(plan.prediction))))


def rejection_rows(plan: StreamAnswer) -> list[tuple[str, str, str]]:
    """The neighbours of a plan: the change, the reason why it is ruled out, the setting."""
    rejected = plan.rejected if plan.feasible else ()
    return [
        (rejection.change, rejection_text(rejection), brief_setting_text(rejection.configuration))
        for rejection in rejected
    ]


def rejection_text(rejection: Rejection) -> str:
    """Why a neighbour is ruled out, with its latency if the reason does not contain it."""
    if rejection.latency_s is None or format_duration(rejection.latency_s) in rejection.reason:
        return rejection.reason
    return f"{rejection.reason} ({format_duration(rejection.latency_s)})"


def changes_section(plan: Answer) -> Section:
    """What a plan changes, and when each change applies."""
    return Section(
        title="changes against the profiled run",
        rows=tuple(
            (change.setting, f"{change.before} -> {change.after}", APPLIES[change.applies])
            for change in plan.changes
        ),
    )


def cost_text(cost_per_hour: float | None) -> str:
    """A price per hour, in the currency of the given prices.

    Examples
    --------
    >>> cost_text(0.384), cost_text(None)
    ('0.384', '-')
    """
    return "-" if cost_per_hour is None else format_money(cost_per_hour)


def cost_per_month_text(cost_per_hour: float | None) -> str:
    """What a plan costs in a month of 30 days.

    Examples
    --------
    >>> cost_per_month_text(0.384), cost_per_month_text(None)
    ('276', '-')
    """
    return "-" if cost_per_hour is None else format_money(cost_per_hour * HOURS_PER_MONTH)


def _bought_text(plan: StreamAnswer) -> str:
    assert plan.node_type is not None
    text = f"{counted(plan.nodes, 'node')} of {plan.node_type.name}"
    if plan.cost_per_hour is None:
        return text
    currency = plan.node_type.currency
    by_hour = format_money(plan.cost_per_hour, currency=currency)
    by_month = format_money(plan.cost_per_hour * HOURS_PER_MONTH, currency=currency)
    return f"{text}, {by_hour} per hour, {by_month} per month"


def _also_text(plan: StreamAnswer) -> str:
    return " and ".join(str(promise) for promise in plan.also)
