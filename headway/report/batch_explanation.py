"""The plan of a job that ends in words: every number with its source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from headway.assumptions.predictions import SPREAD_PER_DOUBLING_RATIO
from headway.domain import BatchAnswer
from headway.report.assumptions import assumption_lines
from headway.report.columns import paragraphs
from headway.report.deadline import (
    backlog_facts,
    configuration_text,
    cost_facts,
    deadline_headline,
    is_partial,
    run_time_sections,
    run_time_texts,
)
from headway.report.explanation import part_lines, range_lines, sections_text, settings_lines
from headway.report.sheet_text import section_lines
from headway.report.wording import likely_text
from headway.units import counted, format_duration
from headway.words import all_words

_MODELS = {
    False: "The driver's time alone, the makespan of the stage graph on the slots, and the work of "
    "light stages shared out over the slots; theory.md (P16), (J1)-(J5).",
    True: "One batch after the other, each with the driver's time and the makespans of its stages "
    "on the slots, and what the first ones take longer; theory.md (P29), (T1).",
}
_DRIVER = {"measured": "measured on the driver", "declared": "declared"}
# Where each part of the expected run time is from.
_SOURCES = {
    "stages": "makespan of their graph; (J1)-(J5)",
    "light stages": "their work on the slots, or the chain of their longest tasks",
    "first batches": "what the first batches of the profiled run took longer; (P29)",
}


def batch_explanation_text(plan: BatchAnswer) -> str:
    """The plan explained, as lines of at most 100 columns."""
    table, *legends = run_time_sections(plan)
    return sections_text(
        ("Answer", _answer(plan)),
        ("Declared costs", _declared(plan)),
        ("Binding constraints", paragraphs(*plan.binding)),
        ("Distance from the optimum", paragraphs(_optimality(plan))),
        ("Where the run time comes from", _run_time(plan)),
        ("Uncertainty", _uncertainty(plan)),
        ("Assumptions", assumption_lines(plan)),
        (
            "Run time by nodes",
            [*section_lines(table)[1:], *chain.from_iterable(map(section_lines, legends))],
        ),
        ("Settings, and when they apply", settings_lines(plan)),
        ("Other improvements", paragraphs(*(advice.text for advice in plan.advice))),
        ("Rejected node types", paragraphs(*plan.refused_node_types)),
    )


def _answer(plan: BatchAnswer) -> list[str]:
    expected, planned, limit = run_time_texts(plan)
    certain = likely_text(plan.kept_probability)
    texts = [
        f"{deadline_headline(plan)}.",
        f"Planned run time: up to {planned} of {limit}; {expected} expected{certain}.",
        f"Configuration: {configuration_text(plan)}.",
        *(f"Backlog: {text}." for _, text in backlog_facts(plan)),
        *(f"Nodes: {text}." for _, text in cost_facts(plan)),
    ]
    return paragraphs(*texts)


def _declared(plan: BatchAnswer) -> list[str]:
    costs = plan.declared
    return range_lines({"driver": costs.driver, "tasks in all": costs.work}) if costs else []


def _optimality(plan: BatchAnswer) -> str:
    if not plan.feasible:
        max_nodes = f"{plan.frontier[-1].nodes:,}"
        return f"Proven: every number of nodes up to {max_nodes} misses the deadline; (P16)."
    if plan.nodes == 1:
        return "One node is the minimum."
    limit_s = plan.deadline.limit_s
    fewest = next(
        (point.nodes for point in plan.frontier if point.planned_s <= limit_s), plan.nodes
    )
    if fewest < plan.nodes:
        nodes = counted(fewest, "node")
        return f"{nodes} would meet the deadline, too; the objective is not the fewest nodes."
    fewer = f"Every number of nodes below {plan.nodes}"
    return f"{fewer} was tried, or has too few slots for the work of the tasks; (P16)."


def _run_time(plan: BatchAnswer) -> list[str]:
    lines = paragraphs(_MODELS[plan.backlog is not None])
    lines += paragraphs(*_scaling(plan))
    sources = _SOURCES | {"driver": _DRIVER[plan.provenance]}

    def source(name: str) -> str:
        # A file of another version may have parts that this one does not.
        return sources.get(name, "no source recorded")

    lines += part_lines("Expected run time by part", plan.parts_s, source)
    return lines + paragraphs(
        f"Physical floor: {format_duration(plan.floor_s)}, {_floor(plan)}; {_equation(plan)}."
    )


def _scaling(plan: BatchAnswer) -> Iterator[str]:
    """How the recorded run enters."""
    ratio, equation = plan.modelled_ratio, _equation(plan)
    if is_partial(plan):
        part = "of which the log contains only a part"
        yield f"It is not scaled to the profiled run, {part}; {equation}."
    elif plan.provenance == "measured" and plan.backlog is None and ratio < 1.0:
        yield (
            f"The profiled run took {ratio:.3g} times as long as the model at the same slots; the "
            f"time of the stages is scaled to it, that of the driver was measured; {equation}."
        )
    elif plan.provenance == "measured" and (plan.backlog is None or ratio < 1.0):
        yield (
            f"All of it is scaled by {ratio:.3g}, the profiled run time over that of the model at "
            f"the same slots; {equation}."
        )


def _floor(plan: BatchAnswer) -> str:
    if plan.provenance == "measured" and plan.backlog is None:
        return (
            "with any number of slots: the driver's time alone, and the longest chain of stages "
            "with the longest recorded task of each"
        )
    return "with a slot for every task: the driver and the longest chain of stages"


def _equation(plan: BatchAnswer) -> str:
    return "(P16)" if plan.backlog is None else "(P29)"


def _uncertainty(plan: BatchAnswer) -> list[str]:
    ratio = plan.planned_s / plan.expected_s
    reason = "with both figures at that end of their declared ranges; theory.md (P19)."
    if plan.declared is None:
        reason = (
            f"for the spread between runs and {SPREAD_PER_DOUBLING_RATIO.value:.0%} per doubling "
            f"of slots beyond the profiled ones; theory.md (P2), {_equation(plan)}."
        )
    planned = f"the run is taken to last {ratio:.3g} times as long as expected, {reason}"
    lines = paragraphs(f"Planned at a confidence level of {plan.confidence:.0%}: {planned}")
    if is_partial(plan):
        lines += paragraphs("Not calibrated: the log may lack a part of the run, see the notes.")
    elif not plan.calibrated and plan.declared is None:
        lines += paragraphs("Extrapolated: outside the profiled range, see the notes.")
    return lines + paragraphs(*all_words(plan.findings), lead="  note: ")
