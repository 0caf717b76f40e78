"""Processor time and peak memory of each test: ``make test-costs``.

A plugin that writes a line for each test, ``pytest -p tests.costs``, in one process or in several;
and a program that prints the files, the tests and the peaks that cost most, ``python -m
tests.costs``.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

FILE = Path("build/test-costs.jsonl")
_NUM_SHOWN = 40
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Measure a test with its fixtures; those of a module count to its first test."""
    # From here on the peak is that of this test.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before_s = _spent_s()
    outcome = yield
    cost = {"test": item.nodeid, "cpu_s": _spent_s() - before_s, "peak_bytes": _peak_bytes()}
    FILE.parent.mkdir(exist_ok=True)
    with FILE.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(cost)}\n")
    return outcome


def _spent_s() -> float:
    """Processor time of this process and of all that it started, those that run included."""
    parents, spent = dict[int, int](), Counter[int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        process = int(stat.parent.name)
        parents[process] = int(fields[1])
        spent[process] = sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {process for process in parents if parents[process] in ours} - ours:
        ours |= more
    return sum(spent[process] for process in ours) / _TICKS_PER_S


def _peak_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(peak)


def main() -> None:
    """Print what costs most of the tests that were measured."""
    costs = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    files, functions = Counter[str](), Counter[str]()
    for cost in costs:
        files[cost["test"].partition("::")[0]] += cost["cpu_s"]
        functions[cost["test"].partition("[")[0]] += cost["cpu_s"]
    for title, seconds in (("files", files), ("tests", functions)):
        sys.stdout.write(f"CPU seconds by {title}, {seconds.total():.0f} of all\n")
        for name, cpu_s in seconds.most_common(_NUM_SHOWN):
            sys.stdout.write(f"{cpu_s:8.1f}  {name}\n")
    sys.stdout.write("peak memory of the process, MiB\n")
    for cost in sorted(costs, key=lambda cost: -cost["peak_bytes"])[:_NUM_SHOWN]:
        sys.stdout.write(f"{cost['peak_bytes'] / 2**20:8.0f}  {cost['test']}\n")


if __name__ == "__main__":
    main()
