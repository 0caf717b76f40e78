"""``headway simulate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from headway.api.simulate import Simulation, run_simulation, simulation_of
from headway.cli.options import Command, given, json_option, output_option, refuse
from headway.cli.outputs import OUTPUT_FILE
from headway.cli.pages import write_page
from headway.cli.progress import Progress
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import answer, remark, suggest
from headway.domain.query_questions import Simulated, SimulateQuestion
from headway.domain.sheet import Sheet
from headway.errors import ExitCode
from headway.report.playback import playback_sheet
from headway.report.policies import policies_sheet
from headway.units import counted, format_duration

_MANY_BATCHES = 2_000_000  # more take longer than a person waits without a word
_SHEETS: Mapping[Simulated, Callable[..., Sheet]] = {
    Simulated.PLAN: playback_sheet,
    Simulated.POLICIES: policies_sheet,
}


@click.command("simulate", cls=Command)
@click.argument("plan", metavar="PLAN")
@options_of(SimulateQuestion)
@output_option("Write an HTML page with charts over time.", type=OUTPUT_FILE)
@json_option
def command(plan: str, output: str | None, as_json: bool, **_: Any) -> int:
    """Simulate a plan under a rate trace: latency over time, late rows, backlog, recovery.

    \b
    headway simulate plan.json --rate-trace day.csv -o day.html
    headway simulate plan.json --rate-trace burst.csv --outage '5m at 1h'

    PLAN is what 'headway plan --json' printed. The trace is a CSV file with a line for each change
    of the rate, e.g. 'time,rate', '0s,20k/s', '10m,60k/s', '15m,20k/s'. It ends with its last line,
    here after 15 minutes; --for 30m continues with the last rate until then.

    The verdict is that of the plan's targets under this trace. Exits with 3 if one is missed, or if
    the backlog still grows at the end; with --policy, if no policy meets the target.
    \f

    \b
    headway simulate plan.json --rate-trace day.csv --policy headway,hpa,static --profile p.yaml
    headway simulate pipeline.yaml                a MicroBatchPipeline or OrderedPipeline
    """
    options = given_options(SimulateQuestion)
    simulation = simulation_of(plan, options)
    if simulation.trace is None:
        refuse(given("output"), "not for pipelines")
    else:
        _say_if_long(simulation, str(options["rate_trace"]))
    with Progress("simulating"):
        outcome = run_simulation(simulation)
    if simulation.trace is None:
        answer(outcome, as_json=as_json)
        if not as_json:
            suggest(f"headway plan {plan} --target 'p99 <= 3s'")
        return ExitCode.OK
    sheet = _SHEETS[simulation.kind](outcome, simulation.plan)
    if output is not None:
        write_page(output, sheet, files=[plan])
    answer(outcome, as_json=as_json, sheet=sheet)
    if simulation.kind is Simulated.PLAN and not as_json:
        suggest(
            f"headway emit {plan} --format spark-defaults"
            if output is not None
            else "add -o simulation.html for charts over time"
        )
    return ExitCode.INFEASIBLE if outcome.feasible is False else ExitCode.OK


def _say_if_long(simulation: Simulation, trace_name: str) -> None:
    """Before a long wait, its cause and what to type instead."""
    trigger_s, trace = simulation.plan.configuration.trigger_s, simulation.trace
    assert trace is not None  # of a plan
    num_runs = simulation.num_runs
    all_runs = num_runs * len(simulation.question.policies or (1,))
    num_batches = all_runs * trace.length_s / trigger_s if trigger_s > 0 else 0.0
    if num_batches <= _MANY_BATCHES:
        return
    fewer = max(int(num_runs * _MANY_BATCHES / num_batches), 1)
    shorter = format_duration(trace.length_s * _MANY_BATCHES / num_batches).replace(" ", "")
    remark(
        f"headway: {trace_name}: {format_duration(trace.length_s)} with a batch every "
        f"{format_duration(trigger_s)} are {num_batches / 1e6:.3g} million batches in "
        f"{counted(all_runs, 'run')}, which takes minutes; --runs {fewer} or --for {shorter} is "
        "quicker"
    )
