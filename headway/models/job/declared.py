"""Declared figures at the end of their ranges that a confidence level requires."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headway.domain import JobProfile

if TYPE_CHECKING:
    from headway.domain import ApplicationProfile


def figures_at(profile: JobProfile, score: float) -> JobProfile:
    """The profile with every declared figure at a normal score; a measured profile unchanged.

    Parameters
    ----------
    score : float: 0 takes the middle of every range, 1.645 its upper end

    **(P19)** Declared figures, instead of (P2). A figure is stated as low `l`, middle `m` and high
    `h`, and is between the ends nine times in ten. At the normal score `z ≥ 0` it is
    `m(h/m)^(z/1.645)`, and below `m(l/m)^(-z/1.645)`: two halves of a lognormal (a half that
    reaches or starts from zero is a straight line). All figures are taken at the same `z`, since
    whoever states one too low states the others too low. A prediction is (T6) at `z = 0`, the ends
    of its 90% intervals at `z = ∓1.645`. A plan meets its target at the `z` of its confidence,
    which at 95% is the upper end of every range. Nothing was profiled, so there is no profiled
    range of slots, partitions and rows (`d = 0`), no fit and no spread between runs (`s = 0`): the
    same job has the same frontier whatever rate is declared. A figure without a range stands for
    `m/1.5` to `1.5 m`. Batches vary by 15% and the tasks of a batch by 30%, which nobody declares.
    A batch job is the graph of (P16) with its work and its driver's time at `z`, scaled by no run.

    >>> from headway.formats.profile_file import load_profile
    >>> measured = load_profile("examples/word-count.profile.yaml")
    >>> figures_at(measured, 1.645) is measured
    True
    """
    costs = profile.declared
    if costs is None:
        return profile
    driver_s, fixed_s = costs.driver.at(score), costs.task_fixed.at(score)
    phases = tuple(replace(phase, mean_s=driver_s) for phase in profile.driver_phases)
    stages = tuple(
        replace(stage, task_fixed_s=fixed_s, task_per_row_s=per_row.at(score))
        for stage, per_row in zip(profile.stages, costs.task_per_row, strict=True)
    )
    return replace(profile, driver_phases=phases, stages=stages)


def work_at(profile: ApplicationProfile, score: float) -> ApplicationProfile:
    """A batch job with its declared work at a normal score, a measured one unchanged (P19).

    Parameters
    ----------
    score : float, as in `figures_at`

    >>> from headway.domain import DeclaredWork, StatedRange
    >>> from headway.formats.profile_file import load_any_profile
    >>> measured = load_any_profile("examples/nightly-totals.profile.yaml")
    >>> work = StatedRange(low_s=100.0, mid_s=200.0, high_s=400.0)
    >>> driver = StatedRange(low_s=1.0, mid_s=2.0, high_s=4.0)
    >>> stated = replace(measured, declared=DeclaredWork(work=work, driver=driver))
    >>> work_at(stated, 1.6448536269514722).driver_only_s
    4.0
    """
    declared = profile.declared
    if declared is None:
        return profile
    ratio = declared.work.at(score) / declared.work.mid_s
    stages = tuple(
        replace(
            stage,
            task_mean_s=ratio * stage.task_mean_s,
            task_sd_s=None if stage.task_sd_s is None else ratio * stage.task_sd_s,
            task_max_s=ratio * stage.task_max_s,
        )
        for stage in profile.stages
    )
    driver_s = declared.driver.at(score)
    duration_s = max(profile.duration_s, driver_s)
    return replace(profile, stages=stages, driver_only_s=driver_s, duration_s=duration_s)
