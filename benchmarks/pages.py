"""What pages of benchmarks have in common: what they say of themselves, tables and pictures."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headway.version import __version__


def made_by(command: str, *packages: str) -> str:
    """When, by which command and on what machine results were made.

    ``packages`` are those whose versions matter, by their names on the package index.
    """
    others = "".join(f"{package} {version(package)}, " for package in packages)
    return (
        f"Made {datetime.now(UTC):%Y-%m-%d} by `{command}`, headway {__version__}, {others}Python "
        f"{platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}, "
        f"{platform.system()}."
    )


def headed(columns: str) -> tuple[str, str]:
    """The first two lines of a table in Markdown: the names of its columns, and the rule below.

    Examples
    --------
    >>> headed("| setting | error |")
    ('| setting | error |', '|---|---|')
    """
    return columns, "|" + "---|" * (columns.count("|") - 1)


def on_days(days: Iterable[str]) -> str:
    """When something was measured, from its days as YYYY-MM-DD.

    Examples
    --------
    >>> on_days(["2026-11-24", "2026-11-22"]), on_days(["2026-11-24", "2026-11-24"])
    ('from 2026-11-22 to 2026-11-24', 'on 2026-11-24')
    """
    first, *rest = sorted(set(days))
    return f"from {first} to {rest[-1]}" if rest else f"on {first}"


def yes_or_no(is_so: bool) -> str:
    """For a cell of a table."""
    return "yes" if is_so else "no"


def svg_pyplot() -> Any:
    """Matplotlib's pyplot for files in SVG: the same results make the same file."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "headway"
    from matplotlib import pyplot

    return pyplot


def save_svg(picture: Any, path: Path) -> None:
    """Save a picture, without the date on which it was made, and close it."""
    from matplotlib import pyplot

    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)
