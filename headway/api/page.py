"""The result of any command, as one page to share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from headway.api.arguments import job_from, wrong_kind
from headway.api.file_kinds import is_json_of_result, is_spec
from headway.api.result_kinds import sheet_of
from headway.domain import JobProfile, Target
from headway.domain.result import Result
from headway.domain.sheet import Section, Sheet
from headway.errors import InputError
from headway.formats.as_json import json_text, stream_json
from headway.formats.from_json import load_result
from headway.formats.own_files import read_text
from headway.formats.profile_file import load_any_profile
from headway.models.job.predict import predict
from headway.report.evidence import evidence_of
from headway.report.page import sheet_page
from headway.report.profile_sheet import profile_sheet
from headway.report.stream_page import stream_page_sheet
from headway.report.what_if import WhatIf

Tell: TypeAlias = Callable[[str, float], None]
_TIMES_THE_P99 = 1.5  # a profile has no target: the sliders start this far above its p99
_TARGET_WITHOUT_LATENCY_S = 1.0
_PROFILE_FILE = "job.profile.yaml"


def page(
    shown: Result | Sheet | str | Path,
    *,
    profile: JobProfile | str | Path | None = None,
    profile_file: str | None = None,
    name: str = "",
    files: Sequence[str] = (),
    runs: Sequence[Section] = (),
    made_at: datetime | None = None,
    tell: Tell = lambda *_: None,
) -> str:
    """A plan, profile, backtest, simulation, or another result as one HTML page.

    Parameters
    ----------
    shown : Plan, JobProfile, Backtest, another result, or path
        The result to show, or the file that a command wrote or printed with ``--json``.
    profile : JobProfile or path
        The profile behind a plan: adds the what-if, the latency distribution and the maps.
    profile_file : str
        The file or the log of this profile, for the commands on the page; by default its path, or
        ``job.profile.yaml``. Declared costs without a file have no commands.
    name : str
        What the page calls the job; by default the name of its application, or of the file.
    files : sequence of str
        Further files that the result was made from, which the page names at its end.
    runs : sequence of Section
        Time lines of the batches behind a profile, of :func:`headway.api.seen_runs.seen_runs`.
    made_at : datetime
        When the page was made; now by default.
    tell : callable
        Called with what is being computed, and the share that is done.

    Raises
    ------
    InputError
        If a file cannot be read or is nothing that has a page.
    """
    result, read_files = _read(shown)
    all_files = [*read_files, *files]
    kind = None if isinstance(result, Sheet) else result.result_kind
    if profile is not None and kind != "plan":
        raise InputError(
            "profile: only the page of a streaming job's plan needs a profile beside it"
        )
    if runs and kind != "profile":
        raise InputError("runs: only the page of a streaming job's profile has a time line")
    job = None if profile is None else job_from(profile)
    if isinstance(profile, str | Path):
        profile_file = str(profile)
    if profile_file is not None and profile_file not in all_files:
        all_files.append(profile_file)
    embedded = ""
    if kind == "plan":
        evidence: tuple[Section, ...] = ()
        if job is not None:
            question = WhatIf.of(result, profile_file or _usual_file(job))
            evidence = evidence_of(job, question, tell=tell)
        sheet = stream_page_sheet(result, evidence=evidence)
        embedded = json_text(stream_json(result))
    elif kind == "profile":
        profile_file = profile_file or (read_files[0] if read_files else _usual_file(result))
        sheet = profile_sheet(result, _profile_evidence(result, profile_file, tell), runs)
    else:
        sheet = result if isinstance(result, Sheet) else sheet_of(result)
    return sheet_page(
        sheet,
        name=name,
        files=all_files,
        profile=result if kind in ("profile", "application-profile") else job,
        spark_version=getattr(result, "spark_version", None),
        made_at=made_at or datetime.now(UTC),
        data_json=embedded,
    )


def _usual_file(profile: JobProfile) -> str:
    """The file of a profile that was made by a call; empty if its costs are declared."""
    return _PROFILE_FILE if profile.declared is None else ""


def _profile_evidence(profile: JobProfile, profile_file: str, tell: Tell) -> tuple[Section, ...]:
    """The charts around the configuration that was profiled last."""
    prediction = predict(profile, profile.baseline, profile.arrivals)
    latency = prediction.tuple_latency
    limit_s = _TARGET_WITHOUT_LATENCY_S
    if latency is not None and math.isfinite(latency.p99_s):
        limit_s = float(f"{_TIMES_THE_P99 * latency.p99_s:.1g}")
    return evidence_of(
        profile,
        WhatIf(
            prediction=prediction,
            target=Target(quantile=0.99, limit_s=limit_s),
            nodes=profile.baseline.executors,
            highest_rate_per_s=prediction.sustainable_rate_per_s,
            profile_file=profile_file,
        ),
        tell=tell,
    )


def _read(shown: Result | Sheet | str | Path) -> tuple[Any, list[str]]:
    """The result or its sheet, and the files it is from."""
    if not isinstance(shown, str | Path):
        if not isinstance(shown, Sheet | Result):
            raise wrong_kind("shown", shown, "a result of Headway's, or the path of one")
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
    load = load_result if is_json_of_result(text) else load_any_profile
    return load(path), [str(path)]
