"""The notebooks run from the first cell to the last, and contain what they show now."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_the_notebooks_show_what_they_contain() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["five-minutes", "what-if"]
    done = subprocess.run(
        [sys.executable, "scripts/refresh_notebooks.py", "--check"],
        cwd=ROOT,
        # A Spark session of this process keeps scripts from the folder that they are in.
        env={name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_is_one_and_has_a_chart(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    pages = [
        "".join(output.get("data", {}).get("text/html", ""))
        for cell in code
        for output in cell["outputs"]
    ]
    assert any("<svg" in page for page in pages)
