"""Fewer slots of one machine: tasks wait less for what they share (T10)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.domain import JobProfile
from headway.models.job.setting import duration_model
from tests.factories import a_profile, a_stage_observed

ROWS = 50_000.0


def local_profile(wait_ratio: float | None, application_id: str = "local-1") -> JobProfile:
    """A job of which all stages wait for so much of their time."""
    profile = a_profile()
    observed = replace(a_stage_observed(), shared_wait_ratio=wait_ratio)
    stages = tuple(replace(stage, observed=observed) for stage in profile.stages)
    application = replace(profile.application, id=application_id)
    return replace(profile, stages=stages, applications=(application,))


def tasks_s(profile: JobProfile, num_slots: int) -> float:
    model = duration_model(profile, num_slots, 8)
    return float(model.mean_s(ROWS)) - model.driver_s


def test_waits_are_in_proportion_to_the_slots() -> None:
    waiting, computing = local_profile(0.4), local_profile(0.0)
    profiled = waiting.baseline.num_slots
    assert profiled % 2 == 0
    half = tasks_s(waiting, profiled // 2) / tasks_s(computing, profiled // 2)
    assert half == pytest.approx(1.0 - 0.4 / 2.0)
    for num_slots in (profiled, 2 * profiled):
        assert tasks_s(waiting, num_slots) == tasks_s(computing, num_slots)


def test_executors_of_a_cluster_and_code_of_users_are_left_alone() -> None:
    profiled = a_profile().baseline.num_slots
    for profile in (local_profile(0.4, "application_17_0001"), local_profile(None)):
        assert tasks_s(profile, profiled // 2) == tasks_s(local_profile(0.0), profiled // 2)


@pytest.mark.parametrize("wait_ratio", [-0.1, 1.1])
def test_a_share_is_from_0_to_1(wait_ratio: float) -> None:
    with pytest.raises(ValueError, match="shared_wait_ratio is"):
        local_profile(wait_ratio)
