"""Headway: resource planning for Apache Spark from a latency target.

>>> import headway
>>> str(headway.Target.parse("p99 <= 3s"))
'p99 <= 3.00 s'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.lazy_names import loads_when_used
from headway.version import __version__

if TYPE_CHECKING:
    from headway.api import backtest, load_profile, plan, predict, profile, save_profile, survey
    from headway.api.capacity import capacity
    from headway.api.specs import plan_spec
    from headway.domain import (
        Arrivals,
        Configuration,
        JobProfile,
        Plan,
        Prediction,
        Target,
    )
    from headway.errors import HeadwayError
    from headway.gate import check
    from headway.profiler.recording.recorder import record

_HOMES = {
    "headway.api": (
        "backtest",
        "load_profile",
        "plan",
        "predict",
        "profile",
        "save_profile",
        "survey",
    ),
    "headway.domain": (
        "Arrivals",
        "Configuration",
        "JobProfile",
        "Plan",
        "Prediction",
        "Target",
    ),
    "headway.api.capacity": ("capacity",),
    "headway.api.specs": ("plan_spec",),
    "headway.errors": ("HeadwayError",),
    "headway.gate": ("check",),
    "headway.profiler.recording.recorder": ("record",),
}

__all__ = [
    "Arrivals",
    "Configuration",
    "HeadwayError",
    "JobProfile",
    "Plan",
    "Prediction",
    "Target",
    "__version__",
    "backtest",
    "capacity",
    "check",
    "load_profile",
    "plan",
    "plan_spec",
    "predict",
    "profile",
    "record",
    "save_profile",
    "survey",
]

# A command pays only for what it needs.
__getattr__ = loads_when_used(__name__, _HOMES)
