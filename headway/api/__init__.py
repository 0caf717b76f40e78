"""The library calls, for CI and notebooks: profile, predict, plan, simulate, backtest.

Light to import: Spark, and the numeric libraries, are loaded by the call that needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.lazy_names import loads_when_used

if TYPE_CHECKING:
    from headway.api.deadlines import plan_deadline
    from headway.api.logs import (
        Survey,
        backtest,
        profile,
        profile_and_tables,
        profile_any,
        survey,
    )
    from headway.api.profiles import advised_runs, load_profile, save_profile
    from headway.api.settings import configuration_from, plan, predict
    from headway.api.simulation import load_plan, load_rate_trace, simulate

__all__ = [
    "Survey",
    "advised_runs",
    "backtest",
    "configuration_from",
    "load_plan",
    "load_profile",
    "load_rate_trace",
    "plan",
    "plan_deadline",
    "predict",
    "profile",
    "profile_and_tables",
    "profile_any",
    "save_profile",
    "simulate",
    "survey",
]

if not TYPE_CHECKING:
    __getattr__ = loads_when_used(
        __name__,
        {
            "headway.api.deadlines": ("plan_deadline",),
            "headway.api.logs": (
                "Survey",
                "backtest",
                "profile",
                "profile_and_tables",
                "profile_any",
                "survey",
            ),
            "headway.api.profiles": ("advised_runs", "load_profile", "save_profile"),
            "headway.api.settings": ("configuration_from", "plan", "predict"),
            "headway.api.simulation": ("load_plan", "load_rate_trace", "simulate"),
        },
    )
