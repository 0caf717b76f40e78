"""The plan of a job that ends in words: every number with its source."""

from __future__ import annotations

from headway.assumptions.predictions import SPREAD_PER_DOUBLING_RATIO
from headway.digits import format_money
from headway.domain import BatchAnswer, Provenance
from headway.report.assumptions import batch_assumption_lines
from headway.report.columns import aligned, paragraph
from headway.report.deadline import (
    backlog_facts,
    configuration_text,
    deadline_headline,
    run_time_sections,
)
from headway.report.explanation import item, range_lines, sections_text, settings_lines
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
_DRIVER = {Provenance.MEASURED: "measured on the driver", Provenance.DECLARED: "declared"}
# Where each part of the expected run time is from.
_SOURCES = {
    "stages": "makespan of their graph; (J1)-(J5)",
    "light stages": "their work, shared out over the slots",
    "first batches": "what the first batches of the profiled run took longer; (P29)",
}


def batch_explanation_text(plan: BatchAnswer) -> str:
    """The plan explained, as lines of at most 100 columns."""
    return sections_text(
        ("Answer", _answer(plan)),
        ("Declared costs", _declared(plan)),
        ("Binding constraints", [line for text in plan.binding for line in item(text)]),
        ("Distance from the optimum", _optimality(plan)),
        ("Where the run time comes from", _run_time(plan)),
        ("Uncertainty", _uncertainty(plan)),
        ("Assumptions", batch_assumption_lines(plan)),
        ("Run time by nodes", _by_nodes(plan)),
        ("Settings, and when they apply", settings_lines(plan)),
        ("Other improvements", [line for advice in plan.advice for line in item(advice.text)]),
        ("Rejected node types", [line for text in plan.refused_node_types for line in item(text)]),
    )


def _by_nodes(plan: BatchAnswer) -> list[str]:
    table, legend = run_time_sections(plan)
    return [*section_lines(table)[1:], *section_lines(legend)]


def _answer(plan: BatchAnswer) -> list[str]:
    lines = item(f"{deadline_headline(plan)}.")
    lines += item(
        f"Planned run time: up to {format_duration(plan.planned_s)} of "
        f"{format_duration(plan.deadline.limit_s)}; {format_duration(plan.expected_s)} expected"
        f"{likely_text(plan.kept_probability)}."
    )
    lines += item(f"Configuration: {configuration_text(plan)}.")
    lines += [line for _, text in backlog_facts(plan) for line in item(f"Backlog: {text}.")]
    if plan.node_type is not None:
        cost = "" if plan.cost is None else f", {format_money(plan.cost)} per run"
        lines += item(f"Nodes: {counted(plan.nodes, 'node')} of {plan.node_type.name}{cost}.")
    return lines


def _declared(plan: BatchAnswer) -> list[str]:
    if plan.declared is None:
        return []
    return range_lines({"driver": plan.declared.driver, "tasks in all": plan.declared.work})


def _optimality(plan: BatchAnswer) -> list[str]:
    if not plan.feasible:
        max_nodes = f"{plan.frontier[-1].nodes:,}"
        return item(f"Proven: every number of nodes up to {max_nodes} misses the deadline; (P16).")
    if plan.nodes == 1:
        return item("One node is the minimum.")
    fewest = next(
        (point for point in plan.frontier if point.planned_s <= plan.deadline.limit_s), None
    )
    if fewest is not None and fewest.nodes < plan.nodes:
        return item(
            f"{counted(fewest.nodes, 'node')} would meet the deadline, too; the objective is not "
            "the fewest nodes."
        )
    return item(
        f"Every number of nodes below {plan.nodes} was tried, or has too few slots for the work of "
        "the tasks; (P16)."
    )


def _run_time(plan: BatchAnswer) -> list[str]:
    lines = item(_MODELS[plan.backlog is not None])
    ratio = plan.modelled_ratio
    if plan.provenance is Provenance.MEASURED and (plan.backlog is None or ratio < 1.0):
        lines += item(
            f"All of it is scaled by {ratio:.3g}, the profiled run time over that of the model at "
            f"the same slots; {_equation(plan)}."
        )
    total_s = sum(plan.parts_s.values())
    sources = _SOURCES | {"driver": _DRIVER[plan.provenance]}
    rows = [
        (
            name,
            format_duration(part_s),
            f"{part_s / total_s:.0%}",
            # A file of another version may have parts that this one does not.
            sources.get(name, "no source recorded"),
        )
        for name, part_s in plan.parts_s.items()
        if total_s > 0 and part_s / total_s >= 0.005
    ]
    if rows:
        lines += ["  Expected run time by part:", *aligned(rows, right=(1, 2), indent=4)]
    return lines + item(
        f"Physical floor: {format_duration(plan.floor_s)}, with a slot for every task: the driver "
        f"and the longest chain of stages; {_equation(plan)}."
    )


def _equation(plan: BatchAnswer) -> str:
    return "(P16)" if plan.backlog is None else "(P29)"


def _uncertainty(plan: BatchAnswer) -> list[str]:
    ratio = plan.planned_s / plan.expected_s
    lines = item(
        f"Planned at a confidence level of {plan.confidence:.0%}: the run is taken to last "
        f"{ratio:.3g} times as long as expected, "
        + (
            f"for the spread between runs and {SPREAD_PER_DOUBLING_RATIO.value:.0%} per doubling "
            f"of slots beyond the profiled ones; theory.md (P2), {_equation(plan)}."
            if plan.declared is None
            else "with both figures at that end of their declared ranges; theory.md (P19)."
        )
    )
    if not plan.calibrated and plan.declared is None:
        lines += item("Extrapolated: outside the profiled range, see the notes.")
    return lines + [
        line for text in all_words(plan.findings) for line in paragraph(text, lead="  note: ")
    ]
