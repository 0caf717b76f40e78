"""What is said of a plan as labels with texts: its setting and cost, its first minutes, its memory.

Of a target that no configuration meets it is the lowest possible value, and the nearest plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from headway.digits import format_money
from headway.domain import (
    AfterStart,
    Answer,
    FindingCode,
    InfeasiblePlan,
    NodeType,
    Plan,
    Restart,
    StreamAnswer,
)
from headway.domain.plan_parts import MemoryPlan
from headway.domain.target import targets_text
from headway.report.columns import aligned, paragraphs
from headway.report.frontier import max_rate_text
from headway.report.wording import PRINTED_FROM, setting_text
from headway.sparkconf import KNOBS
from headway.units import HOURS_PER_MONTH, counted, format_duration, format_rate, spark_memory_text
from headway.words.predictions import duration_against
from headway.words.sentences import stable_up_to


def facts(plan: StreamAnswer) -> tuple[tuple[str, str], ...]:
    """The facts right under the headline."""
    rows = [
        ("configuration", setting_text(plan.configuration, plan.source_partitions)),
        ("max rate within target", max_rate_text(plan)),
    ]
    rows += purchase_fact(plan)
    if plan.also:
        label = "also met" if plan.feasible else "other targets"
        rows.append((label, targets_text(plan.also)))
    if plan.feasible:
        return (*rows, *after_start_fact(plan))
    return (*_infeasible_facts(plan), *rows)


def purchase_fact(plan: StreamAnswer) -> Iterator[tuple[str, str]]:
    """The nodes of a plan, if a type was given, and the bill."""
    yield from nodes_fact(plan.nodes, plan.node_type, plan.cost_per_hour, profiled_nodes(plan))
    yield from bill_fact(plan)


def nodes_fact(
    nodes: int,
    node_type: NodeType | None,
    cost_per_hour: float | None,
    profiled_nodes: int | None = None,
) -> Iterator[tuple[str, str]]:
    """The nodes to buy, if a type was given, with their price, and what that saves, if known."""
    if node_type is None:
        return
    bought = f"{counted(nodes, 'node')} of {node_type.name}"
    if cost_per_hour is not None:
        currency, per_month = node_type.currency, cost_per_hour * HOURS_PER_MONTH
        by_hour = format_money(cost_per_hour, currency=currency)
        by_month = format_money(per_month, currency=currency)
        bought += f", {by_hour} per hour, {by_month} per month"
        if profiled_nodes is not None and profiled_nodes != nodes:
            change_ratio = profiled_nodes / nodes - 1.0
            change = format_money(abs(change_ratio) * per_month, currency=currency)
            less = "less" if change_ratio > 0 else "more"
            bought += f", {change} {less} than {profiled_nodes:,} for the profiled executors"
    yield "nodes", bought


def profiled_nodes(plan: Answer) -> int | None:
    """Nodes for the executors of the profiled run; None if these are not as large as planned."""
    profiled = {setting.key: setting.profiled for setting in plan.settings}
    executors = profiled.get(KNOBS["executors"].key)
    cores = profiled.get(KNOBS["cores_per_executor"].key)
    if executors is None or cores != str(plan.cores_per_executor):
        return None
    return -(-int(executors) // max(plan.executors // plan.nodes, 1))


def bill_fact(plan: StreamAnswer) -> Iterator[tuple[str, str]]:
    """The month's bill in parts, if requests or space are priced and cost something.

    Without a price of nodes it is that of the store.
    """
    node_type, writes = plan.node_type, plan.writes
    if writes is None or not writes.bill_per_hour:
        return
    currency = writes.currency
    if node_type is not None and plan.cost is not None:
        currency = node_type.currency

    def monthly(cost_per_hour: float) -> str:
        return format_money(cost_per_hour * HOURS_PER_MONTH, currency=currency)

    of_store = f"write requests to {writes.store} {monthly(writes.cost_per_hour or 0.0)}"
    storage_per_hour = writes.storage_cost_per_hour or 0.0
    if storage_per_hour >= PRINTED_FROM * writes.bill_per_hour:
        of_store += f", space {monthly(storage_per_hour)}"
    if node_type is None or plan.cost is None:
        yield "bill", f"{of_store} per month; nodes not priced"
        return
    nodes = monthly(plan.cost - writes.bill_per_hour)
    yield "bill", f"{monthly(plan.cost)} per month: nodes {nodes}, {of_store}"


def after_start_fact(plan: Plan) -> Iterator[tuple[str, str]]:
    """From which minute on the target is met, and what is expected in the first one, if known."""
    after_start = plan.after_start
    if after_start is None or after_start.evidence == "unavailable":
        return
    expected_s = after_start.expected_first_minute_s
    expected = "" if expected_s is None else f"{format_duration(expected_s)}, "
    upper_end = format_duration(after_start.by_minute_s[0])
    first_minute = f"first minute {plan.target.statistic} {expected}up to {upper_end}"
    restart, ready = after_start.restart, ""
    if restart is not None:
        ready = f"; starting takes up to {format_duration(restart.total_s)}"
    yield "after a restart", f"{_holds_text(after_start)}; {first_minute}{ready}"


def after_start_lines(plan: Plan) -> list[str]:
    """The first minutes one by one, and what they are based on."""
    after_start = plan.after_start
    if after_start is None:
        return []
    if after_start.evidence == "unavailable":
        return paragraphs(f"Unavailable: {after_start.reason}.")
    rows = [
        (
            f"minute {minute}",
            f"{plan.target.statistic} up to {format_duration(value_s)}",
            "met" if value_s <= plan.target.limit_s else "missed",
        )
        for minute, value_s in enumerate(after_start.by_minute_s, start=1)
    ]
    first_batch = ""
    if after_start.first_batch_s is not None:
        first_batch = f" The first batch takes {format_duration(after_start.first_batch_s)}."
    return [
        *aligned(rows),
        *paragraphs(
            f"{_holds_text(after_start).capitalize()}: {after_start.reason}; theory.md (P20)."
            f"{first_batch}{restart_text(after_start.restart)} headway plan --from-start plans "
            "with the batch durations of a fresh JVM."
        ),
    ]


def restart_text(restart: Restart | None) -> str:
    """How long starting again takes, by its parts; those that take nothing are left out."""
    if restart is None:
        return ""
    parts = (
        (restart.jvm_s, "until an executor is there"),
        (restart.session_s, "until the first batch begins"),
        (restart.load_s, "to load the snapshot of the state"),
        (restart.replay_s, "to replay the changes since"),
        (restart.first_batch_s, "for the rest of the first batch, with the rows that wait by then"),
    )
    listed = ", ".join(
        f"{format_duration(part_s)} {purpose}" for part_s, purpose in parts if part_s
    )
    total = format_duration(restart.total_s)
    return f" Starting again takes up to {total}: {listed}; theory.md (Z2)."


def _holds_text(after_start: AfterStart) -> str:
    if after_start.holds_from_minute is None:
        return f"the target is missed for {len(after_start.by_minute_s)} minutes and more"
    if after_start.holds_from_minute == 1:
        return "the target is met from the first minute on"
    return f"the target is met from minute {after_start.holds_from_minute} on"


def _infeasible_facts(plan: InfeasiblePlan) -> tuple[tuple[str, str], ...]:
    """The lowest possible value of the target and the nearest plan.

    While batches grow, there is no lowest value that lasts.
    """
    nearest = _nearest_text(plan)
    if any(finding.code is FindingCode.BATCHES_GROW for finding in plan.findings):
        return (("without growth", f"{nearest}, with batches as long as the mean of the profile"),)
    lowest = (f"lowest possible {plan.target.statistic}", _lowest_text(plan))
    return (lowest, ("nearest plan", nearest))


def _lowest_text(plan: InfeasiblePlan) -> str:
    """The lowest value that any configuration reaches at the rate, or why there is none.

    It is one of the planned confidence: with less of it, lower values are reached.
    """
    rate = format_rate(plan.arrivals.rate_per_s)
    if math.isfinite(plan.floor_s):
        return f"{duration_against(plan.floor_s, plan.target.limit_s)} at {rate}"
    if plan.prediction.is_quotable:
        return f"none at {rate}: the upper end of batch durations is too close to saturation"
    if plan.prediction.is_stability_open:
        return (
            f"none: no configuration is known to keep up at {rate}, since the profile has batches "
            "of one size, which do not show what a row costs"
        )
    return (
        f"none: every configuration is {_over_capacity(plan)} at {rate}, or too close to saturation"
    )


def _over_capacity(plan: InfeasiblePlan) -> str:
    """That the nearest plan does not keep up, as surely as that is known."""
    is_sure = plan.prediction.is_surely_unstable
    return "over capacity" if is_sure else "expected to be over capacity"


def _nearest_text(plan: InfeasiblePlan) -> str:
    """Nodes of the nearest plan, and what it reaches."""
    nodes = counted(plan.nodes, "node")
    if plan.prediction.is_stability_open:
        return f"{nodes}, not known to keep up"
    if not (plan.prediction.stable or plan.prediction.is_close_to_saturation):
        bound = stable_up_to(plan.prediction.sustainable_rate_per_s)
        return f"{nodes}, {_over_capacity(plan)}: {bound}"
    if math.isinf(plan.planned_latency_s):
        end = " at the upper end" if plan.prediction.is_quotable else ""
        return f"{nodes}, too close to saturation{end}"
    planned = duration_against(plan.planned_latency_s, plan.target.limit_s)
    return f"{nodes}, {plan.target.statistic} up to {planned}"


def nearest_rows(plan: StreamAnswer, label: str) -> list[tuple[str, str]]:
    """The nearest feasible targets, with the part that is relaxed; none for feasible plans."""
    nearest = () if plan.feasible else plan.nearest
    return [(label.format(target.gives_way), target.text) for target in nearest]


def memory_rows(memory: MemoryPlan) -> list[tuple[str, str, str]]:
    """How the memory of an executor is derived: each part, its size and its source.

    >>> mebibyte = 2**20
    >>> memory = MemoryPlan(
    ...     heap_bytes=1024 * mebibyte,
    ...     overhead_bytes=384 * mebibyte,
    ...     needed_heap_bytes=480 * mebibyte,
    ...     native_bytes=0,
    ...     parts={"Spark": 300 * mebibyte, "state": 100 * mebibyte, "headroom": 80 * mebibyte},
    ...     reason="as requested",
    ... )
    >>> for row in memory_rows(memory):
    ...     print(*row, sep=" | ")
    Spark | 300m | reserved
    state | 100m | recorded, a lower bound
    headroom | 80m |
    heap needed | 480m | their sum
    heap planned | 1g | as requested
    memory overhead | 384m |
    container | 1408m | total
    """
    peak = "peak of one JVM with the driver" if memory.is_measured_locally else "measured peak"
    # Without peaks, what is needed is known from the record of the state.
    bound = "recorded, a lower bound"
    sources = {} if "tasks" in memory.parts else {"Spark": "reserved", "state": bound}
    rows = [
        (name, size_bytes, "" if name == "headroom" else sources.get(name, peak))
        for name, size_bytes in memory.parts.items()
        if size_bytes
    ]
    if memory.parts:
        is_sum = memory.needed_heap_bytes <= sum(memory.parts.values())
        why = "their sum" if is_sum else "the minimum with which Spark and a program run"
        rows.append(("heap needed", memory.needed_heap_bytes, why))
    if memory.profiled_heap_bytes is not None:
        rows.append(("heap profiled", memory.profiled_heap_bytes, memory.profiled_heap))
    rows.append(("heap planned", memory.heap_bytes, memory.reason))
    beside_heap = (
        ("memory overhead", memory.overhead_bytes, ""),
        ("of which state", memory.native_bytes, "RocksDB"),
        ("off-heap memory", memory.off_heap_bytes, "as profiled"),
        ("Python workers", memory.python_bytes, "as profiled, per core"),
    )
    rows += [row for row in beside_heap if row[1]]
    rows.append(("container", memory.container_bytes, "total"))
    return [(name, spark_memory_text(size_bytes), why) for name, size_bytes, why in rows]
