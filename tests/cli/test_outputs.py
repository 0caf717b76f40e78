"""Output paths are checked before the work, and the complaint names the path that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.cli.outputs import folder_complaint


def test_a_file_in_the_way_is_called_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a relative path, too: it was taken for an ancestor of itself."""
    (tmp_path / "taken").touch()
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "taken", Path("taken")):
        assert folder_complaint(path) == "it is a file; expected a folder"
    inside = folder_complaint(Path("taken") / "below")
    assert inside == f"{tmp_path / 'taken'} is a file; expected a folder"
    assert folder_complaint(Path("new") / "folder") is None
