"""What to run next, so that an answer becomes more certain."""

from __future__ import annotations

from collections.abc import Sequence

from headway.api.plan import plan
from headway.api.predict import predict
from headway.domain import AdvisedRun, JobProfile, Promise, Target
from headway.errors import InputError


def advise(
    profile: JobProfile,
    *,
    rate: float | str | None = None,
    target: Target | str | Sequence[Promise | str] | None = None,
) -> tuple[AdvisedRun, ...]:
    """Which runs would teach most, the most informative one first; empty if none would.

    Parameters
    ----------
    profile : JobProfile
        The job, from whatever runs there were.
    rate : float or str, optional
        Arrivals that the answer is for, records per second or e.g. ``"50k/s"``.
    target : Target or str, or a sequence of them, optional
        The promise that the answer is about. The setting is then the one that a plan finds, or
        the nearest; without a target it is the profiled one, at the rate given. With neither the
        runs make the profile better for all settings.

    Raises
    ------
    InputError
        If a value is not what it should be, or a target is given without a rate.
    """
    from headway.models.job.advice import AskedSetting, advised_runs

    if target is not None and rate is None:
        raise InputError(
            "a target needs the rate at which it is to be met; give --rate beside --target"
        )
    if rate is None:
        return advised_runs(profile)
    if target is None:
        return advised_runs(profile, AskedSetting.of(predict(profile, rate=rate)))
    found = plan(profile, rate=rate, target=target)
    return advised_runs(profile, AskedSetting.of(found.prediction, found.target))
