"""Numbered rows through many lives of a query that sheds, at one path, with failures and kills."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runtime.shedding_lives import LivesFolder, a_life, live_on
from tests.sources import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_LIVES = range(7, 11)
"""One has only fresh rows and follows a life of which decisions have remained."""
NUM_LIVES = int(os.environ.get("HEADWAY_SHEDDING_LIVES", "0"))
NUM_LIVES_PER_KILL = 4
PATIENCE_S = 900.0


def test_rows_of_a_few_lives_are_kept_or_given_up_once(spark: SparkSession, tmp_path: Path) -> None:
    lives = LivesFolder(tmp_path / "lives")
    lives.folder.mkdir()
    lives.reach(FEW_LIVES.start, 0)
    live_on(spark, lives.folder, FEW_LIVES.stop)
    assert lives.at == (FEW_LIVES.stop, 0)
    drawn = [a_life(number) for number in FEW_LIVES]
    assert any(run.fails for life in drawn for run in life.runs)
    assert not drawn[1].is_all_deleted
    assert drawn[2].ages == "fresh"
    for what in ("kept", "given_up"):
        assert any(batch for life in drawn for batch in lives.by_batch(life, what).values())


@pytest.mark.robustness
@pytest.mark.skipif(not NUM_LIVES, reason="make shedding-lives")
def test_rows_of_all_lives_are_kept_or_given_up_once_though_drivers_are_killed(
    tmp_path: Path,
) -> None:
    lives, seeded, num_kills = LivesFolder(tmp_path / "lives"), random.Random(38), 0
    lives.folder.mkdir()
    while lives.at[0] < NUM_LIVES:
        is_last = num_kills >= NUM_LIVES // NUM_LIVES_PER_KILL
        num_kills += drive(lives, None if is_last else seeded)
        print(f"life {lives.at[0]} of {NUM_LIVES}, {num_kills} drivers killed", flush=True)
    assert num_kills
    num_rows = sum(len(batch) for number in range(NUM_LIVES) for batch in a_life(number).batches)
    attempts = lives.attempts.read_text().count("\n")
    print(f"{NUM_LIVES} lives, {num_rows} rows exact, {attempts} writes, {num_kills} kills")


def drive(lives: LivesFolder, seeded: random.Random | None) -> bool:
    """A driver until it has ended, or is killed with its JVM after some writes of its sinks."""
    log = (lives.folder / "driver.log").open("ab")
    command = [sys.executable, "-m", "tests.runtime.shedding_lives", str(lives.folder)]
    with log:
        driver = subprocess.Popen(
            [*command, str(NUM_LIVES)], cwd=ROOT, stdout=log, stderr=log, start_new_session=True
        )
    before, ends_s = size_of(lives.attempts), time.monotonic() + PATIENCE_S
    num_bytes = seeded.randint(1, 1500) if seeded else 0
    try:
        while driver.poll() is None:
            assert time.monotonic() < ends_s, "no end"
            if seeded and size_of(lives.attempts) >= before + num_bytes:
                time.sleep(seeded.random())
                return driver.poll() is None
            time.sleep(0.01)
        assert driver.returncode == 0, (lives.folder / "driver.log").read_text()[-3000:]
        return False
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()


def size_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
