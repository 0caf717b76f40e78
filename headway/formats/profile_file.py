"""Profiles as YAML files: what ``headway profile`` writes and the other commands read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

from headway.domain import APPLICATION_PROFILE_SCHEMA, PROFILE_SCHEMA, JobProfile
from headway.errors import InputError
from headway.formats.codec import validate
from headway.formats.own_files import path_of, read_text
from headway.formats.yaml_document import Document, Fault, Plain, Route, shown, written_document

if TYPE_CHECKING:
    from headway.domain import ApplicationProfile

# An object on one line, with Spark's word for what it tells.
EVENT_LOG = re.compile(r'\ufeff?\s*\{[^\n]*"Event"\s*:\s*"')
_SCHEMA = re.compile(r"(?m)^schema:")
_JOB = "a job profile as 'headway profile' writes it"
_OF_BATCH_JOBS = ". A batch job has a deadline: headway plan PROFILE --target 'deadline <= 10m'"


def load_profile(path: str | Path) -> JobProfile:
    """Read a job profile.

    Raises
    ------
    InputError
        If it cannot be read, is no profile, or not one of this version. The message has one line
        per fault, with line and column where there is one.

    >>> load_profile("no/such/profile.yaml")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: no/such/profile.yaml: no such file; expected a job profile...
    """
    return _job_in(_document(path, _JOB))


def load_stream_profile(path: str | Path) -> JobProfile | ApplicationProfile:
    """Read the profile of a stream: of a streaming job, or of a DStreams application.

    Raises InputError as `load_profile` does, and if it is the profile of a batch job.
    """
    document = _document(path, _JOB)
    return _application_in(document) if _is_of_dstreams(document) else _job_in(document)


def load_any_profile(path: str | Path) -> JobProfile | ApplicationProfile:
    """Read the profile of a streaming job, or of a batch or DStreams application.

    Raises InputError as `load_profile` does.
    """
    document = _document(path, "a profile")
    is_application = _schema_of(document) == APPLICATION_PROFILE_SCHEMA
    return _application_in(document) if is_application else _job_in(document)


def dump_profile(profile: JobProfile | ApplicationProfile) -> str:
    """The text of a profile's file; reading it and dumping again gives the same text.

    Numbers are rounded to six significant digits, so that small changes make small differences.
    Raises ValueError if a number of the profile is infinite or not a number.
    """
    # Imported here: who loads does not write.
    from headway.formats.yaml_text import yaml_text

    return f"{_heading(profile)}{yaml_text(profile)}"


def save_profile(profile: JobProfile | ApplicationProfile, path: str | Path) -> None:
    """Write a profile's file in one step: readers see the old file or the complete new one.

    An existing file is replaced; a device or pipe is written to as it is.

    Raises HeadwayError if the file cannot be written; ValueError if a number of the profile is
    infinite or not a number.
    """
    # Imported here: who loads does not write.
    from headway.formats.text_file import write_text

    write_text(path, dump_profile(profile), label="the profile")


def _heading(profile: JobProfile | ApplicationProfile) -> str:
    version = "".join(filter(str.isprintable, profile.headway_version))
    origin = f"made by headway {version} from what Spark recorded of"
    if profile.schema != PROFILE_SCHEMA:
        return (
            f"# The profile of {profile.called}, {origin} it.\n"
            "# Stages in order of submission; times in seconds, since the start.\n"
        )
    if isinstance(profile, JobProfile) and profile.drain is not None:
        return (
            f"# A job profile, {origin} a run that read a backlog.\n"
            "# Fewest nodes that read it in time:   headway plan FILE --target 'deadline <= 10m'\n"
        )
    return (
        f"# A job profile, {origin} the job.\n"
        "# Latency at another setting:   headway predict FILE --executors 4\n"
        "# Fewest nodes for a target:   headway plan FILE --rate 50k/s --target 'p99 <= 3s'\n"
    )


def _document(path: str | Path, expected: str) -> Document:
    """The file as a mapping with a schema; of one that has none the message says so."""
    file = path_of(path, expected=expected)
    text = read_text(file, expected=expected)
    if EVENT_LOG.match(text):
        raise InputError(
            f"{file}: a Spark event log, not {expected}; "
            f"run 'headway profile {file} -o profile.yaml' first"
        )
    try:
        document = written_document(text, name=str(file))
    except InputError as error:
        hint = "" if _SCHEMA.search(text) else f"; expected an event log, or {expected}"
        raise InputError(f"{error}{hint}") from None
    root = document.root
    if not isinstance(root, dict):
        raise _fault(document, f"got {shown(root)}; expected {expected}", ())
    if root.get("schema") is None and "kind" in root:
        raise InputError(
            f"{document.name}: a spec file; expected {expected}. A spec file is planned: "
            f"headway plan {document.name}"
        )
    if root.get("schema") is None:
        raise _fault(document, f"missing; expected {PROFILE_SCHEMA}, the first line of {expected}")
    return document


def _job_in(document: Document) -> JobProfile:
    schema = _schema_of(document)
    if schema == APPLICATION_PROFILE_SCHEMA:
        name, hint = ("DStreams", "") if _is_of_dstreams(document) else ("batch", _OF_BATCH_JOBS)
        raise _fault(
            document,
            f"the profile of a {name} application; expected that of a streaming job, "
            f"{PROFILE_SCHEMA}{hint}",
        )
    if isinstance(schema, str) and schema.startswith("headway.") and "profile" not in schema:
        schema_name = schema.removeprefix("headway.").partition("/")[0]
        hint = f"; explain it: headway explain {document.name}" if schema_name == "plan" else ""
        raise _fault(document, f"a {schema_name}; expected {PROFILE_SCHEMA}, a profile{hint}")
    if schema != PROFILE_SCHEMA:
        raise _fault(
            document,
            f"got {shown(schema)}; this Headway reads {PROFILE_SCHEMA}: "
            "run 'headway profile' on the log again",
        )
    return validate(document, JobProfile)


def _application_in(document: Document) -> ApplicationProfile:
    # Imported here: plans of streams do without.
    from headway.domain import ApplicationProfile

    return validate(document, ApplicationProfile)


def _is_of_dstreams(document: Document) -> bool:
    """Whether it is the profile of an application, and one of DStreams, by what it says itself."""
    root = cast("dict[str, Plain]", document.root)
    return (root["schema"], root.get("kind")) == (APPLICATION_PROFILE_SCHEMA, "dstreams")


def _schema_of(document: Document) -> Plain:
    return cast("dict[str, Plain]", document.root)["schema"]


def _fault(document: Document, message: str, route: Route = ("schema",)) -> InputError:
    return InputError(str(Fault(document.value_mark(route), route, message)))
