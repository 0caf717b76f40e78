"""Two results of a job compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from headway.api.file_kinds import names_kind, names_schema
from headway.api.profile import profile_and_tables
from headway.api.specs import plan_spec, replanned
from headway.domain import AnyAnswer, ApplicationProfile, JobProfile
from headway.errors import InputError
from headway.formats.from_json import load_any_plan
from headway.formats.own_files import beginning_of
from headway.formats.profile_file import load_any_profile
from headway.planner.explain.difference import Difference, plan_difference
from headway.planner.explain.profile_difference import application_difference, profile_difference
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
    before: Compared | str | Path, after: Compared | str | Path, *, progress: Tell | None = None
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
    before_name, then, _ = _read(before, "A", progress)
    after_name, now, planned = _read(after, "B", progress)
    for name, compared in ((before_name, then), (after_name, now)):
        if getattr(compared, "result_kind", None) not in _KINDS:
            expected = " or ".join(_KINDS.values())
            raise InputError(f"{name}: {type(compared).__name__}; expected {expected}")
    names, kind = (before_name, after_name), now.result_kind
    if then.result_kind != kind:
        kinds = f"{before_name} is {_KINDS[then.result_kind]}, {after_name} is {_KINDS[kind]}"
        raise InputError(f"{kinds}; expected two of one kind")
    if kind == "profile":
        return profile_difference(then, now, names=names)
    if kind == "application-profile":
        for name, profile in ((before_name, then), (after_name, now)):
            if profile.kind != "batch":
                raise InputError(
                    f"{name}: the profile of a {profile.kind} application; expected that of a "
                    "streaming query or of a batch job"
                )
        return application_difference(then, now, names=names)
    needs = None if planned is None else replanned(planned)
    return plan_difference(then, now, names=names, needs=needs)


def _read(
    source: Compared | str | Path, name: str, progress: Tell | None
) -> tuple[str, Any, Planned | None]:
    """The name of one side, its plan or profile, and what was planned if it is a spec file."""
    if not isinstance(source, str | Path):
        return name, source, None
    path, name = Path(source), str(source)
    # Empty if it is not a local file, which may still be a log.
    head = beginning_of(path, _HEAD_BYTES)
    if re.match(r'\s*\{\s*"schema"\s*:\s*"headway\.', head):
        return name, load_any_plan(path), None
    if re.search(r"(?m)^schema:\s*['\"]?headway\.lock", head):
        raise InputError(
            f"{name}: a lock file; to compare jobs with it: headway check SPEC --baseline {name}"
        )
    if names_schema(head):
        return name, load_any_profile(path), None
    if names_kind(head):
        planned = plan_spec(path)
        return name, planned.plan, planned

    def tell(text: str, done: float | None = None) -> None:
        if progress is not None:
            progress(f"{name}: {text}", done)

    profile, _ = profile_and_tables(source, None, progress=tell)
    return name, profile, None
