"""What is emitted, run by a real Spark: the submission, the session that it starts, the trigger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.cli.main import run

PROFILE = str(Path(__file__).parents[2] / "examples" / "word-count.profile.yaml")
# Starts the query as the emitted snippet configures it, and prints what Spark made of it.
APP = """
import json
from pyspark.sql import SparkSession
import planned

spark = planned.configure(SparkSession.builder).getOrCreate()
rows = planned.read(spark.readStream.format("rate")).load()
query = planned.write(rows.writeStream.format("noop")).start()
print(json.dumps({
    "conf": dict(spark.sparkContext.getConf().getAll()),
    "trigger": query._jsq.streamingQuery().trigger().toString(),
}))
query.stop()
spark.stop()
"""


@pytest.mark.jvm
def test_submission_session_and_trigger_are_those_of_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(output_format: str) -> str:
        question = ["--rate", "24k/s", "--target", "p99 <= 2s", "--partitions", "3"]
        assert run(["plan", PROFILE, *question, "--format", output_format]) == 0
        return capsys.readouterr().out

    plan = json.loads(printed("json"))
    (tmp_path / "planned.py").write_text(printed("pyspark"), encoding="utf-8")
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    submission = printed("spark-submit").replace(
        "spark-submit \\\n", "spark-submit --master 'local[2]' \\\n"
    )
    seen = executed(["sh", "-c", submission], tmp_path)
    started = json.loads(next(line for line in seen.stdout.splitlines() if line[:1] == "{"))
    for key, value in plan["spark_conf"].items():
        assert started["conf"][key] == value
    milliseconds = round(1000 * plan["configuration"]["trigger_s"])
    assert started["trigger"] == f"ProcessingTimeTrigger({milliseconds})"


def executed(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of the Spark of this Python, in a folder; fails with what it printed."""
    scripts = Path(sys.executable).parent
    # An embedded Spark of these tests sets it; a shell in which somebody submits does not.
    shell = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            **shell,
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
