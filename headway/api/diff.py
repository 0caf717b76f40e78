"""Two results of a job compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from headway.api.arguments import wrong_kind
from headway.api.file_kinds import is_json_of_result, names_kind, schema_named
from headway.api.profile import profile_and_tables
from headway.api.specs import plan_spec, replanned
from headway.domain import AnyAnswer, ApplicationProfile, JobProfile
from headway.errors import InputError, argument
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
_EXPECTED = "a plan or a profile of a streaming query or of a batch job, or the path of one"


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
    for name, source in (("before", before), ("after", after)):
        if not isinstance(source, str | Path) and getattr(source, "result_kind", 0) not in _KINDS:
            raise wrong_kind(name, source, _EXPECTED)
    before_name, then, _ = _read(before, "A", progress)
    after_name, now, planned = _read(after, "B", progress)
    names, kind = (before_name, after_name), now.result_kind
    called = (_called("before", before), _called("after", after))
    if then.result_kind != kind:
        kinds = f"{called[0]} is {_KINDS[then.result_kind]}, {called[1]} is {_KINDS[kind]}"
        raise InputError(f"{kinds}; expected two of one kind")
    if kind == "profile":
        return profile_difference(then, now, names=names)
    if kind == "application-profile":
        for name, profile in zip(called, (then, now), strict=True):
            if profile.kind != "batch":
                raise InputError(
                    f"{name}: the profile of a {profile.kind} application; expected that of a "
                    "streaming query or of a batch job"
                )
        return application_difference(then, now, names=names)
    needs = None if planned is None else replanned(planned)
    return plan_difference(then, now, names=names, needs=needs)


def _called(name: str, source: Compared | str | Path) -> str:
    """What a message calls one side: its file, or its argument."""
    return str(source) if isinstance(source, str | Path) else argument(name)


def _read(
    source: Compared | str | Path, name: str, progress: Tell | None
) -> tuple[str, Any, Planned | None]:
    """The name of one side, its plan or profile, and what was planned if it is a spec file."""
    if not isinstance(source, str | Path):
        return name, source, None
    path, name = Path(source), str(source)
    # Empty if it is not a local file, which may still be a log.
    head = beginning_of(path, _HEAD_BYTES)
    schema = schema_named(head)
    if schema == "lock":
        raise InputError(
            f"{name}: a lock file; to compare jobs with it: headway check SPEC --baseline {name}"
        )
    if schema is not None:
        load = load_any_plan if is_json_of_result(head) else load_any_profile
        return name, load(path), None
    if names_kind(head):
        planned = plan_spec(path)
        return name, planned.plan, planned

    def tell(text: str, done: float | None = None) -> None:
        if progress is not None:
            progress(f"{name}: {text}", done)

    profile, _ = profile_and_tables(source, None, progress=tell)
    return name, profile, None
