"""The nouns every room speaks with; frozen, and checked when made."""

from headway.domain.configuration import Arrivals, Configuration
from headway.domain.coverage import Coverage, Share
from headway.domain.plan import Applies, Change, FrontierPoint, Plan, Rejection
from headway.domain.prediction import Interval, LatencyDistribution, Prediction
from headway.domain.profile import (
    PROFILE_SCHEMA,
    Application,
    Drift,
    DriverPhase,
    DurationNoise,
    JobProfile,
    MemoryProfile,
    ObservedArrivals,
    ObservedSetting,
    Pins,
    StateProfile,
)
from headway.domain.query import EventTimeWindow, QueryShape, WindowKind
from headway.domain.stage import RowsLaw, Separation, StageObserved, StageProfile, TasksRule
from headway.domain.target import Metric, Target

__all__ = [
    "PROFILE_SCHEMA",
    "Application",
    "Applies",
    "Arrivals",
    "Change",
    "Configuration",
    "Coverage",
    "Drift",
    "DriverPhase",
    "DurationNoise",
    "EventTimeWindow",
    "FrontierPoint",
    "Interval",
    "JobProfile",
    "LatencyDistribution",
    "MemoryProfile",
    "Metric",
    "ObservedArrivals",
    "ObservedSetting",
    "Pins",
    "Plan",
    "Prediction",
    "QueryShape",
    "Rejection",
    "RowsLaw",
    "Separation",
    "Share",
    "StageObserved",
    "StageProfile",
    "StateProfile",
    "Target",
    "TasksRule",
    "WindowKind",
]
