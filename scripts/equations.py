"""``docs/theory.md``: the equations in docstrings, put where ``docs/theory.in.md`` names them.

``docs/theory.in.md`` holds what is not of one function - introductions, and how close equations
turned out - and ``{{B3}}`` where equation B3 goes.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "docs" / "theory.in.md"
PLACE = re.compile(r"\{\{([A-Z]\d+)\}\}")


def theory_page() -> str:
    """The page of all equations; each links the code that computes it."""
    from headway.report.equations import ROOMS, equations

    # Oracles only judge; they stand with the tests.
    of_number = {one.number: one for one in equations((*ROOMS, ROOT / "tests" / "oracles"))}

    def stated(match: re.Match[str]) -> str:
        one = of_number[match[1]]
        link = f"[`{one.name}`](../{one.path.relative_to(ROOT).as_posix()})"
        return f"**({one.number})** {one.text} {link}"

    return PLACE.sub(stated, TEMPLATE.read_text(encoding="utf-8"))
