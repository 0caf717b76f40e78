"""Python processes that Headway starts: they import what this process imports, and nothing else.

By itself Python puts the working folder first on the path of ``-m`` and ``-c``: a file there, in a
folder of downloaded logs perhaps, would be executed instead of a package of the same name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_ROOT = str(Path(__file__).parents[1])


def python_command(*arguments: str) -> list[str]:
    """The command of a Python process that does not import from its working folder.

    >>> python_command("-m", "headway")[1:]
    ['-P', '-m', 'headway']
    """
    return [sys.executable, "-P", *arguments]


def python_environment() -> Mapping[str, str]:
    """Variables with which a Python process, and those that it starts, import as this one does.

    >>> python_environment()["PYTHONSAFEPATH"]
    '1'
    """
    # An empty entry, as of an interactive session, is the working folder.
    folders = [folder for folder in sys.path if folder]
    if _ROOT not in folders:
        folders.append(_ROOT)
    return {"PYTHONPATH": os.pathsep.join(folders), "PYTHONSAFEPATH": "1"}
