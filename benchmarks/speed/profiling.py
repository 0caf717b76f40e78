"""Log to profile against plain decompress-and-JSON-decode of the same log, as a Markdown page.

The recorded log is cut to the smaller sizes and repeated, as other applications, to the larger
ones. Both are whole processes, run in turn, round after round.

    python benchmarks/speed/profiling.py EVENTLOG --output docs/profiling-speed.md
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import zstandard

from headway.version import __version__

SIZES_BYTES = (1_000_000, 50_000_000, 500_000_000, 1_000_000_000)
ROUNDS = 5
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
    """What one process took; the peak is of its largest process, the JVM where there is one."""

    elapsed_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One size, both ways, round by round."""

    raw_bytes: int
    num_logs: int
    profile: tuple[Cost, ...]
    decode: tuple[Cost, ...]


def cost_of(*command: str) -> Cost:
    """Run a command in a process of its own and tell what it took."""
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
    """Both ways at one size, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        files = logs_of_size(lines, size_bytes, Path(folder))
        profile, decode = [], []
        cost_of(*_profile(folder))
        for number in range(rounds):
            print(f"{size_bytes / 1e6:.0f} MB, round {number + 1} of {rounds}", file=sys.stderr)
            decode.append(cost_of(sys.executable, "-c", _DECODE, *map(str, files)))
            profile.append(cost_of(*_profile(folder)))
        return Measured(
            raw_bytes=size_bytes,
            num_logs=len(files),
            profile=tuple(profile),
            decode=tuple(decode),
        )


def _profile(folder: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "headway", "profile", folder, "-o", f"{folder}/p.yaml")


def page(log: Path, rounds: int) -> str:
    """Measure all sizes and tell."""
    lines = lines_of(log)
    with tempfile.TemporaryDirectory() as folder:
        # As installed: Python keeps what it has compiled, whatever this shell asks for.
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        empty = statistics.median(
            cost_of(sys.executable, "-c", _START).elapsed_s for _ in range(rounds)
        )
        return "\n".join([*_page(lines, rounds, empty), ""])


_START = """
from headway.profiler.events import local_session_conf
from headway.profiler.spark.session import embedded_session
with embedded_session(app_name="start", extra_conf=local_session_conf()) as spark:
    spark.range(1).count()
"""


def _page(lines: list[bytes], rounds: int, start_s: float) -> Iterator[str]:
    yield "# How fast logs become profiles"
    yield ""
    yield (
        f"Whole processes, {rounds} rounds in turn, medians. Made {datetime.now(UTC):%Y-%m-%d} by "
        f"`make speed-profiling`, headway {__version__}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}; logs of a streaming "
        "query of Spark 4.3, zstd."
    )
    yield ""
    yield (
        f"Starting Spark, counting one row and stopping it takes {start_s:.1f} s of each "
        "`headway profile`. Plain decode is Python's: decompress, `json.loads` of every line, on "
        "one core."
    )
    yield ""
    yield (
        "| raw log | applications | `headway profile` | peak memory of the JVM | plain decode "
        "| ratio | ratio without Spark's start |"
    )
    yield "|---|---|---|---|---|---|---|"
    for size_bytes in SIZES_BYTES:
        one = measured(lines, size_bytes, rounds)
        profile_s = statistics.median(cost.elapsed_s for cost in one.profile)
        decode_s = statistics.median(cost.elapsed_s for cost in one.decode)
        peak_bytes = max(cost.peak_bytes for cost in one.profile)
        yield (
            f"| {size_bytes / 1e6:.0f} MB | {one.num_logs} | {profile_s:.1f} s "
            f"| {peak_bytes / 1e6:.0f} MB | {decode_s:.2f} s | {profile_s / decode_s:.1f} "
            f"| {(profile_s - start_s) / decode_s:.1f} |"
        )
        time.sleep(1)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("log", type=Path, help="a rolling event log (eventlog_v2_*), zstd")
    parser.add_argument("--output", type=Path, help="Markdown file; printed if not given")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    text = page(arguments.log, arguments.rounds)
    if arguments.output is None:
        print(text)
    else:
        arguments.output.write_text(text)
        print(arguments.output)


if __name__ == "__main__":
    main()
