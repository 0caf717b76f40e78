"""The accuracy benchmarks are scripts: their folder is on the path while they are tested."""

from __future__ import annotations

import sys
from pathlib import Path

ACCURACY = Path(__file__).parents[2] / "benchmarks" / "accuracy"

if str(ACCURACY) not in sys.path:
    sys.path.append(str(ACCURACY))
