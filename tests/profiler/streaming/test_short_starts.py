"""A run that fails soon after the start of its application does not blur the one after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.errors import EventLogError
from tests.profiler.event_log import EPOCH_S, AppLog, Query, write_plain

NUM_SHORT = 8
FAILED = Query(
    num_batches=NUM_SHORT, warm_up=(6.0, 3.0, 2.5, 2.0, 2.0, 2.0, 2.0, 2.0), trigger_s=2.0
)
RESTARTED = replace(
    FAILED, first_batch_id=NUM_SHORT, num_batches=40, warm_up=(), started_s=EPOCH_S + 60.0, seed=2
)


def profile_of(folder: Path, *queries: Query) -> headway.JobProfile:
    log = AppLog()
    for query in queries:
        log.add(query)
    return headway.profile(write_plain(log.lines, folder / "log"))


def left_out(profile: headway.JobProfile) -> list[str]:
    return [note for note in profile.notes if "too few to tell the warm-up" in note]


def test_a_short_start_is_left_out_beside_a_longer_run(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, FAILED, RESTARTED)
    (setting,) = profile.settings
    assert setting.num_batches == pytest.approx(40, abs=2)
    assert setting.modelled_duration_mean_s == pytest.approx(
        setting.batch_duration_mean_s, rel=0.05
    )
    (note,) = left_out(profile)
    assert note.startswith("query orders (3f1c7e0a), run 1 of 2: left out, its ")


@pytest.mark.parametrize(
    "restarted",
    [
        replace(RESTARTED, rate_per_s=60_000.0),
        replace(RESTARTED, trigger_s=4.0, rate_per_s=10_000.0),
        replace(RESTARTED, num_batches=9),
    ],
    ids=["other rows", "other trigger", "short as well"],
)
def test_a_short_start_is_kept_where_no_longer_run_has_its_setting(
    tmp_path: Path, restarted: Query
) -> None:
    profile = profile_of(tmp_path, FAILED, restarted)
    assert len(profile.settings) == 2
    assert not left_out(profile)


def test_the_only_run_is_not_compared_with_all_runs(tmp_path: Path) -> None:
    # Half of the batches are slow, which a robust fit to few of them does not average.
    slow = replace(FAILED, num_batches=9, warm_up=(1.0, 1.0, 4.0, 4.0, 1.0, 4.0, 1.0, 1.0, 4.0))
    profile = profile_of(tmp_path, slow)
    assert not any("all runs together" in note for note in profile.notes)


def test_runs_that_end_too_soon_are_named_together(tmp_path: Path) -> None:
    """As of a query that reads what is available, each hour."""
    runs = [
        replace(FAILED, num_batches=3, first_batch_id=3 * n, started_s=EPOCH_S + 60.0 * n, seed=n)
        for n in range(4)
    ]
    with pytest.raises(EventLogError) as refused:
        profile_of(tmp_path, *runs)
    assert str(refused.value).count("left out, 2 of 3 batches usable") == 1
    assert "query orders (3f1c7e0a), runs 1 to 4 of 4: left out" in str(refused.value)
    assert "or limit the rows of a batch if it ends by itself" in str(refused.value)
