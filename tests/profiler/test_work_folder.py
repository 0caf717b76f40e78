"""Folders of killed processes are swept by the next start; those of live ones never."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headway.profiler.work_folder import work_folder

_HOLDS = """
import sys
from pathlib import Path
from headway.profiler.work_folder import work_folder
with work_folder("logs") as folder:
    (folder / "app=0").mkdir()
    (folder / "app=0" / "part").write_text("x" * 1000)
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def holder() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_gone_after_the_block(temporary: Path) -> None:
    with work_folder("logs") as folder:
        assert folder.parent == temporary
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_what_a_killed_process_left_is_swept_by_the_next() -> None:
    process, folder = holder()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (folder / "app=0" / "part").exists()
    with work_folder("spark"):
        assert not folder.exists()


def test_what_a_live_process_has_stays() -> None:
    process, folder = holder()
    with work_folder("logs"), work_folder("logs"):
        assert (folder / "app=0" / "part").exists()
    process.communicate("")
    assert not folder.exists()


def test_only_what_is_ours_is_swept(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".lock").write_text(os.uname().nodename)
    (temporary / "headway-link").symlink_to(elsewhere)
    without_lock = temporary / "headway-demo-20260101"
    without_lock.mkdir()
    other_machine = temporary / "headway-logs-other"
    other_machine.mkdir()
    (other_machine / ".lock").write_text("another-machine")
    with work_folder("logs"):
        pass
    assert elsewhere.exists()
    assert without_lock.exists()
    assert other_machine.exists()
    someone_elses = temporary / "headway-logs-someone"
    someone_elses.mkdir()
    (someone_elses / ".lock").write_text(os.uname().nodename)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with work_folder("logs"):
        assert someone_elses.exists()
    monkeypatch.undo()
