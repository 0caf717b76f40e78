"""The job that a command is about: a profile, or event logs, which are profiled first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.api.file_kinds import is_log
from headway.cli.options import rare_option, refuse
from headway.cli.outputs import OUTPUT_FILE
from headway.cli.progress import Progress
from headway.cli.terminal import remark

profile_option = rare_option(
    "--profile",
    "profile_file",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Also write the profile of an event log, as YAML.",
)


def profiled(source: str, queries: Sequence[str] = (), profile_file: str | None = None) -> Any:
    """The profile of event logs, which goes to a file, too, if one is given; else the source.

    What the profile is made of is said on stderr.
    """
    if not is_log(source):
        options = {"--query": queries, "--profile": profile_file}
        for_logs = (option for option, value in options.items() if value)
        refuse(for_logs, f"it is for event logs; {source} is not one")
        return source
    from headway.api.profile import profile_and_tables
    from headway.formats.profile_file import save_profile
    from headway.report.profiles import profile_origin

    with Progress() as progress:
        profile, _ = profile_and_tables(source, None, queries=queries, progress=progress.tell)
    remark(profile_origin(profile))
    if profile_file is not None:
        save_profile(profile, profile_file)
        remark(f"wrote {profile_file}")
    return profile
