"""The nouns every room speaks with; frozen, and checked when made."""

from headway.domain.configuration import Arrivals, Configuration
from headway.domain.plan import Applies, Change, FrontierPoint, Plan, Rejection
from headway.domain.prediction import Interval, LatencyDistribution, Prediction
from headway.domain.profile import (
    PROFILE_SCHEMA,
    Application,
    Drift,
    DriverPhase,
    DurationNoise,
    JobProfile,
    ObservedSetting,
    QueryShape,
    RowsLaw,
    Separation,
    StageProfile,
    TasksRule,
)
from headway.domain.target import Metric, Target

__all__ = [
    "PROFILE_SCHEMA",
    "Application",
    "Applies",
    "Arrivals",
    "Change",
    "Configuration",
    "Drift",
    "DriverPhase",
    "DurationNoise",
    "FrontierPoint",
    "Interval",
    "JobProfile",
    "LatencyDistribution",
    "Metric",
    "ObservedSetting",
    "Plan",
    "Prediction",
    "QueryShape",
    "Rejection",
    "RowsLaw",
    "Separation",
    "StageProfile",
    "Target",
    "TasksRule",
]
