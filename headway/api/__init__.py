"""The library calls, for CI and notebooks: profile, predict, plan, backtest.

Light to import: Spark, and the numeric libraries, are loaded by the call that needs them.
"""

from headway.api.logs import Survey, backtest, profile, profile_any, survey
from headway.api.profiles import advised_runs, load_profile, save_profile
from headway.api.settings import configuration_from, plan, predict

__all__ = [
    "Survey",
    "advised_runs",
    "backtest",
    "configuration_from",
    "load_profile",
    "plan",
    "predict",
    "profile",
    "profile_any",
    "save_profile",
    "survey",
]
