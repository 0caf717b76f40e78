"""Runs the notebooks of ``examples/notebooks`` and writes what they show, or checks that they do.

Nothing but Python is needed: a cell is run in the notebook's folder, its last expression is shown
by its ``repr`` and ``_repr_html_``, as Jupyter would.

    python scripts/refresh_notebooks.py            # rewrite
    python scripts/refresh_notebooks.py --check    # exit 1 and show the difference
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def refreshed_notebook(path: Path) -> str:
    """The text of the notebook with the outputs of its cells as they are now."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    with contextlib.chdir(path.parent):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                cell["execution_count"] = number
                cell["outputs"] = _outputs("".join(cell["source"]), names, number)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _outputs(code: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        shown = None
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if shown is not None:
        data = {"text/plain": repr(shown).splitlines(keepends=True)}
        if hasattr(shown, "_repr_html_"):
            data["text/html"] = [shown._repr_html_()]
        outputs.append(
            {
                "output_type": "execute_result",
                "execution_count": number,
                "metadata": {},
                "data": data,
            }
        )
    return outputs


def main() -> int:
    """Rewrite or check; the exit code."""
    stale = 0
    for path in NOTEBOOKS:
        old, new = path.read_text(encoding="utf-8"), refreshed_notebook(path)
        if old != new and "--check" in sys.argv:
            stale = 1
            lines = (text.splitlines(keepends=True) for text in (old, new))
            sys.stdout.writelines(difflib.unified_diff(*lines, path.name, "as it is now"))
        elif old != new:
            path.write_text(new, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
