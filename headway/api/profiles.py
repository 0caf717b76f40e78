"""Calls about profiles: as files, and what they lack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.domain import AdvisedRun, ApplicationProfile, JobProfile


def load_profile(path: str | Path) -> JobProfile:
    """Read a profile that was saved before.

    Raises
    ------
    ProfileError
        If the file is missing or is no valid profile; every fault with its place.
    """
    from headway.formats.profile_file import load_profile as load

    return load(Path(path))


def save_profile(profile: JobProfile | ApplicationProfile, path: str | Path) -> None:
    """Write a profile as YAML, whole or not at all."""
    from headway.formats.profile_file import save_profile as save

    save(profile, Path(path))


def advised_runs(profile: JobProfile) -> tuple[AdvisedRun, ...]:
    """Which runs to record next, the one that teaches most first."""
    from headway.models.job.advice import advised_runs as advised

    return advised(profile)
