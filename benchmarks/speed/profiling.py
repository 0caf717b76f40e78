"""Log to profile, and to plan, beside plain decoding and a reader on the JVM, as a Markdown page.

The recorded log is shortened to the smaller sizes and repeated, as other applications, to the
larger ones. All ways are whole processes, run in turn, round after round: in process, plain decode,
at some sizes Spark's own reader of logs, and at the larger ones Spark, on this machine and on one
and on two executors.

    python benchmarks/run.py profiling EVENTLOG --output docs/profiling-speed.md
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard
from pages import headed, made_by

from headway.profiler.spark.session import require_java

SIZES_BYTES = (1_000_000, 45_000_000, 520_000_000, 1_000_000_000)
APPLICATION_BYTES = 45_000_000
ON_JVM_BYTES = (45_000_000, 520_000_000)
SPARK_FROM_BYTES = 520_000_000
ONE_EXECUTOR, TWO_EXECUTORS = "local-cluster[1,1,1024]", "local-cluster[2,1,1024]"
ROUNDS = 3
JVM_GOAL_RATIO = 10.0
# Of the time of plain decoding of 45 MB: 1.2 s where that took 0.63 s.
PLAN_GOAL_RATIO = 1.2 / 0.63
DECODE, IN_PROCESS, ON_JVM, SPARK = "plain decode", "in process", "JVM", "spark"
PLAN, DECODE_PART = "plan", "plain decode of a part"
_REPLAY = Path(__file__).with_name("ReplayLogs.java")
_UUID = re.compile(rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")
_DECODE = """
import io, json, sys, zstandard
for name in sys.argv[1:]:
    with open(name, "rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        for line in io.TextIOWrapper(reader, encoding="utf-8"):
            json.loads(line)
"""
_MEASURED = """
import json, resource, subprocess, sys, time
started_s = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
elapsed_s = time.perf_counter() - started_s
if code.returncode:
    sys.exit(code.stderr.decode())
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
processor_s = usage.ru_utime + usage.ru_stime
peak_bytes = 1024 * usage.ru_maxrss
print(json.dumps({"elapsed_s": elapsed_s, "processor_s": processor_s, "peak_bytes": peak_bytes}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one command took; the peak is of its largest process."""

    elapsed_s: float
    processor_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Logs of one size, every way, round by round."""

    raw_bytes: int
    num_logs: int
    costs: Mapping[str, Sequence[Cost]]

    def median_s(self, way: str) -> float:
        """Of the rounds."""
        return statistics.median(cost.elapsed_s for cost in self.costs[way])

    def processor_s(self, way: str) -> float:
        """Median of the rounds, of all processes that ended."""
        return statistics.median(cost.processor_s for cost in self.costs[way])

    def peak_bytes(self, way: str) -> int:
        """Of all rounds."""
        return max(cost.peak_bytes for cost in self.costs[way])


def cost_of(*command: str) -> Cost:
    """Run a command in a process of its own and return what it took."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command[:4]}: {done.stderr}")
    return Cost(**json.loads(done.stdout))


def lines_of(log: Path) -> list[bytes]:
    """All lines of a rolling zstd log."""
    lines: list[bytes] = []
    for part in sorted(log.glob("events_*")):
        with part.open("rb") as packed:
            reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
            lines += io.BufferedReader(reader, 2**20).readlines()
    return lines


def logs_of_size(
    lines: list[bytes], size_bytes: int, folder: Path, application_bytes: int = APPLICATION_BYTES
) -> list[Path]:
    """Logs of that many raw bytes: the recorded one cut, or repeated as other applications."""
    application = next(
        json.loads(line)["App ID"] for line in lines if b"ListenerApplicationStart" in line
    )
    files: list[Path] = []
    left_bytes = size_bytes
    while left_bytes > 0:
        other = f"{application}{len(files):04d}".encode()
        part = folder / f"eventlog_v2_{other.decode()}" / f"events_1_{other.decode()}.zstd"
        part.parent.mkdir()
        end_bytes = max(left_bytes - application_bytes, 0)
        with (
            part.open("wb") as file,
            zstandard.ZstdCompressor(level=1).stream_writer(file) as packed,
        ):
            for line in lines:
                # Queries of other applications are other queries.
                renamed = _UUID.sub(b"%08x" % len(files), line) if files else line
                packed.write(renamed.replace(application.encode(), other))
                left_bytes -= len(line)
                if left_bytes <= end_bytes:
                    break
        files.append(part)
    return files


def measured(
    size_bytes: int, files: Sequence[Path], ways: Mapping[str, Sequence[str]], rounds: int
) -> Measured:
    """Every way at one size, in turn; of large logs those with Java once."""
    # Now the files are in memory, and Python's bytecode is compiled.
    cost_of(*ways.get(PLAN, ways[IN_PROCESS]))
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    for number in range(rounds):
        print(f"{size_bytes / 1e6:.0f} MB, round {number + 1} of {rounds}", file=sys.stderr)
        for way, command in ways.items():
            is_quick = size_bytes < SPARK_FROM_BYTES or way in (DECODE, IN_PROCESS)
            if number == 0 or is_quick:
                costs[way].append(cost_of(*command))
    return Measured(raw_bytes=size_bytes, num_logs=len(files), costs=costs)


def profiles(lines: list[bytes], size_bytes: int, rounds: int, classes: Path) -> Measured:
    """Profiles of logs of a size."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        logs.mkdir()
        files = logs_of_size(lines, size_bytes, logs)
        ways = {DECODE: _decode(files), IN_PROCESS: _profile(logs)}
        if size_bytes in ON_JVM_BYTES:
            java = str(require_java() / "bin" / "java")
            path = os.pathsep.join((str(classes), f"{_spark_jars()}/*"))
            ways[ON_JVM] = (java, "-cp", path, _REPLAY.stem, *map(str, files))
        if size_bytes >= SPARK_FROM_BYTES:
            ways[SPARK] = _profile(logs, "--engine", "spark")
            ways[ONE_EXECUTOR] = _profile(logs, "--master", ONE_EXECUTOR)
            ways[TWO_EXECUTORS] = _profile(logs, "--master", TWO_EXECUTORS)
        return measured(size_bytes, files, ways, rounds)


def plan_of_log(lines: list[bytes], rounds: int) -> Measured:
    """A plan from the whole recorded log, beside its profile and plain decoding."""
    size_bytes = sum(map(len, lines))
    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder) / "whole", Path(folder) / "part"
        whole.mkdir()
        part.mkdir()
        files = logs_of_size(lines, size_bytes, whole, size_bytes)
        plan = (sys.executable, "-m", "headway", "plan", str(whole), "--rate", "20k/s")
        ways = {
            DECODE_PART: _decode(logs_of_size(lines, APPLICATION_BYTES, part)),
            DECODE: _decode(files),
            IN_PROCESS: _profile(whole),
            PLAN: (*plan, "--target", "p99 <= 5s"),
        }
        return measured(size_bytes, files, ways, 2 * rounds + 1)


def _decode(files: Sequence[Path]) -> tuple[str, ...]:
    return (sys.executable, "-c", _DECODE, *map(str, files))


def _profile(logs: Path, *options: str) -> tuple[str, ...]:
    output = str(logs.parent / "p.yaml")
    return (sys.executable, "-m", "headway", "profile", str(logs), "-o", output, *options)


def _spark_jars() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def _compile_replay(folder: Path) -> None:
    """The classes of Spark's own reader, which no round compiles."""
    compiler = str(require_java() / "bin" / "javac")
    command = [compiler, "-nowarn", "-classpath", f"{_spark_jars()}/*", "-d", str(folder)]
    subprocess.run([*command, str(_REPLAY)], check=True)


def page(log: Path, rounds: int) -> str:
    """Measure all sizes and report them."""
    lines = lines_of(log)
    with tempfile.TemporaryDirectory() as folder:
        # As installed: compiled bytecode is kept, whatever this shell asks for.
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        classes = Path(folder) / "classes"
        classes.mkdir()
        _compile_replay(classes)
        planned = plan_of_log(lines, rounds)
        sizes = [profiles(lines, size_bytes, rounds, classes) for size_bytes in SIZES_BYTES]
    return "\n".join([*_page(sizes, planned, rounds), ""])


def _page(sizes: Sequence[Measured], planned: Measured, rounds: int) -> Iterator[str]:
    yield "# How fast logs become profiles"
    yield ""
    yield (
        f"Medians of whole processes, {rounds} rounds in turn, on zstd logs of a streaming query "
        f"of Spark 4.3. {made_by('make speed-profiling')}"
    )
    yield ""
    yield (
        "In process is `headway profile LOG`, without Java. Plain decode is Python that only "
        "decompresses the log and calls `json.loads` for every line, on one core. The allowance is "
        "the time that a profile may take: one and a half times the plain decode plus half a "
        "second. The JVM reads the logs as Spark's History Server does to show them, with Spark's "
        "own reader, which tools on the JVM share, as many logs at once as there are cores; large "
        "logs once."
    )
    yield ""
    yield from headed(
        "| raw log | applications | in process | peak memory of a process | plain decode "
        "| allowance | JVM | JVM over in process | goal |"
    )
    for size in sizes:
        decode_s = size.median_s(DECODE)
        cells = [
            f"{size.raw_bytes / 1e6:.0f} MB",
            f"{size.num_logs}",
            f"{size.median_s(IN_PROCESS):.2f} s",
            f"{size.peak_bytes(IN_PROCESS) / 1e6:.0f} MB",
            f"{decode_s:.2f} s",
            f"{1.5 * decode_s + 0.5:.2f} s",
            *("", "", ""),
        ]
        if ON_JVM in size.costs:
            ratio = size.median_s(ON_JVM) / size.median_s(IN_PROCESS)
            cells[-3:] = [
                f"{size.median_s(ON_JVM):.1f} s",
                f"{ratio:.1f}",
                f"{JVM_GOAL_RATIO:g}",
            ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield "## From a log to a plan"
    yield ""
    yield (
        f"The whole recorded log, {planned.raw_bytes / 1e6:.0f} MB of 17 runs, "
        f"{2 * rounds + 1} rounds in turn. The goal is 1.2 s on a machine on which plain decoding "
        f"of {APPLICATION_BYTES / 1e6:.0f} MB takes 0.63 s: {PLAN_GOAL_RATIO:.1f} times as long."
    )
    yield ""
    yield from headed("| process | time | processor time | goal |")
    goal_s = PLAN_GOAL_RATIO * planned.median_s(DECODE_PART)
    part = f"plain decode of {APPLICATION_BYTES / 1e6:.0f} MB of it"
    names = {DECODE_PART: part, DECODE: DECODE, IN_PROCESS: "`headway profile LOG`"}
    for way, name in (names | {PLAN: "`headway plan LOG --rate --target`"}).items():
        goal = f"{goal_s:.2f} s" if way == PLAN else ""
        times = f"{planned.median_s(way):.2f} s | {planned.processor_s(way):.2f} s"
        yield f"| {name} | {times} | {goal} |"
    yield ""
    yield "## On Spark"
    yield ""
    yield (
        "The same logs with `--engine spark` on this machine, and on a cluster of one and of two "
        "executors with one core each, on the same machine, once each. All times include the start "
        "of Spark and of its Python workers."
    )
    yield ""
    yield "| raw log | all cores | peak memory of a process | one executor | two executors |"
    yield "|---:|---:|---:|---:|---:|"
    large = [size for size in sizes if SPARK in size.costs]
    for size in large:
        yield (
            f"| {size.raw_bytes / 1e6:.0f} MB | {size.median_s(SPARK):.1f} s "
            f"| {size.peak_bytes(SPARK) / 1e6:.0f} MB | {size.median_s(ONE_EXECUTOR):.1f} s "
            f"| {size.median_s(TWO_EXECUTORS):.1f} s |"
        )
    yield ""
    first, last = large[0], large[-1]
    added_s = [last.median_s(way) - first.median_s(way) for way in (ONE_EXECUTOR, TWO_EXECUTORS)]
    yield (
        f"The {(last.raw_bytes - first.raw_bytes) / 1e6:.0f} MB between the two sizes add "
        f"{added_s[0]:.1f} s on one executor and {added_s[1]:.1f} s on two."
    )


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("log", type=Path, help="a rolling event log (eventlog_v2_*), zstd")
    parser.add_argument("--rounds", type=int, default=ROUNDS)


def text(given: argparse.Namespace) -> str:
    """The page."""
    return page(given.log, given.rounds)
