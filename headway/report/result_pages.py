"""Backtests, capacity plans, checks and plans of batch jobs as pages."""

from __future__ import annotations

from collections.abc import Sequence

from headway.assumptions.advice import SAVING_SHOWN_PER_DAY
from headway.digits import format_money
from headway.domain import Backtest, BatchAnswer, HeldOut
from headway.formats.results_file import (
    CapacityRead,
    CheckRead,
    JobOfCapacity,
    JobOfCheck,
    MonthOfGrowth,
)
from headway.report.backtest import backtest_headline
from headway.report.charts import DotChart, dot_charts
from headway.report.comparison import ComparisonRow
from headway.report.deadline import all_points, backlog_facts, deadline_headline
from headway.report.page import Origin, page_text, shortened
from headway.report.wording import APPLIES, cost_per_month_text, per_task_text
from headway.units import DAYS_PER_MONTH, counted, format_duration, format_rate
from headway.words import all_words

_MOST_CHARTS = 12
Rows = Sequence[tuple[str, ...]]


def backtest_page(backtest: Backtest, *, origin: Origin | None = None) -> str:
    """Predicted and measured, run by run."""
    mean, p99 = backtest.median_mean_error_ratio, backtest.median_p99_error_ratio
    num_held, num_intervals = backtest.intervals_held
    headline = backtest_headline(backtest)
    headline = headline[:1].upper() + headline[1:]
    keys = [
        (f"median error of the {name}", f"{value:.1%}", "")
        for name, value in (("mean", mean), ("p99", p99))
        if value is not None
    ]
    keys.append(("intervals that hold", f"{num_held} of {num_intervals}", "90% is expected"))
    rows: list[tuple[str, ...]] = [
        ("run", "rate", "mean", "measured", "error", "p99", "measured", "error")
    ]
    rows += [_run_row(run) for run in backtest.runs]
    return tables_page(
        kind="Headway backtest",
        headline=headline,
        facts=(("rule", backtest.rule),),
        key_figures=keys,
        notes=backtest.notes,
        tables=(("Predicted and measured tuple latency", rows, range(1, 8)),),
        dots=dot_charts(
            [
                ComparisonRow(
                    label=shortened(run.label),
                    predicted=run.prediction.tuple_latency,
                    measured=run.observed_latency,
                )
                for run in backtest.runs[:_MOST_CHARTS]
                if run.prediction.tuple_latency is not None
            ]
        ),
        origin=origin,
    )


def _run_row(run: HeldOut) -> tuple[str, ...]:
    predicted, measured = run.prediction.tuple_latency, run.observed_latency

    def compared(
        predicted_s: float | None, measured_s: float, error: float | None
    ) -> tuple[str, ...]:
        if predicted_s is None or error is None:
            return "none", format_duration(measured_s), "-"
        return format_duration(predicted_s), format_duration(measured_s), f"{error:+.1%}"

    return (
        shortened(run.label),
        format_rate(run.prediction.arrivals.rate_per_s),
        *compared(
            None if predicted is None else predicted.mean_s, measured.mean_s, run.mean_error_ratio
        ),
        *compared(
            None if predicted is None else predicted.p99_s, measured.p99_s, run.p99_error_ratio
        ),
    )


def capacity_page(plan: CapacityRead, *, origin: Origin | None = None) -> str:
    """Which job runs where, what to buy, and the cost per month."""
    name = shortened(plan.name)
    if not plan.feasible:
        reasons = [
            ("job", "why"),
            *((impossible_job.job, impossible_job.why) for impossible_job in plan.impossible),
        ]
        reasons += [(job, "to leave out") for job in plan.unserved]
        return tables_page(
            kind="Headway capacity plan",
            verdict=False,
            headline=f"{name}: infeasible",
            tables=(
                ("Jobs in the way", reasons, ()),
                ("Alternatives", [("change",), *((text,) for text in plan.relaxations)], ()),
            ),
            origin=origin,
        )
    cost = plan.cost_per_day or 0.0
    served = sum(job.served for job in plan.jobs)
    hours = zip(*(purchase.nodes for purchase in plan.purchases), strict=False)
    max_nodes = max(map(sum, hours), default=0)
    has_probability = any(job.kept_probability is not None for job in plan.jobs)
    probability = ("probability",) if has_probability else ()
    jobs: list[tuple[str, ...]] = [
        ("job", "pool", "node type", "needs", f"{plan.currency} per month", *probability)
    ]
    jobs += [(*_job_row(job), *_probability_cell(job)[: len(probability)]) for job in plan.jobs]
    bought = [("node type", "nodes", "spot", "committed", f"{plan.currency} per month")]
    bought += [
        (
            purchase.node_type,
            _span(purchase.nodes),
            _span(purchase.spot),
            f"{purchase.committed:,}",
            f"{purchase.cost_per_day * DAYS_PER_MONTH:,.2f}",
        )
        for purchase in plan.purchases
    ]
    prices = [("job", "target", "looser target", f"saves {plan.currency} per month")]
    prices += [
        (price.job, price.promise, price.looser, f"{price.saves_per_day * DAYS_PER_MONTH:,.2f}")
        for price in plan.promise_prices
        if price.saves_per_day >= SAVING_SHOWN_PER_DAY.value
    ]
    limits = [
        ("one more would save",),
        *((price.text,) for price in plan.shadow_prices if price.text),
    ]
    growth: list[tuple[str, ...]] = [("month", "rates", "max nodes", f"{plan.currency} per month")]
    growth += [_growth_row(month) for month in plan.growth]
    return tables_page(
        kind="Headway capacity plan",
        verdict=served == len(plan.jobs),
        headline=f"{name}: {served} of {counted(len(plan.jobs), 'job')} on at most "
        f"{counted(max_nodes, 'node')}",
        facts=(
            *((("proven", plan.proof),) if plan.proof else ()),
            ("prices", plan.prices_of),
            ("rates", plan.scenarios),
        ),
        key_figures=[
            ("cost per month", f"{cost * DAYS_PER_MONTH:,.0f} {plan.currency}", "of 30 days"),
            ("cost per day", f"{cost:,.2f} {plan.currency}", ""),
            ("most nodes at a time", f"{max_nodes:,}", ""),
            *_budget_figure(plan),
        ],
        tables=(
            ("Jobs", jobs, (4, 5)),
            ("Nodes to buy", bought, (1, 2, 3, 4)),
            ("Nodes by hour", _by_hour(plan), range(1, 25)),
            ("What targets cost", prices, (3,)),
            ("What limits cost", limits, ()),
            ("Growth", growth, (1, 2, 3)),
        ),
        origin=origin,
    )


def _probability_cell(job: JobOfCapacity) -> tuple[str]:
    return ("" if job.kept_probability is None else f"{job.kept_probability:.1%}",)


def _budget_figure(plan: CapacityRead) -> list[tuple[str, str, str]]:
    """The budget, and how much of it the plan uses; nothing without one."""
    budget = plan.budget_per_day
    if budget is None:
        return []
    used = f"{(plan.cost_per_day or 0.0) / budget:.0%} used"
    return [("budget per month", f"{budget * DAYS_PER_MONTH:,.0f} {plan.currency}", used)]


def _growth_row(month: MonthOfGrowth) -> tuple[str, ...]:
    rates = f"{month.ratio:.2f}x"
    if month.cost_per_day is None:
        return month.month, rates, "no plan", month.why or "-"
    nodes = "-" if month.max_nodes is None else f"{month.max_nodes:,}"
    return month.month, rates, nodes, f"{month.cost_per_day * DAYS_PER_MONTH:,.2f}"


def _job_row(job: JobOfCapacity) -> tuple[str, ...]:
    if not job.served:
        return shortened(job.job), "✗ not served", "", shortened(job.why), "-"
    counts, unit = (job.nodes, "node") if job.nodes else (job.executors, "executor")
    needs = f"{_span(counts)} {unit}{'' if max(counts, default=0) == 1 else 's'}"
    cost = "-" if job.cost_per_day is None else f"{job.cost_per_day * DAYS_PER_MONTH:,.2f}"
    return shortened(job.job), job.pool, job.node_type, needs, cost


def _by_hour(plan: CapacityRead) -> Rows:
    num_hours = max((len(purchase.nodes) for purchase in plan.purchases), default=0)
    if num_hours <= 1:
        return []
    return [
        ("node type", *(f"{hour:02d}" for hour in range(num_hours))),
        *((purchase.node_type, *map(str, purchase.nodes)) for purchase in plan.purchases),
    ]


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{high:,}" if low == high else f"{low:,} to {high:,}"


def check_page(check: CheckRead, *, origin: Origin | None = None) -> str:
    """Each job, locked and current, and the findings."""
    rows: list[tuple[str, ...]] = [
        ("job", "verdict", "nodes", "locked", "planned", "locked", "cost per month", "locked")
    ]
    rows += [_checked_row(job) for job in check.jobs]
    finding_rows = [("level", "job", "finding", "where")]
    finding_rows += [
        (
            finding.level,
            shortened(finding.job),
            shortened(finding.message),
            f"{shortened(finding.file)}:{finding.line}",
        )
        for finding in check.findings
    ]
    return tables_page(
        kind="Headway check",
        verdict=check.ok,
        headline=check.headline[:1].upper() + check.headline[1:],
        facts=(("baseline", check.baseline or "none"),),
        tables=(("Jobs", rows, range(2, 8)), ("Findings", finding_rows, ())),
        origin=origin,
    )


def _checked_row(job: JobOfCheck) -> tuple[str, ...]:
    def figures(checked_job: JobOfCheck, locked: bool) -> tuple[str, str, str]:
        plan_figures = checked_job.locked if locked else checked_job.now
        if plan_figures is None:
            return "-", "-", "-"
        planned_s = plan_figures.planned_latency_s or plan_figures.planned_run_time_s
        cost = cost_per_month_text(plan_figures.cost_per_hour)
        if plan_figures.cost_per_run is not None:
            cost = f"{format_money(plan_figures.cost_per_run)} per run"
        return (
            "-" if plan_figures.nodes is None else f"{plan_figures.nodes:,}",
            "-" if planned_s is None else format_duration(planned_s),
            cost,
        )

    now, then = figures(job, locked=False), figures(job, locked=True)
    pairs = [figure for pair in zip(now, then, strict=True) for figure in pair]
    return (shortened(job.name), "✓ met" if job.ok else "✗ failed", *pairs)


def deadline_page(plan: BatchAnswer, *, origin: Origin | None = None) -> str:
    """The plan of a job that ends: run time by nodes, and its configuration."""
    answer = deadline_headline(plan)
    headline = answer[:1].upper() + answer[1:]
    rows = [("nodes", "predicted run time", "up to", "deadline", "cost per run")]
    rows += [
        (
            f"{point.nodes:,}"
            + (", the plan" if plan.feasible and point.nodes == plan.nodes else ""),
            format_duration(point.mean_s),
            format_duration(point.planned_s),
            "✓ met" if point.planned_s <= plan.deadline.limit_s else "✗ missed",
            "-" if point.cost_per_run is None else format_money(point.cost_per_run),
        )
        for point in all_points(plan)
    ]
    changes = [("setting", "profiled", "planned", "applies")]
    changes += [
        (change.setting, change.before, change.after, APPLIES[change.applies])
        for change in plan.changes
    ]
    cores = f"{counted(plan.cores_per_executor, 'core')}{per_task_text(plan.task_cpus)}"
    return tables_page(
        kind=f"Headway plan of a {'batch job' if plan.backlog is None else 'backlog'}",
        verdict=plan.feasible,
        headline=headline,
        facts=(
            ("configuration", f"{counted(plan.executors, 'executor')} x {cores}"),
            *backlog_facts(plan),
        ),
        key_figures=[
            ("nodes", f"{plan.nodes:,}", "" if plan.node_type is None else plan.node_type.name),
            ("predicted run time", format_duration(plan.run.mean_s), ""),
            ("planned run time", format_duration(plan.run.planned_s), f"{plan.confidence:.0%}"),
            *_probability_figure(plan),
        ],
        notes=(
            *plan.binding,
            *(advice.text for advice in plan.advice),
            *all_words(plan.findings),
        ),
        tables=(
            ("Run time by nodes", rows, (1, 2, 4)),
            ("Changes against the profiled run", changes, ()),
        ),
        codes=(
            (
                "Spark configuration",
                "spark-conf",
                "\n".join(f"{key} {value}" for key, value in plan.spark_conf.items()),
            ),
        ),
        origin=origin or Origin.of(spark_version=plan.spark_version),
    )


def _probability_figure(plan: BatchAnswer) -> list[tuple[str, str, str]]:
    """Probability of meeting the deadline, beside the requested one; none in earlier versions."""
    if plan.kept_probability is None:
        return []
    remark = f"{plan.confidence:.0%} asked"
    return [("probability to meet it", f"{plan.kept_probability:.1%}", remark)]


def tables_page(
    *,
    kind: str,
    headline: str,
    verdict: bool | None = None,
    facts: Sequence[tuple[str, str]] = (),
    key_figures: Sequence[tuple[str, str, str]] = (),
    notes: Sequence[str] = (),
    tables: Sequence[tuple[str, Rows, Sequence[int]]] = (),
    dots: Sequence[DotChart] = (),
    codes: Sequence[tuple[str, str, str]] = (),
    origin: Origin | None = None,
) -> str:
    """A page of key figures, tables, and dots of predicted beside measured."""
    return page_text(
        "tables.html.jinja",
        origin=origin,
        kind=kind,
        title=headline,
        headline=headline,
        verdict=verdict,
        facts=facts,
        key_figures=key_figures,
        notes=tuple(map(shortened, notes)),
        tables=[table for table in tables if len(table[1]) > 1],
        dot_charts=dots,
        codes=codes,
    )
