"""The result of any command, as one page to share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headway.api.arguments import job_from
from headway.api.specs import is_spec
from headway.domain import (
    AnyAnswer,
    ApplicationProfile,
    Backtest,
    JobProfile,
    Playback,
    StreamAnswer,
    Target,
)
from headway.errors import InputError
from headway.formats.own_files import read_text
from headway.formats.profile_file import load_any_profile
from headway.formats.results_file import load_result
from headway.models.job.predict import predict
from headway.report.evidence import evidence_of
from headway.report.figures_page import figures_page
from headway.report.html import plan_page
from headway.report.page import Origin
from headway.report.playback import playback_page
from headway.report.profile_page import application_page, profile_page
from headway.report.result_pages import backtest_page, capacity_page, check_page, deadline_page
from headway.report.what_if import Question

if TYPE_CHECKING:
    from headway.domain import BatchAnswer
    from headway.formats.figures_read import FiguresRead
    from headway.formats.results_file import AnyResult, CapacityRead, CheckRead
    from headway.report.evidence import Evidence
    from headway.report.profile_page import SeenRun

Tell: TypeAlias = Callable[[str, float], None]
Shown: TypeAlias = AnyAnswer | Backtest | Playback | JobProfile | ApplicationProfile
_TIMES_THE_P99 = 1.5  # a profile has no target: the sliders start this far above its p99
_TARGET_WITHOUT_LATENCY_S = 1.0
_PROFILE_FILE = "job.profile.yaml"


def page(
    shown: Shown | str | Path,
    *,
    profile: JobProfile | str | Path | None = None,
    runs: Sequence[SeenRun] = (),
    made_at: datetime | None = None,
    tell: Tell = lambda *_: None,
) -> str:
    """A plan, profile, backtest, simulation, capacity plan or check as one HTML page.

    Parameters
    ----------
    shown : Plan, JobProfile, Backtest, Playback or path
        The result to show, or the file that a command wrote or printed with ``--json``.
    profile : JobProfile or path
        The profile behind a plan: adds the what-if, the latency distribution and the maps.
    runs : sequence of SeenRun
        The batches behind a profile, of :func:`headway.api.seen_runs.seen_runs`: adds time lines.
    made_at : datetime
        When the page was made; now by default.
    tell : callable
        Called with what is being computed, and the share that is done.

    Raises
    ------
    InputError
        If a file cannot be read or is nothing that has a page.
    """
    shown_result, files = _read(shown)
    render = _PAGE_OF.get(type(shown_result).__name__)
    if render is None:
        raise InputError(
            f"a {type(shown_result).__name__} has no page; expected {', '.join(_PAGE_OF)}"
        )
    if profile is not None and render is not _of_stream:
        raise InputError(
            "profile: only the page of a streaming job's plan needs a profile beside it"
        )
    if runs and render is not _of_profile:
        raise InputError("runs: only the page of a streaming job's profile has a time line")
    profile_file = str(profile) if isinstance(profile, str | Path) else None
    context = _Beside(
        files=[*files, *([] if profile_file is None else [profile_file])],
        job=None if profile is None else job_from(profile),
        profile_file=profile_file,
        runs=runs,
        made_at=made_at or datetime.now(UTC),
        tell=tell,
    )
    return render(shown_result, context)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """What a page is made with besides the result that it shows."""

    files: Sequence[str]
    job: JobProfile | None
    profile_file: str | None
    runs: Sequence[SeenRun]
    made_at: datetime
    tell: Tell

    def origin(
        self,
        profile: JobProfile | ApplicationProfile | None = None,
        spark_version: str | None = None,
    ) -> Origin:

        return Origin.of(
            files=self.files, profile=profile, spark_version=spark_version, made_at=self.made_at
        )


def plan_evidence(
    profile: JobProfile,
    plan: StreamAnswer,
    *,
    profile_file: str = _PROFILE_FILE,
    tell: Tell = lambda *_: None,
) -> Evidence:
    """The charts that a profile adds to the page of its plan."""

    highest_rate_per_s = max((point.sustainable_rate_per_s for point in plan.frontier), default=0.0)
    cost = plan.cost_per_hour
    return evidence_of(
        profile,
        Question(
            prediction=plan.prediction,
            target=plan.target,
            nodes=plan.nodes,
            highest_rate_per_s=highest_rate_per_s,
            cost_per_node_hour=None if cost is None else cost / plan.nodes,
            profile_file=profile_file,
        ),
        tell=tell,
    )


def _read(shown: Shown | str | Path) -> tuple[Shown | AnyResult, list[str]]:
    if not isinstance(shown, str | Path):
        return shown, []

    path = Path(shown)
    if path.suffix in (".yaml", ".yml"):
        if is_spec(path):
            raise InputError(
                f"{path}: a spec file, which has no page; plan it first: headway plan {path} "
                "-o plan.html"
            )
        return load_any_profile(path), [str(path)]
    text = read_text(path, expected="a result to show")
    if text.lstrip()[:1] != "{":
        return load_any_profile(path), [str(path)]
    return load_result(path), [str(path)]


def _of_profile(profile: JobProfile, context: _Beside) -> str:

    prediction = predict(profile, profile.baseline, profile.arrivals)
    latency = prediction.tuple_latency
    limit_s = _TARGET_WITHOUT_LATENCY_S
    if latency is not None and math.isfinite(latency.p99_s):
        limit_s = float(f"{_TIMES_THE_P99 * latency.p99_s:.1g}")
    evidence = evidence_of(
        profile,
        Question(
            prediction=prediction,
            target=Target(quantile=0.99, limit_s=limit_s),
            nodes=profile.baseline.executors,
            highest_rate_per_s=prediction.sustainable_rate_per_s,
            profile_file=next(iter(context.files), _PROFILE_FILE),
        ),
        tell=context.tell,
    )
    return profile_page(
        profile, prediction, evidence=evidence, runs=context.runs, origin=context.origin(profile)
    )


def _of_stream(plan: StreamAnswer, context: _Beside) -> str:

    job, file = context.job, context.profile_file or _PROFILE_FILE
    evidence = (
        None if job is None else plan_evidence(job, plan, profile_file=file, tell=context.tell)
    )
    return plan_page(plan, evidence=evidence, origin=context.origin(job, plan.spark_version))


def _of_batch_job(plan: BatchAnswer, context: _Beside) -> str:

    return deadline_page(plan, origin=context.origin(spark_version=plan.spark_version))


def _of_application(profile: ApplicationProfile, context: _Beside) -> str:

    return application_page(profile, origin=context.origin(profile))


def _of_backtest(backtest: Backtest, context: _Beside) -> str:

    return backtest_page(backtest, origin=context.origin())


def _of_playback(playback: Playback, context: _Beside) -> str:

    return playback_page(None, playback, origin=context.origin())


def _of_capacity(capacity: CapacityRead, context: _Beside) -> str:

    return capacity_page(capacity, origin=context.origin())


def _of_check(check: CheckRead, context: _Beside) -> str:

    return check_page(check, origin=context.origin())


def _of_figures(figures: FiguresRead, context: _Beside) -> str:

    return figures_page(figures, origin=context.origin())


_PAGE_OF: Mapping[str, Callable[[Any, _Beside], str]] = {
    "Plan": _of_stream,
    "InfeasiblePlan": _of_stream,
    "DeadlinePlan": _of_batch_job,
    "InfeasibleDeadlinePlan": _of_batch_job,
    "JobProfile": _of_profile,
    "ApplicationProfile": _of_application,
    "Backtest": _of_backtest,
    "Playback": _of_playback,
    "CapacityRead": _of_capacity,
    "CheckRead": _of_check,
    "FiguresRead": _of_figures,
}
