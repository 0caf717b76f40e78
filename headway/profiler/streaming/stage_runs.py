"""One stage in the batches of some runs: all of it that does not depend on the age of the JVM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from headway.assumptions.fits import LEAST_HOT_RATIO, MOST_HOT_RATIO
from headway.domain import Coalescing, RowsLaw, StageProfile, TasksRule
from headway.domain.profile import is_rocksdb
from headway.few_numbers import median_of
from headway.lazy_classes import dataclass
from headway.models.arrays import Array
from headway.models.estimation.regression import is_spread, is_spread_within, power_law
from headway.models.estimation.task_times import AlmostEmpty
from headway.profiler.streaming import batch_sizes
from headway.profiler.streaming.adaptive import coalescing_of
from headway.profiler.streaming.samples import BatchSample, QueryRun, StageSample, batches_of
from headway.profiler.streaming.source_rules import source_reading
from headway.profiler.streaming.stage_kinds import stage_work
from headway.profiler.streaming.static_stages import static_rows
from headway.profiler.streaming.times_at_age import by_run

_BATCHES_WITH_NAMES = 20
_LEAST_STATE = {"rows": 1.0, "commit_s": 1e-9}
# Operators that call code of the user, which may wait for anything, and those around typed ones.
_OF_USERS = re.compile(r"Python|Pandas|Arrow|Map|FromObject|ToObject|TransformWithState|Generate")


class CostTerms(NamedTuple):
    """What the time of a task is a sum of: a column for each of its costs, by batch.

    There is always one of ones and one of rows. ``state_share`` is what the stage has of all rows
    of the state, ``copies_join`` whether its store copies the rows of a join.
    """

    columns: Array
    tells_partitions: bool
    tells_state: bool
    copies_join: bool
    state_share: float


@dataclass(frozen=True, kw_only=True, eq=False)
class StageRuns:
    """One stage, by its index, in the batches of some runs, one run after another.

    ``tables`` are the indices of stages that read static tables.
    """

    runs: Sequence[QueryRun]
    stage_index: int
    tables: frozenset[int] = frozenset()

    @cached_property
    def batches(self) -> list[BatchSample]:
        return batches_of(self.runs)

    @cached_property
    def samples(self) -> list[StageSample]:
        return [sample for run in self.runs for sample in self._samples_of(run)]

    @cached_property
    def weights(self) -> Array:
        return batch_sizes.batch_weights(self.runs)

    @cached_property
    def num_tasks(self) -> Array:
        return np.array([sample.num_tasks for sample in self.samples], dtype=np.float64)

    @cached_property
    def has_tasks(self) -> bool:
        """Whether its tasks are recorded."""
        return all(sample.has_tasks for sample in self.samples)

    @cached_property
    def rows_read(self) -> Array:
        """Rows that it reads in each batch."""
        rows_read = np.array([sample.rows_read for sample in self.samples])
        # A source that reports no input rows reads those of the batch.
        return rows_read if np.all(rows_read > 0) else self._batch_rows

    @cached_property
    def task_rows(self) -> Array:
        """Mean rows of a task in each batch."""
        return self.rows_read / self.num_tasks

    @cached_property
    def rows_of_tasks(self) -> Array:
        """The same, with the rows of the batch only for those in which no input is reported."""
        return np.array([rows_per_task(batch, self.stage_index) for batch in self.batches])

    @cached_property
    def rows_variances(self) -> Array:
        """Variance of the rows of its tasks in each batch."""
        return np.array([sample.rows_variance for sample in self.samples])

    @cached_property
    def cpu_s(self) -> float:
        """Mean CPU time of a task [s]."""
        cpu_s = [sample.cpu_s / sample.num_tasks for sample in self.samples]
        return batch_sizes.weighted_mean(cpu_s, self.weights)

    @cached_property
    def commit_shares(self) -> Array:
        """What it has of the state commits of each batch. [-]"""
        return _state_shares(self.batches, self.stage_index, "commit_s")

    @cached_property
    def without_costs(self) -> StageProfile:
        """Its profile but for the times of its tasks."""
        runs, samples = self.runs, self.samples
        coalescing = coalescing_of(runs, self.stage_index)
        rule, num_source_tasks = self._tasks_rule(coalescing)
        operators = [sample.operators for sample in samples]
        return StageProfile(
            name=f"stage {self.stage_index}",
            work=stage_work(samples[0].kind, operators, _actions(runs, self.tables)),
            level=samples[0].level,
            tasks_rule=rule,
            num_source_tasks=num_source_tasks,
            coalescing=coalescing,
            source_tasks=source_reading(runs, self.stage_index)[0] if rule == "source" else None,
            resources=runs[-1].resources.get(samples[-1].resource_profile_id),
            rows=self._rows_law(),
            task_fixed_s=0.0,
            task_per_row_s=0.0,
            task_noise_ratio=0.0,
            # A hot key gives rows to one task; other tasks do not follow keys.
            hot_share_ratio=hot_share_ratio(samples) if rule == "shuffle" else 0.0,
            separation="totals",
        )

    @cached_property
    def cost_terms(self) -> CostTerms | None:
        """What batches of several sizes tell apart; None if there is one size, by (E2)."""
        task_rows, runs = self.task_rows, self.runs
        if not (is_spread(task_rows) and is_spread(task_rows * batch_sizes.without_feedback(runs))):
            return None
        terms = [np.ones_like(task_rows), task_rows]
        written = [float(_num_readers(run, self.stage_index)) for run in runs]
        partitions = np.repeat(written, [len(run.batches) for run in runs])
        tells_partitions = _is_separable(partitions, np.column_stack(terms))
        if tells_partitions:
            terms.append(partitions)
        held_rows = np.concatenate([run.held_rows for run in runs])
        in_stage = _state_shares(self.batches, self.stage_index, "rows")
        in_store = held_rows * in_stage / self.num_tasks
        copies_join = self.has_tasks and _copies_a_join(runs[-1], in_stage)
        tells_state = copies_join or (
            most_states_grow(runs, in_stage) and _is_separable(in_store, np.column_stack(terms))
        )
        if tells_state:
            terms.append(in_store)
        return CostTerms(
            columns=np.column_stack(terms),
            tells_partitions=tells_partitions,
            tells_state=tells_state,
            copies_join=copies_join,
            state_share=float((held_rows * in_stage).sum()) / max(float(held_rows.sum()), 1.0),
        )

    @cached_property
    def runs_own_operators(self) -> bool:
        """Whether it is known to run Spark's own operators only."""
        return runs_own_operators(self.samples)

    @cached_property
    def has_unequal_tasks(self) -> bool:
        """Whether the rows of its tasks show what a row costs (E2)."""
        is_unequal = is_spread_within(self.rows_variances, self.task_rows)
        return is_unequal and not runs_code_of_users(self.samples)

    def almost_empty(self, task_mean_s: Array, empty_task_s: Array) -> list[AlmostEmpty]:
        """It in batches without rows that have its stages, and that do not compile its code.

        Its mean times of a task are given for the other batches, and for all those without rows.
        """
        if not self._without_rows:
            return []
        usual_s = [float(np.mean(task_s)) for task_s in by_run(task_mean_s, self.runs)]
        return [
            AlmostEmpty(
                task_s=float(empty_task_s[batch_index]),
                rows=rows_per_task(batch, self.stage_index),
                usual_task_s=usual_s[run_index],
                usual_rows=self._usual_rows[run_index],
                readers=_num_readers(self.runs[run_index], self.stage_index),
            )
            for batch_index, run_index, batch in self._without_rows
        ]

    @cached_property
    def _usual_rows(self) -> list[float]:
        """Mean rows of a task in each run."""
        return [float(np.mean(rows)) for rows in by_run(self.rows_of_tasks, self.runs)]

    @cached_property
    def _without_rows(self) -> list[tuple[int, int, BatchSample]]:
        """These batches, each with its number among all without rows, and that of its run."""
        without_rows = [
            (run_index, run, batch)
            for run_index, run in enumerate(self.runs)
            for batch in run.without_rows
        ]
        return [
            (batch_index, run_index, batch)
            for batch_index, (run_index, run, batch) in enumerate(without_rows)
            if batch.signature == self.batches[0].signature
            and batch.stages[self.stage_index].has_tasks
            # The first one compiles the code that later ones run; its own operators may be missing.
            and (batch.batch_id > 0 or not runs_own_operators(self._samples_of(run)))
        ]

    def _tasks_rule(self, coalescing: Coalescing | None) -> tuple[TasksRule, int | None]:
        """What decides the number of its tasks, and their number if it is fixed."""
        num_tasks = int(median_of(self.num_tasks))
        if coalescing is not None:
            return "coalesced", max(num_tasks, 1)
        has_parents = self.samples[0].has_parents
        if has_parents and all(
            sample.num_tasks == run.configuration.shuffle_partitions
            for run in self.runs
            for sample in self._samples_of(run)
        ):
            return "shuffle", None
        is_fixed = has_parents or self.stage_index in self.tables
        return "fixed" if is_fixed else "source", num_tasks

    def _rows_law(self) -> RowsLaw:
        """Its rows by those of the batch."""
        if self.stage_index in self.tables:
            return RowsLaw(scale=0.0, exponent=0.0, static_rows=median_of(self.rows_read))
        of_tables = static_rows(self.runs, self.stage_index, self.tables)
        of_stream = power_law(self._batch_rows, self.rows_read - of_tables, self.weights)
        return RowsLaw(scale=of_stream.scale, exponent=of_stream.exponent, static_rows=of_tables)

    @cached_property
    def _batch_rows(self) -> Array:
        return np.array([batch.num_rows for batch in self.batches], dtype=np.float64)

    def _samples_of(self, run: QueryRun) -> list[StageSample]:
        return [batch.stages[self.stage_index] for batch in run.batches]


def runs_own_operators(samples: Sequence[StageSample]) -> bool:
    """Whether a stage is known to run Spark's own operators only."""
    return not runs_code_of_users(samples) and any(sample.operators for sample in samples)


def runs_code_of_users(samples: Sequence[StageSample]) -> bool:
    """Whether a stage runs Python, or an operator that calls functions of the user."""
    names = {operator.name for sample in samples for operator in sample.operators}
    return any(sample.python_s for sample in samples) or any(map(_OF_USERS.search, names))


def rows_per_task(batch: BatchSample, stage_index: int) -> float:
    """Rows of the batch, if its source does not report what its tasks read."""
    stage = batch.stages[stage_index]
    return (stage.rows_read or batch.num_rows) / stage.num_tasks


def hot_share_ratio(samples: Sequence[StageSample]) -> float:
    """Share of the rows that one task has beyond an even share; 0 below a tenth.

    A hot key keeps its share for any number of tasks, but random unevenness does not. So of several
    numbers of tasks, the one with the smallest share counts.
    """
    of_count: dict[int, list[float]] = {}
    for sample in samples:
        if sample.num_tasks > 1 and sample.rows_read > 0:
            even = 1.0 / sample.num_tasks
            beyond = (sample.rows_largest / sample.rows_read - even) / (1.0 - even)
            share = min(max(beyond, 0.0), MOST_HOT_RATIO.value)
            of_count.setdefault(sample.num_tasks, []).append(share)
    smallest_share = min((median_of(shares) for shares in of_count.values()), default=0.0)
    return smallest_share if smallest_share >= LEAST_HOT_RATIO.value else 0.0


def _num_readers(run: QueryRun, stage_index: int) -> int:
    """Tasks that a task of the stage writes for; none if no exchange follows."""
    behind = run.batches[0].stages[stage_index + 1 : stage_index + 2]
    followed = any(stage.has_parents for stage in behind)
    return run.configuration.shuffle_partitions if followed else 0


def _is_separable(column: Array, terms: Array) -> bool:
    """Whether a column differs enough between batches beyond what the other terms explain.

    Two settings that differ in both rows and partitions do not separate their costs.
    """
    explained = terms @ np.linalg.lstsq(terms, column, rcond=None)[0]
    return is_spread(column.mean() + column - explained)


def _actions(runs: Sequence[QueryRun], tables: frozenset[int]) -> dict[int, str | None]:
    """SQL executions of a batch that write, or read more than tables, and what each writes.

    `foreachBatch` has several. What they write is known of one batch in four.
    """
    first_batches = [batch for run in runs for batch in run.batches[:_BATCHES_WITH_NAMES]]
    actions: dict[int, str | None] = {}
    for stage_index, kind in enumerate(runs[0].batches[0].kinds):
        writes = (batch.stages[stage_index].write for batch in first_batches)
        write = next(filter(None, writes), None)
        if write is not None or stage_index not in tables:
            actions[kind.write] = actions.get(kind.write) or write
    return actions


def _state_shares(batches: Sequence[BatchSample], stage_index: int, figure: str) -> Array:
    """What a stage has of the ``rows``, or of the ``commit_s``, of all state, for each batch. [-]

    The batches have the same stages. Spark reports stateful operators from the sink to the sources:
    if as many stages hold state, one after another, each has one of them. Else (also if two of them
    run side by side) all state is in the last stage behind an exchange.
    """
    stages, kinds = batches[0].stages, batches[0].kinds
    behind = [number for number, stage in enumerate(stages) if stage.has_parents]
    holders = [number for number in behind if kinds[number].holds_state]
    are_in_a_row = len({stages[number].level for number in holders}) == len(holders) > 1
    if not are_in_a_row or {len(batch.state.operators) for batch in batches} != {len(holders)}:
        return np.full(len(batches), float(stage_index in behind[-1:]))
    if stage_index not in holders:
        return np.zeros(len(batches))
    figures = np.array(
        [
            [float(getattr(operator, figure)) for operator in batch.state.operators]
            for batch in batches
        ]
    )
    of_stage = figures[:, -1 - holders.index(stage_index)]
    return np.asarray(of_stage / np.maximum(figures.sum(axis=1), _LEAST_STATE[figure]))


def most_states_grow(runs: Sequence[QueryRun], in_stage: Array) -> bool:
    """Whether the state of a stage grows during most runs, like an unbounded one.

    State that follows the rate differs only between runs, like the rows, so their costs cannot be
    separated.

    **(E29)** Cost of a row of state, `t_3` of (T2): Spark's default store copies the map of its
    rows for every batch. It is fitted by (E3), with the other terms of the stage that holds the
    state, if its rows at least double within most runs, and rows and state are separable by (E2).
    Of several stateful operators in a row, each stage has the rows, and the commits, of its own. It
    is also fitted for a join of two streams, whose state follows the rate: it is `v λ (w+H) + u`
    (Z3), and the `u` rows that the batch writes are part of what its rows cost, so `S` is without
    them. Since rows and state may not be separable then, a row of state has a prior cost of 0.9 us,
    give or take as much, unless RocksDB keeps it, which copies nothing. Of other states the cost is
    0, since those that follow the rate differ between runs just like the rows. A prediction is for
    the state at its rate (E36); growing state has the size at the end of the last run.
    """
    return 2 * sum(map(batch_sizes.state_grows, runs, by_run(in_stage, runs))) > len(runs)


def _copies_a_join(last: QueryRun, in_stage: Array) -> bool:
    """Whether a stage holds the rows of two joined streams in a store that copies them (E29)."""
    holds_rows = in_stage[-len(last.batches)] > 0.0
    return bool(holds_rows and last.shape.keeps_rows and not is_rocksdb(last.state_store))
