"""Job profiles as YAML files: what ``headway profile`` writes and the other commands read."""

from __future__ import annotations

import os
from pathlib import Path

from headway.domain import PROFILE_SCHEMA, JobProfile
from headway.errors import HeadwayError, InputError, ProfileError
from headway.spec.validation import validate
from headway.spec.yaml_document import Document, Fault, parse_document, read_text, shown

_WHAT = "a job profile as 'headway profile' writes it"


def load_profile(path: str | Path) -> JobProfile:
    """Read a job profile.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    ProfileError
        If it cannot be read, is no profile, or not one of this version. The message has one line
        per fault, with line and column where there is one.

    Examples
    --------
    >>> load_profile("no/such/profile.yaml")
    Traceback (most recent call last):
    ...
    headway.errors.ProfileError: no/such/profile.yaml: no such file; expected a job profile...
    """
    file = Path(path)
    try:
        text = read_text(file, expected=_WHAT)
        if text.lstrip().startswith('{"Event":'):
            raise InputError(
                f"{file}: a Spark event log, not {_WHAT}; "
                f"run 'headway profile {file} -o profile.yaml' first"
            )
        document = parse_document(text, name=str(file))
        _check_schema(document)
        return validate(document, JobProfile)
    except InputError as error:
        raise ProfileError(str(error)) from None


def dump_profile(profile: JobProfile) -> str:
    """The text of a profile's file; reading it and dumping again gives the same text.

    Numbers are rounded to six significant digits, so that small changes make small differences.

    Raises
    ------
    ValueError
        If a number of the profile is infinite or not a number.
    """
    # Imported here: who loads does not write.
    from headway.spec.yaml_text import yaml_text

    version = "".join(filter(str.isprintable, profile.headway_version))
    return (
        f"# A job profile, made by headway {version} from what Spark recorded of the job.\n"
        "# Latency at another setting:   headway predict FILE --executors 4\n"
        "# Fewest nodes for a promise:   headway plan FILE --rate 50k/s --target 'p99 <= 3s'\n"
        f"{yaml_text(profile)}"
    )


def save_profile(profile: JobProfile, path: str | Path) -> None:
    """Write a profile's file in one step: whoever reads sees the old file or the whole new one.

    Parameters
    ----------
    profile : JobProfile
        What to write.
    path : str or Path
        The file; an existing one is replaced. A device or pipe is written to as it is.

    Raises
    ------
    HeadwayError
        If the file cannot be written.
    ValueError
        If a number of the profile is infinite or not a number.
    """
    data = dump_profile(profile).encode()
    # Through a link, so that the link stays and what it points to is replaced.
    file = Path(os.path.realpath(path))
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        if file.exists() and not file.is_file() and not file.is_dir():
            # Replacing /dev/null by a file would be a surprise to the whole machine.
            file.write_bytes(data)
            return
        try:
            temporary.write_bytes(data)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise HeadwayError(
            f"{path}: the profile cannot be written: {error.strerror}; "
            "expected a file name in a folder that exists and can be written to"
        ) from None


def _check_schema(document: Document) -> None:
    if not isinstance(document.root, dict):
        fault = Fault(document.value_mark(()), (), f"got {shown(document.root)}; expected {_WHAT}")
        raise InputError(fault.text(document.name))
    found = document.root.get("schema")
    if found == PROFILE_SCHEMA:
        return
    route = ("schema",)
    if found is None:
        message = f"missing; expected {PROFILE_SCHEMA}, the first line of {_WHAT}"
    else:
        message = (
            f"got {shown(found)}; this Headway reads {PROFILE_SCHEMA}: "
            "run 'headway profile' on the log again"
        )
    raise InputError(Fault(document.value_mark(route), route, message).text(document.name))
