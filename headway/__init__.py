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
    from headway.api.backtest import backtest
    from headway.api.capacity import capacity
    from headway.api.check import check
    from headway.api.diff import diff
    from headway.api.emit import emit
    from headway.api.explain import explain
    from headway.api.explore import explore
    from headway.api.init import init
    from headway.api.lock import lock
    from headway.api.metrics import publish_metrics
    from headway.api.ordered import ordered_plan
    from headway.api.page import page
    from headway.api.plan import plan
    from headway.api.predict import predict
    from headway.api.profile import profile, survey
    from headway.api.schedule import schedule
    from headway.api.shed import bring_back, shed, shedding_batches
    from headway.api.simulate import simulate, simulate_policies
    from headway.api.specs import plan_spec, validate
    from headway.api.supervised import setting, stop_when_asked
    from headway.api.tune import tune
    from headway.api.watch import watch
    from headway.api.windows import windows
    from headway.domain import (
        Arrivals,
        Configuration,
        JobProfile,
        Plan,
        Prediction,
        QuerySetting,
        Target,
    )
    from headway.domain.fleet_questions import Limits
    from headway.errors import HeadwayError
    from headway.formats.from_json import load_plan
    from headway.formats.lock_file import load_lock, save_lock
    from headway.formats.profile_file import load_profile, save_profile
    from headway.profiler.recording.recorder import record
    from headway.runtime.ordered.ordered_map import ordered_map
    from headway.runtime.ordered.ordered_stream import ordered
    from headway.runtime.sharing.shared_windows import shared_windows
    from headway.runtime.sharing.window_log import window_log

# Calls whose module has their name.
_CALLS = (
    "backtest capacity check diff emit explain explore init lock page plan predict schedule "
    "tune watch windows"
)
_HOMES = {
    **{f"headway.api.{name}": name for name in _CALLS.split()},
    "headway.api.metrics": "publish_metrics",
    "headway.api.ordered": "ordered_plan",
    "headway.api.profile": "profile survey",
    "headway.api.shed": "bring_back shed shedding_batches",
    "headway.api.simulate": "simulate simulate_policies",
    "headway.api.specs": "plan_spec validate",
    "headway.api.supervised": "setting stop_when_asked",
    "headway.domain": "Arrivals Configuration JobProfile Plan Prediction QuerySetting Target",
    "headway.domain.fleet_questions": "Limits",
    "headway.errors": "HeadwayError",
    "headway.formats.from_json": "load_plan",
    "headway.formats.lock_file": "load_lock save_lock",
    "headway.formats.profile_file": "load_profile save_profile",
    "headway.profiler.recording.recorder": "record",
    "headway.runtime.ordered.ordered_map": "ordered_map",
    "headway.runtime.ordered.ordered_stream": "ordered",
    "headway.runtime.sharing.shared_windows": "shared_windows",
    "headway.runtime.sharing.window_log": "window_log",
}

__all__ = [
    "Arrivals", "Configuration", "HeadwayError", "JobProfile", "Limits", "Plan", "Prediction",
    "QuerySetting", "Target", "__version__", "backtest", "bring_back", "capacity", "check",
    "diff", "emit", "explain", "explore", "init", "load_lock", "load_plan", "load_profile",
    "lock", "ordered", "ordered_map", "ordered_plan", "page", "plan", "plan_spec", "predict",
    "profile", "publish_metrics", "record", "save_lock", "save_profile", "schedule", "setting",
    "shared_windows", "shed", "shedding_batches", "simulate", "simulate_policies",
    "stop_when_asked", "survey", "tune", "validate", "watch", "window_log", "windows",
]  # fmt: skip

# A command pays only for what it needs.
__getattr__ = loads_when_used(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
