"""Calls for queries that take turns: the gate on a running session, and the verdict before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headway.api.choosing import choose_in_own_process
from headway.assumptions.turns import LONGEST_WAIT_RATIO, SHORTEST_LONGEST_WAIT_S
from headway.domain import JobProfile, Policy, ScheduledQuery, ScheduleReport, Target, WindowGrid
from headway.domain.argument_values import Choice, names_of, path_of
from headway.domain.scheduling import Decision, Replay
from headway.errors import InputError
from headway.models.job.setting import duration_model
from headway.models.scheduling.order import grant_order
from headway.redaction import redact
from headway.runtime.gate.arbiter import Gate
from headway.runtime.gate.clock import require_classic, require_pool, trigger_of
from headway.runtime.gate.decision_log import BatchEnd, read_decision_log
from headway.runtime.gate.turn import Turn, require_turn_of
from headway.runtime.gate.windows import windows_of_query
from headway.spec.kinds.schedule import QuerySchedule, ScheduledJob
from headway.spec.parts import profile_of
from headway.spec.spec_file import load_spec_of
from headway.turns.arguments import (
    MEMORY,
    NAME,
    given_windows,
    known_profile,
    row_and_window_target,
)
from headway.turns.query_work import query_work, shared_driver
from headway.turns.scheduling import ALL_POLICIES, ASKED, Verdict, verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_AT_ONCE_S = 0.001
_POLICY: Choice[Policy] = Choice(Policy)
_POLICIES = names_of("policies between commas, or 'all'")
_SWITCH = "a file in a folder that exists, e.g. 'gate.off'"
_OFF = path_of(_SWITCH)


class ScheduleGate:
    """Queries of one session under a policy; returned by `headway.schedule`.

    Examples
    --------
    ::

        with headway.schedule(spark, policy="promise") as gate:
            gate.add(orders, target="window p99 <= 3s", profile="orders.profile.yaml")
            gate.add(clicks, target="p99 <= 2s")
            spark.streams.awaitAnyTermination()
        print(gate.report())
    """

    def __init__(self, spark: SparkSession, gate: Gate) -> None:
        self.gate, self._spark = gate, spark
        self._num_slots = spark.sparkContext.defaultParallelism

    def add(
        self,
        query: StreamingQuery,
        *,
        target: str | Target | Sequence[str | Target] = (),
        profile: JobProfile | str | Path | None = None,
        name: str | None = None,
        in_turn: Turn | None = None,
        pool: str | None = None,
        window_slide: float | str | None = None,
        window_offset: float | str = 0.0,
        watermark_delay: float | str = 0.0,
    ) -> None:
        """Add a running query; it waits for its turn from its next trigger on.

        Parameters
        ----------
        query : StreamingQuery
            Started with ``trigger(processingTime=...)``.
        target : str or Target, or several
            ``"p99 <= 2s"`` of its rows, ``"window p99 <= 3s"`` of its windows.
        profile : JobProfile or path, optional
            Profile of its costs; without it, the costs are learned while the query runs.
        name : str, optional
            Its name in the report; by default the name of the query.
        in_turn : Turn, optional
            The turn that it was started with, if its batches wait instead of its trigger: see
            `in_turn`.
        pool : str, optional
            Pool of Spark's fair scheduler to which the jobs of its batches go, if several run at
            the same time; needs ``spark.scheduler.mode=FAIR``.
        window_slide, window_offset, watermark_delay : float or str
            Time between its window ends, one of these ends, and the delay of its watermark. By
            default taken from its plan.

        Raises
        ------
        InputError
            If the query cannot be gated; it continues with its own trigger.
        """
        require_classic(query)
        row_target, window_target = row_and_window_target(target)
        if name is not None:
            NAME.read(name, "name")
        label = name or redact(query.name or str(query.id))
        grid = given_windows(window_slide, window_offset, watermark_delay)
        predicted_s = _duration_of(known_profile(profile), self._num_slots)
        if in_turn is not None:
            require_turn_of(query, in_turn)
        if pool is not None:
            require_pool(self._spark, pool)
            if in_turn is not None:
                raise InputError(
                    "pool: does not go with in_turn; set the local property spark.scheduler.pool "
                    "in the thread that starts the query"
                )
        # Its batches wait: whatever its trigger is, it comes back at once.
        trigger_s = trigger_of(query)[1] if in_turn is None else _AT_ONCE_S
        grid = grid or windows_of_query(query)
        if window_target is not None and grid is None:
            raise InputError(
                f"{label}: the target is for windows, but the query's plan has no window in event "
                "time; give window_slide and watermark_delay"
            )
        declared = ScheduledQuery(
            name=label,
            trigger_s=trigger_s,
            windows=grid,
            row_target=row_target,
            window_target=window_target,
            most_wait_s=_most_wait_s(row_target, window_target),
        )
        self.gate.add(query, declared, predicted_s=predicted_s, in_turn=in_turn, pool=pool)

    def in_turn(self, each: Callable[[DataFrame, int], None]) -> Turn:
        """A function for ``foreachBatch`` that waits for its turn, if a trigger cannot.

        For versions of Spark in which the clock of a trigger cannot be replaced; `add` says so. The
        rows of a batch are chosen before it waits, and its duration includes the wait: do not
        profile such a run::

            turn = gate.in_turn(write_orders)
            orders = frame.writeStream.foreachBatch(turn).start()
            gate.add(orders, target="p99 <= 2s", in_turn=turn)

        Raises InputError if ``each`` cannot be called.
        """
        return Turn(each)

    def remove(self, name: str) -> None:
        """Let a query use its own trigger again."""
        self.gate.remove(name)

    def report(self) -> ScheduleReport:
        """Waits, missed windows, predicted and observed durations."""
        return self.gate.report()

    def close(self) -> None:
        """Every query uses its own trigger from now on."""
        self.gate.close()

    def __enter__(self) -> ScheduleGate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def schedule(
    spark: SparkSession,
    policy: str | Policy = Policy.AUTO,
    *,
    at_once: int | None = None,
    decisions: str | Path | None = None,
    memory_limit: str | float | None = None,
    off: str | Path | None = None,
) -> ScheduleGate:
    """Let the queries of a session take turns.

    Parameters
    ----------
    spark : SparkSession
        A classic session of PySpark.
    policy : str or Policy
        ``fcfs``, ``rr``, ``sbox``, ``hr``, ``least-slack``, ``promise``, ``economy``, ``stagger``,
        or ``auto``: the policy that simulation prefers, chosen once the costs of batches are
        known and again once twice as much is known.
    at_once : int, optional
        Batches that may run at the same time; by default as many as simulation prefers once the
        costs of batches are known.
    decisions : path, optional
        File to which each decision is appended; ``headway schedule --decisions`` replays it.
    memory_limit : str or float, optional
        Limit of the state of all queries on the heap, e.g. ``"2g"``. Above it, the query that frees
        the most goes first, until half is free or 3 s have passed. State in RocksDB does not count.
    off : path, optional
        A file that switches the gate off from outside: as soon as it exists, the gate opens for
        good, and every query goes by its own trigger.

    Raises
    ------
    InputError
        If there is no such policy, or the session gives no access to its JVM.
    """
    read_policy = _POLICY.read(policy, "policy")
    limit_bytes = None if memory_limit is None else MEMORY.read(memory_limit, "memory_limit")
    switch = None if off is None else _switch_file(off)
    gate = Gate(
        spark,
        read_policy,
        at_once=at_once,
        decisions=decisions,
        memory_limit_bytes=limit_bytes,
        choose=choose_in_own_process,
        off=switch,
    )
    return ScheduleGate(spark, gate)


def _switch_file(off: str | Path) -> Path:
    """The file that switches a gate off, which somebody in a hurry can make."""
    path: Path = _OFF.read(off, "off")
    try:
        if path.is_dir() or not path.parent.is_dir():
            why = "is a folder" if path.is_dir() else "is in no folder that exists"
            raise InputError(f"off: {path} {why}; expected {_SWITCH}")
        path.exists()
    except OSError as error:
        raise InputError(
            f"off: {path} cannot be looked at ({error.strerror}); expected {_SWITCH}"
        ) from None
    return path


def _duration_of(profile: JobProfile | None, num_slots: int) -> Callable[[float], float] | None:
    """Mean duration of a batch by its rows, at the slots of the session."""
    if profile is None:
        return None
    model = duration_model(profile, num_slots, profile.baseline.shuffle_partitions)
    return lambda rows: float(model.mean_s(rows))


def schedule_verdict(
    path: str | Path, *, policies: str | Sequence[str | Policy] | None = None
) -> Verdict:
    """Whether taking turns pays off for the queries of a file, predicted before the run.

    ``path`` is a spec file of the kind QuerySchedule. ``policies`` are compared with plain Spark,
    ``"all"`` for all; stagger, fcfs, promise and economy by default. Raises InputError if the file
    is not a valid spec; one line per fault.
    """
    names = () if policies is None else _POLICIES.read(policies, "policies")
    requested_policies = (
        list(ALL_POLICIES)
        if names == ("all",)
        else [_POLICY.read(name, "policies") for name in names]
    )
    query_schedule = load_spec_of(Path(path), QuerySchedule)
    cores = query_schedule.cores
    profiles = [profile_of(job.name, job) for job in query_schedule.queries]
    works = [
        query_work(profile, scheduled_query(job, profile), job.rate.mid, cores)
        for job, profile in zip(query_schedule.queries, profiles, strict=True)
    ]
    judged = verdict(
        works,
        float(cores),
        policies=[policy for policy in requested_policies if policy is not Policy.AUTO] or ASKED,
        cores_per_node=query_schedule.cores_per_node,
    )
    driver = shared_driver(profiles, works, cores, query_schedule.driver_cores)
    return replace(judged, driver=driver)


def replay_decisions(path: str | Path) -> Replay:
    """Repeat the decisions of a gate from the log that it wrote.

    Raises InputError if the file is no decision log, or contains no decision.
    """
    entries = list(read_decision_log(path))
    decisions = [entry for entry in entries if isinstance(entry, Decision)]
    batches = [entry for entry in entries if isinstance(entry, BatchEnd)]
    if not decisions:
        raise InputError(f"{path}: no decision in it; expected the log of a gate")
    num_differing = sum(
        grant_order(
            decision.policy,
            decision.states,
            decision.at_s,
            memory_is_short=decision.memory_is_short,
        )
        != decision.order
        or decision.granted != decision.order[: max(decision.at_once - decision.num_running, 0)]
        for decision in decisions
    )
    count = max(len(batches), 1)
    return Replay(
        policy=decisions[-1].policy,
        num_decisions=len(decisions),
        num_differing=num_differing,
        num_batches=len(batches),
        predicted_mean_s=sum(batch.predicted_s for batch in batches) / count,
        observed_mean_s=sum(batch.observed_s for batch in batches) / count,
    )


def scheduled_query(job: ScheduledJob, profile: JobProfile) -> ScheduledQuery:
    """A query of a spec, with values from its file, else from its profile."""
    shape = profile.shape
    slides_s = [window.slide_s for window in shape.emitted_windows if window.slide_s is not None]
    slide_s = job.window_slide_s or max(slides_s, default=None)
    delay_s = job.watermark_delay_s
    targets = [promise for promise in job.targets if isinstance(promise, Target)]
    row_target, window_target = row_and_window_target(targets)
    if window_target is not None and slide_s is None:
        raise InputError(
            f"{job.name}: the target is for windows, but the profile has none; give window_slide"
        )
    windows = None
    if slide_s is not None:
        windows = WindowGrid(
            slide_s=slide_s,
            offset_s=job.window_start_s,
            watermark_delay_s=shape.windows_wait_s or 0.0 if delay_s is None else delay_s,
        )
    trigger_s = job.trigger_s or profile.baseline.trigger_s or 1.0
    return ScheduledQuery(
        name=job.name,
        trigger_s=trigger_s,
        windows=windows,
        row_target=row_target,
        window_target=window_target,
        most_wait_s=_most_wait_s(row_target, window_target),
    )


def _most_wait_s(*targets: Target | None) -> float:
    """How long a query may be passed over: three times its target."""
    limits_s = [target.limit_s for target in targets if target is not None]
    return max(
        LONGEST_WAIT_RATIO.value * min(limits_s, default=20.0), SHORTEST_LONGEST_WAIT_S.value
    )
