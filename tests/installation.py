"""What pyproject.toml requires, and the command line as it is where some of that is missing."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable

from tests.sources import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ("capacity", "logs", "mcp", "spark")
# Imported under another name than they are installed by.
NAMES = {"pyyaml": "yaml"}

#: What `without` executes first for pages with a what-if of few settings, as
#: tests.seeds.few_settings has it in process.
FEW_SETTINGS = """
from headway.report import what_if
what_if._RATES, what_if._TRIGGERS_S = 4, (1.0,)
"""


def required(*extras: str) -> set[str]:
    """Packages by the names they are imported by: of a plain installation, or of extras."""
    lists = [PROJECT["optional-dependencies"][extra] for extra in extras]
    requirements = [each for one in lists or [PROJECT["dependencies"]] for each in one]
    names = [re.split(r"[<>=\[]", each)[0] for each in requirements]
    # An extra may contain another.
    return {NAMES.get(name, name) for name in names} - {"headway"}


_WITHOUT = """
import sys

for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None  # is taken as not installed
exec(sys.argv.pop(1))
from headway.cli.main import main
main()
"""


def without(
    packages: Iterable[str], *arguments: str, before: str = "", timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process that cannot import some packages.

    ``before`` is what the process executes first.
    """
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT, ",".join(sorted(packages)), before, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
