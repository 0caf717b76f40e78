"""The nouns that all packages share; frozen, and checked when created."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from headway.domain.configuration import Arrivals, Cluster, Configuration, Drain
from headway.domain.declared import Z90, DeclaredCosts, DeclaredWork, StatedRange
from headway.domain.finding import NOT_QUOTED, Finding, FindingCode
from headway.domain.growth import (
    DurationGrowth,
    GrowthCause,
    SlowGrowth,
    SlowMeasure,
    StateLoad,
    WarmUp,
    WarmUpPoint,
)
from headway.domain.node_type import PLATFORMS, NodeType, Objective
from headway.domain.plan import (
    Change,
    FrontierPoint,
    InfeasiblePlan,
    Plan,
    PlannedRate,
    Rejection,
    StreamAnswer,
)
from headway.domain.plan_parts import (
    Advice,
    AfterStart,
    Applies,
    LevelTime,
    MemoryPlan,
    NearestTarget,
    Optimality,
    PlannedDurations,
    PlannedSetting,
    PromiseNeed,
    Restart,
    RocksDbMemory,
    RuleOfThumb,
    Sensitivity,
    StageTerm,
    Verdict,
)
from headway.domain.prediction import (
    AdvisedRun,
    Interval,
    LatencyDistribution,
    Narrowing,
    Prediction,
)
from headway.domain.profile import (
    APPLICATION_PROFILE_SCHEMA,
    PROFILE_SCHEMA,
    Application,
    Drift,
    DriverPhase,
    DurationNoise,
    JobProfile,
)
from headway.domain.recorded import (
    Coverage,
    EmptyBatches,
    EventTimeLag,
    MemoryProfile,
    ObservedArrivals,
    ObservedSetting,
    Share,
    StateOperatorProfile,
    StateProfile,
)
from headway.domain.source_tasks import (
    Coalescing,
    DefaultParallelism,
    FileSplits,
    RecordSplits,
    SourceTasks,
)
from headway.domain.stage import (
    EventTimeWindow,
    QueryShape,
    RowsLaw,
    Separation,
    StageObserved,
    StageProfile,
    StageResources,
    StatefulOperator,
    TasksRule,
)
from headway.domain.target import (
    AnyPromise,
    Burst,
    CatchUp,
    Deadline,
    DuringBurst,
    Metric,
    Promise,
    Target,
    parse_promise,
)
from headway.lazy_names import loads_when_used

if TYPE_CHECKING:
    from headway.domain.application_profile import ApplicationProfile, RecordedStage
    from headway.domain.backlog import EndingJob, StreamBacklog
    from headway.domain.backtest import Backtest, HeldOut
    from headway.domain.deadline import AnyAnswer, BatchAnswer, DeadlinePlan, DeadlinePoint
    from headway.domain.dstreams import DStreamsPlan
    from headway.domain.playback import (
        Outage,
        Playback,
        RateTrace,
        Recovery,
        SimulatedTarget,
        TraceStretch,
    )
    from headway.domain.scheduling import (
        ComingBack,
        Decision,
        Policy,
        QueryReport,
        QueryState,
        ScheduledQuery,
        ScheduleReport,
        WindowGrid,
    )
    from headway.domain.tuning import Explored, QuerySetting

Job: TypeAlias = "JobProfile | ApplicationProfile | StreamBacklog"
"""A job of any kind, by its profile."""

Answer: TypeAlias = "Plan | InfeasiblePlan | DeadlinePlan | DStreamsPlan"
"""The result of planning a job of any kind: the plan if it is ``feasible``, else the nearest one.

All have the attributes that are read of any plan; they are None, or empty, of kinds without them.
"""

__all__ = [
    "APPLICATION_PROFILE_SCHEMA", "NOT_QUOTED", "PLATFORMS", "PROFILE_SCHEMA", "Z90", "Advice",
    "AdvisedRun", "AfterStart", "Answer", "AnyAnswer", "AnyPromise", "Application",
    "ApplicationProfile", "Applies", "Arrivals", "Backtest", "BatchAnswer", "Burst", "CatchUp",
    "Change", "Cluster", "Coalescing", "ComingBack", "Configuration", "Coverage", "Deadline",
    "DeadlinePlan", "DeadlinePoint", "Decision", "DeclaredCosts", "DeclaredWork",
    "DefaultParallelism", "Drain", "Drift", "DriverPhase", "DurationGrowth", "DurationNoise",
    "DuringBurst", "EmptyBatches", "EndingJob", "EventTimeLag", "EventTimeWindow", "Explored",
    "FileSplits", "Finding", "FindingCode", "FrontierPoint", "GrowthCause", "HeldOut",
    "InfeasiblePlan", "Interval", "Job", "JobProfile", "LatencyDistribution", "LevelTime",
    "MemoryPlan", "MemoryProfile", "Metric", "Narrowing", "NearestTarget", "NodeType", "Objective",
    "ObservedArrivals", "ObservedSetting", "Optimality", "Outage", "Plan",
    "PlannedDurations", "PlannedRate", "PlannedSetting", "Playback", "Policy", "Prediction",
    "Promise", "PromiseNeed", "QueryReport", "QuerySetting", "QueryShape", "QueryState",
    "RateTrace", "RecordSplits", "RecordedStage", "Recovery", "Rejection", "Restart",
    "RocksDbMemory", "RowsLaw", "RuleOfThumb", "ScheduleReport", "ScheduledQuery", "Sensitivity",
    "Separation", "Share", "SimulatedTarget", "SlowGrowth", "SlowMeasure", "SourceTasks",
    "StageObserved", "StageProfile", "StageResources", "StageTerm", "StateLoad",
    "StateOperatorProfile", "StateProfile", "StatedRange", "StatefulOperator", "StreamAnswer",
    "StreamBacklog", "Target", "TasksRule", "TraceStretch", "Verdict", "WarmUp", "WarmUpPoint",
    "WindowGrid", "parse_promise",
]  # fmt: skip

# What a plan of a stream does not speak of is loaded by what does.
if not TYPE_CHECKING:
    __getattr__ = loads_when_used(
        __name__,
        {
            "headway.domain.application_profile": "ApplicationProfile RecordedStage",
            "headway.domain.backlog": "EndingJob StreamBacklog",
            "headway.domain.backtest": "Backtest HeldOut",
            "headway.domain.deadline": "AnyAnswer BatchAnswer DeadlinePlan DeadlinePoint",
            "headway.domain.playback": """
                Outage Playback TraceStretch RateTrace Recovery SimulatedTarget
            """,
            "headway.domain.scheduling": """
                ComingBack Decision Policy QueryReport QueryState ScheduledQuery ScheduleReport
                WindowGrid
            """,
            "headway.domain.tuning": "Explored QuerySetting",
        },
    )
