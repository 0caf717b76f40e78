"""Spec files in a folder of their own, with a profile to plan from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headway.domain import JobProfile
from headway.formats.profile_file import save_profile
from tests.factories import a_profile

SPEC = """\
apiVersion: headway/v1
kind: StreamingJob
metadata: {name: orders}
spec:
  profile: orders.profile.yaml
  rate: 5k/s
  target: p99 <= 5s
  cluster:
    node: {name: n4, cores: 4, memory: 32Gi, price_per_hour: 0.2}
    cores_per_executor: 4
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with ``orders.yaml`` and its profile, which is the current one."""
    monkeypatch.chdir(tmp_path)
    save_profile(a_profile(), tmp_path / "orders.profile.yaml")
    (tmp_path / "orders.yaml").write_text(SPEC)
    return tmp_path


def slower(profile: JobProfile, ratio: float) -> JobProfile:
    """The profile of a job whose driver and tasks take longer by a ratio."""
    return replace(
        profile,
        driver_phases=tuple(
            replace(phase, mean_s=phase.mean_s * ratio) for phase in profile.driver_phases
        ),
        stages=tuple(
            replace(
                stage,
                task_fixed_s=stage.task_fixed_s * ratio,
                task_per_row_s=stage.task_per_row_s * ratio,
            )
            for stage in profile.stages
        ),
    )
