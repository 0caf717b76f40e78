"""A plan in words: every number with its formula and the formula's source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from headway.assumptions import predictions
from headway.domain import Answer, Metric, RuleOfThumb, StatedRange, StreamAnswer
from headway.domain.sheet import Section
from headway.domain.target import targets_text
from headway.redaction import printable
from headway.report.advice import narrowing_text
from headway.report.assumptions import assumption_lines
from headway.report.columns import aligned, paragraphs
from headway.report.facts import after_start_lines, memory_rows, nearest_rows, purchase_fact
from headway.report.frontier import max_rate_text, needs_rows
from headway.report.sheet_text import section_lines
from headway.report.wording import (
    METRIC_NAMES,
    caution_texts,
    cautions,
    cost_head,
    cost_text,
    headline,
    latency_text,
    notes,
    percent,
    promise_text,
    rejection_rows,
    setting_text,
    shown_parts,
    stability_text,
)
from headway.units import counted, format_duration, format_rate
from headway.words import as_sentence

#: What the driver does in its phases of a batch.
_DRIVER_PHASES = {
    "latest_offset": "driver asks the source",
    "wal_commit": "driver writes offset log",
    "get_batch": "driver asks the source",
    "query_planning": "driver plans the batch",
    "add_batch": "driver starts the stages",
    "commit_offsets": "driver writes commit log",
}
_FORMULAS = {
    Metric.TUPLE: (
        "a row waits for the next trigger and then for its batch: the latency is the rest of the "
        "interval T in which it arrives plus the duration D of the batch of T, so E[L] = "
        "(1/2 + r) E[T^2]/E[T] + a + b phi, minus the time after the commit; theory.md (B5), (B6)"
    ),
    Metric.BATCH: (
        "a batch takes its driver phases plus, level by level, the makespan of its tasks on the "
        "slots; theory.md (T1), (T2), (B3)"
    ),
    Metric.WINDOW: (
        "a window is final once the watermark has passed its end and the next batch has emitted "
        "it: delay + lag + wait for the trigger + max(B, D) + D, in update mode without the delay "
        "and max(B, D); theory.md (W1)-(W3), (T5)"
    ),
}
_NUMBERS = "Numbers in brackets are equations; headway explain --equation P2 shows (P2)."


def explanation_text(plan: StreamAnswer) -> str:
    """The plan explained, as lines of at most 100 columns."""
    return sections_text(
        ("Answer", _answer(plan)),
        ("Declared costs", _declared(plan)),
        ("Binding constraints", paragraphs(*plan.binding)),
        ("Nodes for each target", aligned(needs_rows(plan))),
        ("Distance from the optimum", paragraphs(*_optimality(plan))),
        ("Nearest feasible targets", _nearest(plan)),
        ("Where the latency comes from", _latency(plan)),
        ("Uncertainty", _confidence(plan)),
        ("Assumptions", assumption_lines(plan)),
        ("After a restart", after_start_lines(plan) if plan.feasible else []),
        ("Why not less", aligned(rejection_rows(plan))),
        (f"{plan.target.statistic} with one change", _sensitivities(plan)),
        ("Settings, and when they apply", settings_lines(plan)),
        ("Executor memory", _memory(plan)),
        ("Comparison with rules of thumb", section_lines(rule_section(plan))[1:]),
        ("Other improvements", paragraphs(*(advice.text for advice in plan.advice), lead="  * ")),
        ("Rejected node types", paragraphs(*plan.refused_node_types)),
    )


def sections_text(*sections: tuple[str, list[str]]) -> str:
    """Titles with their lines, if there are any, and how to look up the equations."""
    parts = ["\n".join([title, *lines]) for title, lines in sections if lines]
    return "\n\n".join([*parts, _NUMBERS])


def _answer(plan: StreamAnswer) -> list[str]:
    texts = [headline(plan) + ".", *map(as_sentence, cautions(plan))]
    if plan.also:
        also_met = f"It also meets {targets_text(plan.also)}."
        texts.append(also_met if plan.feasible else f"All targets: {targets_text(plan.promises)}.")
    if plan.feasible:
        texts.append(f"Planned {plan.target.statistic}: {promise_text(plan)}.")
    texts.append(f"Configuration: {setting_text(plan.configuration, plan.source_partitions)}.")
    texts.append(f"Max rate within target: {max_rate_text(plan)}.")
    texts += [f"{label.capitalize()}: {text}." for label, text in purchase_fact(plan)]
    return paragraphs(*texts, stability_text(plan.prediction))


def _declared(plan: StreamAnswer) -> list[str]:
    costs = plan.declared
    if costs is None:
        return []
    names = [f"row in {level.name}" for level in plan.durations.levels] if plan.durations else []
    per_row = dict(zip(names, costs.task_per_row, strict=False))
    return range_lines(
        {"driver, per batch": costs.driver, "task without rows": costs.task_fixed, **per_row}
    )


def range_lines(ranges: Mapping[str, StatedRange]) -> list[str]:
    """Declared figures by name, and what their ranges mean."""
    rows = [("", "low", "middle", "high")] + [
        (name, *map(format_duration, (stated.low_s, stated.mid_s, stated.high_s)))
        for name, stated in ranges.items()
    ]
    return aligned(rows, right=(1, 2, 3)) + paragraphs(
        "Each range contains the true value with a probability of 90%. A figure declared without "
        "a range is taken to be right within a factor of 1.5."
    )


def _optimality(plan: StreamAnswer) -> list[str]:
    optimality = plan.optimality
    if optimality is None or not (plan.feasible or optimality.proved):
        return []
    if not plan.feasible:
        proof = "Proven: every configuration of every number of nodes was tried, or ruled out by a"
        return [f"{proof} bound; theory.md (P5), (P9)."]
    if plan.objective == "latency":
        proof = "The plan has the lowest latency in the search space; (P6)."
    elif plan.nodes == 1:
        proof = "One node is the minimum."
    elif optimality.proved:
        proof = (
            f"Proven: every configuration with fewer than {counted(plan.nodes, 'node')} was tried, "
            "or ruled out by a bound that noise can only worsen; theory.md (P5), (P9)."
        )
    else:
        proof = (
            f"No plan has fewer than {counted(optimality.least_nodes, 'node')}, by the bound of "
            f"theory.md (P9): this one is at most {optimality.gap_ratio(plan.nodes):.0%} above the "
            "minimum. The numbers just below it were tried."
        )
    if optimality.relaxed_nodes is None:
        return [proof]
    needs = f"The convex relaxation, theory.md (P15), needs {optimality.relaxed_nodes:.3g} nodes"
    return [proof, f"{needs}; it allows fractions of nodes and tasks, and has no noise."]


def _nearest(plan: StreamAnswer) -> list[str]:
    lines = aligned(nearest_rows(plan, "with another {}"))
    if not plan.feasible and plan.physical_floor_s is not None:
        reason = "for the driver and one task per stage without rows; theory.md (P13)."
        lines += paragraphs(f"Physical floor: {format_duration(plan.physical_floor_s)}, {reason}")
    return lines


def _latency(plan: StreamAnswer) -> list[str]:
    lines = paragraphs(f"{METRIC_NAMES[plan.target.metric]}: {_FORMULAS[plan.target.metric]}.")
    if not plan.prediction.is_quotable:
        return lines
    name_of = plan.prediction.phase_called
    levels = {name_of(level.name) for level in plan.durations.levels} if plan.durations else set()

    def source(name: str) -> str:
        if name == "wait":
            return "half of the mean interval seen by a row; (P1)"
        if name in levels:
            return "makespan of its tasks; (T2)"
        measured = _DRIVER_PHASES.get(name, "measured on the driver")
        return measured if plan.declared is None else "declared"

    named_s = {name_of(phase): value_s for phase, value_s in plan.prediction.phases_s.items()}
    return lines + part_lines("Mean tuple latency by phase", named_s, source)


def part_lines(title: str, parts_s: Mapping[str, float], source: Callable[[str], str]) -> list[str]:
    """The parts of a time, each with its share and its source; nothing if there is no time."""
    rows = [
        (name, format_duration(part_s), percent(share), source(name))
        for name, part_s, share in shown_parts(parts_s)
    ]
    return [f"  {title}:", *aligned(rows, right=(1, 2), indent=4)] if rows else []


def _confidence(plan: StreamAnswer) -> list[str]:
    durations, run = plan.durations, plan.prediction.next_run
    longer = "longer, "
    if durations is not None:
        longer = f"{durations.planned_ratio:.3g} times as long as expected, "
    reason = "with every figure at that end of its declared range; theory.md (P4), (P19)."
    if plan.declared is None:
        size_ratio = predictions.SPREAD_PER_DOUBLING_RATIO.value
        partitions_ratio = predictions.SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO.value
        reason = (
            f"for the spread between runs, {size_ratio:.0%} per doubling of slots or rows beyond "
            f"what was profiled, and {partitions_ratio:.0%} per doubling of shuffle partitions; "
            "theory.md (P2), (P4)."
        )
    level = f"Planned at a confidence level of {plan.confidence:.0%}"
    texts = [f"{level}: durations are taken {longer}{reason}"]
    noise = "" if durations is None else f"vary by {durations.batch_noise_ratio:.0%}"
    if durations is not None and plan.declared is not None:
        texts.append(f"Noise: batches of a run are assumed to {noise}.")
    elif durations is not None:
        texts.append(
            f"Noise: batches of a run {noise} ({durations.autocorrelation:.0%} of the variance "
            f"lasts over batches), runs by {durations.run_to_run_ratio:.0%}."
        )
    texts += caution_texts(plan.prediction)
    if run is not None and run.narrowing is not None:
        texts.append(f"Next run: {narrowing_text(run, plan.configuration)}; theory.md (E42).")
    return paragraphs(*texts) + paragraphs(*notes(plan), lead="  note: ")


def sensitivity_section(plan: StreamAnswer) -> Section:
    """The latency with one change of a setting."""
    rows, planned_s = [], plan.planned_latency_s
    for changed in plan.sensitivities:
        difference = "-"
        if math.isfinite(changed.latency_s) and 0 < planned_s < math.inf:
            difference = f"{changed.latency_s / planned_s - 1.0:+z.0%}"
        verdict = "met" if changed.keeps_target else "missed"
        rows.append((changed.change, latency_text(changed.latency_s), verdict, difference))
    title = f"{plan.target.statistic} with one change"
    return Section(title=title, rows=tuple(rows), right=(1,))


def _sensitivities(plan: StreamAnswer) -> list[str]:
    lines = section_lines(sensitivity_section(plan))[1:]
    missed = (changed for changed in plan.sensitivities if not changed.keeps_target)
    if any(changed.latency_s <= plan.target.limit_s for changed in missed):
        lines += paragraphs(
            "A latency below the limit that is marked as missed misses another target."
        )
    return lines


def settings_lines(plan: Answer) -> list[str]:
    """Every setting, when it applies, and what it was."""
    was = {change.setting: change.before for change in plan.changes}
    rows = []
    for setting in plan.settings:
        remarks = [f"fixed by {setting.pinned_by}"] if setting.pinned_by else []
        if setting.setting in was:
            remarks.append(f"was {was[setting.setting]}")
        rows.append((setting.key, setting.value, setting.applies, "; ".join(remarks)))
    return aligned(rows)


def _memory(plan: StreamAnswer) -> list[str]:
    if plan.memory is None:
        source = "profiled" if plan.declared is None else "declared"
        return paragraphs(f"As {source}: no memory peak was recorded and no node type was given.")
    return [*aligned(memory_rows(plan.memory), right=(1,)), *paragraphs("theory.md (P10).")]


def rule_section(plan: StreamAnswer) -> Section:
    """Nodes and latency by rules of thumb, for comparison; empty for an infeasible plan."""
    rules, title = plan.rules if plan.feasible else (), "comparison with rules of thumb"
    latency = f"{plan.target.statistic} up to"
    head = ("rule", "nodes", latency, "target", "max rate", cost_head(plan))
    has_cost = any(rule.cost_per_hour is not None for rule in rules)
    width = len(head) if has_cost else len(head) - 1
    rows = tuple(_rule_row(rule)[:width] for rule in rules)
    return Section(title=title, head=head[:width], rows=rows, right=(1, 2))


def _rule_row(rule: RuleOfThumb) -> tuple[str, ...]:
    return (
        printable(rule.rule),
        f"{rule.nodes:,}",
        latency_text(rule.latency_s),
        "met" if rule.keeps_target else "missed",
        format_rate(rule.sustainable_rate_per_s) if rule.sustainable_rate_per_s > 0 else "no rate",
        cost_text(rule.cost_per_hour),
    )
