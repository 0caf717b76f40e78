"""Writing a file changes what it holds and nothing else of it, nor any other file."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headway.errors import HeadwayError, InputError
from headway.formats import text_file
from headway.formats.text_file import write_text

NOBODY = 65534
PACKAGE = Path(text_file.__file__).parents[1]
_WRITES = re.compile(r"\.write_(?:text|bytes)\(|\bopen\([^)]*[\"'][wax]\+?b?[\"']")
# Into folders of our own, that others cannot write to.
_OWN_FOLDERS = {
    # The lock of a tuner must be new, and lines are added to its log.
    "formats/tuner_files.py",
    # Plans of a session of tools, for its later calls; the other is click's, and prints help.
    "cli/assistants/calls.py",
    "cli/options.py",
    "profiler/logs/history_server.py",
    "profiler/logs/unpacking.py",
    "profiler/spark/jvm.py",
    "profiler/spark/session.py",
    "profiler/work_folder.py",
    "formats/text_file.py",
}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_mode_stays(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("old")
    file.chmod(mode)
    write_text(file, "new", label="it")
    assert (file.read_text(), mode_of(file)) == ("new", mode)


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "job.yaml", "new", label="it")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "job.yaml") == 0o640


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("old")
    os.chown(file, NOBODY, NOBODY)
    file.chmod(0o640)
    write_text(file, "new", label="it")
    status = file.stat()
    assert (status.st_uid, status.st_gid, mode_of(file)) == (NOBODY, NOBODY, 0o640)


def test_where_the_owner_cannot_stay_the_group_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("old")
    file.chmod(0o664)

    def not_yours(handle: int, owner: int, group: int) -> None:
        raise PermissionError

    class Foreign:
        st_uid, st_gid, st_mode = NOBODY, NOBODY, file.stat().st_mode

    monkeypatch.setattr(os, "fchown", not_yours)
    with (tmp_path / "new").open("wb") as new:
        text_file._take_after(new.fileno(), Foreign())  # type: ignore[arg-type]
    assert mode_of(tmp_path / "new") == 0o604


def test_no_planted_link_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    file = folder / "job.yaml"
    # The name that the process id used to give away.
    planted = folder / f".{file.name}.{os.getpid()}.tmp"
    planted.symlink_to(victim)
    write_text(file, "new", label="it")
    assert (victim.read_text(), file.read_text()) == ("precious", "new")
    assert sorted(folder.iterdir()) == sorted([file, planted])


def test_a_planted_link_of_the_very_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr("headway.formats.text_file.secrets.token_hex", lambda _: "guessed")
    (tmp_path / ".job.yaml.guessed.tmp").symlink_to(victim)
    with pytest.raises(HeadwayError, match="cannot be written: File exists"):
        write_text(tmp_path / "job.yaml", "new", label="it")
    assert victim.read_text() == "precious"


def test_a_read_only_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(HeadwayError, match="the file is read-only"):
        write_text(file, "new", label="it")
    assert file.read_text() == "old"


@pytest.mark.parametrize("there", ["file", "link", "dangling link"])
def test_only_a_new_file(tmp_path: Path, there: str) -> None:
    file, other = tmp_path / "job.yaml", tmp_path / "other"
    if there == "link":
        other.write_text("old")
    if there == "file":
        file.write_text("old")
    else:
        file.symlink_to(other)
    with pytest.raises(InputError, match="is there already"):
        write_text(file, "new", label="it", only_new=True)
    assert other.exists() == (there == "link")
    write_text(tmp_path / "new.yaml", "new", label="it", only_new=True)
    assert (tmp_path / "new.yaml").read_text() == "new"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("into", ["pipe", "file"])
def test_streams_are_written_to_as_they_are(tmp_path: Path, name: str, into: str) -> None:
    program = (
        "from headway.formats.text_file import write_text\n"
        "print('before', flush=True)\n"
        f"write_text({name!r}, 'text\\n', label='it')\n"
        "print('after')"
    )
    output = tmp_path / "out"
    with output.open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE if into == "pipe" else file,
            check=True,
        )
    printed = done.stdout if into == "pipe" else output.read_bytes()
    assert printed == b"before\ntext\nafter\n"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        write_text(pipe, "text", label="it")
        assert reader.communicate()[0] == b"text"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_nothing_else_writes_files() -> None:
    writers = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if _WRITES.search(file.read_text(encoding="utf-8"))
    }
    assert writers == _OWN_FOLDERS
