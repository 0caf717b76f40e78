"""A plan as configuration for the job's platform, alone or put into an existing file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.api.arguments import any_plan, require_fractions_of_cores
from headway.api.specs import plan_spec, submission_fields
from headway.domain import Answer
from headway.emitters import ALL_FORMATS
from headway.emitters.difference import CurrentSettings, only_what_differs, with_assumptions
from headway.emitters.patch import patch
from headway.emitters.submission import Submission, writes_for
from headway.emitters.wording import header_lines, query_option_lines, reasons
from headway.errors import InputError, argument
from headway.formats.from_json import parse_any_plan
from headway.formats.own_files import read_text
from headway.sparkconf import parse_properties, property_lines, task_cpus_of
from headway.sparkconf.conflicts import TASK_CPUS_KEY
from headway.units import counted
from headway.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Emitted:
    """The text of a file, as it is printed, and explanations that the file does not contain."""

    text: str
    beside: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Emitted: {counted(len(self.text.splitlines()), 'line')}>"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """The text, for notebooks."""
        from headway.report.page import preformatted

        return preformatted(self.text)


def emit(
    plan: Answer | str | Path,
    format: str,  # noqa: A002  # as the command line has it
    *,
    submission: Mapping[str, str] | None = None,
    diff_from: str | Path | None = None,
) -> Emitted:
    """A plan in an output format, each setting with its reason.

    Parameters
    ----------
    plan : Plan, DeadlinePlan or path
        A plan, the file that ``headway plan --json`` printed, or a job's spec, which is planned.
    format : str
        One of ``headway.emitters.ALL_FORMATS``.
    submission : mapping, optional
        What is submitted besides the plan, by the fields of ``Submission``, e.g. ``name``.
    diff_from : path, optional
        Leave out what this properties file, or plan, already sets.

    Raises
    ------
    InputError
        If a file or a name is invalid, or there is no such format.

    Examples
    --------
    >>> emit("no/such.json", "emr")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: no/such.json: no such file; expected a plan as 'headway plan...
    """
    if format not in ALL_FORMATS:
        raise InputError(f"{format!r} is no format; expected one of {', '.join(ALL_FORMATS)}")
    answer, full_submission = plan_and_submission(plan, submission)
    current = None if diff_from is None else current_settings(diff_from)
    return emitted(answer, format, full_submission, current)


def emitted(
    plan: Answer, output_format: str, submission: Submission, current: CurrentSettings | None
) -> Emitted:
    """As `emit`, for a plan that has been read."""
    emitter = ALL_FORMATS[output_format]
    notes: tuple[str, ...] = ()
    if current is not None:
        plan, notes = with_assumptions(plan, current), current.notes
        plan = only_what_differs(plan, current.conf, keeps_sizes=emitter.fills_in_sizes)
    text = emitter.render(plan, version=__version__, submission=submission)
    if emitter.has_comments:
        return Emitted(text=text, beside=notes)
    why = {**reasons(plan), **emitter.reasons(plan)}
    explanations = (
        *header_lines(plan, version=__version__),
        *query_option_lines(plan),
        *(f"{key}: {reason}" for key, reason in why.items()),
    )
    return Emitted(text=text, beside=(*explanations, *notes))


def patched(
    plan: Answer, text: str, submission: Submission, *, name: str, job: str | None = None
) -> Emitted:
    """The text of a manifest or bundle, called ``name`` in messages, with the plan in it.

    Errors are those of `headway.emitters.patch.patch`.
    """
    after, destination = patch(text, plan, name=name, submission=submission, job=job)
    return Emitted(
        text=after,
        beside=(
            *(f"{name}: {note}" for note in destination.notes),
            *query_option_lines(plan, has_trigger=destination.has_trigger),
        ),
    )


def plan_and_submission(
    source: Answer | str | Path, names: Mapping[str, str] | None = None
) -> tuple[Answer, Submission]:
    """A plan, read or made, and what is submitted with it: from the spec, and ``names``."""
    _require_names(names or {})
    fields: dict[str, Any] = {}
    plan: Answer
    if isinstance(source, str | Path) and str(source).endswith((".yaml", ".yml")):
        planned = plan_spec(source)
        plan, fields = planned.plan, submission_fields(planned)
    else:
        plan = any_plan(source, "dstreams-plan")
    stated_version = {**fields, **(names or {})}.get("spark_version")
    if stated_version is not None:
        task_cpus = task_cpus_of(plan.spark_conf)
        require_fractions_of_cores(stated_version, TASK_CPUS_KEY, task_cpus)
    # For a version that no format is written for the usual one stands in.
    if plan.spark_version is not None and writes_for(plan.spark_version):
        fields.setdefault("spark_version", plan.spark_version)
    submission = Submission(**{**fields, **(names or {})})
    assert submission.release  # refused here, whatever the format
    return plan, submission


def _require_names(names: Mapping[str, Any]) -> None:
    """Refuse what no submission has, and names that are no text, by an InputError."""
    expected_names = Submission.__dataclass_fields__
    for name, value in names.items():
        if name not in expected_names:
            expected = f"expected one of {', '.join(expected_names)}"
            raise InputError(f"{argument('submission')}: {name!r} is no such name; {expected}")
        default = expected_names[name].default
        is_list = default == ()
        is_valid = isinstance(value, list | tuple) if is_list else isinstance(value, str)
        if value is not default and not is_valid:
            expected = "a list of texts" if is_list else "text"
            kind = type(value).__name__
            raise InputError(
                f"{argument('submission')}: {name} is of the type {kind}; expected {expected}"
            )


def current_settings(path: str | Path) -> CurrentSettings:
    """Current Spark configuration: a properties file, or an earlier plan."""
    text = read_text(Path(path), expected="a spark-defaults.conf, or a plan's JSON")
    if text.lstrip().startswith("{"):
        conf = dict(parse_any_plan(text, name=str(path)).spark_conf)
        return CurrentSettings(name=str(path), conf=conf)
    try:
        return CurrentSettings(
            name=str(path), conf=parse_properties(text), lines=property_lines(text)
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
