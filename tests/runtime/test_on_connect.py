"""Every live call in a session of a real Spark Connect, where its packages are installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime import connect_session
from tests.runtime.connect_cases import WORKS
from tests.sources import ROOT

pytest.importorskip("grpc_status", reason="needs pyspark[connect]")
pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.skipif(
    int(pyspark.__version__.partition(".")[0]) < 4, reason="PySpark 3 does not contain the server"
)


def test_each_call_says_what_to_do_or_works(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", connect_session.__name__, str(tmp_path)],
        check=True, cwd=ROOT, timeout=600,
        # An ephemeral port, so that several servers can run.
        env=os.environ
        | {"SPARK_TESTING": "1", "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())
    others = {
        name: outcome
        for name, outcome in outcomes["refused"].items()
        if not re.fullmatch(
            r"Spark Connect [^\n]*; expected a classic session: [^\n]*", outcome.get("said", "")
        )
    }
    assert others == {}
    assert len(outcomes["refused"]) == len(connect_session.ALL_REFUSED)
    assert outcomes["written"] == []

    gave = {name: outcome.get("gave", outcome) for name, outcome in outcomes["works"].items()}
    assert set(gave) == set(WORKS)
    panes, direct = gave["windows"]
    # 60 s and windows of 10 s every 5 s: 13 windows of 3 keys.
    assert panes == direct and len(panes) == 39
    assert gave["ordered"] == [[key, number] for key in range(3) for number in range(1, 21)]
    assert gave["ordered_map"] == [2 * (number % 3) for number in range(60)]
    assert gave["ordered_map of a stream"] is True
    assert gave["panes of a stream"] is True
    assert gave["shed"]["shed"] == 0
    assert gave["record"] >= 3
