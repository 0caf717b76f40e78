"""Plans from new and existing checkpoints, and rules of thumb, that were run: their page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pages import headed, yes_or_no

from campaign.figures import Row, is_undisturbed
from campaign.promises import (
    KEPT_HEADER,
    answer_text,
    kept_row,
    measured_s,
    of_limit,
    planned_text,
    setting_text,
)

_PREFACE = (
    "The demo's stateful word count, planned for each place from three fitted runs there (see "
    "[accuracy](accuracy.md)) and run as planned. Rates (5 to 60% of what the place can carry) and "
    "limits (0.4 to 5 s) were drawn before anything was run. An existing checkpoint was written by "
    "an earlier run; it fixes the shuffle partitions, and the plan must keep them. An infeasible "
    "plan is run at the setting that comes closest to the target."
)

_FINDINGS = """\
Plans assume a JVM as old as those of the profiled runs, so each session is warmed up for a minute
first. Before that was done, one target in seventeen was missed, by the first run of a session
with two executors: a batch took 1.09 s there, and 0.42 s two runs later with as many rows at the
same setting. Right after a restart a setting is slower, and the plan warns of it."""


def page(rows: Sequence[Row]) -> str:
    """The page; the first line of the results says where and when they were made."""
    made, runs = rows[0]["made"], rows[1:]
    plans = [row for row in runs if row["rule"] is None]
    rules = [row for row in runs if row["rule"] is not None]
    lines = ["# Plans that were run, from new and existing checkpoints", "", _PREFACE, "", made, ""]
    lines += [*_kept(plans), *_table(plans), *_fixed(plans), _FINDINGS, "", *_rules(rules)]
    return "\n".join(lines)


def _kept(plans: Sequence[Row]) -> Iterator[str]:
    yield from KEPT_HEADER
    for checkpoint in ("new", "existing"):
        for feasible, word in ((True, "feasible"), (False, "infeasible")):
            measured_rows = (
                row
                for row in plans
                if row["checkpoint"] == checkpoint
                and row["feasible"] is feasible
                and _is_measured(row)
            )
            yield kept_row(f"{checkpoint} checkpoint, planned as {word}", measured_rows)
    left_out = [row["name"] for row in plans if not _is_measured(row)]
    yield ""
    if left_out:
        yield (
            "Left out, because others used the machine or fewer than two batches were measured: "
            f"{', '.join(left_out)}."
        )
        yield ""


def _table(plans: Sequence[Row]) -> Iterator[str]:
    yield from headed(
        "| place | checkpoint | target | rows/s | planned | setting | measured | of limit |"
    )
    for row in sorted(filter(_is_measured, plans), key=lambda row: row["name"]):
        yield (
            f"| {row['place']} | {row['checkpoint']} "
            f"| {row['statistic']} <= {row['limit_s']:.2f} s | {row['rate_per_s']:,.0f} "
            f"| {answer_text(row['told_s'], feasible=row['feasible'])} | {_setting(row)} "
            f"| {measured_s(row):.2f} s | {of_limit(row):.0%} |"
        )
    yield ""


def _fixed(plans: Sequence[Row]) -> Iterator[str]:
    pinned = [row for row in plans if row["pinned_partitions"] is not None]
    kept = [row for row in pinned if row["state_partitions_seen"] == [row["pinned_partitions"]]]
    yield (
        f"Of {len(pinned)} queries started on an existing checkpoint, {len(kept)} ran with the "
        "shuffle partitions that the plan reports as fixed by the checkpoint."
    )
    yield ""


def _rules(rules: Sequence[Row]) -> Iterator[str]:
    if not rules:
        return
    first = rules[0]
    yield "## Compared with rules of thumb"
    yield ""
    yield (
        f"{first['place'].capitalize()}, {first['rate_per_s']:,.0f} rows/s, {first['statistic']} "
        f"<= {first['limit_s']:g} s. Planned is the planned latency: the upper end of the "
        "prediction interval."
    )
    yield ""
    yield from headed(
        "| setting by | setting | planned | predicted to meet it | measured | met it |"
    )
    for row in rules:
        if row["truth"] is None:
            measured, kept = "no two batches in time", "no"
        else:
            measured = f"{measured_s(row):.2f} s" + (
                "" if row["truth"]["kept_up"] else ", and the backlog grew"
            )
            kept = yes_or_no(row["truth"]["kept_up"] and of_limit(row) <= 1)
        yield (
            f"| {row['rule']} | {_setting(row)} | {planned_text(row['told_s'])} "
            f"| {yes_or_no(row['feasible'])} | {measured} | {kept} |"
        )
    yield ""


def _setting(row: Row) -> str:
    nodes = f", {row['nodes']} executors" if row["nodes"] > 1 else ""
    return setting_text(row["setting"]) + nodes


def _is_measured(row: Row) -> bool:
    return row["truth"] is not None and is_undisturbed(row)
