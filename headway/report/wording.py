"""Sentences and figures that terminal and page share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import compress

from headway.assumptions.advice import OVERRUNS_SHOWN_RATIO
from headway.digits import format_money
from headway.domain import (
    NOT_QUOTED,
    Answer,
    Change,
    Configuration,
    Finding,
    FindingCode,
    Interval,
    LatencyDistribution,
    Metric,
    Plan,
    Prediction,
    StreamAnswer,
)
from headway.domain.finding import CAUTIONS, OF_GROWTH
from headway.domain.node_type import currency_of
from headway.domain.sheet import Section
from headway.units import (
    counted,
    format_duration,
    format_durations,
    format_rate,
    spark_trigger_text,
)
from headway.words import all_words, as_sentence, missed_text, words_of
from headway.words.predictions import MAY_BE_SHORTER, with_limit
from headway.words.sentences import stable_up_to

MOST_NOTES = 1
"""Notes that a plan shows first; the others are for ``--verbose``."""
PRINTED_FROM = 0.005
"""Share of a time from which one of its parts is shown."""
APPLIES = {
    "restart": "when the query restarts",
    "new application": "when the application is submitted again",
    "new checkpoint": "only with a new checkpoint; an existing one keeps its value",
}
_WHEN = {
    "restart": "at a restart",
    "new application": "with a new application",
    "new checkpoint": "only with a new checkpoint",
}
_AS_FAST_AS_POSSIBLE = "as fast as possible"
METRIC_NAMES = {
    Metric.TUPLE: "tuple latency",
    Metric.BATCH: "batch duration",
    Metric.WINDOW: "window latency",
}

_ALL_BUT_SURE = 0.99


def percent(ratio: float) -> str:
    """A share for people.

    >>> percent(0.614), percent(0.003), percent(0.0)
    ('61%', '<1%', '0%')
    """
    return "<1%" if 0 < ratio < 0.005 else f"{ratio:.0%}"


def interval_text(interval: Interval | None) -> str:
    """Both ends of an interval, if there is one.

    >>> interval_text(Interval(low=0.9, high=1.2))
    '0.900 s to 1.20 s'
    """
    if interval is None:
        return "-"
    if interval.is_open:
        return f"{format_duration(interval.low)} or more"
    return " to ".join(format_durations(interval.low, interval.high))


def shown_parts(parts_s: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """Name, time and share of each part of a time, but for those that take next to nothing.

    >>> shown_parts({"wait": 1.0, "plan": 0.001, "stages": 3.0})[0]
    ('wait', 1.0, 0.2499)
    """
    total_s = sum(parts_s.values())
    return [
        (name, part_s, part_s / total_s)
        for name, part_s in parts_s.items()
        if total_s > 0 and part_s / total_s >= PRINTED_FROM
    ]


def latency_text(latency_s: float) -> str:
    """A latency, if there is one."""
    return "saturated" if math.isinf(latency_s) else format_duration(latency_s)


def latencies(prediction: Prediction) -> dict[str, LatencyDistribution]:
    """The distributions that may be quoted, by name; none if the setting is not stable."""
    if not prediction.is_quotable:
        return {}
    named = {
        METRIC_NAMES[metric]: prediction.latency(metric)
        for metric in (Metric.TUPLE, Metric.WINDOW, Metric.BATCH)
    }
    return {name: distribution for name, distribution in named.items() if distribution is not None}


def trigger_text(trigger_s: float) -> str:
    """The trigger interval as a figure.

    >>> trigger_text(2.0), trigger_text(0.25), trigger_text(0.0)
    ('2 s', '250 ms', 'as fast as possible')
    """
    if trigger_s == 0:
        return "as fast as possible"
    number, unit = spark_trigger_text(trigger_s).split()
    return f"{number} {'ms' if unit.startswith('milli') else 's'}"


def trigger_words(trigger_s: float) -> str:
    """The trigger interval in words."""
    return trigger_text(trigger_s) if trigger_s == 0 else f"every {trigger_text(trigger_s)}"


def executors_text(executors: int, cores_per_executor: int, task_cpus: float = 1) -> str:
    """The executors of a setting, and the cores per task unless they are Spark's default of one.

    >>> executors_text(2, 4), executors_text(1, 4, 2)
    ('2 executors x 4 cores', '1 executor x 4 cores (2 per task)')
    """
    per_task = "" if task_cpus == 1 else f" ({task_cpus} per task)"
    return f"{counted(executors, 'executor')} x {counted(cores_per_executor, 'core')}{per_task}"


def setting_text(configuration: Configuration, source_partitions: int | None = None) -> str:
    """A setting in one line, with a stated number of source partitions.

    >>> setting_text(
    ...     Configuration(executors=2, cores_per_executor=4, shuffle_partitions=8, trigger_s=2)
    ... )
    '2 executors x 4 cores, 8 shuffle partitions, trigger every 2 s'
    """
    executors, cores = configuration.executors, configuration.cores_per_executor
    text = (
        f"{executors_text(executors, cores, configuration.task_cpus)}, "
        f"{counted(configuration.shuffle_partitions, 'shuffle partition')}, "
        f"trigger {trigger_words(configuration.trigger_s)}"
    )
    if source_partitions is not None:
        text = f"{counted(source_partitions, 'source partition')}, {text}"
    limit = configuration.max_offsets_per_trigger
    return text if limit is None else f"{text}, at most {counted(limit, 'row')} per batch"


def brief_setting_text(configuration: Configuration) -> str:
    """A setting for a table cell.

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


def nodes_meet(nodes: int, promised: object) -> str:
    """That a number of nodes meets what was promised."""
    return f"{counted(nodes, 'node')} {'meets' if nodes == 1 else 'meet'} {promised}"


def stability_text(prediction: Prediction) -> str:
    """That batches grow, if they do; whether the setting keeps up, and up to which rate."""
    growth = all_words(finding for finding in prediction.findings if finding.code in OF_GROWTH)
    return " ".join([*map(as_sentence, growth), _stability(prediction)])


def _stability(prediction: Prediction) -> str:
    rate = format_rate(prediction.arrivals.rate_per_s)
    max_rate_per_s = prediction.sustainable_rate_per_s
    if not prediction.stable and not prediction.is_close_to_saturation:
        bound = f"This configuration is {stable_up_to(max_rate_per_s)}"
        if not prediction.is_surely_unstable:
            state = f"Not expected to be stable at {rate}, so there is no latency"
            return f"{state}; but {MAY_BE_SHORTER}. {bound} as far as is known."
        state = f"Not stable at {rate}: the backlog grows without bound"
        return f"{state}, so there is no latency. {bound}."
    not_quoted = _first_of(prediction.findings, *NOT_QUOTED)
    if not_quoted is not None:
        return as_sentence(words_of(not_quoted))
    has_room = prediction.arrivals.rate_per_s <= max_rate_per_s < math.inf
    bound = f"; {stable_up_to(max_rate_per_s)}" if has_room else ""
    # The share of time that the query is busy; as fast as possible also what is offered to it.
    load = f"utilisation {percent(prediction.utilization_ratio)}"
    offered_ratio = prediction.offered_load_ratio
    if prediction.configuration.trigger_s <= 0 and offered_ratio is not None:
        load += f", offered load {percent(offered_ratio)}"
    overrun = prediction.overrun_probability
    overruns = f"{percent(overrun)} of the batches overrun the trigger interval"
    if _first_of(prediction.findings, FindingCode.MOSTLY_OVERRUNS) is not None:
        return f"Keeps up with {rate}, but {overruns}; {load}{bound}."
    if overrun >= OVERRUNS_SHOWN_RATIO.value:
        load += f", {overruns}"
    gain_ratio = prediction.gain_ratio
    if gain_ratio is not None:
        load += f"; 10% longer batches make the latency {0.1 * gain_ratio:.0%} longer"
    stable = "Stable" if prediction.is_surely_stable else "Expected to be stable"
    return f"{stable} at {rate}: {load}{bound}."


def _first_of(findings: Iterable[Finding], *codes: FindingCode) -> Finding | None:
    return next((finding for finding in findings if finding.code in codes), None)


def prediction_notes(prediction: Prediction) -> tuple[str, ...]:
    """Findings about a prediction besides its stability, without repetition."""
    stability_codes = NOT_QUOTED | OF_GROWTH | {FindingCode.OVER_CAPACITY}
    shown = (finding for finding in prediction.findings if finding.code not in stability_codes)
    return tuple(dict.fromkeys(all_words(shown)))


def caution_texts(prediction: Prediction) -> tuple[str, ...]:
    """The caution about extrapolated numbers; none within the profiled range."""
    if prediction.calibrated or not prediction.is_quotable:
        return ()
    if prediction.provenance == "declared":
        return ("Based on declared costs: nothing was measured.",)
    return ("Extrapolated: outside the profiled range, see the notes.",)


def headline(plan: StreamAnswer) -> str:
    """The answer in one sentence."""
    growth = _first_of(plan.findings, FindingCode.BATCHES_GROW)
    if growth is not None:
        return as_sentence(words_of(growth)).removesuffix(".")
    if not plan.feasible:
        return f"infeasible: {missed_text(plan)}"
    answer = f"{nodes_meet(plan.nodes, plan.target)} at {format_rate(plan.arrivals.rate_per_s)}"
    ending = _first_of(plan.findings, FindingCode.GROWTH_ENDS_PROMISE)
    if ending is not None:
        return f"{answer} until {ending.names['until']}, as its batches take longer and longer"
    broken = _first_of(plan.findings, FindingCode.STATE_BREAKS_PROMISE)
    if broken is None:
        return answer
    time_left = format_duration(broken.numbers["missed_after_s"])
    return f"{answer} for {time_left}, until the growing state makes it miss the target"


def cautions(plan: StreamAnswer) -> tuple[str, ...]:
    """Cautions that a reader of the headline must know, in words."""
    return all_words(finding for finding in plan.findings if finding.code in CAUTIONS)


def promise_text(plan: Plan) -> str:
    """The planned latency of a feasible plan, compared with the limit."""
    planned, limit = with_limit(plan.planned_latency_s, plan.target.limit_s)
    margin = "including the safety margin"
    if plan.declared is not None:
        margin = f"at the {plan.confidence:.0%} end of each declared range"
    return f"up to {planned} of {limit}, {margin}{likely_text(plan.kept_probability)}"


def likely_text(probability: float | None) -> str:
    """Probability that the targets are met, as an addition to a text."""
    if probability is None:
        return ""
    if probability > _ALL_BUT_SURE:
        return f"; more than {_ALL_BUT_SURE:.0%} certain"
    if probability < 1.0 - _ALL_BUT_SURE:
        return f"; less than {1.0 - _ALL_BUT_SURE:.0%} certain"
    return f"; {probability:.0%} certain"


def notes(plan: StreamAnswer) -> tuple[str, ...]:
    """Findings about the plan and its prediction besides the headline, each once."""
    above = CAUTIONS | OF_GROWTH
    plan_notes = all_words(finding for finding in plan.findings if finding.code not in above)
    texts = dict.fromkeys((*plan_notes, *prediction_notes(plan.prediction)))
    shown_above = cautions(plan)
    return tuple(text for text in texts if text not in shown_above)


def rejection_rows(plan: StreamAnswer) -> list[tuple[str, str, str]]:
    """The neighbours of a plan: the change, the reason why it is ruled out, the setting."""
    rows = []
    for rejection in plan.rejected if plan.feasible else ():
        reason = rejection.reason
        if rejection.latency_s is not None and format_duration(rejection.latency_s) not in reason:
            reason += f" ({format_duration(rejection.latency_s)})"
        rows.append((rejection.change, reason, brief_setting_text(rejection.configuration)))
    return rows


def changes_section(plan: Answer) -> Section:
    """What a plan changes, and when each change applies."""
    return Section(
        title="changes against the profiled run",
        rows=tuple(
            (change.setting, f"{change.before} -> {change.after}", APPLIES[change.applies])
            for change in plan.changes
        ),
    )


def settings_section(plan: Answer) -> Section:
    """Every setting by the name that Spark has for it, and which of them change."""
    changes = {change.setting: change for change in plan.changes}
    rows = []
    for setting in plan.settings:
        change = changes.pop(setting.setting, None)
        where = "query option, " if setting.key in plan.query_options else ""
        rows.append(_setting_row(setting.key, setting.value, change, where))
    # What is set no longer, or in the code of the application.
    rows += [_setting_row(change.setting, change.after, change) for change in changes.values()]
    return Section(
        title="configuration" + (" (~ differs from the profiled run)" if plan.changes else ""),
        rows=tuple(cells for cells, _ in rows),
        marks=tuple(mark for _, mark in rows),
    )


def changed_section(plan: Answer) -> Section:
    """Only the settings that change."""
    settings = settings_section(plan)
    changes = tuple(compress(settings.rows, settings.marks))
    marks = ("~",) * len(changes)
    return Section(title="changes against the profiled run", rows=changes, marks=marks)


def _setting_row(
    name: str, value: str, change: Change | None, where: str = ""
) -> tuple[tuple[str, str, str], str]:
    """The cells of a setting, and its mark."""
    if value == spark_trigger_text(0.0):
        value += f" ({_AS_FAST_AS_POSSIBLE})"
    if change is None:
        return (name, value, ""), ""
    before = change.before
    if before == spark_trigger_text(0.0):
        before = _AS_FAST_AS_POSSIBLE
    return (name, f"{before} -> {value}", f"{where}{_WHEN[change.applies]}"), "~"


def cost_head(plan: StreamAnswer) -> str:
    """The head of a column of prices per hour: their currency, if it is known."""
    return f"{currency_of(plan.node_type) or 'cost'}/h"


def cost_text(cost_per_hour: float | None) -> str:
    """A price per hour, in the currency of the given prices.

    >>> cost_text(0.384), cost_text(None)
    ('0.384', '-')
    """
    return "-" if cost_per_hour is None else format_money(cost_per_hour)
