"""``headway simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from headway.api.pipelines import declared_kind, is_pipeline
from headway.api.simulate import (
    load_rate_trace,
    parse_executors,
    parse_outage,
    parse_policy,
    simulate,
    simulate_policies,
)
from headway.cli.options import DURATION, RATE, Command, Parsed, given, json_option, refuse
from headway.cli.outputs import OutputFile
from headway.cli.pages import write_page
from headway.cli.progress import Progress
from headway.cli.terminal import answer, remark, suggest
from headway.domain import Outage, RateTrace, StreamAnswer
from headway.domain.live import PolicyComparison
from headway.errors import ExitCode
from headway.formats.from_json import load_plan
from headway.report.playback import playback_sheet
from headway.report.policies import policies_sheet
from headway.units import counted, format_duration

_MANY_BATCHES = 2_000_000  # more take longer than a person waits without a word

OUTAGE = Parsed("outage", parse_outage)
EXECUTORS = Parsed("executors", parse_executors)
_RUNS, _RUNS_OF_POLICIES = 16, 2
_OF_PIPELINES = ("rate", "runs", "seed", "length")


@click.command("simulate", cls=Command)
@click.argument("plan", metavar="PLAN")
@click.option(
    "--rate-trace",
    type=click.Path(path_type=Path),
    help="CSV file with the columns time and rate, or JSON: the answer of a Prometheus range "
    "query, or the progress of a query, one object per line; required for a plan.",
)
@click.option(
    "--for",
    "length",
    type=DURATION,
    help="Duration to simulate; until the last line of the trace by default.",
)
@click.option(
    "--outage",
    "outages",
    type=OUTAGE,
    multiple=True,
    help="Outage during which the query does not run, e.g. '5m at 1h'; repeatable.",
)
@click.option(
    "--policy",
    "policies",
    help="Autoscaling policies to compare: headway, hpa, flink, ds2, static, "
    "optimum; with constants: hpa:50%,flink:70%,ds2:1.2,static:8.",
)
@click.option(
    "--profile",
    type=click.Path(path_type=Path),
    help="With --policy: the profile behind the plan.",
)
@click.option(
    "--executors",
    type=EXECUTORS,
    metavar="MIN..MAX",
    help="With --policy: minimum and maximum number of executors; by default 1 to 1.5 times what "
    "the highest rate needs.",
)
@click.option(
    "--trigger",
    "triggers",
    type=DURATION,
    multiple=True,
    help="With --policy headway: trigger interval that it may change to; repeatable.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    help=f"Number of simulated runs.  [default: {_RUNS}; {_RUNS_OF_POLICIES} of each policy, "
    "2 of a pipeline]",
)
@click.option("--rate", type=RATE, help="Input rate of a pipeline; as its file says by default.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Random seed.")
@click.option("-o", "--output", type=OutputFile(), help="Write an HTML page with charts over time.")
@json_option
def command(
    plan: str,
    rate_trace: Path | None,
    length: float | None,
    outages: Sequence[Outage],
    policies: str | None,
    profile: Path | None,
    executors: tuple[int, int] | None,
    triggers: tuple[float, ...],
    runs: int | None,
    rate: float | None,
    seed: int,
    output: str | None,
    as_json: bool,
) -> int:
    """Simulate a plan under a rate trace: latency over time, late rows, backlog, recovery.

    \b
    headway simulate plan.json --rate-trace day.csv -o day.html
    headway simulate plan.json --rate-trace burst.csv --outage '5m at 1h'
    headway simulate plan.json --rate-trace day.csv --policy headway,hpa,static --profile p.yaml
    headway simulate pipeline.yaml                a MicroBatchPipeline or OrderedPipeline

    PLAN is what 'headway plan --json' printed. The trace is a CSV file with a line for each change
    of the rate, e.g. 'time,rate', '0s,20k/s', '10m,60k/s', '15m,20k/s'. It ends with its last line,
    here after 15 minutes; --for 30m continues with the last rate until then.

    The verdict is that of the plan's targets under this trace. Exits with 3 if one is missed, or if
    the backlog still grows at the end; with --policy, if no policy meets the target.
    """
    if is_pipeline(plan):
        return _of_pipeline(plan, rate=rate, runs=runs, seed=seed, length=length, as_json=as_json)
    refuse(given("rate"), "a plan is simulated under its --rate-trace")
    if rate_trace is None:
        raise click.UsageError("Missing option '--rate-trace'.", click.get_current_context())
    planned = load_plan(plan)
    trace = load_rate_trace(rate_trace, length=length)
    if policies is not None:
        comparison = _compared(
            planned, trace, policies, profile, executors, triggers, outages, runs, seed
        )
        sheet = policies_sheet(comparison, planned)
        if output is not None:
            write_page(output, sheet)
        answer(comparison, as_json=as_json, sheet=sheet)
        return ExitCode.OK if comparison.feasible else ExitCode.INFEASIBLE
    of_policies = given("profile", "executors", "triggers")
    refuse(of_policies, "is used with --policy; add it, or leave this out")
    runs = _RUNS if runs is None else runs
    _say_if_long(planned, trace, str(rate_trace), runs)
    with Progress() as progress:
        progress.step(f"simulating {counted(runs, 'run')} of {format_duration(trace.length_s)}")
        playback = simulate(planned, trace, outages=outages, runs=runs, seed=seed)
    sheet = playback_sheet(playback, planned)
    if output is not None:
        write_page(output, sheet)
    answer(playback, as_json=as_json, sheet=sheet)
    if not as_json:
        suggest(
            f"headway emit {plan} --format spark-defaults"
            if output is not None
            else "add -o simulation.html for charts over time"
        )
    return ExitCode.INFEASIBLE if playback.feasible is False else ExitCode.OK


def _of_pipeline(
    file: str,
    *,
    rate: float | None,
    runs: int | None,
    seed: int,
    length: float | None,
    as_json: bool,
) -> int:
    names = set(click.get_current_context().params) - {"plan", "as_json", *_OF_PIPELINES}
    refuse(given(*names), "not for pipelines")
    if declared_kind(file) == "OrderedPipeline":
        refuse(given("runs", "seed", "length"), "ordered operators are simulated without chance")
    with Progress() as progress:
        progress.step("simulating")
        simulation = simulate(file, rate=rate, runs=runs, seed=seed, length=length)
    answer(simulation, as_json=as_json)
    if not as_json:
        suggest(f"headway plan {file} --target 'p99 <= 3s'")
    return ExitCode.OK


def _compared(
    plan: StreamAnswer,
    trace: RateTrace,
    policies: str,
    profile: Path | None,
    executors: tuple[int, int] | None,
    triggers: tuple[float, ...],
    outages: Sequence[Outage],
    runs: int | None,
    seed: int,
) -> PolicyComparison:
    names = [name.strip() for name in policies.split(",") if name.strip()]
    for name in names:
        parse_policy(name)
    if not names:
        raise click.UsageError("--policy names none; expected e.g. headway,hpa,static")
    if profile is None:
        raise click.UsageError(
            "--policy needs --profile: the plan holds how long batches take at its own number of "
            "executors only, its profile at any"
        )
    if triggers and "headway" not in names:
        refuse(["--trigger"], "is for --policy headway; the others change executors only")
    runs = _RUNS_OF_POLICIES if runs is None else runs
    _say_if_long(plan, trace, "--policy", runs * len(names))
    with Progress() as progress:
        progress.step(f"simulating {counted(len(names), 'policy', 'policies')}")
        return simulate_policies(
            plan,
            trace,
            profile=profile,
            policies=names,
            executors=executors,
            triggers=triggers,
            outages=outages,
            runs=runs,
            seed=seed,
        )


def _say_if_long(plan: StreamAnswer, trace: RateTrace, name: str, runs: int) -> None:
    """Before a long wait, its cause and what to type instead."""
    trigger_s = plan.configuration.trigger_s
    num_batches = runs * trace.length_s / trigger_s if trigger_s > 0 else 0.0
    if num_batches <= _MANY_BATCHES:
        return
    fewer = max(int(runs * _MANY_BATCHES / num_batches), 1)
    shorter = format_duration(trace.length_s * _MANY_BATCHES / num_batches).replace(" ", "")
    remark(
        f"headway: {name}: {format_duration(trace.length_s)} with a batch every "
        f"{format_duration(trigger_s)} are {num_batches / 1e6:.3g} million batches in "
        f"{counted(runs, 'run')}, which takes minutes; --runs {fewer} or --for {shorter} is "
        "quicker"
    )
