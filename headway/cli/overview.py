"""What ``headway --help`` prints: without click, which takes longer to load than all of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from headway.cli.terminal import fitted_help
from headway.errors import EXIT_CODES

# Each command, which is in the module of its name, with the line shown in the overview.
COMMANDS = {
    "demo": "Profile, plan and run a real streaming query on this machine.",
    "profile": "Turn Spark event logs into a job profile.",
    "explore": "Profile your query with the most informative runs.",
    "predict": "Predict the latency of a job in another configuration.",
    "backtest": "Validate predictions against your own logs.",
    "plan": "Find the fewest nodes that meet a latency target.",
    "explain": "Explain a plan: every number with its formula and source.",
    "report": "Write a result as one HTML page to share.",
    "watch": "Compare a running query with its prediction.",
    "tune": "Keep a running query within its target, within your bounds.",
    "diff": "Compare two plans, profiles or logs: what changed, and why.",
    "simulate": "Simulate a plan under a varying rate and outages.",
    "windows": "Predict what sharing overlapping windows would save.",
    "ordered": "Place heavy keys, and choose partitions under skew.",
    "emit": "Write a plan as configuration for your platform.",
    "capacity": "Find the cheapest capacity for many jobs.",
    "schedule": "Decide whether queries should take turns, and how.",
    "lock": "Record plans as the baseline for 'headway check'.",
    "check": "Fail a CI build when a target is missed or a cost rises.",
    "init": "Create a spec file to start from.",
    "validate": "Check spec files and report every error with its position.",
    "schema": "Print the JSON Schema of spec files.",
    "mcp": "Offer read-only commands as tools to an assistant.",
}
#: Of ``headway`` itself; their order and texts are those of its declared options.
OPTIONS = {
    "--version": "Show the version and exit.",
    "--no-color": "Print without colour, as NO_COLOR=1 does.",
    "-h, --help": "Show this message and exit.",
}
_USAGE = "Usage: headway [OPTIONS] COMMAND [ARGS]..."
ABOUT = "Resource planning for Apache Spark from a latency target."
EXAMPLES = """\
headway demo                                       see it work, about two minutes
headway EVENTLOG                                   what it is, and what to ask about it
headway plan EVENTLOG --rate 50k/s --target 'p99 <= 3s'
headway predict EVENTLOG --rate 50k/s              its latency at another rate
headway profile EVENTLOG... -o job.profile.yaml    measure what a batch costs, once"""


def overview(columns: int) -> str:
    """The commands, and how they end, in so many columns, laid out as click lays out other help."""
    about = textwrap.fill(ABOUT, columns, initial_indent="  ", subsequent_indent="  ")
    lines = [_USAGE, "", about, "", textwrap.indent(EXAMPLES, "  ")]
    exit_codes = {str(int(code)): text for code, text in EXIT_CODES.items()}
    for title, texts in (("Options", OPTIONS), ("Commands", COMMANDS), ("Exit codes", exit_codes)):
        lines += ["", f"{title}:", *_defined(texts, columns)]
    return fitted_help("\n".join(lines))


def _defined(texts: Mapping[str, str], columns: int) -> Iterator[str]:
    """Names and texts side by side."""
    name_width = max(map(len, texts)) + 2
    for name, text in texts.items():
        first, *further = textwrap.wrap(text, max(columns - name_width - 2, 10))
        yield f"  {name:<{name_width}}{first}"
        yield from (f"  {'':<{name_width}}{line}" for line in further)
