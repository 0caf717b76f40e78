"""A stream that is killed with its JVM before any write of its log loses and doubles nothing."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from headway.runtime.sharing.log_batches import Emit
from tests.runtime.sharing.typed_cases import Results, differences
from tests.runtime.sharing.typed_streams import TypedCase, a_typed_case, write_batches

NUM_KILLS = int(os.environ.get("HEADWAY_WINDOW_STREAM_KILLS", "0"))
ROOT = Path(__file__).parents[3]


def of_one_stream(emit: Emit) -> tuple[int, TypedCase]:
    """The first random case of one stream, and its seed."""
    cases = ((seed, a_typed_case(seed)) for seed in count())
    return next((s, c) for s, c in cases if c.emit == emit and len(c.delays_ms) == 1)


def run(folder: Path, seed: int, allowed: int | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.runtime.sharing.dying_stream",
         str(folder), str(seed), str(allowed)],
        capture_output=True, text=True, timeout=600, cwd=ROOT,
    )  # fmt: skip


def results_of(folder: Path) -> Results:
    """What the sink has, in which a repeated batch overwrites itself."""
    batches = [pickle.loads(path.read_bytes()) for path in (folder / "results").iterdir()]
    return {place: values for batch in batches for place, values in batch.items()}


@pytest.mark.skipif(NUM_KILLS == 0, reason="starts two JVMs a kill: make window-equality")
@pytest.mark.parametrize("emit", ["exact", "update"])
def test_a_killed_stream_goes_on_where_it_was(tmp_path: Path, emit: Emit) -> None:
    seed, case = of_one_stream(emit)

    def fresh(name: str) -> Path:
        write_batches(case, tmp_path / name, 0, len(case.batches))
        return tmp_path / name

    whole = run(fresh("whole"), seed, "compared")
    assert whole.returncode == 0, whole.stderr
    expected: Results = pickle.loads((tmp_path / "whole" / "expected.pickle").read_bytes())
    assert differences(results_of(tmp_path / "whole"), expected) == []
    written = re.search(r"writes: (\d+)", whole.stdout)
    assert written is not None
    num_writes = int(written[1])
    step = max(num_writes // NUM_KILLS, 1)
    for allowed in range(0, num_writes, step):
        folder = fresh(str(allowed))
        assert run(folder, seed, allowed).returncode == -9
        again = run(folder, seed, "all")
        assert again.returncode == 0, again.stderr
        assert differences(results_of(folder), expected) == [], allowed
