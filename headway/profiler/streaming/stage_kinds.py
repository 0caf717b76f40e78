"""Stages of a batch by what they compute, which stays the same when their order changes.

Stages without an exchange between them start together, in an order that differs from batch to
batch. So a stage is recognised by the operators of its RDDs, the write to which it belongs, and,
if several are alike, by its place in the plan.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from headway.profiler.operators import Operator, operators_in_words
from headway.profiler.rows import Record

# They have as many tasks as the state has partitions: a limit has one, whatever its rows.
_HOLDS_STATE = re.compile(
    r"StateStoreSave|WithState|StreamingSymmetricHashJoin|StreamingDeduplicate|StreamingGlobalLimit"
)


class StageKind(NamedTuple):
    """What a stage computes; the same in all batches with one plan.

    ``write`` numbers the SQL executions of the batch, of which ``foreachBatch`` has several;
    ``scopes`` are operators; ``rank`` tells stages apart that are otherwise alike.
    """

    write: int
    has_parents: bool
    scopes: tuple[str, ...]
    rank: int

    @property
    def holds_state(self) -> bool:
        """Whether one of its operators keeps state."""
        return any(map(_HOLDS_STATE.search, self.scopes))


def kinds_of_batch(stages: Sequence[Record], levels: Mapping[int, int]) -> dict[int, StageKind]:
    """The kind of each stage of a batch, by its id.

    Without recorded operators, stages differ by their level (``levels``, by id) and order.
    """
    executions = sorted({stage["execution_id"] or 0 for stage in stages})
    alike: dict[StageKind, list[Record]] = defaultdict(list)
    for stage in stages:
        kind = StageKind(
            write=executions.index(stage["execution_id"] or 0),
            has_parents=bool(stage["parent_ids"]),
            scopes=stage["scopes"] or (f"level {levels[stage['stage_id']]}",),
            rank=0,
        )
        alike[kind].append(stage)
    return {
        stage["stage_id"]: kind._replace(rank=rank)
        for kind, of_kind in alike.items()
        for rank, stage in enumerate(sorted(of_kind, key=_position))
    }


def stage_work(
    kind: StageKind | None,
    operators: Sequence[Sequence[Operator]],
    actions: Mapping[int, str | None],
) -> str | None:
    """What a stage computes, in the order in which rows pass its operators; None if not recorded.

    ``operators`` are those that each batch recorded: the most count, since those that no row passed
    are not recorded. Without any, the scopes of its RDDs are used. If a batch has several actions
    (``foreachBatch``), it says to which one the stage belongs: by what it writes, else by its
    number. ``actions`` are their SQL executions, and what each writes; a stage that prepares a
    table for all of them belongs to none.
    """
    scopes = () if kind is None else kind.scopes
    work = operators_in_words(max(operators, key=len), scopes, of_stream=True)
    action = None if kind is None else _action_in_words(kind.write, actions)
    if action is None:
        return work or None
    return f"{action}: {work}" if work else action


def _action_in_words(write: int, actions: Mapping[int, str | None]) -> str | None:
    """The action to which an execution belongs; None if there is only one, or it belongs to none.

    Executions in a row that write the same are one action: those inside a command.

    >>> actions = {0: "append to orders", 1: "merge into latest", 2: "merge into latest", 4: None}
    >>> [_action_in_words(write, actions) for write in range(5)]
    ['append to orders', 'merge into latest', 'merge into latest', None, 'action 3 of 3']
    """
    in_order = sorted(actions)
    groups = [set(group) for _, group in groupby(in_order, key=lambda key: actions[key] or key)]
    if len(groups) < 2 or write not in actions:
        return None
    number = next(number for number, group in enumerate(groups, 1) if write in group)
    return actions[write] or f"action {number} of {len(groups)}"


Span: TypeAlias = tuple[float | None, float | None]
"""When a stage of a batch was submitted and completed [s]; None if not recorded."""


def levels_of_kinds(batches: Iterable[Mapping[StageKind, Span]]) -> dict[StageKind, int]:
    """Level of each kind of stage: after those that had mostly ended before it was submitted.

    Stages of one level share the slots. Which jobs of a batch run at the same time, such as those
    that prepare the sides of a join, only their times tell. Empty if times are missing.

    >>> scan, table = (StageKind(0, False, (name,), 0) for name in ("Scan json", "Scan parquet"))
    >>> join = StageKind(0, True, ("Exchange",), 0)
    >>> batch = {scan: (0.0, 1.0), table: (0.1, 0.4), join: (1.0, 2.0)}
    >>> list(levels_of_kinds([batch]).values())
    [0, 0, 1]
    """
    num_batches: dict[StageKind, int] = defaultdict(int)
    submitted_s: dict[StageKind, float] = defaultdict(float)
    num_before: dict[tuple[StageKind, StageKind], int] = defaultdict(int)
    for batch in batches:
        first_s = min((start_s or 0.0 for start_s, _ in batch.values()), default=0.0)
        for kind, (start_s, end_s) in batch.items():
            if start_s is None or end_s is None:
                return {}
            num_batches[kind] += 1
            submitted_s[kind] += start_s - first_s
            for other, (_, other_end_s) in batch.items():
                ended_s = math.inf if other_end_s is None else other_end_s
                num_before[other, kind] += other != kind and ended_s <= start_s

    def mean_start(kind: StageKind) -> tuple[float, StageKind]:
        return submitted_s[kind] / num_batches[kind], kind

    levels: dict[StageKind, int] = {}
    # In order of their mean start, so that no two stages wait for each other.
    for kind in sorted(num_batches, key=mean_start):
        before = [
            level
            for other, level in levels.items()
            if 2 * num_before[other, kind] > num_batches[kind]
        ]
        levels[kind] = max(before, default=-1) + 1
    return levels


def _position(stage: Record) -> tuple[float, float, int]:
    """Position of a stage in the plan of its batch, by its operators, else by its first RDD."""
    positions = [
        operator.position for operator in stage["operators"] or () if not operator.is_replanned
    ]
    first_rdd_id = stage["first_rdd_id"]
    return (
        min(positions, default=math.inf),
        math.inf if first_rdd_id is None else first_rdd_id,
        stage["stage_id"],
    )
