from __future__ import annotations

import stat
from pathlib import Path

import pytest

from headway.errors import HeadwayError
from headway.formats.profile_file import dump_profile, load_profile, save_profile
from tests.factories import a_profile

GOOD = dump_profile(a_profile())


def test_saving_replaces_the_file_in_one_step(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("old")
    with file.open() as reader:
        save_profile(a_profile(), file)
        assert reader.read() == "old"
    assert file.read_text() == GOOD
    assert [found.name for found in tmp_path.iterdir()] == ["job.yaml"]


def test_a_failed_save_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(self: Path, target: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "job.yaml"
    file.write_text("old")
    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(HeadwayError, match=r"cannot be written: No space left") as caught:
        save_profile(a_profile(), file)
    assert caught.value.exit_code == 1
    assert file.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["job.yaml"]


def test_saving_where_nothing_can_be_is_explained(tmp_path: Path) -> None:
    for file in (tmp_path / "no" / "such" / "job.yaml", tmp_path):
        with pytest.raises(HeadwayError, match="cannot be written"):
            save_profile(a_profile(), file)
    assert not list(tmp_path.iterdir())


def test_devices_and_links_stay_what_they_are(tmp_path: Path) -> None:
    save_profile(a_profile(), "/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    (tmp_path / "real.yaml").write_text("old")
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    save_profile(a_profile(), tmp_path / "link.yaml")
    assert (tmp_path / "link.yaml").is_symlink()
    assert load_profile(tmp_path / "real.yaml") == a_profile()
