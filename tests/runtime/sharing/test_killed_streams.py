"""A stream that is killed with its JVM before any write of its log loses and doubles nothing."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headway.runtime.sharing.log_batches import Emit
from tests.runtime.sharing.log_cases import Result, direct
from tests.runtime.sharing.stream_cases import with_rows, write_batch

NUM_KILLS = int(os.environ.get("HEADWAY_WINDOW_STREAM_KILLS", "0"))
ROOT = Path(__file__).parents[3]
SEED = 3


def run(folder: Path, emit: Emit, allowed: float) -> subprocess.CompletedProcess[str]:
    asked = [str(folder), str(SEED), emit, str(allowed)]
    return subprocess.run(
        [sys.executable, "-m", "tests.runtime.sharing.dying_stream", *asked],
        capture_output=True, text=True, timeout=300, cwd=ROOT,
    )  # fmt: skip


def results_of(folder: Path) -> Result:
    found = (json.loads(each.read_text()) for each in (folder / "results").iterdir())
    return {(batch, size, end, key): rows for batch, size, end, key, rows in found}


@pytest.mark.skipif(NUM_KILLS == 0, reason="starts two JVMs a kill: make window-equality")
@pytest.mark.parametrize("emit", ["exact", "update"])
def test_a_killed_stream_goes_on_where_it_was(tmp_path: Path, emit: Emit) -> None:
    case = with_rows(random.Random(SEED))

    def fresh(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for number, rows in enumerate(case.batches):
            write_batch(folder / "in", number, rows)
        return folder

    whole = run(fresh("whole"), emit, float("inf"))
    assert whole.returncode == 0, whole.stderr
    assert results_of(tmp_path / "whole") == direct(case, emit)
    written = re.search(r"writes: (\d+)", whole.stdout)
    assert written is not None
    num_writes = int(written[1])
    step = max(num_writes // NUM_KILLS, 1)
    for allowed in range(0, num_writes, step):
        folder = fresh(str(allowed))
        assert run(folder, emit, allowed).returncode == -9
        again = run(folder, emit, float("inf"))
        assert again.returncode == 0, again.stderr
        assert results_of(folder) == direct(case, emit), allowed
