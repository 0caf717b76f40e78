"""New spec files to start from."""

from __future__ import annotations

from pathlib import Path

from headway.spec.spec_file import parse_spec, scaffold


def init(kind: str = "StreamingJob", *, name: str = "job", file: str | Path = "FILE") -> str:
    """The text of a new spec file: valid as it is, with values to replace.

    Parameters
    ----------
    kind : str
        ``StreamingJob``, ``BatchJob``, ``Cluster``, ``NodeCatalog``, ``CapacityPlan``,
        ``QuerySchedule``, ``Exploration``, ``Tuning``,
        ``MicroBatchPipeline``, ``OrderedPipeline`` or ``SharedWindows``.
    name : str
        Its name.
    file : str or Path
        Where it will be, for the commands in its comments.

    Raises
    ------
    InputError
        If there is no such kind, or the name is not valid for a spec.
    """
    text = scaffold(kind, name=name, file=str(file))
    # What is to be filled in is not there yet.
    parse_spec(text, name=str(file), folder=Path(), needs_files=False)
    return text
