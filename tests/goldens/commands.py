"""Command lines whose every output is on record: each kind of job, each way to print its answer."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.formats.profile_file import save_profile
from headway.version import __version__
from tests.planner.jobs import windowed
from tests.planner.test_backlog import ended
from tests.planner.test_dstreams import FITTED, profiled
from tests.planner.test_real_time import a_query
from tests.seeds import few_settings

ROOT = Path(__file__).parents[2]
_STREAM = "plan examples/word-count.profile.yaml --rate 40k/s --target 'p99 <= 2s'"
_OUT_OF_REACH = (
    "plan examples/word-count.profile.yaml --rate 90k/s --target 'p99 <= 200ms' --max-nodes 2"
)
_WINDOWS = "plan windows.profile.yaml --rate 20k/s --target 'window p95 <= 20s'"
_BATCH = "plan examples/nightly-totals.profile.yaml --target 'deadline <= 2m'"
_BACKLOG = "plan backlog.profile.yaml --rows 4M --target 'deadline <= 2m'"
_DSTREAMS = "plan dstreams.profile.yaml --rate 300 --target 'p99 <= 20s' --max-nodes 4"
_REAL_TIME = (
    "plan kafka.profile.yaml --mode real-time --rate 5k/s --target 'p99 <= 800ms' --max-nodes 8"
)
_PIPELINE = "plan examples/pipelines/word-count.yaml --rate 200k/s --max-nodes 3 --target"
_CHECK = "check configs/orders.yaml --baseline configs/headway.lock"
_FEW = " --partitions 8 --trigger 1s --max-nodes 2 --quiet -o page.html"
_NODES = (
    " --objective cost --node-type a.large:cores=4,memory=14g,price=0.192"
    " --node-type b.large:cores=8,memory=28g,price=0.35,speed=1.2"
)

COMMANDS = {
    "stream-predict": "predict examples/word-count.profile.yaml --rate 40k/s",
    "stream-predict-json": "predict examples/word-count.profile.yaml --rate 40k/s --json",
    "stream-predict-over": "predict examples/word-count.profile.yaml --rate 2M/s",
    "stream-predict-refused": "predict examples/word-count.profile.yaml --cores 0",
    "stream": _STREAM,
    "stream-json": f"{_STREAM} --json",
    "stream-verbose": f"{_STREAM} --verbose",
    "stream-page": f"{_STREAM}{_FEW}",
    "stream-conf": f"{_STREAM} --format spark-defaults",
    "stream-submit": f"{_STREAM} --format spark-submit",
    "stream-pyspark": f"{_STREAM} --format pyspark",
    "stream-nodes": f"{_STREAM}{_NODES}",
    "stream-bill": f"{_STREAM}{_NODES} --checkpoint-store s3 --verbose",
    "stream-bursts": f"{_STREAM} --burst 80k/s:2m:1h --target 'catch_up <= 15m after 5m'",
    "stream-infeasible": _OUT_OF_REACH,
    "stream-infeasible-json": f"{_OUT_OF_REACH} --json",
    "stream-refused": "plan examples/word-count.profile.yaml --target 'deadline <= 2m'",
    "windows-predict": "predict windows.profile.yaml --rate 20k/s",
    "windows": _WINDOWS,
    "windows-json": f"{_WINDOWS} --json",
    "windows-infeasible": _WINDOWS.replace("20s", "10s"),
    "batch": _BATCH,
    "batch-json": f"{_BATCH} --json",
    "batch-page": f"{_BATCH} --quiet -o page.html",
    "batch-conf": f"{_BATCH} --format spark-defaults",
    "batch-nodes": f"{_BATCH}{_NODES}",
    "batch-infeasible": _BATCH.replace("2m", "1s"),
    "batch-infeasible-json": f"{_BATCH.replace('2m', '1s')} --json",
    "batch-refused": f"{_BATCH} --rate 5k/s",
    "backlog": _BACKLOG,
    "backlog-json": f"{_BACKLOG} --json",
    "backlog-page": f"{_BACKLOG} --quiet -o page.html",
    "backlog-conf": f"{_BACKLOG} --format spark-defaults",
    "backlog-infeasible": _BACKLOG.replace("2m", "1s"),
    "backlog-refused": f"{_BACKLOG} --trigger 2s",
    "dstreams-predict": "predict dstreams.profile.yaml",
    "dstreams": _DSTREAMS,
    "dstreams-json": f"{_DSTREAMS} --json",
    "dstreams-conf": f"{_DSTREAMS} --format spark-defaults",
    "dstreams-infeasible": _DSTREAMS.replace("20s", "20ms"),
    "dstreams-node-types": f"{_DSTREAMS}{_NODES} --budget 9",
    "dstreams-refused": f"{_DSTREAMS} --from-start",
    "real-time-predict": "predict kafka.profile.yaml --mode real-time --rate 5k/s",
    "real-time": _REAL_TIME,
    "real-time-json": f"{_REAL_TIME} --json",
    "real-time-pyspark": f"{_REAL_TIME} --format pyspark",
    "real-time-infeasible": _REAL_TIME.replace("800ms", "1ms"),
    "real-time-node-types": f"{_REAL_TIME}{_NODES} --budget 9",
    "real-time-refused": f"{_REAL_TIME} --from-start",
    "pipeline-predict": "predict examples/pipelines/word-count.yaml",
    "pipeline": f"{_PIPELINE} 'p99 <= 5s'",
    "pipeline-json": f"{_PIPELINE} 'p99 <= 5s' --json",
    "pipeline-infeasible": f"{_PIPELINE} 'p99 <= 1ms'",
    "ordered-pipeline": "plan examples/pipelines/sessions.yaml",
    "ordered-pipeline-predict": "predict examples/pipelines/sessions.yaml --json",
    "spec": "plan configs/orders.yaml",
    "spec-batch": "plan configs/nightly-totals.yaml --json",
    "check": _CHECK,
    "check-json": f"{_CHECK} --format json",
    "check-markdown": f"{_CHECK} --format markdown",
    "explain": "explain stream.json",
    "explain-batch": "explain batch.json",
    "diff": "diff stream.json infeasible.json",
    "simulate": "simulate stream.json --rate-trace examples/burst.csv --runs 1",
    "emit-kubeflow": "emit stream.json --format kubeflow",
    "emit-databricks": "emit stream.json --format databricks --node-type m6i.xlarge",
    "emit-batch": "emit batch.json --format airflow",
}
"""By name; files are in the folder that `prepare` makes."""

PLANS = {"stream.json": "stream-json", "batch.json": "batch-json",
         "infeasible.json": "stream-infeasible-json"}  # fmt: skip
_PAGE = "page.html"
_CHANGING = (
    (re.compile(r"\b20\d\d-\d\d-\d\d( \d\d:\d\d(:\d\d)?( UTC)?)?"), "DATE"),
    (re.compile(re.escape(__version__)), "VERSION"),
)


def prepare(folder: Path) -> None:
    """The files that the commands name."""
    for name in ("examples", "configs"):
        shutil.copytree(ROOT / name, folder / name)
    save_profile(windowed(), folder / "windows.profile.yaml")
    save_profile(ended(), folder / "backlog.profile.yaml")
    save_profile(a_query(), folder / "kafka.profile.yaml")
    save_profile(profiled(FITTED), folder / "dstreams.profile.yaml")
    with contextlib.chdir(folder):
        for file, name in PLANS.items():
            Path(file).write_text(_streams(COMMANDS[name])[1], encoding="utf-8")


_MANY_DIGITS = re.compile(r"(?<![\w.])\d+\.\d{9,}(?:e[+-]?\d+)?(?![\w.])")


def output_of(name: str, folder: Path) -> str:
    """Exit code, standard output, errors, and the text of the page, without dates."""
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        few_settings(patch)
        Path(_PAGE).unlink(missing_ok=True)
        code, out, err = _streams(COMMANDS[name])
        page = Path(_PAGE).read_text(encoding="utf-8") if Path(_PAGE).exists() else None
    parts = {f"$ headway {COMMANDS[name]}\nexit {code}": "", "stdout": out, "stderr": err}
    if page is not None:
        parts["page"] = "\n".join(_texts_of(page)) + "\n"
    text = "".join(
        f"== {head}\n{body}" for head, body in parts.items() if body or not head.isalpha()
    )
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return alike_on_all_machines(text)


def alike_on_all_machines(text: str) -> str:
    """A text whose numbers have twelve digits at most: the last ones depend on the processor."""
    return _MANY_DIGITS.sub(lambda number: f"{float(number[0]):.12g}", text)


def _streams(command: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(shlex.split(command))
    return int(code), out.getvalue(), err.getvalue()


def _texts_of(page: str) -> Iterator[str]:
    """What a reader sees of a page, a line for each text; pictures by their words and numbers."""
    reader = _Texts()
    reader.feed(page)
    yield from reader.texts


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and not self._inside:
            self.texts.append(text)
