"""The model study of the VLDB'15 paper, its cluster replaced by the event simulation.

Three workloads whose reduce functions cost differently; number of mappers and poll period varied
around one default; mean and p99 predicted and simulated; rules of thumb against a chosen setting.

    python benchmarks/run.py scalla_study --output docs/scalla.md
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from pages import headed, made_by
from scalla_costs import (
    JOBS,
    chosen_costs,
    fitted_costs,
    predicted_s,
    score,
    table_4,
)
from scalla_experiments import (
    DEFAULT,
    NUM_RUNS,
    Experiment,
    Predict,
    Workload,
    run_experiment,
    workloads,
)

from headway.api.pipelines import plan_pipeline
from headway.models.arrays import Array
from headway.models.pipeline.as_published import (
    ReducerArrivals,
    published_tuple_latency,
)
from headway.models.pipeline.corrected import tuple_latency
from headway.models.pipeline.parameters import (
    PipelineSetting,
)
from headway.planner.pipeline_runs import simulate_runs
from headway.planner.pipeline_search import RoundsPlan
from headway.report.pipelines import rounds_plan_text

PREFACE = """\
The paper measured its models on a cluster of 10 nodes with 4 cores each. That system is not to be
had; here the event simulation (S5) of [theory.md](theory.md) takes its place. **What is compared
is a formula with a simulation of the same rules, not with a running system**: the shares below show
what the formulas lose, and cannot show what the rules leave out. Costs per row are given to the
models as they are, where the paper had to measure them.

The paper states rates, periods, node counts and cores; of the costs only 2 us for a click in a
reducer, and 1 to 2 s for the windows of a reducer. Costs of a tweet were chosen so that the nodes
are full near the highest rate that it names, 1.2 M/s; fixed work per poll and per batch so that
very short periods cost something, as Table 4 suggests; the rest freely. None was changed after
errors had been seen.

Five predictions stand side by side:

* **corrected**: (L2)-(L8), (L13), with its own law for quantiles;
* **independent**: the same means, phases taken as independent, and a normal law: what is left of
  the paper's model when its queue of the reducer is put right;
* **published**: (L11), (L12), with a normal law, which the paper uses where it can observe
  latencies. How the batches that reach a reducer enter its G/G/1 queue stands in a report that is
  not to be had. Three readings are shown: **in bulk**, with the variation that arrivals really
  have; as if **Poisson**; as if **clocked**. The last two were added after the first gave 1/34.

**The published columns are our readings and say little about the paper's own model.** On its
cluster that got 31/34 and 19/22, which none of them does for the mean. The shares of the last
column are from a real system with costs that were measured, so they are not a like-for-like
competitor of the others either. For the p99, the Poisson and clocked readings do as well as the
corrected model by these shares: their means are some 25% low, their deviations too wide, and the
two errors cancel near the 0.99-quantile at these settings.

Latencies whose second half exceeds the first by a fifth in a run are growing: such a setting has
none, and a model that gives it one is wrong by -100%.

This page was made twice, with the same costs, formulas, seeds and settings. The first time there
was no check for growth, and 6 mappers in the windowed word count counted as 25% off. There the
simulation hands batches to the mappers node by node, so those of one node work at the same time,
which (R3) takes as independent: reducers are slowed down by 1.24 instead of 1.05 and fall behind.
Tried by hand on this one setting, a random order gives 1.05 and no growth; the simulation was left
as it was.
"""

TABLE_4 = """\
The paper's mean latencies beside ours, on 10 nodes; bold within the limit, a dash where latency is
unbounded. Its costs are not printed, so agreement cannot be expected of costs that were chosen.
`make scalla-costs` looks for costs that bring out half of the cells, which a file names; the other
half judges them. Reducers share the keys of a window, so more of them finalize it sooner.

Cells and loss were laid down before the fit. A first fit, whose loss took a wrong verdict for less
than a wrong value, was seen and dropped.
"""

COSTS = """\
What costs would have to be, each looked for between a thirtieth and thirty times the chosen one.
The search found none that bring out more of the fitted half, so the rest is hardly a matter of
costs:
"""

MAPPERS = (1, 2, 3, 4, 5, 6)
POLL_PERIODS_S = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
CHOICES = {
    "threads": (1, 2, 3, 4),
    "shuffle_s": (0.02, 0.05, 0.1, 0.2, 0.3),
    "poll_s": (0.02, 0.05, 0.1, 0.2, 0.4),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A setting, and the highest rate at which a model has its mean latency within the limit."""

    setting: PipelineSetting
    rate_per_s: float


def best_choice(workload: Workload, predict: Predict) -> Choice:
    """The setting of the grid that carries the highest rate within the limit, by a model."""
    threads, shuffle_s, poll_s = CHOICES["threads"], CHOICES["shuffle_s"], CHOICES["poll_s"]
    grid = np.array(list(product(threads, threads, shuffle_s, poll_s))).T
    settings = replace(
        DEFAULT,
        mappers_per_node=grid[0],
        reducers_per_node=grid[1],
        shuffle_period_s=grid[2],
        poll_period_s=grid[3],
    )
    rates = highest_rates_per_s(workload, settings, predict)
    best = int(np.argmax(rates))
    mappers, reducers, shuffle, poll = (float(value) for value in grid[:, best])
    setting = replace(
        DEFAULT,
        mappers_per_node=int(mappers),
        reducers_per_node=int(reducers),
        shuffle_period_s=shuffle,
        poll_period_s=poll,
    )
    return Choice(setting=setting, rate_per_s=float(rates[best]))


def highest_rates_per_s(workload: Workload, settings: PipelineSetting, predict: Predict) -> Array:
    """Highest rates with a mean latency within the limit, to a part in 500; 0 for none."""
    shape = np.broadcast_shapes(
        *(
            np.shape(value)
            for value in (
                settings.mappers_per_node,
                settings.reducers_per_node,
                settings.shuffle_period_s,
                settings.poll_period_s,
            )
        )
    )
    low = np.zeros(shape)
    high = np.full(shape, 4.0 * workload.spec.rate_per_s)
    while np.max(high - low) > 0.002 * workload.spec.rate_per_s:
        middle = 0.5 * (low + high)
        latency = predict(workload.at(settings, middle))
        kept = latency.mean_s <= workload.limit_s
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return low


def percent(value: float) -> str:
    """An error, signed; what a model calls unstable has an infinite one."""
    return "unstable" if np.isinf(value) else f"{100.0 * value:+.1f}%"


def seconds(value: float) -> str:
    """A time, or a dash as in the paper where latency is unbounded."""
    return "-" if np.isinf(value) else f"{value:.3f} s"


def detail_table(experiments: Sequence[Experiment], *, of_p99: bool) -> list[str]:
    """Every experiment and the error of each model."""
    models = list(experiments[0].predicted_mean_s)
    lines = [
        *headed(f"| workload | setting | simulated | {' | '.join(models)} |"),
    ]
    for one in experiments:
        true_s = one.p99_s if of_p99 else one.mean_s
        errors = " | ".join(percent(one.error(model, of_p99=of_p99)) for model in models)
        simulated = "grows" if np.isinf(true_s) else seconds(true_s)
        lines.append(f"| {one.workload} | {one.varied} | {simulated} | {errors} |")
    return lines


def share_table(experiments: Sequence[Experiment]) -> list[str]:
    """How many experiments each model gets right within the paper's bands."""
    observed = [one for one in experiments if one.workload != "sessionization"]
    models = list(experiments[0].predicted_mean_s)
    labels = (
        ("mean within 15%", experiments, False, 0.15, "31/34"),
        ("p99 within 20%, both word counts", observed, True, 0.20, "19/22"),
        ("p99 within 20%, all", experiments, True, 0.20, ""),
    )
    lines = [
        *headed(f"| quantity | {' | '.join(models)} | the paper, on its cluster |"),
    ]
    for label, chosen, of_p99, band, theirs in labels:
        cells = []
        for model in models:
            errors = [abs(one.error(model, of_p99=of_p99)) for one in chosen]
            right = sum(error < band for error in errors)
            middle, largest = (100.0 * value for value in (statistics.median(errors), max(errors)))
            cells.append(f"{right}/{len(errors)} (median {middle:.1f}%, largest {largest:.0f}%)")
        lines.append(f"| {label} | {' | '.join(cells)} | {theirs} |")
    return lines


def phase_table(workload: Workload) -> list[str]:
    """The 12 phases of a row at the default setting."""
    pipeline = workload.at(DEFAULT)
    runs = simulate_runs(pipeline, num_runs=1, seed=7, length_s=6.0)
    simulated = runs.phase_means_s
    ours, published = (
        tuple_latency(pipeline),
        published_tuple_latency(pipeline, ReducerArrivals.IN_BULK),
    )
    lines = [*headed("| phase | simulated | corrected | published, in bulk |")]
    for mine, theirs in zip(ours.parts, published.parts, strict=True):
        times = (simulated[mine.name], float(mine.mean_s), float(theirs.mean_s))
        lines.append(f"| {mine.name} | " + " | ".join(f"{1e3 * t:.2f} ms" for t in times) + " |")
    total = (runs.mean_s, float(ours.mean_s), float(published.mean_s))
    return [*lines, "| all | " + " | ".join(f"{1e3 * time:.2f} ms" for time in total) + " |"]


def varied_settings() -> list[tuple[str, PipelineSetting]]:
    """The default with other numbers of mappers, and with other poll periods."""
    mappers = [(f"M = {number}", replace(DEFAULT, mappers_per_node=number)) for number in MAPPERS]
    polls = [
        (f"B_ch = {period_s:g} s", replace(DEFAULT, poll_period_s=period_s))
        for period_s in POLL_PERIODS_S
        if period_s != DEFAULT.poll_period_s
    ]
    return mappers + polls


def table_4_lines(jobs: Sequence[Workload]) -> list[str]:
    """The cells of the paper's Table 4 beside ours."""
    cells, by_name = table_4(), dict(zip(JOBS, jobs, strict=True))
    chosen_s, fitted_s = (predicted_s(cells, costs) for costs in (chosen_costs(), fitted_costs()))
    lines = [
        *headed("| job | M, R | B_sh, B_ch | half | paper | chosen costs | fitted costs |"),
    ]
    for cell, *ours_s in zip(cells, chosen_s, fitted_s, strict=True):
        job = by_name[cell.job]
        label = setting_label(cell.setting)
        half = "fitted" if cell.is_fitted else "judged"
        times = (cell.mean_s or float("inf"), *map(float, ours_s))
        shown = " | ".join(within(time_s, job.limit_s) for time_s in times)
        lines.append(f"| {job.name} | {label} | {half} | {shown} |")
    return lines


def within(time_s: float, limit_s: float) -> str:
    """A time, bold within the limit as in the paper."""
    return f"**{seconds(time_s)}**" if time_s <= limit_s else seconds(time_s)


def score_lines() -> list[str]:
    """How many cells come out."""
    cells, both = table_4(), (chosen_costs(), fitted_costs())
    lines = [*headed("| cells: verdicts, values | chosen costs | fitted costs |")]
    for label, some in (
        ("all", cells),
        ("rules of thumb", [one for one in cells if one.mappers == one.reducers == 4]),
        ("fitted half", [one for one in cells if one.is_fitted]),
        ("judged half", [one for one in cells if not one.is_fitted]),
    ):
        scores = " | ".join(str(score(some, predicted_s(some, costs))) for costs in both)
        lines.append(f"| {label} | {scores} |")
    return lines


def cost_lines() -> list[str]:
    """Costs that were chosen and costs that were fitted."""
    chosen, fitted = chosen_costs(), fitted_costs()
    return [
        *headed("| cost | chosen | fitted | ratio |"),
        *(
            f"| {name} | {1e6 * cost_s:.3g} us | {1e6 * fitted[name]:.3g} us | "
            f"{fitted[name] / cost_s:.2g} |"
            for name, cost_s in chosen.items()
        ),
    ]


def plan_lines(jobs: Sequence[Workload]) -> list[str]:
    """What ``headway plan`` prints of each job."""
    lines = []
    for name, job in zip(JOBS, jobs, strict=True):
        plan = plan_pipeline(job.spec)
        assert isinstance(plan, RoundsPlan)
        lines += ["", "```text", f"$ headway plan examples/pipelines/{name}.yaml"]
        lines += [*rounds_plan_text(plan).splitlines(), "```"]
    return lines[1:]


def setting_label(setting: PipelineSetting) -> str:
    """Threads and periods, as in the paper's Table 4."""
    return (
        f"{setting.mappers_per_node}, {setting.reducers_per_node} | "
        f"{setting.shuffle_period_s:g} s, {setting.poll_period_s:g} s"
    )


def capacity_table(jobs: Sequence[Workload]) -> list[str]:
    """Settings chosen for the highest rate by each model, and what comes of them."""
    lines = [
        *headed(
            "| workload | chosen by | M, R | B_sh, B_ch | rate promised | limit | simulated mean |"
        ),
    ]
    for job in jobs:
        for model in ("corrected", "published, in bulk", "published, Poisson"):
            choice = best_choice(job, job.predictions[model])
            fast = replace(job, spec=replace(job.spec, rate_per_s=choice.rate_per_s))
            simulated = run_experiment(fast, f"at the rate of {model}", choice.setting)
            lines.append(
                f"| {job.name} | {model} | {setting_label(choice.setting)} | "
                f"{choice.rate_per_s / 1e6:.2f} M/s | {job.limit_s:g} s | "
                f"{seconds(simulated.mean_s)} |"
            )
    return lines


def page() -> str:
    """The whole page."""
    jobs = workloads()
    experiments = [
        run_experiment(job, varied, setting)
        for job in jobs
        for varied, setting in varied_settings()
    ]
    overloaded = [one for one in experiments if one.overloaded]
    experiments = [one for one in experiments if not one.overloaded]
    refused = ", ".join(f"{one.workload} at {one.varied}" for one in overloaded) or "none"
    made = made_by("python benchmarks/run.py scalla_study --output docs/scalla.md")
    made += f" {NUM_RUNS} runs per setting with different phases of all clocks."
    return "\n".join(
        [
            "# The paper's own pipeline: models against a simulation",
            "",
            PREFACE,
            made,
            "",
            "## How many are right",
            "",
            "M = R = 2, B_sh = B_ch = 0.2 s, B_in = 5 ms, 10 nodes; M or B_ch is varied.",
            "",
            *share_table(experiments),
            "",
            f"Asked for more than the hardware can do, and left out: {refused}.",
            "",
            "## Mean latency",
            "",
            *detail_table(experiments, of_p99=False),
            "",
            "## 0.99-quantile",
            "",
            *detail_table(experiments, of_p99=True),
            "",
            "## Phases of a row, word count, default setting",
            "",
            *phase_table(jobs[1]),
            "",
            "## Table 4",
            "",
            TABLE_4,
            *table_4_lines(jobs),
            "",
            "Cells whose verdict is right, bounded or not, and values within 15% where both have",
            "one:",
            "",
            *score_lines(),
            "",
            COSTS,
            *cost_lines(),
            "",
            "## Plans",
            "",
            "The fewest nodes at the paper's rates, by (L16); what is proved holds by (L15).",
            "",
            *plan_lines(jobs),
            "",
            "## Highest rate within the limit of the mean",
            "",
            "Each model chooses among M, R of 1 to 4 and five values of each period; its choice is",
            "simulated at the rate that it promises.",
            "",
            *capacity_table(jobs),
            "",
        ]
    )


def text(given: argparse.Namespace) -> str:  # noqa: ARG001
    """The page."""
    return page()
