"""Two results of a job compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headway.api.profile import profile_and_tables
from headway.api.specs import plan_batch_job, plan_job, plan_spec
from headway.domain import AnyAnswer, AnyPromise, ApplicationProfile, Deadline, JobProfile
from headway.errors import InputError
from headway.formats.from_json import load_any_plan
from headway.formats.own_files import beginning_of
from headway.formats.profile_file import load_any_profile
from headway.planner.explain.difference import plan_difference
from headway.planner.explain.profile_difference import application_difference, profile_difference

if TYPE_CHECKING:
    from headway.planner.explain.causes import Needs
    from headway.planner.explain.difference import Difference
    from headway.spec.spec_file import Planned

Tell: TypeAlias = Callable[[str, float | None], None]
Compared: TypeAlias = AnyAnswer | JobProfile | ApplicationProfile
_HEAD_BYTES = 4096
_KINDS = {
    "plan": "the plan of a streaming query",
    "deadline-plan": "the plan of a batch job",
    "profile": "the profile of a streaming query",
    "application-profile": "the profile of a batch application",
}


def diff(
    before: Compared | str | Path,
    after: Compared | str | Path,
    *,
    progress: Tell | None = None,
) -> Difference:
    """What changed between two plans, profiles or logs, what that costs, and why.

    Parameters
    ----------
    before, after : Plan, JobProfile, ApplicationProfile or path
        Two plans (JSON), two spec files, which are planned, or two profiles (YAML) or event logs; a
        plan can be compared with a spec file, a profile with a log. Both must be of streaming
        queries, or both of batch jobs.
    progress : callable, optional
        Called with what is being done, if a log is read.

    Raises
    ------
    InputError
        If a file is none of these, or the two cannot be compared.

    Examples
    --------
    >>> import headway
    >>> small, large = (
    ...     headway.plan("examples/word-count.profile.yaml", rate=rate, target="p99 <= 2s")
    ...     for rate in ("24k/s", "120k/s")
    ... )
    >>> headway.diff(small, large).causes[0].in_words
    'rate 24k/s -> 120k/s: 2 nodes instead of 1'
    """

    first, second = _read(before, "A", progress), _read(after, "B", progress)
    names = (first.name, second.name)
    then: Any = first.found
    now: Any = second.found
    kind = now.result_kind
    if then.result_kind != kind:
        kinds = f"{names[0]} is {_KINDS[then.result_kind]}, {names[1]} is {_KINDS[kind]}"
        raise InputError(f"{kinds}; expected two of one kind")
    if kind == "profile":
        return profile_difference(then, now, names=names)
    if kind == "application-profile":
        _require_batch(names[0], then)
        _require_batch(names[1], now)
        return application_difference(then, now, names=names)
    needs = None if second.planned is None else replanned(second.planned)
    return plan_difference(then, now, names=names, needs=needs)


def replanned(planned: Planned) -> Needs:
    """The nodes that a planned job needs for other questions: it is planned again for each."""

    job, plan = planned.file.spec, planned.plan

    def needs(rate_per_s: float | None, promises: tuple[AnyPromise, ...]) -> int | None:
        try:
            if plan.ends:
                changed_job = replace(job, deadline_s=promises[0].limit_s)
                answer: AnyAnswer = plan_batch_job(planned.profile, changed_job)
            else:
                changed_job = replace(job, targets=promises)
                answer = plan_job(planned.profile, changed_job, rate_per_s=rate_per_s)
        except (InputError, ValueError):
            return None
        return answer.nodes if answer.feasible else None

    return needs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One side of the comparison; ``planned`` if it is the plan of a spec file."""

    name: str
    found: Compared
    planned: Planned | None = None


def _read(source: Compared | str | Path, name: str, progress: Tell | None) -> _Side:
    if not isinstance(source, str | Path):
        return _Side(name=name, found=source)
    path, name = Path(source), str(source)
    head = _head(path)
    if re.match(r'\s*\{\s*"schema"\s*:\s*"headway\.', head):
        return _Side(name=name, found=load_any_plan(path))
    if re.search(r"(?m)^schema:\s*['\"]?headway\.lock", head):
        raise InputError(
            f"{name}: a lock file; to compare jobs with it: headway check SPEC --baseline {name}"
        )
    if re.search(r"(?m)^schema:\s*['\"]?headway\.", head):
        return _Side(name=name, found=load_any_profile(path))
    if re.search(r"(?m)^(?:kind|apiVersion):", head):
        planned = plan_spec(path)
        return _Side(name=name, found=planned.plan, planned=planned)

    def tell(text: str, done: float | None = None) -> None:
        if progress is not None:
            progress(f"{name}: {text}", done)

    profile, _ = profile_and_tables(source, None, progress=tell)
    return _Side(name=name, found=profile)


def _head(path: Path) -> str:
    """The beginning of a file; empty if it is not a local file, which may still be a log."""
    return beginning_of(path, _HEAD_BYTES)


def _require_batch(name: str, profile: ApplicationProfile) -> None:
    try:
        profile.require_can_promise(Deadline(limit_s=1.0))
    except InputError:
        raise InputError(
            f"{name}: the profile of a {profile.kind.value} application; expected that of a "
            "streaming query or of a batch job"
        ) from None
