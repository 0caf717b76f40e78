"""Fixed work beside a run, and what the table of it tells."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from campaign.fixed_work import KINDS, fixed_work
from campaign.speed_table import speed_beside_runs, speed_table


def test_fixed_work_is_done_for_as_long_as_its_context_lasts(tmp_path: Path) -> None:
    began_s = time.time()
    with fixed_work(tmp_path / "fixed.jsonl") as beside:
        deadline_s = time.monotonic() + 30
        while (seen := beside.between(began_s, time.time())) is None:
            assert time.monotonic() < deadline_s, "no work was done"
            time.sleep(0.1)
    assert set(seen) == set(KINDS)
    assert all(took_s > 0 for took_s in seen.values())
    assert beside.between(began_s - 10, began_s) is None
    size = beside.path.stat().st_size
    time.sleep(1.5)
    assert beside.path.stat().st_size == size


def test_what_goes_with_the_batch_is_distinguished_from_what_does_not() -> None:
    random = np.random.default_rng(11)
    begun_s = 1000.0 + 2.0 * np.arange(400)
    # Slow for a minute and fast for a minute, and noise that is each one's own.
    slow = 0.1 * np.sin(2 * np.pi * begun_s / 120)
    own = 0.03 * random.standard_normal((4, 400))
    rows = [
        {
            "begun_s": float(at_s),
            "duration_s": 2 * float(np.exp(slow[place] + own[0, place])),
            "interpreter_s": float(np.exp(slow[place] + own[1, place])),
            "memory_s": float(np.exp(0.5 * slow[place] + own[2, place])),
            "hash_s": float(np.exp(own[3, place])),
        }
        for place, at_s in enumerate(begun_s)
    ]
    unseen = {"begun_s": 999.0, "duration_s": 50.0}
    first, *lines = speed_table([unseen, *rows])
    assert first.startswith("400 batches")
    table = [line.strip("| ").split(" | ") for line in lines[3:-1]]
    cells = {name: figures for name, *figures in table}
    assert float(cells["the batch"][0].rstrip("%")) == pytest.approx(7.7, abs=0.5)
    assert float(cells["a loop of the interpreter"][2]) > 0.97
    assert float(cells["a copy of 16 MB"][2]) > 0.9
    assert abs(float(cells["a hash of 4 MB"][2])) < 0.4


def test_runs_predicted_too_short_where_the_machine_was_slow() -> None:
    rows = [
        {
            "workload": "json",
            "parts": {"duration": [1.0, slow]},
            "fixed_work": {"interpreter_s": 0.002 * slow**2},
        }
        for slow in (0.9, 0.95, 1.0, 1.05, 1.1)
    ]
    (sentence, _) = speed_beside_runs([*rows, {"workload": "old", "parts": None}])
    assert "beside 5 judged runs (json)" in sentence
    assert sentence.endswith("with the loop of the interpreter is -1.00.")
    assert list(speed_beside_runs(rows[:2])) == []
