"""Log to profile against plain decompress-and-JSON-decode of the same log, as a Markdown page.

The recorded log is shortened to the smaller sizes and repeated, as other applications, to the
larger ones. All ways are whole processes, run in turn, round after round: in process, plain decode,
and at the larger sizes Spark, on this machine and on one and on two executors.

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
from pages import made_by

SIZES_BYTES = (1_000_000, 50_000_000, 500_000_000, 1_000_000_000)
SPARK_FROM_BYTES = 500_000_000
ONE_EXECUTOR, TWO_EXECUTORS = "local-cluster[1,1,1024]", "local-cluster[2,1,1024]"
ROUNDS = 5
DECODE, IN_PROCESS, SPARK = "plain decode", "in process", "spark"
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
peak_bytes = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps({"elapsed_s": elapsed_s, "peak_bytes": peak_bytes}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one command took; the peak is of its largest process."""

    elapsed_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One size, every way, round by round."""

    raw_bytes: int
    num_logs: int
    costs: Mapping[str, Sequence[Cost]]

    def median_s(self, way: str) -> float:
        """Of the rounds."""
        return statistics.median(cost.elapsed_s for cost in self.costs[way])

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


def logs_of_size(lines: list[bytes], size_bytes: int, folder: Path) -> list[Path]:
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
        with (
            part.open("wb") as file,
            zstandard.ZstdCompressor(level=1).stream_writer(file) as packed,
        ):
            for line in lines:
                # Queries of other applications are other queries.
                renamed = _UUID.sub(b"%08x" % len(files), line) if files else line
                packed.write(renamed.replace(application.encode(), other))
                left_bytes -= len(line)
                if left_bytes <= 0:
                    break
        files.append(part)
    return files


def measured(lines: list[bytes], size_bytes: int, rounds: int) -> Measured:
    """Every way at one size, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        logs.mkdir()
        files = logs_of_size(lines, size_bytes, logs)
        ways = {
            DECODE: (sys.executable, "-c", _DECODE, *map(str, files)),
            IN_PROCESS: _profile(logs),
        }
        if size_bytes >= SPARK_FROM_BYTES:
            ways[SPARK] = _profile(logs, "--engine", "spark")
            ways[ONE_EXECUTOR] = _profile(logs, "--master", ONE_EXECUTOR)
            ways[TWO_EXECUTORS] = _profile(logs, "--master", TWO_EXECUTORS)
        # Now the files are in memory, and Python's bytecode is compiled.
        cost_of(*ways[IN_PROCESS])
        costs: dict[str, list[Cost]] = {way: [] for way in ways}
        for number in range(rounds):
            print(f"{size_bytes / 1e6:.0f} MB, round {number + 1} of {rounds}", file=sys.stderr)
            for way, command in ways.items():
                costs[way].append(cost_of(*command))
        return Measured(raw_bytes=size_bytes, num_logs=len(files), costs=costs)


def _profile(logs: Path, *options: str) -> tuple[str, ...]:
    output = str(logs.parent / "p.yaml")
    return (sys.executable, "-m", "headway", "profile", str(logs), "-o", output, *options)


def page(log: Path, rounds: int) -> str:
    """Measure all sizes and report them."""
    lines = lines_of(log)
    with tempfile.TemporaryDirectory() as folder:
        # As installed: compiled bytecode is kept, whatever this shell asks for.
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        found = [measured(lines, size_bytes, rounds) for size_bytes in SIZES_BYTES]
    return "\n".join([*_page(found, rounds), ""])


def _page(found: Sequence[Measured], rounds: int) -> Iterator[str]:
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
        "second."
    )
    yield ""
    yield (
        "| raw log | applications | in process | peak memory of a process | plain decode "
        "| allowance |"
    )
    yield "|---:|---:|---:|---:|---:|---:|"
    for one in found:
        decode_s = one.median_s(DECODE)
        yield (
            f"| {one.raw_bytes / 1e6:.0f} MB | {one.num_logs} | {one.median_s(IN_PROCESS):.2f} s "
            f"| {one.peak_bytes(IN_PROCESS) / 1e6:.0f} MB | {decode_s:.2f} s "
            f"| {1.5 * decode_s + 0.5:.2f} s |"
        )
    yield ""
    yield "## On Spark"
    yield ""
    yield (
        "The same logs with `--engine spark` on this machine, and on a cluster of one and of two "
        "executors with one core each, on the same machine. All times include the start of Spark "
        "and of its Python workers."
    )
    yield ""
    yield "| raw log | all cores | peak memory of a process | one executor | two executors |"
    yield "|---:|---:|---:|---:|---:|"
    large = [one for one in found if SPARK in one.costs]
    for one in large:
        yield (
            f"| {one.raw_bytes / 1e6:.0f} MB | {one.median_s(SPARK):.1f} s "
            f"| {one.peak_bytes(SPARK) / 1e6:.0f} MB | {one.median_s(ONE_EXECUTOR):.1f} s "
            f"| {one.median_s(TWO_EXECUTORS):.1f} s |"
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
