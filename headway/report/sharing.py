"""What sharing windows would save, in words and as data."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headway.assumptions.sharing import LEAST_SAVED_RATIO, UNEVEN_DEAL_RATIO
from headway.domain.sharing import SharingGain, SharingWay
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.codec import EXACT, data_of
from headway.report.wording import trigger_text
from headway.units import (
    counted,
    format_duration,
    format_durations,
    format_rate,
    spark_trigger_text,
)

if TYPE_CHECKING:
    from headway.profiler.plan_exchanges import FusionAdvice

_HEAD = ("way", "batch", "saved", "from", "to", "p99", "window p99", "state rows", "stored rows")


def sharing_json(gain: SharingGain) -> dict[str, object]:
    """The prediction as JSON; what is unbounded is null."""
    return {
        "windows": [str(spec) for spec in gain.windows.windows],
        "pane_s": gain.windows.pane_ms / 1000,
        "windows_per_row": gain.windows.num_copies,
        **data_of(gain, EXACT),
        "output_mode": "update" if gain.is_update else "append",
        "queries": [
            {
                "name": query.name,
                "windows": [str(spec) for spec in query.windows.windows],
                "batch_mean_s": data_of(query.batch_mean_s, EXACT),
                "utilization_ratio": query.utilization_ratio,
            }
            for query in gain.queries
        ],
        "apart_utilization_ratio": gain.apart_ratio if gain.queries else None,
    }


def sharing_sheet(gain: SharingGain) -> Sheet:
    """The answer, the table, why, what to do."""
    has_code = gain.paying and (gain.queries or gain.best.how != "direct")
    own_names = "put your own names for TIME, KEY and the aggregates:"
    rows = tuple(map(_row, gain.ways))
    return Sheet(
        about="Headway verdict on shared windows",
        headline=_headline(gain),
        verdict=gain.paying,
        sections=(
            Section(head=_HEAD, rows=rows, right=tuple(range(1, len(_HEAD))), indent=2),
            Section(texts=tuple(_reasons(gain)), indent=2),
            Section(texts=(own_names,) if has_code else ()),
            Section(code=tuple(_code(gain)) if has_code else ()),
        ),
    )


def _headline(gain: SharingGain) -> str:
    direct, best = gain.ways[0], gain.best
    workload = f"{gain.windows} at {format_rate(gain.rate_per_s)}"
    is_timed = best.trigger_s > 0.0
    trigger = f"trigger {format_duration(best.trigger_s)}" if is_timed else trigger_text(0.0)
    utilisation = f"utilisation {best.utilization_ratio:.0%}"
    keeps_up = [direct.is_stable, *(math.isfinite(query.batch_mean_s) for query in gain.queries)]
    if not best.is_stable and not any(keeps_up):
        return f"{workload}: not stable, however the windows are counted"
    if gain.queries:
        apart = f"{gain.apart_ratio:.0%} by {counted(len(gain.queries), 'query', 'queries')}"
        if not gain.paying:
            return f"{workload}: sharing does not pay; utilisation {apart}"
        return f"{workload}: {best.how} for all, {trigger}: {utilisation} instead of {apart}"
    if best.how == "direct":
        if not gain.paying:
            return f"{workload}: sharing does not pay; keep counting directly"
        least_s = LEAST_SAVED_RATIO.value * direct.batch_mean_s
        if any(way.pays and way.saved_s > least_s for way in gain.ways):
            return f"{workload}: sharing shortens batches, but delays windows"
        return f"{workload}: sharing saves little; windows counted directly are as good"
    certain = "" if best.saved_low_s > 0 else ", not certain"
    if not direct.is_stable:
        return (
            f"{workload}: {best.how}, {trigger}: stable{certain}, unlike windows counted directly"
        )
    if not is_timed:
        before, after = format_durations(direct.batch_mean_s, best.batch_mean_s)
        return f"{workload}: {best.how}, {trigger}: batches of {after} instead of {before}{certain}"
    before = f"{direct.utilization_ratio:.0%}{certain}"
    return f"{workload}: {best.how}, {trigger}: {utilisation} instead of {before}"


def _reasons(gain: SharingGain) -> Iterator[str]:
    """Each of several queries by itself, when panes pay, their work, and what is assumed."""
    for query in gain.queries:
        batch = f"batch {format_duration(query.batch_mean_s)}"
        busy = f"utilisation {query.utilization_ratio:.0%}"
        yield f"{query.name} alone, {query.windows}: {batch}, {busy}"
    yield from _break_even(gain)
    direct = gain.ways[0]
    if direct.trigger_s == 0.0 or not direct.is_stable:
        yield "saved: for the same rows; shorter batches have fewer"
    yield from _work(gain)
    yield from (f"assumed: {text}" for text in gain.assumed)


def _row(way: SharingWay) -> tuple[str, ...]:
    saved = ("", "", "")
    if way.how != "direct":
        saved = (_signed(way.saved_s), _signed(way.saved_low_s), _signed(way.saved_high_s))
    return (
        way.how,
        format_duration(way.batch_mean_s),
        *saved,
        format_duration(way.batch_p99_s),
        "unavailable" if way.window_p99_s is None else format_duration(way.window_p99_s),
        f"{way.state_rows:,.0f}",
        f"{way.log_rows:,.0f}",
    )


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else ''}{format_duration(abs(seconds))}"


def _break_even(gain: SharingGain) -> Iterator[str]:
    windows = "window" if gain.windows.num_copies == 1.0 else "windows"
    rows, keys = counted(round(gain.batch_rows), "row"), counted(round(gain.batch_keys), "key")
    yield (
        f"{rows} and {keys} per batch, "
        f"{gain.windows.num_copies:.3g} {windows} per row, panes of "
        f"{format_duration(gain.windows.pane_ms / 1000)}"
    )
    if gain.break_even_rows == 0.0:
        yield "panes pay at any number of rows"
    elif math.isinf(gain.break_even_rows):
        yield "panes do not pay at any number of rows"
    else:
        yield f"panes pay from {gain.break_even_rows:,.0f} rows per batch on at these keys"
    if 0.0 < gain.break_even_keys < math.inf:
        yield f"panes pay from {gain.break_even_keys:,.0f} keys per batch on at these rows"
    if gain.merges_ratio < 1.0:
        made = f" with roll-ups of {', '.join(gain.rollups)}" if gain.rollups else ""
        merges = f"{gain.merges_ratio:.0%} of the merges"
        yield f"from a log{made}, windows take {merges} that panes alone would take"


def _work(gain: SharingGain) -> Iterator[str]:
    """The paper's modes, and the effect of moving keys."""
    work = ", ".join(
        f"{mode} {format_duration(seconds)}" for mode, seconds in gain.work_by_mode_s.items()
    )
    longest = format_duration(gain.windows.longest_ms / 1000)
    yield f"copies, merges and state per {longest}: {work}"
    if gain.busiest_ratio > UNEVEN_DEAL_RATIO.value:
        remedy = "no assignment of partitions evens it out; more partitions or salted keys do"
        if gain.moved_ratio < gain.busiest_ratio:
            remedy = "other shuffle partitions would even it out"
        yield f"the busiest slot has {gain.busiest_ratio:.2f} times an even share: {remedy}"


def _code(gain: SharingGain) -> Iterator[str]:
    best = gain.best
    trigger, is_log = spark_trigger_text(best.trigger_s), best.how == "log"
    yield "log = headway.window_log(" if is_log else "counted = headway.shared_windows("
    yield '    df, time="TIME", key=["KEY"],'
    yield '    aggregates={"n": "count(*)"},'
    yield f"    windows={json.dumps([str(spec) for spec in gain.windows.windows])},"
    if is_log:
        emit = "update" if gain.is_update else "early"
        yield f'    store="STORE", emit="{emit}", rollups={json.dumps(list(best.rollups))},'
        yield ")"
        for query in gain.queries:
            windows_json = json.dumps([str(spec) for spec in query.windows.windows])
            sink = re.sub(r"\W", "_", f"write_{query.name}")
            yield "log.add("
            yield f"    windows={windows_json},"
            yield f'    sink={sink}, name="{query.name}",'
            yield ")"
        yield "query = log.start("
        if not gain.queries:
            yield "    sink=write,"
        yield '    checkpoint="CHECKPOINT",'
        yield f'    trigger={{"processingTime": "{trigger}"}},'
        yield ")"
        return
    fused = ', checkpoint="CHECKPOINT"' if best.how == "fused" else ""
    yield f'    how="{best.how}"{fused},'
    yield ")"
    if gain.queries:
        yield "# each query takes its windows by window.end - window.start"
    yield "writer = ("
    yield '    counted.writeStream.outputMode("append")'
    yield f'    .trigger(processingTime="{trigger}")'
    yield ")"


def fusions_json(fusions: Sequence[FusionAdvice]) -> list[dict[str, object]]:
    """Exchanges that a single one could replace, as JSON."""
    return [
        {
            "by": list(fusion.by),
            "exchanges": [list(exchange.keys) for exchange in fusion.exchanges],
            "shuffle_partitions": max(exchange.shuffle_partitions for exchange in fusion.exchanges),
            "spared": fusion.spared,
        }
        for fusion in fusions
    ]


def fusions_text(fusions: Sequence[FusionAdvice]) -> str:
    """Exchanges that a single one could replace, and where that is allowed."""
    if not fusions:
        return "exchanges: no two consecutive ones have a column in common"
    lines = ["exchanges that a single one could replace:"]
    for fusion in fusions:
        number = max(exchange.shuffle_partitions for exchange in fusion.exchanges)
        names = ", ".join(f'"{key}"' for key in fusion.by)
        keys = "; ".join(", ".join(exchange.keys) for exchange in fusion.exchanges)
        lines += [f"  by {keys}", f"    df.repartition({number}, {names}) before the first of them"]
    lines += [
        "  in batch jobs and foreachBatch, from about four aggregations on, since rows are",
        "  then shuffled uncombined; only if those columns have more values than slots;",
        '  in a stream only headway.shared_windows(..., how="fused") does it',
    ]
    return "\n".join(lines)


KINDS = {"windows": Kind(sheet=sharing_sheet, data=sharing_json, main="ways")}
