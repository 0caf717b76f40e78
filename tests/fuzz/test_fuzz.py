"""Damaged files, options and calls: some hundreds; ``make fuzz`` tries two hundred thousand."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PATCHES = """
import sys
from headway.cli.main import run
plan, file, before = sys.argv[1:]
good = open(before, "rb").read()
print("ready", flush=True)
while True:
    assert run(["emit", plan, "--patch", file, "--write"]) == 0
    from headway.formats.text_file import write_text
    write_text(file, good.decode(), label="the file")
"""


@pytest.mark.parametrize("num_inputs", [200, pytest.param(2000, marks=pytest.mark.statistical)])
def test_no_input_is_more_than_refused(num_inputs: int) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", "--inputs", str(num_inputs), "--seed", "38"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]


def test_a_patch_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    import headway
    from headway.formats.as_json import json_text
    from headway.formats.profile_file import save_profile
    from tests.factories import a_profile

    save_profile(a_profile(), tmp_path / "job.profile.yaml")
    plan = headway.plan(tmp_path / "job.profile.yaml", rate="5k/s", target="p99 <= 5s")
    (tmp_path / "plan.json").write_text(json_text(plan.to_dict()))
    conf, before = tmp_path / "spark-defaults.conf", tmp_path / "before.conf"
    # Long, so that a write in place would be seen half done.
    lines = "".join(f"spark.custom.{number} {'x' * 50}\n" for number in range(20_000))
    before.write_text(f"{lines}spark.executor.memory 4g\n")
    conf.write_text(before.read_text())
    arguments = [
        sys.executable,
        "-c",
        _PATCHES,
        str(tmp_path / "plan.json"),
        str(conf),
        str(before),
    ]
    rng, texts = random.Random(1), set()
    for _ in range(3):
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as one:
            assert one.stdout is not None
            one.stdout.readline()
            time.sleep(rng.uniform(0.05, 0.6))
            one.send_signal(signal.SIGKILL)
        text = conf.read_text()
        assert text.startswith(lines[:1000])
        assert text.count("spark.custom.") == 20_000
        texts.add(text)
    assert len(texts) <= 2
