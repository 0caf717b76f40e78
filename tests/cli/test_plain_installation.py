"""Each command about one job, in a process without the packages of the extras: nothing differs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
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

#: Runs commands, each in a folder, "> FILE" as a shell would, without some packages; prints for
#: each its exit code, output and messages.
_RUN_ALL = f"""
import contextlib, io, json, sys
from pathlib import Path
missing, commands = json.load(sys.stdin)
sys.modules.update(dict.fromkeys(missing))  # taken as not installed
{FEW_SETTINGS}
from headway.cli.main import run
for folder, words in commands:
    printed, errors = io.StringIO(), io.StringIO()
    words, file = (words[:-2], words[-1]) if ">" in words else (words, None)
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(errors),
    ):
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


Answer = tuple[int, str, str]
"""Exit code, output and messages of a command."""


def answers(
    missing: set[str], jobs: Mapping[str, Commands], folder: Path
) -> dict[str, list[Answer]]:
    """What commands about jobs answer in one process, each job in a folder of its own."""
    commands = []
    for number, (job, words) in enumerate(jobs.items()):
        own = folder / str(number)
        own.mkdir(parents=True)
        put_files_into(own)
        commands += [(job, (str(own), each)) for each in words]
    done = subprocess.run(
        [sys.executable, "-c", _RUN_ALL],
        input=json.dumps([sorted(missing), [command for _, command in commands]]),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answered: dict[str, list[Answer]] = {job: [] for job in jobs}
    for (job, _), line in zip(commands, done.stdout.splitlines(), strict=True):
        code, printed, errors = json.loads(line)
        answered[job].append((code, printed, errors))
    return answered


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
QUICK = tuple(job for job in JOBS if job not in SLOW)


def of_both_installations(
    jobs: Sequence[str], folder: Path
) -> tuple[dict[str, list[Answer]], dict[str, list[Answer]]]:
    """Answers without what the extras install, and with all of it."""
    asked = {job: JOBS[job] for job in jobs}
    plain = answers(required(*EXTRAS), asked, folder / "plain")
    return plain, answers(set(), asked, folder / "whole")


@pytest.fixture(scope="module")
def quick_answers(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, list[Answer]], dict[str, list[Answer]]]:
    """Of all jobs in two processes: Headway is loaded twice, not twice for each job."""
    return of_both_installations(QUICK, tmp_path_factory.mktemp("quick"))


def require_alike(plain: Sequence[Answer], whole: Sequence[Answer]) -> None:
    assert [answer for answer in plain if answer[0] not in (0, 3)] == []
    assert plain == whole


@pytest.mark.parametrize("job", QUICK)
def test_a_plain_installation_answers_as_one_with_all_extras(
    job: str, quick_answers: tuple[dict[str, list[Answer]], dict[str, list[Answer]]]
) -> None:
    plain, whole = quick_answers
    require_alike(plain[job], whole[job])


@pytest.mark.statistical
@pytest.mark.parametrize("job", SLOW)
def test_a_plain_installation_answers_as_one_with_all_extras_at_length(
    job: str, tmp_path: Path
) -> None:
    plain, whole = of_both_installations([job], tmp_path)
    require_alike(plain[job], whole[job])
