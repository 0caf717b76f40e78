"""The demonstration, run for real in a process of its own, on what a plain installation has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import load_profile
from headway.sparkconf import parse_properties
from tests.installation import EXTRAS, FEW_SETTINGS, required, without

pytestmark = pytest.mark.jvm

# The parts of a quick demonstration, shorter, with less work for each row: each lasts until it has
# its batches all the same, and how well it is predicted is not judged here. Patience goes by the
# length of a part: it stays that of longer parts, for the first batches take ten seconds each on a
# busy machine.
SHORTER = f"""{FEW_SETTINGS}
from headway.demo import run
from headway.runtime import measure
measure._PATIENCE_FACTOR *= 7.5
run._WARM_S = 1.0
run._HASH_ROUNDS = 1
run.QUICK = run.Length(
    warm_up_s=1.0, warm_batches=1, profiled_s=3.0, predicted_s=0.0, planned_s=3.0
)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, int]]:
    folder = tmp_path_factory.mktemp("work") / "demo"
    with pytest.MonkeyPatch.context() as patch:
        # The usual garbage collector of Java works beside the tasks, for shorter pauses.
        quick = os.environ["SPARK_SUBMIT_OPTS"]
        patch.setenv("SPARK_SUBMIT_OPTS", f"{quick} -XX:+UseSerialGC -Xmn512m")
        done = without(
            required(*EXTRAS) - {"pyspark"},
            *("demo", "--quick", "-o", str(folder)),
            before=SHORTER,
            timeout_s=600,
        )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    yield folder, done.stdout, done.returncode


def test_the_verdict_is_what_was_measured(demo: tuple[Path, str, int]) -> None:
    folder, printed, exit_code = demo
    assert ("Target MET" in printed) == (exit_code == 0)
    assert ("Target MISSED" in printed) == (exit_code == 1)
    assert "predicted" in (folder / "comparison.txt").read_text()


def test_every_file_can_be_read_back(demo: tuple[Path, str, int]) -> None:
    folder, printed, _ = demo
    profile = load_profile(folder / "word-count.profile.yaml")
    assert [setting.query_name for setting in profile.settings] == ["word-count-1", "word-count-2"]
    for setting, trigger_s in zip(profile.settings, (1.0, 2.0), strict=True):
        # On a busy machine batches overrun their trigger, which then shows nowhere.
        is_busy = setting.batch_duration_mean_s > 0.5 * trigger_s
        assert setting.configuration.trigger_s == trigger_s or is_busy
    assert [setting.configuration.shuffle_partitions for setting in profile.settings] == [2, 8]
    for setting, rate_per_s in zip(profile.settings, (4_000, 16_000), strict=True):
        assert setting.rate_per_s == pytest.approx(rate_per_s, rel=0.05)
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["feasible"]
    conf = parse_properties((folder / "spark-defaults.conf").read_text())
    assert conf == plan["spark_conf"]
    assert "<svg" in (folder / "report.html").read_text()
    # Files are named, not printed: they are there to be opened.
    assert "spark-defaults.conf" in printed
    assert len(printed.splitlines()) < 60
    assert 'id="what-if"' in (folder / "report.html").read_text()


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    done = subprocess.run(
        [sys.executable, "-m", "headway", "demo", "--quick", "-o", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "not empty" in done.stderr
