"""The page about restarts and the memory of RocksDB, from the committed results.

python benchmarks/run.py restart_page --output docs/restarts.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from judge_restarts import PREDICTIONS
from keyed_states import Line, Split
from pages import headed, yes_or_no
from result_lines import lines_of
from rocksdb_memory import RESULTS as MEMORY

from headway.errors import HeadwayError
from headway.units import format_duration, spark_memory_text

ALLOWED_RATIO = 0.25
_MIB = 2**20
_SPLIT = Split()


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--predictions", type=Path, default=PREDICTIONS, help="of judge_restarts")
    parser.add_argument("--memory", type=Path, default=MEMORY, help="results of rocksdb_memory")


def text(given: argparse.Namespace) -> str:
    """The page."""
    lines = lines_of(given.predictions)
    if len(lines) < 2:
        raise HeadwayError(
            f"{given.predictions}: no predictions yet; run restart_runs, then judge_restarts"
        )
    made, *rows = lines
    parts = (*_restarts(rows), *_memory(lines_of(given.memory)), made["made"], "")
    return "\n".join(parts)


def error_of(row: Line) -> float:
    """Of the whole restart, over what was measured."""
    return float(row["predicted_s"] / row["measured_s"] - 1.0)


def _restarts(rows: Sequence[Line]) -> Iterator[str]:
    judged = [row for row in rows if not row["is_profiled"]]
    num_within = sum(abs(error_of(row)) <= ALLOWED_RATIO for row in judged)
    usual = [abs(row["usual_s"] / row["measured_s"] - 1.0) for row in judged]
    said = _SPLIT.said
    profiled_keys = _SPLIT.keys[said["profiled"]["size"]]
    yield "# Restarts: predicted and measured\n"
    yield (
        "A query that was down starts a JVM, opens a session, loads its state and reads what "
        "has arrived by then. `headway plan` predicts this by (Z2) of [theory](theory.md). Here "
        "queries that keep totals by key were stopped and started again, each in a JVM of its own, "
        f"on {said['cores']} cores of one machine with Spark's checkpoint on a local disk: "
        f"{', '.join(f'{keys:,}' for keys in _SPLIT.keys.values())} keys in {said['partitions']} "
        "partitions, in Spark's default store and in RocksDB with and without changelogs, twice "
        "each.\n"
    )
    yield (
        f"**What was known.** Of each store, one restart with {profiled_keys:,} "
        "keys was profiled, and the run before it, which began without state. The others were "
        "predicted from these, with their number of keys, and the batches since the snapshot as "
        "they were on the disk. What is profiled and what is judged was written down before the "
        "first run. The usual speeds of the stores, and when a recorded loading counts, were "
        "settled after the runs, from the profiled ones.\n"
    )
    yield (
        f"**Result.** {num_within} of {len(judged)} restarts that were not profiled took within "
        f"{ALLOWED_RATIO:.0%} of what was predicted; the largest error is "
        f"{max(abs(error_of(row)) for row in judged):.0%}. By size: {_by_size(judged)}. Without a "
        f"restart on record, by the usual speeds, {sum(error <= ALLOWED_RATIO for error in usual)} "
        f"are, and the largest error is {max(usual):.0%}; but those speeds were set from the same "
        "profiled runs.\n"
    )
    stateless = [abs(_without_state_s(row) / row["measured_s"] - 1.0) for row in judged]
    yield (
        "Most of a restart of a small state is the start of the JVM, whatever the state. With the "
        f"state left out of the prediction, {sum(error <= ALLOWED_RATIO for error in stateless)} "
        f"of {len(judged)} would be within {ALLOWED_RATIO:.0%}, and the largest error would be "
        f"{max(stateless):.0%}. What RocksDB itself reports of its loading was not used: of an "
        "aggregation, which loads each store twice in a batch, it is the second time.\n"
    )
    yield from headed(
        "| store | keys | repeat | batches since the snapshot | snapshot | predicted | measured "
        "| error | of which state | profiled |"
    )
    for row in rows:
        yield _restart_line(row)
    yield "\n"
    yield "Two repeats of the same restart differ, and no prediction can be better than that:\n"
    yield from headed("| store | keys | first | second | difference |")
    for _, group in groupby(rows, key=lambda row: (row["store"], row["size"])):
        repeats = list(group)
        if len(repeats) == 2:
            first_s, second_s = (row["measured_s"] for row in repeats)
            difference = second_s / first_s - 1.0
            yield (
                f"| {repeats[0]['store']} | {repeats[0]['keys']:,} | {format_duration(first_s)} "
                f"| {format_duration(second_s)} | {difference:+.0%} |"
            )
    yield ""


def _by_size(judged: Sequence[Line]) -> str:
    """The range of errors of each size, smallest first."""
    errors: dict[int, list[float]] = {}
    for row in sorted(judged, key=lambda row: int(row["keys"])):
        errors.setdefault(row["keys"], []).append(error_of(row))
    return "; ".join(
        f"{keys:,} keys {min(of_size):+.0%} to {max(of_size):+.0%}"
        for keys, of_size in errors.items()
    )


def _without_state_s(row: Line) -> float:
    predicted = row["predicted"]
    return float(row["predicted_s"] - predicted["load_s"] - predicted["replay_s"])


def _restart_line(row: Line) -> str:
    predicted = row["predicted"]
    cells = (
        row["store"],
        f"{row['keys']:,}",
        str(row["repeat"]),
        f"{row['replayed_batches']:g}",
        f"{row['snapshot_bytes'] / _MIB:.0f} MiB",
        format_duration(row["predicted_s"]),
        format_duration(row["measured_s"]),
        f"{error_of(row):+.0%}",
        format_duration(predicted["load_s"] + predicted["replay_s"]),
        yes_or_no(row["is_profiled"]),
    )
    return f"| {' | '.join(cells)} |"


def _memory(rows: Sequence[Line]) -> Iterator[str]:
    if not rows:
        return
    said, planned = _SPLIT.said["memory"], rows[0]["planned"]
    whole, half = (
        [row for row in rows if row["run"].startswith(name)] for name in ("bound/", "half/")
    )
    yield "## The memory of RocksDB\n"
    yield (
        f"A query with {said['keys']:,} keys in RocksDB with changelogs ran within the memory that "
        "is planned for it by (Z1): its heap of "
        f"{spark_memory_text(rows[0]['heap_bytes'])}, Spark's overhead, and "
        f"{spark_memory_text(planned['native_bytes'])} for a bound of "
        f"{spark_memory_text(planned['bound_bytes'])} that is given to RocksDB. The memory of the "
        "JVM and of every process that it starts was looked at ten times a second, and they were "
        "ended as soon as it exceeded the bound, now or at a peak since; control groups could not "
        "be used on this machine. Driver and executor were one JVM.\n"
    )
    yield (
        f"Within the planned bound {sum(row['was_killed'] for row in whole)} of {len(whole)} runs "
        f"were ended; within half of it {sum(row['was_killed'] for row in half)} of {len(half)}.\n"
    )
    yield from headed("| run | bound | peak | batches | ended | blocks found in memory |")
    for row in (*whole, *half):
        lookups = row["hits"] + row["misses"]
        found = f"{row['hits'] / lookups:.1%}" if lookups else "-"
        yield (
            f"| {row['run']} | {row['bound_bytes'] / _MIB:,.0f} MiB "
            f"| {row['peak_bytes'] / _MIB:,.0f} MiB | {row['num_batches']} "
            f"| {yes_or_no(row['was_killed'])} | {found} |"
        )
    yield f"\nPlanned share of blocks found in memory: {planned['hit_ratio']:.1%}.\n"
