"""Which runs to make next so that an answer becomes more certain."""

from __future__ import annotations

from collections.abc import Sequence

from headway.api.plan import plan
from headway.api.predict import predict
from headway.domain import AdvisedRun, JobProfile, Promise, Target
from headway.errors import InputError, argument
from headway.models.job.advice import SettingLatency, advised_runs


def advise(
    profile: JobProfile,
    *,
    rate: float | str | None = None,
    target: Target | str | Sequence[Promise | str] | None = None,
) -> tuple[AdvisedRun, ...]:
    """The most informative runs to make next, the best one first; empty if none would help.

    With a target, which needs a ``rate``, they are for its plan, or for the nearest one; without
    one, for the profiled setting at the given rate. With neither, they improve the profile for all
    settings. Raises InputError if a value is invalid, or a target is given without a rate.
    """
    if target is not None and rate is None:
        raise InputError(
            f"a target needs the rate at which it is to be met; give {argument('rate')} beside "
            f"{argument('target')}"
        )
    if rate is None:
        return advised_runs(profile)
    if target is None:
        return advised_runs(profile, SettingLatency.of(predict(profile, rate=rate)))
    answer = plan(profile, rate=rate, target=target)
    return advised_runs(profile, SettingLatency.of(answer.prediction, answer.target))
