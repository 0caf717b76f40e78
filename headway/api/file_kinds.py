"""What a file is by the text at its beginning, right or not: a spec, a pipeline, or neither."""

from __future__ import annotations

import re
from pathlib import Path

from headway.formats.own_files import beginning_of, read_text

PIPELINE_KINDS = ("MicroBatchPipeline", "OrderedPipeline")
_MOST_BYTES = 4 * 2**20
_SCHEMA = re.compile(r"(?m)^schema:\s*['\"]?headway\.")
_KIND = re.compile(r"(?m)^(?:kind|apiVersion):")
_PIPELINE = re.compile(rf"(?m)^kind:\s*['\"]?({'|'.join(PIPELINE_KINDS)})['\"]?\s*(?:#.*)?$")


def names_schema(text: str) -> bool:
    """Whether a text is that of a file that Headway wrote, such as a profile."""
    return _SCHEMA.search(text) is not None


def names_kind(text: str) -> bool:
    """Whether a text without a schema is that of a spec file."""
    return _KIND.search(text) is not None


def is_spec(path: str | Path) -> bool:
    """Whether a file looks like a spec, valid or not: it names its kind.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    text = read_text(Path(path), expected="a job profile, or a spec file")
    # A profile may be of a kind of application.
    return not names_schema(text) and names_kind(text)


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
