"""Our tables of published event logs, compared with those of other tools for the same logs.

Every figure that means the same in both is compared. A difference needs its mechanism: our figure,
computed as the other tool does, must then agree. Other differences are marked as unexplained.

    python benchmarks/run.py published_logs ../shared/data --output docs/published-logs.md
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pages import headed, made_by
from published import history_server, rapids_tools, sparklens
from published.figures import Figure, LogTables, tables_of_logs

from headway.errors import HeadwayError
from headway.profiler.collect import collect
from headway.profiler.engines.in_process import read_in_process
from headway.profiler.logs.sources import find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import pieces_of

if TYPE_CHECKING:
    pass

PREFACE = """\
Event logs, from before Spark 1.4 to Spark 3.1, that other projects published together with the
results of their own tools. Each figure that means the same in Headway's tables
(`headway.profiler.rows`, `headway.profiler.stage_totals`) is compared with theirs, exactly: to the
millisecond, the byte, the task. The files are kept beside the repository.

If figures differ, "why" names the mechanism, and the mechanism is tested: our figure, computed
again in the way of the other tool, has to equal theirs. A difference without a mechanism is
"unexplained" and fails the tests.
"""

# Files of other tools with nothing to compare, by the end of their names, and why.
NOT_COMPARED_FILES = {
    "HistoryServerExpectations/application_list_json_expectation.json": (
        "the same list of applications, compared once"
    ),
    "_app_list_json_expectation.json": "the same list of applications, filtered",
    "HistoryServerExpectations/one_app_json_expectation.json": "an entry of the same list",
    "multiple_resource_profiles_expectation.json": "its log is not among the published ones here",
    "rdd_list_storage_json_expectation.json": "Headway does not read the list of cached data",
    "one_rdd_storage_json_expectation.json": "Headway does not read the list of cached data",
    "rapids_duration_and_cpu_expectation.csv": "its log is not among the published ones here",
    "dsv1_complex/apps_summary.csv": "its log is not among the published ones here",
    "dsv1_complex/local-1626104300434/persql.csv": "its log is not among the published ones here",
    "read_dsv2/apps_summary.csv": "its log is not among the published ones here",
    "read_dsv2/local-1624371906627/persql.csv": "its log is not among the published ones here",
    "simple_udf/local-1623281204390/persql.csv": "its log is not among the published ones here",
    "removed_blockManagers_eventlog_expectation.csv": (
        "removals of block managers; Headway reads removals of executors, another event"
    ),
    "unsupported_sql_eventlog_expectation.csv": "operators that a GPU could not run",
}

NOT_COMPARED_FIGURES = """\
* Durations of SQL executions: Headway does not read their ends, since it plans by jobs and stages.
* The duration and core seconds of `truncated_eventlog`: the log has no end. The tool guesses one
  from the last job or SQL execution; Headway reports that the end is missing.
* Bytes spilled to disk, result sizes, result serialization, shuffle write time, blocks fetched,
  CPU time of deserialization, locality, hosts, storage memory: not in Headway's tables.
* Records of input and of shuffle separately: Headway keeps their sum, which is compared.
* Peak metrics of executors per stage: Headway keeps the peak of a task's heap, which these answers
  do not have.
* Numbers of active and skipped tasks and stages, and exclusions of executors: states of a running
  application.
* Properties and free text that Headway does not read because they may be secret.
* The gain expected from a GPU.
* Five applications of the History Server's list (`local-1642039451826`,
  `application_1628109047826_1317105`, `app-20200706201101-0003`, `application_1555004656427_0144`,
  `local-1426533911241`): their logs are not among the published ones here."""


class Tool(NamedTuple):
    """Another tool: the logs it was given, the files it wrote, and its figures beside ours."""

    name: str
    logs: Sequence[str]
    answers: Sequence[str]
    figures: Callable[[Path, Mapping[str, LogTables]], Iterator[Figure]]


TOOLS = (
    Tool(
        "Spark History Server",
        history_server.LOGS,
        history_server.answers(),
        history_server.figures,
    ),
    Tool("spark-rapids-tools", rapids_tools.LOGS, rapids_tools.answers(), rapids_tools.figures),
    Tool("sparklens", sparklens.LOGS, sparklens.answers(), sparklens.figures),
)


def wanted_logs() -> list[str]:
    """The logs that other tools computed something from, below the folder of event logs."""
    return list(dict.fromkeys(log for tool in TOOLS for log in tool.logs))


def compared(tool: Tool, expected: Path, tables: Mapping[str, LogTables]) -> list[Figure]:
    """All figures that a tool and Headway both have, each once.

    Parameters
    ----------
    tool : Tool
        The other tool.
    expected : Path
        The folder of what other tools computed.
    tables : mapping of str to LogTables
        Ours, of :func:`wanted_logs`.
    """
    figures = tool.figures(expected, tables)
    # Several answers contain the same figure of one thing.
    return list({(figure.name, figure.of, figure.theirs): figure for figure in figures}.values())


def read_tables(event_logs: Path) -> dict[str, LogTables]:
    """Our tables of :func:`wanted_logs`, read in one pass."""
    names = wanted_logs()
    logs = [log for name in names for log in find_event_logs([event_logs / name]).logs]
    if len(logs) != len(names):
        raise HeadwayError(f"{event_logs}: {len(logs)} logs found; expected {len(names)}")
    with tempfile.TemporaryDirectory() as folder:
        unpack(logs, Path(folder))
        pieces, engine = pieces_of(Path(folder)), read_in_process
        _print_step("reading events")
        collected = collect(pieces, engine)
        _print_step("reading tables")
        return tables_of_logs(
            pieces, engine, collected, {name: app for app, name in enumerate(names)}
        )


def _print_step(step: str) -> None:
    print(step, file=sys.stderr)


def tool_section(tool: Tool, figures: Sequence[Figure]) -> list[str]:
    """One row for each kind of figure."""
    by_name: dict[str, list[Figure]] = {}
    for figure in figures:
        by_name.setdefault(figure.name, []).append(figure)
    return [
        f"## {tool.name}",
        "",
        f"{len(tool.answers)} files about {len(tool.logs)} logs. {_summary(figures)}",
        "",
        *headed(
            "| figure | compared | equal | both 0 | largest difference, ours minus theirs | why |"
        ),
        *(_row(name, of_name) for name, of_name in by_name.items()),
        "",
    ]


def _summary(figures: Sequence[Figure]) -> str:
    num_equal = sum(figure.is_equal for figure in figures)
    num_zero = sum(figure.is_zero for figure in figures)
    num_unexplained = sum(not figure.is_explained for figure in figures)
    return (
        f"{len(figures)} figures compared, {num_equal} equal ({num_zero} of them 0 on both sides), "
        f"{len(figures) - num_equal} different, {num_unexplained} of those unexplained."
    )


def _row(name: str, figures: Sequence[Figure]) -> str:
    different = [figure for figure in figures if not figure.is_equal]
    num_zero = sum(figure.is_zero for figure in figures)
    if not different:
        return f"| {name} | {len(figures)} | {len(figures)} | {num_zero} | 0 | |"
    largest = max(different, key=lambda figure: abs(figure.difference))
    whys = {
        figure.mechanism.why
        if figure.is_explained and figure.mechanism is not None
        else f"**unexplained**: {figure.of}: {figure.ours} here, {figure.theirs} there"
        for figure in different
    }
    return (
        f"| {name} | {len(figures)} | {len(figures) - len(different)} | {num_zero} "
        f"| {_signed(largest.difference)} ({largest.of}) | {'; '.join(sorted(whys))} |"
    )


def always_zero_section(figures: Sequence[Figure]) -> list[str]:
    """What these answers cannot show: figures that are 0 wherever they were compared."""
    nonzero = {figure.name for figure in figures if not figure.is_zero}
    silent = dict.fromkeys(figure.name for figure in figures if figure.name not in nonzero)
    return [
        "## Compared, but always 0",
        "",
        "Agreement here only shows that both find nothing: " + "; ".join(silent) + ".",
        "",
    ]


def _signed(difference: float) -> str:
    return "another text" if math.isinf(difference) else f"{difference:+.6g}"


def why_not_compared(answer: str) -> str | None:
    """Why a file of another tool is not compared; None if it is, or if no reason is stated."""
    return next((why for end, why in NOT_COMPARED_FILES.items() if answer.endswith(end)), None)


def not_compared_section(expected: Path) -> list[str]:
    """What is left out: files, and figures of the files that are compared."""
    used = {answer for tool in TOOLS for answer in tool.answers}
    reasons: dict[str, list[str]] = {}
    for file in sorted(path for path in expected.rglob("*") if path.is_file()):
        answer = file.relative_to(expected).as_posix()
        if answer not in used:
            why = why_not_compared(answer) or "**nobody said why**"
            reasons.setdefault(why, []).append(answer.split("/resources/")[-1])
    return [
        "## What is not compared, and why",
        "",
        "Files:",
        "",
        *(f"* {why}: {', '.join(f'`{name}`' for name in names)}" for why, names in reasons.items()),
        "",
        "Figures of the files that are compared:",
        "",
        NOT_COMPARED_FIGURES,
        "",
    ]


def page(data: Path) -> str:
    """The whole page."""
    expected = data / "expected"
    if not expected.is_dir():
        raise HeadwayError(f"{data}: no folder 'expected' in it with what other tools computed")
    tables = read_tables(data / "eventlogs")
    made = made_by("python benchmarks/run.py published_logs")
    figures = {tool.name: compared(tool, expected, tables) for tool in TOOLS}
    every = [figure for of_tool in figures.values() for figure in of_tool]
    lines = [
        "# Headway's tables compared with those of other tools",
        "",
        PREFACE,
        made,
        "",
        f"**{_summary(every)}**",
        "",
    ]
    for tool in TOOLS:
        lines += tool_section(tool, figures[tool.name])
    lines += always_zero_section(every)
    return "\n".join(lines + not_compared_section(expected))


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("data", type=Path, help="folder with 'eventlogs' and 'expected' in it")


def text(given: argparse.Namespace) -> str:
    """The page."""
    return page(given.data)
