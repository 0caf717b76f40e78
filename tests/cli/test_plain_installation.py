"""Each command about one job, in a process without the packages of the extras: nothing differs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from tests.installation import EXTRAS, FEW_SETTINGS, required
from tests.planner.test_dstreams import FITTED
from tests.profiler.event_log import AppLog, Query, write_rolling
from tests.sources import ROOT

EXAMPLES, CONFIGS = ROOT / "examples", ROOT / "configs"
Commands = Sequence[Sequence[str]]

#: Runs commands in a folder, "> FILE" as a shell would, without some packages; prints for each its
#: exit code, output and messages.
_RUN_ALL = f"""
import contextlib, io, json, sys
from pathlib import Path
missing, commands = json.load(sys.stdin)
sys.modules.update(dict.fromkeys(missing))  # taken as not installed
{FEW_SETTINGS}
from headway.cli.main import run
for words in commands:
    printed, errors = io.StringIO(), io.StringIO()
    words, file = (words[:-2], words[-1]) if ">" in words else (words, None)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        code = run(words)
    if file is not None:
        Path(file).write_text(printed.getvalue())
    print(json.dumps([int(code), printed.getvalue(), errors.getvalue()]))
"""


def put_files_into(folder: Path) -> None:
    """A log, and the profile of a stream of which one key has three tenths of the rows."""
    write_rolling(AppLog().add(Query(num_batches=40)).lines, folder / "eventlog_v2_app-1")
    profile = headway.load_profile(EXAMPLES / "word-count.profile.yaml")
    counts, totals = profile.stages
    hot = replace(totals, hot_share_ratio=0.3, task_per_row_s=1e-5)
    headway.save_profile(replace(profile, stages=(counts, hot)), folder / "hot.profile.yaml")
    kafka = replace(profile.shape, sources=("KafkaV2[Subscribe[orders]]",), sink="console")
    headway.save_profile(replace(profile, shape=kafka), folder / "kafka.profile.yaml")


def answers(missing: set[str], commands: Commands, folder: Path) -> list[tuple[int, str, str]]:
    """Exit code, output and messages of each command."""
    folder.mkdir()
    put_files_into(folder)
    done = subprocess.run(
        [sys.executable, "-c", _RUN_ALL],
        input=json.dumps([sorted(missing), commands]),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answered = map(json.loads, done.stdout.splitlines())
    return [(code, printed, errors) for code, printed, errors in answered]


def about(job: str, options: Sequence[str], setting: Sequence[str]) -> Commands:
    """Every command about one job: its plan, another one, and what is made of them."""
    return [
        ["plan", job, *options],
        ["plan", job, *options, "--json", ">", "plan.json"],
        ["plan", job, *options, "--max-nodes", "3", "--json", ">", "other.json"],
        ["explain", "plan.json"],
        ["emit", "plan.json", "--format", "spark-submit"],
        ["diff", "plan.json", "other.json"],
        ["report", "plan.json", "-o", "plan.html"],
        *([["predict", job, *setting]] if setting else []),
    ]


STREAM = ("--rate", "24k/s", "--target", "p99 <= 2s")
JOBS: dict[str, Commands] = {
    "stream": [
        *about(str(EXAMPLES / "word-count.profile.yaml"), STREAM, ["--rate", "30k/s"]),
        ["simulate", "plan.json", "--rate-trace", str(EXAMPLES / "burst.csv")],
        ["report", str(EXAMPLES / "word-count.profile.yaml"), "-o", "profile.html"],
    ],
    "stream with hot keys": about("hot.profile.yaml", STREAM, ["--rate", "30k/s"]),
    "Real-Time Mode": [
        ["plan", "kafka.profile.yaml", *STREAM, "--mode", "real-time"],
        ["predict", "kafka.profile.yaml", "--mode", "real-time"],
    ],
    "event log": [
        ["profile", "eventlog_v2_app-1", "-o", "job.profile.yaml"],
        ["profile", "eventlog_v2_app-1", "--advise"],
        ["plan", "eventlog_v2_app-1", "--target", "p99 <= 20s"],
        ["predict", "eventlog_v2_app-1", "--rate", "1k/s"],
        ["explain", "eventlog_v2_app-1"],
        ["backtest", "eventlog_v2_app-1"],
    ],
    "batch job": about(
        str(EXAMPLES / "nightly-totals.profile.yaml"), ["--target", "deadline <= 5m"], []
    ),
    "backlog": about(
        str(EXAMPLES / "nightly-backlog.profile.yaml"),
        ["--target", "deadline <= 30m", "--rows", "40M"],
        [],
    ),
    "DStreams": [
        ["profile", str(FITTED), "-o", "dstreams.yaml"],
        ["plan", "dstreams.yaml", "--target", "p99 <= 12s"],
        ["predict", "dstreams.yaml", "--trigger", "4s"],
    ],
    "specs": [
        ["validate", *(str(CONFIGS / f"{name}.yaml") for name in ("orders", "fleet"))],
        ["check", str(CONFIGS / "orders.yaml"), "--baseline", str(CONFIGS / "headway.lock")],
        *(
            ["plan", str(CONFIGS / f"{name}.yaml")]
            for name in ("orders", "sensors-daily", "payments-trace", "clicks-declared")
        ),
        *(["plan", str(CONFIGS / f"{name}.yaml")] for name in ("nightly-totals", "nightly-report")),
        ["emit", str(CONFIGS / "orders.yaml"), "--format", "kubeflow"],
    ],
    "pipelines": [
        [command, str(path)]
        for path in sorted((EXAMPLES / "pipelines").glob("*.yaml"))
        for command in ("predict", "plan", "simulate")
    ],
}

#: Each takes a quarter of a minute or more.
SLOW = ("pipelines", "stream with hot keys")


@pytest.mark.parametrize(
    "job",
    [
        *(job for job in JOBS if job not in SLOW),
        *(pytest.param(job, marks=pytest.mark.statistical) for job in SLOW),
    ],
)
def test_a_plain_installation_answers_as_one_with_all_extras(job: str, tmp_path: Path) -> None:
    plain, whole = (
        answers(missing, JOBS[job], tmp_path / name)
        for name, missing in (("plain", required(*EXTRAS)), ("whole", set[str]()))
    )
    assert [answer for answer in plain if answer[0] not in (0, 3)] == []
    assert plain == whole
