"""Whatever a command made, as one page to share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headway.api.arguments import job_from
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

if TYPE_CHECKING:
    from headway.formats.results_file import AnyResult
    from headway.report.evidence import Evidence
    from headway.report.page import Origin
    from headway.report.profile_page import SeenRun

Tell: TypeAlias = Callable[[str, float], None]
Shown: TypeAlias = AnyAnswer | Backtest | Playback | JobProfile | ApplicationProfile
_TIMES_THE_P99 = 1.5  # a profile has no target: the sliders start this far above its p99
_TARGET_WITHOUT_LATENCY_S = 1.0


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
        What the page is about, or the file that a command wrote or printed with ``--json``.
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
    from headway.report.page import Origin

    found, files = _read(shown)
    job = None if profile is None else job_from(profile)
    if job is not None and not (isinstance(found, AnyAnswer) and not found.ends):
        raise InputError(
            "profile: only the page of a streaming job's plan needs a profile beside it"
        )
    if runs and not isinstance(found, JobProfile):
        raise InputError("runs: only the page of a streaming job's profile has a time line")
    if isinstance(profile, str | Path):
        files.append(str(profile))
    origin = Origin.of(
        files=files,
        profile=found if isinstance(found, JobProfile | ApplicationProfile) else job,
        spark_version=found.spark_version if isinstance(found, AnyAnswer) else None,
        made_at=made_at or datetime.now(UTC),
    )
    if isinstance(found, JobProfile):
        return _of_profile(found, files[:1], runs, origin, tell)
    if isinstance(found, AnyAnswer) and not found.ends:
        from headway.report.html import plan_page

        name = str(profile) if isinstance(profile, str | Path) else "job.profile.yaml"
        evidence = None if job is None else plan_evidence(job, found, profile_file=name, tell=tell)
        return plan_page(found, evidence=evidence, origin=origin)
    return _of_result(found, origin)


def plan_evidence(
    profile: JobProfile,
    plan: StreamAnswer,
    *,
    profile_file: str = "job.profile.yaml",
    tell: Tell = lambda *_: None,
) -> Evidence:
    """The charts that a profile adds to the page of its plan."""
    from headway.report.evidence import evidence_of
    from headway.report.what_if import Question

    most_per_s = max((one.sustainable_rate_per_s for one in plan.frontier), default=0.0)
    cost = plan.cost_per_hour
    return evidence_of(
        profile,
        Question(
            prediction=plan.prediction,
            target=plan.target,
            nodes=plan.nodes,
            highest_rate_per_s=most_per_s,
            cost_per_node_hour=None if cost is None else cost / plan.nodes,
            profile_file=profile_file,
        ),
        tell=tell,
    )


def _read(shown: Shown | str | Path) -> tuple[Shown | AnyResult, list[str]]:
    if not isinstance(shown, str | Path):
        return shown, []
    from headway.formats.results_file import load_result
    from headway.formats.yaml_document import read_text

    path = Path(shown)
    if path.suffix in (".yaml", ".yml"):
        from headway.api.specs import is_spec
        from headway.formats.profile_file import load_any_profile

        if is_spec(path):
            raise InputError(
                f"{path}: a spec file, which has no page; plan it first: headway plan {path} "
                "-o plan.html"
            )
        return load_any_profile(path), [str(path)]
    text = read_text(path, expected="a result to show")
    if text.lstrip()[:1] != "{":
        from headway.formats.profile_file import load_any_profile

        return load_any_profile(path), [str(path)]
    return load_result(path), [str(path)]


def _of_profile(
    profile: JobProfile,
    files: Sequence[str],
    runs: Sequence[SeenRun],
    origin: Origin,
    tell: Tell,
) -> str:
    from headway.models.job.predict import predict
    from headway.report.evidence import evidence_of
    from headway.report.profile_page import profile_page
    from headway.report.what_if import Question

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
            profile_file=files[0] if files else "job.profile.yaml",
        ),
        tell=tell,
    )
    return profile_page(profile, prediction, evidence=evidence, runs=runs, origin=origin)


def _of_result(found: Shown | AnyResult, origin: Origin) -> str:
    from headway.formats.results_file import CapacityRead, CheckRead
    from headway.report.playback import playback_page
    from headway.report.profile_page import application_page
    from headway.report.result_pages import (
        backtest_page,
        capacity_page,
        check_page,
        deadline_page,
    )

    if isinstance(found, Backtest):
        return backtest_page(found, origin=origin)
    if isinstance(found, Playback):
        return playback_page(None, found, origin=origin)
    if isinstance(found, CapacityRead):
        return capacity_page(found, origin=origin)
    if isinstance(found, CheckRead):
        return check_page(found, origin=origin)
    if isinstance(found, ApplicationProfile):
        return application_page(found, origin=origin)
    assert isinstance(found, AnyAnswer)
    assert found.ends
    return deadline_page(found, origin=origin)
