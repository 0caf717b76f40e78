"""Prints a constraints file that holds what ``pyproject.toml`` requires to the lowest it allows.

Requirements of Headway and of its extras for users; tools for tests come as they are.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_FOR_USERS = ("capacity", "logs", "mcp", "spark")
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)>=(?P<lowest>[0-9.]+)(,<[0-9.]+)?")


def constraints(pyproject: str) -> list[str]:
    """``name==lowest`` for each requirement; every one must state its lowest version."""
    project = tomllib.loads(pyproject)["project"]
    extras = project["optional-dependencies"]
    found = []
    for requirement in (
        *project["dependencies"],
        # An extra in brackets is another of these.
        *(needed for name in _FOR_USERS for needed in extras[name] if "[" not in needed),
    ):
        stated = _REQUIREMENT.fullmatch(requirement)
        if stated is None:
            raise SystemExit(
                f"pyproject.toml: {requirement!r} has no lowest version; expected name>=version"
            )
        found.append(f"{stated['name']}=={stated['lowest']}")
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join(constraints((_ROOT / "pyproject.toml").read_text("utf-8"))) + "\n")
