"""Loads in steps of 20-60-20% of capacity: a query under them, and the rule simulated on them."""

from __future__ import annotations

import bisect
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from query_progress import batches_of

from headway.api.tune import tune
from headway.domain import Configuration, JobProfile, QuerySetting, Target
from headway.domain.live import Bounds, ChangeKind
from headway.domain.tuner import Phase, TunerState
from headway.formats.tuner_files import audit_file, load_tuner, profile_hash, save_tuner
from headway.models.simulation.closed_loop import Sight
from headway.planner.question import Question, SearchSpace
from headway.runtime.tuning.session import alive_executors, remove_executors
from headway.runtime.word_count import clock_lines, count_words
from headway.tuner.rule.memory import LearnedCosts, Memory
from headway.tuner.rule.policies import HeadwayPolicy
from headway.tuner.rule.table import CapacityTable, capacity_table

LOW_RATIO, HIGH_RATIO = 0.2, 0.6
MODES = ("off", "recommend", "act")
TRIGGER_S = 2.0
REPEATS = 5
LEARNED = {"trigger": "pauses_s", "executors": "provisioning_s"}
"""What a tuner knows from earlier runs; the runs from before that are not judged."""
_EXECUTORS_LEAVE_WITHIN_S = 30.0
Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One half of the benchmark: what the tuner may change, on which cluster.

    ``waits_ms`` is how long a task waits for each row; 0 is the word count.
    """

    name: str
    master: str
    executors: tuple[int, int]
    waits_ms: int
    probed_rows: tuple[int, int]
    source_partitions: int

    @property
    def triggers_s(self) -> tuple[float, ...]:
        """Trigger intervals that may be chosen."""
        return () if self.waits_ms else (0.5 * TRIGGER_S,)


PARTS = {
    one.name: one
    for one in (
        Part(
            name="trigger", master="local[2]", executors=(1, 1), waits_ms=0,
            probed_rows=(2_000, 20_000), source_partitions=2,
        ),
        Part(
            name="executors", master="local-cluster[3,1,1024]", executors=(1, 3), waits_ms=2,
            probed_rows=(200, 1_000), source_partitions=12,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rates that follow each other: the first from 0 on, the others from their instants on [s]."""

    rates_per_s: tuple[float, ...]
    from_s: tuple[float, ...]
    ends_s: float

    @classmethod
    def of(cls, capacity_per_s: float, stretches_s: Sequence[float], seed: int) -> Schedule:
        """20-60-20% of capacity, each stretch up to a tenth longer by a seed."""
        choice = random.Random(seed)
        ends = [0.0]
        for one in stretches_s:
            ends.append(round(ends[-1] + one * choice.uniform(1.0, 1.1), 3))
        rates = [share * capacity_per_s for share in (LOW_RATIO, HIGH_RATIO, LOW_RATIO)]
        return cls(tuple(round(one, 3) for one in rates), tuple(ends[:-1]), ends[-1])

    @property
    def steps(self) -> list[tuple[float, float]]:
        """As the clock source takes them."""
        return list(zip(self.from_s[1:], self.rates_per_s[1:], strict=True))

    def _before(self) -> list[float]:
        rows = [0.0]
        for at in range(1, len(self.from_s)):
            took_s = self.from_s[at] - self.from_s[at - 1]
            rows.append(rows[-1] + took_s * self.rates_per_s[at - 1])
        return rows

    def arrived(self, at_s: float) -> float:
        """Rows that have arrived by an instant."""
        at = max(bisect.bisect_right(self.from_s, at_s) - 1, 0)
        return self._before()[at] + max(at_s - self.from_s[at], 0.0) * self.rates_per_s[at]

    def late_rows(self, first: float, end: float, committed_s: float, limit_s: float) -> float:
        """Rows from first up to end that had waited for more than the limit."""
        return max(min(self.arrived(committed_s - limit_s), end) - first, 0.0)


def table_of(part: Part, profile: JobProfile, target: str) -> CapacityTable:
    """The table in which the tuner looks up settings, as `headway.tune` makes it."""
    baseline = profile.baseline
    space = SearchSpace(
        max_nodes=part.executors[1],
        cores_per_executor=baseline.cores_per_executor,
        shuffle_partitions=baseline.shuffle_partitions,
    )
    question = Question(
        profile=profile, target=Target.parse(target), space=space, confidence=0.95
    ).at_confidence(0.95)
    sizes = range(part.executors[0], part.executors[1] + 1)
    return capacity_table(question, sizes, sorted({*part.triggers_s, TRIGGER_S}))


def fixed_question(part: Part, profile: JobProfile) -> tuple[float, str]:
    """Capacity of the largest size [rows/s], and the target: both before anything is judged.

    The trigger interval must be too long at 60% and short enough at 20%: the limit is midway.
    Executors must be too few: the limit allows batches as long as the trigger interval.
    """
    table = table_of(part, profile, f"p99 <= {3 * TRIGGER_S:g}s")
    capacity_per_s = table.drained_per_s(part.executors[1], TRIGGER_S)
    if part.waits_ms:
        return capacity_per_s, f"p99 <= {2 * TRIGGER_S:g}s"
    low_s, high_s = (
        0.99 * TRIGGER_S + table.duration_s(1, TRIGGER_S, ratio * capacity_per_s * TRIGGER_S)
        for ratio in (LOW_RATIO, HIGH_RATIO)
    )
    return capacity_per_s, f"p99 <= {round(500.0 * (low_s + high_s)):d}ms"


def predicted_decision_s(
    part: Part, profile: JobProfile, target: str, schedule: Schedule, known_s: Sequence[float] = ()
) -> float | None:
    """Time from the step up to the change, by the rule simulated on even batches; None if none.

    Batches have at most the rows of the tuner's own rate limit, and the rule knows what the tuner
    knows from earlier runs, as in :func:`stepped`.
    """
    table = table_of(part, profile, target)
    executors, limit_s = part.executors[0], table.limit_s
    bounds = Bounds(min_executors=executors, max_executors=part.executors[1])
    costs = LearnedCosts(provisioning_s=tuple(known_s) if part.waits_ms else ())
    policy = HeadwayPolicy(
        table=table, bounds=bounds, trigger_s=TRIGGER_S, memory=Memory(costs=costs)
    )
    most_rows = math.ceil(table.limit_rows(TRIGGER_S))
    start_s = read = 0.0
    while start_s < schedule.ends_s:
        arrived = schedule.arrived(start_s)
        end = min(arrived, read + most_rows)
        ended_s = start_s + table.duration_s(executors, TRIGGER_S, max(end - read, 1.0))
        late = schedule.late_rows(read, end, ended_s, limit_s)
        sight = Sight(
            at_s=ended_s, executors=executors, num_pending=0, asked_s=start_s, asked_rows=arrived,
            arrived_rows=schedule.arrived(ended_s), processed_rows=end, backlog_rows=arrived - end,
            busy_s=0.0, cpu_s=0.0, core_s=0.0, silent_s=0.0,
            batch=(end - read, ended_s - start_s, late),
        )  # fmt: skip
        if policy.wanted(sight) != executors or policy.trigger_s != TRIGGER_S:
            return ended_s - schedule.from_s[1]
        read = end
        start_s = max(TRIGGER_S * (start_s // TRIGGER_S + 1), ended_s)
    return None


def build_of(
    part: Part, schedule: Schedule, started_s: float, checkpoint: Path, queries: list[Any]
) -> Callable[[Any, QuerySetting], Any]:
    """The function that starts the query; rows arrive from ``started_s`` on, read or not."""

    def build(spark: Any, setting: QuerySetting) -> Any:
        lines = clock_lines(
            spark,
            rate_per_s=schedule.rates_per_s[0],
            rate_steps=schedule.steps,
            num_source_partitions=part.source_partitions,
            start_epoch_s=started_s,
            max_rows_per_trigger=setting.configuration.max_offsets_per_trigger,
        )
        writer = worked(lines, part).writeStream.format("noop").outputMode("update")
        writer = writer.option("checkpointLocation", str(checkpoint)).queryName(checkpoint.name)
        queries.append(writer.trigger(**setting.trigger).start())
        return queries[-1]

    return build


def worked(lines: Any, part: Part) -> Any:
    """What the query does with its lines: it counts words, or waits for each row."""
    if not part.waits_ms:
        return count_words(lines, hash_rounds=20)
    return lines.selectExpr(
        "arrival", f"reflect('java.lang.Thread', 'sleep', {part.waits_ms}L) AS waited"
    )


def stepped(
    spark: Any, part: Part, profile: JobProfile, target: str, schedule: Schedule, mode: str,
    folder: Path, known_s: Sequence[float] = (),
) -> Line:  # fmt: skip
    """One run: what each batch took and what the tuner logged, times from the first row on.

    The tuner knows how long its restarts in earlier runs paused the query, or how long executors
    took to arrive, as one that runs on.
    """
    queries: list[Any] = []
    started_s = round(time.time(), 3)
    build = build_of(part, schedule, started_s, folder / f"{mode}-{started_s:.0f}", queries)
    state = folder / f"{mode}-{started_s:.0f}.json"
    if part.waits_ms:
        to_fewest_executors(spark, part)
    if mode == "off":
        build(spark, QuerySetting(configuration=_began(profile)))
        time.sleep(started_s + schedule.ends_s - time.time())
    else:
        if known_s:
            save_tuner(_known(part, profile, target, tuple(known_s)), state)
        with tune(
            spark, build, profile=profile, target=target, state=state, mode=mode,
            executors=part.executors, triggers=part.triggers_s,
            half_done="allow",  # the sink writes nothing
        ) as tuner:  # fmt: skip
            tuner.await_termination(started_s + schedule.ends_s - time.time())
            # Executors are removed again between two batches.
            tuner.stop(restore=True)
    batches = batches_of(
        [json.loads(one.json) for query in queries for one in query.recentProgress]
    )
    queries[-1].stop()
    log = audit_file(state)
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return {
        "started_s": started_s,
        "batches": [[round(s - started_s, 3), took_s, rows] for s, took_s, rows in batches],
        "audit": [json.loads(line) for line in lines],
        "pauses_s": [] if mode == "off" else _pauses_s(state),
        "provisioning_s": [] if mode == "off" else _provisioning_s(state),
    }


def _known(part: Part, profile: JobProfile, target: str, known_s: tuple[float, ...]) -> TunerState:
    """The state of a tuner that knows only what its restarts, or executors to come, took."""
    began = replace(_began(profile), executors=part.executors[0])
    return TunerState(
        profile_hash=profile_hash(profile),
        target=str(Target.parse(target)),
        phase=Phase.LEARN,
        original=began,
        last_good=began,
        pauses_s={} if part.waits_ms else {ChangeKind.RESTART: known_s},
        provisioning_s=known_s if part.waits_ms else (),
    )


def _pauses_s(state: Path) -> list[float]:
    """Of its last restarts, oldest first."""
    known = load_tuner(state)
    return [] if known is None else [*known.pauses_s.get(ChangeKind.RESTART, ())]


def _provisioning_s(state: Path) -> list[float]:
    """How long the last executors took to arrive, oldest first."""
    known = load_tuner(state)
    return [] if known is None else [*known.provisioning_s]


def _began(profile: JobProfile) -> Configuration:
    return replace(profile.baseline, trigger_s=TRIGGER_S, max_offsets_per_trigger=None)


def to_fewest_executors(spark: Any, part: Part) -> None:
    """How each run begins: with the minimum of executors that the tuner may use."""
    remove_executors(spark, part.executors[0])
    ends_s = time.monotonic() + _EXECUTORS_LEAVE_WITHIN_S
    while len(alive_executors(spark)) > part.executors[0] and time.monotonic() < ends_s:
        time.sleep(0.2)


def finished_runs_of(part: Part, lines: Sequence[Line], rule: str | None = None) -> list[Line]:
    """Its finished runs with a rule, or with the newest; the first line of a part is not a run."""
    runs = [*_judged_runs_of(part, lines)]
    if rule is None and runs:
        rule = runs[-1].get("rule")
    return [run for run in runs if run.get("rule") == rule]


def earlier_runs_of(part: Part, lines: Sequence[Line]) -> list[Line]:
    """Its finished runs with rules before the newest."""
    newest = finished_runs_of(part, lines)
    return [run for run in _judged_runs_of(part, lines) if run not in newest]


def _judged_runs_of(part: Part, lines: Sequence[Line]) -> Iterator[Line]:
    runs = all_runs_of(part, lines)
    return (run for run in runs if not is_formed(run) and "void" not in run)


def all_runs_of(part: Part, lines: Sequence[Line]) -> Iterator[Line]:
    """Its runs, with those that are not judged."""
    return (one for one in lines if one["part"] == part.name and "mode" in one)


def is_formed(run: Line) -> bool:
    """Whether what changes are expected to show was corrected after it, and by it."""
    return "void" not in run and run["mode"] == "act" and LEARNED[run["part"]] not in run
