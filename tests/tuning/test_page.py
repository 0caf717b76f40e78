"""The code of docs/tuning.md runs as it stands there."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.cli.main import run
from headway.domain.tuner import Phase
from headway.formats.profile_file import save_profile
from headway.tuner.tuner import Tuner
from tests.tuning.test_on_spark import a_small_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tuning.md"


def test_the_python_of_the_page_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = PAGE.read_text()
    # The JVM has a working directory of its own.
    page = page.replace("orders.checkpoint", str(tmp_path / "orders.checkpoint"))
    watched, tuned, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    save_profile(a_small_profile(), "orders.profile.yaml")
    seen: list[Any] = []

    def once_learned(tuner: Tuner) -> None:
        ends_s = time.monotonic() + 60.0
        while tuner.status.phase is not Phase.HOLD:
            assert time.monotonic() < ends_s, tuner.status
            time.sleep(0.2)
        exec(watched, {"spark": spark, "print": lambda *said: seen.extend(said)})

    monkeypatch.setattr(Tuner, "await_termination", once_learned)
    try:
        exec(tuned, {"spark": spark})
        assert seen[0] is not None
        assert (tmp_path / "orders.tuner.jsonl").exists()
    finally:
        for query in spark.streams.active:
            query.stop()


def test_the_spec_of_the_example_and_of_init_are_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", str(ROOT / "examples" / "tuning" / "counts.yaml")]) == 0
    (tmp_path / "counts.py").write_text("def build(spark, setting): ...\n")
    save_profile(a_small_profile(), tmp_path / "job.profile.yaml")
    (tmp_path / "job.yaml").write_text(headway.init("Tuning", name="job", file="job.yaml"))
    assert run(["validate", str(tmp_path / "job.yaml")]) == 0, capsys.readouterr()
    spec = str(tmp_path / "job.yaml")
    assert run(["tune", spec, "--off"]) == 0
    assert (tmp_path / "job.tuner.off").exists()
    assert "no tuner runs" in " ".join(capsys.readouterr().out.split())
    assert run(["tune", spec, "--off", "--restore"]) == 0
    assert run(["tune", spec, "--on"]) == 0
    assert not (tmp_path / "job.tuner.off").exists()
    assert run(["tune", spec, "--restore"]) == 2
    assert run(["tune", spec, "--on", "--act"]) == 2
    (tmp_path / "counts.py").write_text("1 / 0\n")
    assert run(["tune", spec, "--for", "1s"]) == 2
    assert "cannot be run" in capsys.readouterr().err
