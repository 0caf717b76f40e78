"""Number of partitions and placement of keys for ordered work, in words and as data."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice

from headway.assumptions.planning import WORTH_PLACING_RATIO
from headway.domain.ordered import KeyPlacement, OrderedPlan
from headway.domain.plan_parts import PartitionChoice, PlannedSkew
from headway.domain.sheet import Kind, Section, Sheet
from headway.domain.stage import stage_called
from headway.formats.codec import EXACT, data_of
from headway.redaction import printable
from headway.units import counted, format_duration, format_rate

_HEAD = ("shuffle partitions", "fullest", "stage mean", "stage p99", "")
_NUMBERS = (0, 1, 2, 3)
_SHOWN_KEYS = 5
_MOST_KEY_CHARS = 24
_PRINTED_FROM = 0.001


def ordered_json(plan: OrderedPlan) -> dict[str, object]:
    """The plan as JSON."""
    placed, slots = plan.placed, plan.real_time
    buckets = zip(placed.keys, placed.key_share, placed.buckets, strict=True)
    real_time = (
        None
        if slots is None
        else {
            "tasks": dict(zip(slots.stages, slots.num_tasks, strict=True)),
            "rate_per_s": slots.rate_per_s,
            "one_number_rate_per_s": slots.one_number_rate_per_s,
            "bound_per_s": slots.bound_per_s,
        }
    )
    return {
        **data_of(plan, EXACT),
        "today": _choice_json(plan.today),
        "choices": [_choice_json(choice) for choice in plan.choices],
        "best": _choice_json(plan.best),
        "placed": {
            **_choice_json(placed.choice),
            "buckets": [
                {"key": key, "share": share, "bucket": bucket} for key, share, bucket in buckets
            ],
            "spread_ids": list(placed.spread_ids),
        },
        "real_time": real_time,
    }


def _choice_json(choice: PartitionChoice) -> dict[str, object]:
    return {
        "shuffle_partitions": choice.shuffle_partitions,
        "largest_share": choice.largest_share,
        "stage_mean_s": choice.mean_s,
        "stage_p99_s": choice.p99_s,
    }


def placement_csv(placed: KeyPlacement) -> str:
    """The placed keys as a CSV file: ``headway.ordered(place=...)`` reads it."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("key", "share", "bucket"))
    for key, share, bucket in zip(placed.keys, placed.key_share, placed.buckets, strict=True):
        rows.writerow((key, f"{share:.9g}", bucket))
    return out.getvalue()


def ordered_sheet(plan: OrderedPlan, *, file: str | None = None) -> Sheet:
    """The answer, the table, why, what to paste; ``file`` is that of the placed keys."""
    headline, comparison = _headline(plan)
    by_file = () if file else ("-o placed.csv writes the table of placed keys",)
    rows = []
    for choice in plan.choices:
        is_today = choice.shuffle_partitions == plan.today.shuffle_partitions
        best = "best without placing" if choice is plan.best else ""
        rows.append(_row(choice, ", ".join(filter(None, ("today" if is_today else "", best)))))
    rows.append(_row(plan.placed.choice, f"{counted(len(plan.placed.keys), 'key')} placed"))
    return Sheet(
        about="Headway plan of keys",
        headline=headline,
        verdict=plan.keeps_up,
        sections=(
            Section(texts=(comparison,), indent=2, close=True),
            Section(head=_HEAD, rows=tuple(rows), right=_NUMBERS, indent=2),
            Section(texts=tuple(_reasons(plan)), indent=2),
            *_code(plan, file or "placed.csv"),
            Section(texts=by_file),
        ),
    )


def skew_section(skew: PlannedSkew) -> Section:
    """Effect of the heaviest key on its stage at a planned setting: the limit, then the table."""
    share, needs = f"{skew.hottest_share:.1%} of the rows", format_duration(skew.serial_s)
    subject = f"tasks are as unequal as if one key had {share}: it"
    if skew.hottest_key is not None:
        subject = f"key {_named(skew.hottest_key)} ({share})"
    longer = ", longer than the trigger interval: batches overrun on any cluster"
    consequence = "" if skew.keeps_up else longer
    rows = [_row(skew.planned, "planned")]
    if skew.best.shuffle_partitions != skew.planned.shuffle_partitions:
        rows.append(_row(skew.best, "shortest p99 without placing keys"))
    if skew.placed is not None:
        placed = f"{counted(skew.num_placed, 'key')} placed, by headway ordered"
        rows.append(_row(skew.placed, placed))
    title, text = f"skew of {_stage_named(skew.stage, skew.work)}", f"{subject} alone needs {needs}"
    texts = (f"{text} per batch{consequence}",)
    return Section(title=title, texts=texts, head=_HEAD, rows=tuple(rows), right=_NUMBERS)


def _headline(plan: OrderedPlan) -> tuple[str, str]:
    """The answer, and what it is compared with."""
    placed, best, today = plan.placed.choice, plan.best, plan.today
    stage = _stage_named(plan.stage, plan.stage_work.get(plan.stage))
    today_text = f"today {format_duration(today.p99_s)} on {today.shuffle_partitions}"
    pays = best.p99_s >= WORTH_PLACING_RATIO.value * placed.p99_s
    choice = placed if pays else best
    partitions = counted(choice.shuffle_partitions, "shuffle partition")
    p99 = f"p99 {format_duration(choice.p99_s)} on {partitions}"
    answer = f"{stage} at {format_rate(plan.rate_per_s)}: {p99}"
    if not pays:
        return answer, f"{today_text}; placing keys would save little"
    without = f"{format_duration(best.p99_s)} on {best.shuffle_partitions}"
    return f"{answer} with placed keys", f"without placing {without}, {today_text}"


def _row(choice: PartitionChoice, remark: str) -> tuple[str, ...]:
    times = map(format_duration, (choice.mean_s, choice.p99_s))
    return f"{choice.shuffle_partitions:,}", f"{choice.largest_share:.1%}", *times, remark


def _reasons(plan: OrderedPlan) -> Iterator[str]:
    has_heavy_key = not plan.keeps_up or plan.hottest_share >= _PRINTED_FROM
    per_row = f"{format_duration(plan.task_per_row_s)} each and " if plan.task_per_row_s else ""
    keys = f"; {counted(plan.num_keys, 'key')} with {plan.known_share:.0%} of the rows"
    yield (
        f"{plan.batch_rows:,.0f} rows per batch, {per_row}{format_duration(plan.task_fixed_s)} per "
        f"task, on {counted(plan.num_slots, 'slot')}{keys if has_heavy_key else ''}"
    )
    if plan.num_map_tasks:
        yield (
            f"{counted(plan.num_map_tasks, 'task')} before it combine the rows of a key, so that "
            "a batch has a few rows of each: shares refer to those rows"
        )
    if has_heavy_key:
        yield from _about_heavy_keys(plan)
    else:
        yield f"no key is heavy: none has {_PRINTED_FROM:.1%} of the rows"
    yield (
        "shuffle partitions and placement are fixed by the checkpoint of a stateful query: another "
        "needs a new checkpoint"
    )
    slots = plan.real_time
    if slots is not None:
        tasks = ", ".join(
            f"{number} of {_stage_named(name, plan.stage_work.get(name))}"
            for name, number in zip(slots.stages, slots.num_tasks, strict=True)
        )
        yield (
            f"Real-Time Mode on {counted(plan.num_slots, 'slot')}: tasks {tasks} carry "
            f"{format_rate(slots.rate_per_s)}; one number for all behind exchanges "
            f"{format_rate(slots.one_number_rate_per_s)}, at most {format_rate(slots.bound_per_s)}"
        )


def _about_heavy_keys(plan: OrderedPlan) -> Iterator[str]:
    """What the heaviest key needs alone, and where the heaviest ones would be placed."""
    consequence = "no number of partitions makes the stage faster"
    if not plan.keeps_up:
        consequence = (
            f"more than the trigger interval of {format_duration(plan.trigger_s)}: batches "
            "overrun on any cluster; split the key, or do less per row"
        )
    key = f"key {_named(plan.hottest_key)} ({plan.hottest_share:.1%} of the rows)"
    yield f"{key} alone needs {format_duration(plan.serial_s)} per batch: {consequence}"
    placed = zip(plan.placed.keys, plan.placed.key_share, plan.placed.buckets, strict=True)
    shown = islice(placed, _SHOWN_KEYS)
    heaviest = ", ".join(f"{_named(key)} {share:.1%} -> {bucket}" for key, share, bucket in shown)
    ellipsis = ", ..." if len(plan.placed.keys) > _SHOWN_KEYS else ""
    yield f"placed, key to bucket: {heaviest}{ellipsis}"


def _stage_named(name: str, work: str | None) -> str:
    return stage_called(name if name.startswith("stage ") else f"stage {name}", work)


def _named(key: str | int) -> str:
    text = printable(str(key))
    return repr(text if len(text) <= _MOST_KEY_CHARS else f"{text[: _MOST_KEY_CHARS - 3]}...")


def _code(plan: OrderedPlan, file: str) -> tuple[Section, ...]:
    number, ids = plan.placed.choice.shuffle_partitions, plan.placed.spread_ids
    own_names = "put your own names for KEY, ORDER, the step and what it keeps and returns:"
    by_headway = (
        f'spark.conf.set("spark.sql.shuffle.partitions", "{number}")',
        'out = headway.ordered(df, key="KEY", by=["ORDER"], step=step, state=STATE,',
        f'                      output=OUTPUT, place="{file}", checkpoint=CHECKPOINT)',
    )
    by_spark = (
        "import csv",
        "from pyspark.sql import functions as F",
        f'placed = [F.lit(x) for row in csv.DictReader(open("{file}"))',
        '          for x in (row["key"], int(row["bucket"]))]',
        f"others = F.array(*map(F.lit, [{', '.join(map(str, ids))}]))",
        f'spread = F.pmod(F.xxhash64("KEY"), F.lit({number})).cast("int") + 1',
        'bucket = F.coalesce(F.create_map(*placed)[F.col("KEY").cast("string")],',
        "                    F.element_at(others, spread))",
        'df.withColumn("bucket", bucket)  # then groupBy("bucket"), not groupBy("KEY")',
    )
    return (
        Section(texts=(own_names,)),
        Section(code=by_headway),
        Section(texts=("or with Spark alone, where a group may hold several keys:",)),
        Section(code=by_spark),
    )


KINDS = {"keys": Kind(sheet=ordered_sheet, data=ordered_json, main="choices")}
