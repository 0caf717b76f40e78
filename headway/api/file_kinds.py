"""What a file is by its beginning, right or not: a spec, a pipeline, event logs, or none."""

from __future__ import annotations

import re
from glob import has_magic
from pathlib import Path

from headway.formats.own_files import beginning_of, head_of, read_text
from headway.formats.profile_file import EVENT_LOG

#: The schemas of profiles, as `schema_named` says them; people may have them as YAML or JSON.
PROFILE_SCHEMAS = ("profile", "application-profile")
PIPELINE_KINDS = ("MicroBatchPipeline", "OrderedPipeline")
_MOST_BYTES = 4 * 2**20
_FIRST_BYTES = 4096
_SCHEMA_IN_YAML = re.compile(r"(?m)^schema:\s*['\"]?headway\.([a-z-]+)")
_SCHEMA_IN_JSON = re.compile(r'[{,]\s*"schema"\s*:\s*"headway\.([a-z-]+)')
_KIND = re.compile(r"(?m)^(?:kind|apiVersion):")
_PIPELINE = re.compile(rf"(?m)^kind:\s*['\"]?({'|'.join(PIPELINE_KINDS)})['\"]?\s*(?:#.*)?$")


def schema_named(text: str) -> str | None:
    """What Headway wrote a file for, by the schema that it names first; None if it names none.

    >>> schema_named("schema: headway.profile/v1"), schema_named('{"schema": "headway.plan/v1"}')
    ('profile', 'plan')
    """
    is_json = text.lstrip().startswith("{")
    match = (_SCHEMA_IN_JSON if is_json else _SCHEMA_IN_YAML).search(text)
    return None if match is None else match[1]


def is_json_of_result(text: str) -> bool:
    """Whether a text is what a command printed with ``--json``, except for a profile."""
    return text.lstrip()[:1] == "{" and schema_named(text) not in PROFILE_SCHEMAS


def names_kind(text: str) -> bool:
    """Whether a text without a schema is that of a spec file."""
    return _KIND.search(text) is not None


def is_spec(path: str | Path) -> bool:
    """Whether a file looks like a spec, valid or not: it names its kind.

    Raises InputError if it cannot be read.
    """
    text = read_text(Path(path), expected="an event log, a job profile, or a spec file")
    # A profile may be of a kind of application.
    return schema_named(text) is None and names_kind(text)


def pipeline_kind(source: object) -> str | None:
    """The kind of a pipeline, or the kind that a file declares; None for all else."""
    if not isinstance(source, str | Path):
        kind = type(source).__name__
        return kind if kind in PIPELINE_KINDS else None
    match = _PIPELINE.search(beginning_of(Path(source), _MOST_BYTES))
    return None if match is None else match[1]


def is_pipeline(source: object) -> bool:
    """Whether something is a pipeline, or the path of a file that describes one, right or not."""
    return pipeline_kind(source) is not None


def is_log(source: object) -> bool:
    """Whether something names event logs rather than a file of Headway's own.

    Addresses, patterns, folders and packed files are of logs; others if they begin with an event.

    >>> is_log("http://history:18080/history/app-1"), is_log("examples/word-count.profile.yaml")
    (True, False)
    """
    if not isinstance(source, str | Path):
        return False
    if isinstance(source, str) and ":/" in source:
        # Profiles are read without what finds logs.
        from headway.profiler.logs.sources import is_address

        if is_address(source):
            return True
    path = Path(source)
    try:
        if path.is_dir():
            return True
        is_there = path.exists()
    except (OSError, ValueError):
        return False
    if not is_there:
        # A log loses this ending when its application ends.
        return has_magic(str(source)) or path.name.endswith(".inprogress")
    head = head_of(path, _FIRST_BYTES)
    if EVENT_LOG.match(head.decode("utf-8", "replace")):
        return True
    if head.isascii():
        return False
    # Profiles are read without what unpacks logs.
    from headway.profiler.logs.log_codecs import is_packed
    from headway.profiler.logs.zipped import is_zip

    return is_packed(head) or is_zip(head)
