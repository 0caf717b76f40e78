"""Active profiling: run the most informative settings for a question, on the user's query."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from runpy import run_path
from typing import TYPE_CHECKING, cast

from headway.api.arguments import arrivals_from, promises_from
from headway.api.plan import plan
from headway.api.profile import profile, reading
from headway.assumptions.advice import (
    ADVISED_REPEATS,
    EXPLORED_RUN_SHARE,
    LONGEST_EXPLORED_RUN_S,
    MOST_ADVISED_RUNS,
    PILOT_SHARES,
    PILOT_TRIGGER_S,
    SHORTEST_EXPLORED_RUN_S,
    WARM_UP_BATCHES,
)
from headway.domain import Configuration, Explored, ObservedSetting, QuerySetting, StreamAnswer
from headway.domain.argument_values import Count, Duration, not_expected, path_of
from headway.domain.log_questions import LogsQuestion
from headway.errors import EventLogError, HeadwayError, InputError
from headway.formats.exploration_file import ExplorationState, ExploredRun, load_state, save_state
from headway.formats.profile_file import save_profile
from headway.limits import MOST_INT
from headway.models.job.advice import SettingLatency, advised_runs
from headway.models.job.predict import predict
from headway.profiler.recording.recorder import record
from headway.profiler.spark.session import embedded_session
from headway.profiler.streaming.backtest import observed_latency
from headway.profiler.streaming.job_runs import runs_of_job
from headway.report.advice import asked_interval, lesson_text, run_text
from headway.runtime.exploring import Build, require_followed, run_setting, session_slots
from headway.spec.kinds.tuning import Exploration
from headway.spec.spec_file import load_spec_of
from headway.units import format_duration, parse_rate_per_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATE_FILE, PROFILE_FILE = "exploration.json", "profile.yaml"
_FOLDER = path_of("a folder, e.g. 'exploration'")
_SEED = Count(minimum=0, maximum=MOST_INT)


def explore(
    spark: SparkSession,
    build: Build,
    question: str,
    *,
    budget: float | str = "10m",
    folder: str | Path = "exploration",
    run: float | str | None = None,
    seed: int = 1,
    progress: Callable[[str], None] | None = None,
    lesson: Callable[[str], None] | None = None,
) -> Explored:
    """Profile a query by the runs that narrow the answer to a question most.

    The JVM is warmed up first. The first runs are slow ones; from then on the settings that
    `headway profile --advise` names are run, each twice, in blocks of random order, until the
    answer is narrow enough or the budget is spent. If it was killed, a call with the same folder
    continues where it stopped.

    Parameters
    ----------
    spark : SparkSession
        Where the query runs.
    build : callable
        ``build(spark, setting)`` starts the query at a :class:`headway.QuerySetting` and returns
        it. Its source is a backlog, read with ``setting.reader_options``, or one that replays rows
        at ``setting.rate_per_s``.
    question : str
        A target and a rate: ``"p99 <= 3s at 50k/s"``.
    budget : float or str
        How long all runs may take, seconds or e.g. ``"10m"``; the warm-up, which is shorter than a
        run, comes before.
    folder : path
        For recordings, state and profile; created if it is missing.
    run : float or str, optional
        How long a run takes, seconds or e.g. ``"1m"``; an eighth of the budget by default, 20 s to
        2 min.
    seed : int
        Of the random order.
    progress : callable, optional
        Called with what is being done.
    lesson : callable, optional
        Called after each run with what it measured, what had been predicted, and the answer so far.

    Raises
    ------
    InputError
        If a value is invalid, the budget is too short for one run, the function ignores its
        setting, the session is one of Spark Connect, or the folder contains the state of another
        question.
    HeadwayError
        If the query fails.
    """
    rate_per_s, target = parse_question(question)
    budget_s = Duration().read(budget, "budget")
    usual_s = max(EXPLORED_RUN_SHARE.value * budget_s, SHORTEST_EXPLORED_RUN_S.value)
    usual_s = min(usual_s, LONGEST_EXPLORED_RUN_S.value)
    run_s = usual_s if run is None else Duration().read(run, "run")
    if run_s > budget_s:
        raise InputError(
            f"budget {format_duration(budget_s)} is too short for one run of "
            f"{format_duration(run_s)}; give a longer one"
        )
    if not callable(build):
        raise InputError(f"build is {build!r}; expected a function build(spark, setting)")
    for name, listener in (("progress", progress), ("lesson", lesson)):
        if listener is not None and not callable(listener):
            raise not_expected(name, listener, "a function of a text")
    folder_path, random = _FOLDER.read(folder, "folder"), Random(_SEED.read(seed, "seed"))
    exploring = _Exploring(
        spark=spark,
        build=build,
        slots=session_slots(spark),
        folder=folder_path,
        run_s=run_s,
        random=random,
        tell=progress or (lambda _text: None),
        lesson=lesson or (lambda _text: None),
    )
    try:
        exploring.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeadwayError(
            f"{exploring.folder}: no folder can be made there ({error.strerror}); expected one "
            "that exists, or can be made"
        ) from None
    is_warm = False
    state = load_state(
        exploring.folder / STATE_FILE, ExplorationState(rate_per_s=rate_per_s, target=target)
    )
    explored = exploring.so_far(state)
    while state.spent_s + run_s <= budget_s or not state.runs:
        if not state.queue:
            if explored is not None and explored.is_answered:
                break
            state = replace(state, queue=exploring.next_block(state))
            if not state.queue:
                break
        if not is_warm:
            exploring.warm_up(state)
            is_warm = True
        state, observed = exploring.after_one_run(state)
        explored_before, explored = explored, exploring.so_far(state)
        exploring.tell_lesson(state.runs, observed, explored_before, explored)
    return exploring.outcome(state)


def explore_spec(
    path: str | Path,
    *,
    folder: str | Path = "exploration",
    budget: float | str | None = None,
    progress: Callable[[str], None] | None = None,
    lesson: Callable[[str], None] | None = None,
) -> Explored:
    """As :func:`explore`, for a spec file of the kind Exploration and on an embedded Spark.

    The ``budget`` is by default that of the file. Raises InputError as :func:`explore`, or if the
    file, or the code that it names, is invalid; SparkUnavailableError if there is no Java to run
    Spark with.
    """
    exploration = load_spec_of(Path(path), Exploration)
    build = function_of(exploration.code, exploration.function)
    with embedded_session(app_name="headway explore", master=exploration.master) as spark:
        return explore(
            spark,
            build,
            f"{exploration.target} at {exploration.rate_per_s!r}/s",
            budget=exploration.budget_s if budget is None else budget,
            folder=folder,
            run=exploration.run_s,
            progress=progress,
            lesson=lesson,
        )


def function_of(code: Path, name: str) -> Build:
    """A function of a Python file, which is run to get it."""
    try:
        function = run_path(str(code)).get(name)
    except Exception as error:
        raise InputError(f"{code}: cannot be run ({type(error).__name__}: {error})") from None
    if not callable(function):
        raise InputError(f"{code}: has no function {name}(spark, setting)")
    return cast("Build", function)


def parse_question(question: str) -> tuple[float, str]:
    """The rate and the target of a question.

    >>> parse_question("p99 <= 3s at 50k/s")
    (50000.0, 'p99 <= 3.00 s')
    """
    target, separator, rate = (
        question.rpartition(" at ") if isinstance(question, str) else ("", "", "")
    )
    if not separator:
        raise InputError(
            f"question is {question!r}; expected a target and a rate, e.g. 'p99 <= 3s at 50k/s'"
        )
    first, _ = promises_from(target)
    return parse_rate_per_s(rate), str(first)


@dataclass(frozen=True, kw_only=True)
class _Exploring:
    """What stays the same from run to run."""

    spark: SparkSession
    build: Build
    slots: Configuration
    folder: Path
    run_s: float
    random: Random
    tell: Callable[[str], None]
    lesson: Callable[[str], None]

    def warm_up(self, state: ExplorationState) -> None:
        """Run batches without a pause, and record none, until the JVM has compiled what they run.

        The first counted run would otherwise be slower than all others at the same setting.
        """
        self.tell("warming up")
        self._run(self._pilot(state)[0], enough_batches=WARM_UP_BATCHES.value)

    def next_block(self, state: ExplorationState) -> tuple[QuerySetting, ...]:
        """The settings to run next, in blocks.

        A block contains each setting once, in random order, so that a drift over time (a JVM that
        compiles, a machine that slows down) is not taken for an effect of the settings.
        """
        settings = self._pilot(state) if not state.runs else self._advised(state)
        blocks = [self.random.sample(settings, len(settings)) for _ in range(ADVISED_REPEATS.value)]
        return tuple(setting for block in blocks for setting in block)

    def after_one_run(self, state: ExplorationState) -> tuple[ExplorationState, ObservedSetting]:
        """The state after the first setting of the queue was run, and how it ran.

        The state is written at once.
        """
        setting, *queue = state.queue
        recording = f"run-{len(state.runs) + 1:03}.jsonl"
        path = self.folder / recording
        self.tell(f"run {len(state.runs) + 1}: {run_text(setting)}")
        path.unlink(missing_ok=True)  # of a run that was killed
        began_s = time.monotonic()
        with record(self.spark, path, max_cost_ratio=1.0):
            query_id = self._run(setting)
        try:
            profiled_setting = profile(path, queries=[query_id], engine="in-process").settings[0]
        except EventLogError as error:
            raise InputError(
                f"run of {format_duration(self.run_s)} too short, or no rows arrived: {error}"
            ) from None
        require_followed(setting, profiled_setting)
        explored_run = ExploredRun(
            setting=setting,
            duration_s=time.monotonic() - began_s,
            recording=recording,
            query_id=query_id,
        )
        state_after = replace(state, runs=(*state.runs, explored_run), queue=tuple(queue))
        save_state(state_after, self.folder / STATE_FILE)
        return state_after, profiled_setting

    def tell_lesson(
        self,
        runs: Sequence[ExploredRun],
        observed: ObservedSetting,
        before: Explored | None,
        after: Explored | None,
    ) -> None:
        """Say what the last run measured, what had been predicted, and what the answer is now."""
        predicted_latency = None
        if before is not None:
            arrivals = replace(before.profile.arrivals, rate_per_s=observed.rate_per_s)
            predicted_latency = predict(
                before.profile, observed.configuration, arrivals, jvm_age_s=observed.jvm_age_s
            ).tuple_latency
        last_run = runs[-1]
        text = lesson_text(
            measured_p99_s=measured_p99_s(self.folder / last_run.recording, last_run.query_id),
            predicted_p99_s=None if predicted_latency is None else predicted_latency.p99_s,
            before=None if before is None else before.plan,
            after=None if after is None else after.plan,
        )
        self.lesson(f"run {len(runs)} ({run_text(last_run.setting)}): {text}")

    def so_far(self, state: ExplorationState) -> Explored | None:
        """The outcome if it ended now; None if the runs do not suffice for an answer."""
        if not state.runs:
            return None
        try:
            return self.outcome(state)
        except HeadwayError:
            return None

    def outcome(self, state: ExplorationState) -> Explored:
        """What is known after the runs; their profile is also written to a file."""
        job_profile = profile(
            [self.folder / run.recording for run in state.runs],
            queries=[run.query_id for run in state.runs],
            engine="in-process",
        )
        save_profile(job_profile, self.folder / PROFILE_FILE)
        answer = plan(job_profile, rate=state.rate_per_s, target=state.target)
        return Explored(
            folder=self.folder,
            profile=job_profile,
            plan=answer,
            num_runs=len(state.runs),
            spent_s=state.spent_s,
            width_ratio=width_ratio(answer),
        )

    def _pilot(self, state: ExplorationState) -> list[QuerySetting]:
        """Two slow settings, with small and with larger batches, before anything is known."""
        low, high = (share * state.rate_per_s for share in PILOT_SHARES.value)
        trigger_s = PILOT_TRIGGER_S.value
        return [
            # A tenth of a second's rows: about what a batch gets that follows another at once.
            self._setting(self.slots, low, max(0.1 * low, 1.0)),
            self._setting(replace(self.slots, trigger_s=trigger_s), high, high * trigger_s),
        ]

    def _advised(self, state: ExplorationState) -> list[QuerySetting]:
        """The advised settings for the session's slots; if none helps the question, in general."""
        explored = self.outcome(state)
        job_profile = explored.profile
        asked_setting = SettingLatency.of(explored.plan.prediction, explored.plan.target)
        asked_setting = replace(
            asked_setting,
            configuration=replace(
                asked_setting.configuration,
                executors=self.slots.executors,
                cores_per_executor=self.slots.cores_per_executor,
            ),
            arrivals=arrivals_from(job_profile, state.rate_per_s),
        )
        runs = advised_runs(
            job_profile, asked_setting, most_runs=MOST_ADVISED_RUNS.value
        ) or advised_runs(job_profile)
        return [
            self._setting(run.configuration, run.rate_per_s, run.num_rows)
            for run in runs
            if run.configuration.num_slots == self.slots.num_slots
        ]

    def _run(self, setting: QuerySetting, *, enough_batches: float = math.inf) -> str:
        """Run a setting on the one checkpoint; the id of the query."""
        setting = replace(setting, checkpoint=str(self.folder / "checkpoint"))
        return run_setting(
            self.spark, self.build, setting, run_s=self.run_s, enough_batches=enough_batches
        )

    def _setting(
        self, configuration: Configuration, rate_per_s: float, num_rows: float
    ) -> QuerySetting:
        limited = replace(configuration, max_offsets_per_trigger=max(math.ceil(num_rows), 1))
        return QuerySetting(configuration=limited, rate_per_s=rate_per_s)


def measured_p99_s(recording: Path, query_id: str) -> float | None:
    """The p99 of the tuple latency in a run [s]; None if no two of its batches are consecutive."""
    try:
        with reading([recording], LogsQuestion(engine="in-process")) as logs_read:
            runs, _, _ = runs_of_job(logs_read.collected, logs_read.logs, (query_id,))
            return observed_latency(runs[0]).p99_s
    except EventLogError:
        return None


def width_ratio(answer: StreamAnswer) -> float:
    """Half the 90% interval of the latency in question over its middle; inf if none is quoted."""
    _, interval = asked_interval(answer)
    if interval is None or interval.is_open:
        return math.inf
    return (interval.high - interval.low) / (interval.high + interval.low)
