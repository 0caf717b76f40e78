"""Each Python process of Headway is started in one way, without its working folder on the path."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from headway.processes import python_command, python_environment
from tests.sources import PACKAGE

_STARTS_PYTHON = re.compile(r"\[\s*(?:str\()?sys\.executable|\"python3?\"|'python3?'")


def test_only_one_module_starts_python() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if _STARTS_PYTHON.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"processes.py"}


def test_a_process_imports_what_this_one_imports_and_nothing_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "headway.py").write_text("raise SystemExit('executed')")
    for entries in (
        ["", *sys.path],
        ["", *(one for one in sys.path if one != str(PACKAGE.parent))],
    ):
        monkeypatch.setattr(sys, "path", entries)
        code = "import headway, sys; print(headway.__file__, sys.flags.safe_path)"
        done = subprocess.run(
            python_command("-c", code),
            env=dict(python_environment()),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [str(PACKAGE / "__init__.py"), "True"]
