"""Plans from new and existing checkpoints, and rules of thumb, that were run: their page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from campaign.figures import is_undisturbed

Row = dict[str, Any]

FLOOR_RATIO = 0.05
"""Runs of one setting lie this far apart: missed by less is not missed for sure."""

_PREFACE = (
    "The demo's stateful word count, planned from three fitted runs of each place (see "
    "[accuracy](accuracy.md)) and run as planned. Rates (5 to 60 % of what the place carries) and "
    "limits (0.4 to 5 s) were drawn before anything was run. An existing checkpoint is one that a "
    "run before has left; its partitions are pinned, and the plan must keep to them. A plan that "
    "is not feasible is run at the setting that comes closest."
)

_FINDINGS = """\
The one missed promise, and the worst of the infeasible plans, are the first two runs of the session
with two executors, in the first minute of the executors' JVMs: a batch of the first took 1.09 s;
two runs later one of as many rows, at the same setting, took 0.42 s. Plans speak for a JVM as old
as that of the profiled runs (two minutes here). Right after a restart the same setting is slower,
and the plan warns of it: by 14 % at 30 s, which is all that these runs show of it, since none of
them was that young."""


def page(rows: Sequence[Row]) -> str:
    """The page; the first line of the results says where and when they were made."""
    made, runs = rows[0]["made"], rows[1:]
    plans = [row for row in runs if row["rule"] is None]
    rules = [row for row in runs if row["rule"] is not None]
    lines = ["# Plans that were run, from new and existing checkpoints", "", _PREFACE, "", made, ""]
    lines += [*_kept(plans), *_table(plans), *_pins(plans), _FINDINGS, "", *_rules(rules)]
    return "\n".join(lines)


def _kept(plans: Sequence[Row]) -> Iterator[str]:
    yield "| | kept | kept within 5 % | missed |"
    yield "|---|---|---|---|"
    for checkpoint in ("new", "existing"):
        for feasible, word in ((True, "feasible"), (False, "infeasible")):
            ratios = [
                _of_limit(row)
                for row in plans
                if row["checkpoint"] == checkpoint and row["feasible"] is feasible and _is_told(row)
            ]
            kept = sum(ratio <= 1 for ratio in ratios)
            nearly = sum(1 < ratio <= 1 + FLOOR_RATIO for ratio in ratios)
            yield (
                f"| {checkpoint} checkpoint, planned as {word} | {kept} | {nearly} "
                f"| {len(ratios) - kept - nearly} |"
            )
    left_out = [row["name"] for row in plans if not _is_told(row)]
    yield ""
    if left_out:
        yield (
            "Left out, because others used the machine or fewer than two batches were measured: "
            f"{', '.join(left_out)}."
        )
        yield ""


def _table(plans: Sequence[Row]) -> Iterator[str]:
    yield "| place | checkpoint | promise | rows/s | planned | setting | measured | of limit |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in sorted(filter(_is_told, plans), key=lambda row: row["name"]):
        planned = "over capacity" if row["told_s"] is None else f"{row['told_s']:.2f} s"
        yield (
            f"| {row['place']} | {row['checkpoint']} "
            f"| {row['statistic']} <= {row['limit_s']:.2f} s | {row['rate_per_s']:,.0f} "
            f"| {'' if row['feasible'] else 'infeasible, '}{planned} | {_setting(row)} "
            f"| {_measured_s(row):.2f} s | {_of_limit(row):.0%} |"
        )
    yield ""


def _pins(plans: Sequence[Row]) -> Iterator[str]:
    pinned = [row for row in plans if row["pinned_partitions"] is not None]
    kept = [row for row in pinned if row["state_partitions_seen"] == [row["pinned_partitions"]]]
    yield (
        f"Of {len(pinned)} queries started on an existing checkpoint {len(kept)} ran with the "
        "state partitions that the plan says the checkpoint pins."
    )
    yield ""


def _rules(rules: Sequence[Row]) -> Iterator[str]:
    if not rules:
        return
    first = rules[0]
    yield "## Beside the rules of thumb"
    yield ""
    yield (
        f"{first['place'].capitalize()}, {first['rate_per_s']:,.0f} rows/s, {first['statistic']} "
        f"<= {first['limit_s']:g} s. Planned is the upper end that plans are made on."
    )
    yield ""
    yield "| setting by | setting | planned | keeps the promise | measured | kept it |"
    yield "|---|---|---|---|---|---|"
    for row in rules:
        planned = "over capacity" if row["told_s"] is None else f"{row['told_s']:.2f} s"
        if row["truth"] is None:
            measured, kept = "no two batches in time", "no"
        else:
            measured = f"{_measured_s(row):.2f} s" + (
                "" if row["truth"]["kept_up"] else ", and growing"
            )
            kept = _yes(row["truth"]["kept_up"] and _of_limit(row) <= 1)
        yield (
            f"| {row['rule']} | {_setting(row)} | {planned} | {_yes(row['feasible'])} "
            f"| {measured} | {kept} |"
        )
    yield ""


def _setting(row: Row) -> str:
    setting = row["setting"]
    trigger = f"{setting['trigger_s']:g} s" if setting["trigger_s"] else "as fast as possible"
    nodes = f", {row['nodes']} executors" if row["nodes"] > 1 else ""
    return f"{trigger}, {setting['partitions']} partitions{nodes}"


def _is_told(row: Row) -> bool:
    return row["truth"] is not None and is_undisturbed(row)


def _measured_s(row: Row) -> float:
    return float(row["truth"]["latency"][row["statistic"]])


def _of_limit(row: Row) -> float:
    return _measured_s(row) / float(row["limit_s"])


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
