from __future__ import annotations

import stat
from pathlib import Path

from headway.profiler.recording.recorder_file import RotatingFile


def test_the_next_file_may_be_read_by_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "job.headway.jsonl"
    path.touch(mode=0o600)
    file = RotatingFile(path, max_bytes=200, max_files=3)
    file.begin([{"Event": "A", "App ID": "app-1"}], [])
    for number in range(20):
        file.append([{"Event": "B", "number": number}])
    file.close()
    parts = sorted(tmp_path.iterdir())
    assert len(parts) == 3
    assert {stat.S_IMODE(part.stat().st_mode) for part in parts} == {0o600}
