"""The folder that tools may read, and nothing outside it.

Each path that a call names is resolved and must be inside. Spec files name further files, and
folders of logs may contain links, so an audit hook looks at all that the process opens, as a second
line of defence.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import headway
from headway.errors import InputError
from headway.profiler.logs.sources import is_address
from headway.redaction import one_line, without_secrets
from headway.units import parse_size_bytes

LARGEST_LOGS_BYTES = parse_size_bytes("1g")
MOST_FILES_OF_FOLDER = 100_000
_DEVICES = ("/dev/null", "/dev/urandom")
_TIME_ZONES = ("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/localtime", "/etc/timezone")
_WITH_A_PATH = ("open", "os.listdir", "os.scandir")

Look = Callable[[str, tuple[Any, ...]], None]


def require_readable(folder: Path, name: str) -> None:
    """Refuse a path that leads outside the folder, an address, and more bytes than are read.

    Paths are relative to the folder, which is resolved, and so are patterns. Whether there is
    anything at a path is the command's own question. Raises InputError if a tool must not read it.
    """
    if is_address(name):
        raise InputError(
            f"an address: {without_secrets(name)}; expected a path inside the folder, since "
            "tools use no network"
        )
    try:
        # Not even the names of files outside are looked at.
        _require_inside(folder, re.split(r"[*?\[]", name, maxsplit=1)[0], name)
        paths = list(_named(folder, name))
        for path in paths:
            _require_inside(folder, path, name)
        _require_small(folder, paths, name)
    except ValueError:
        return  # no file can have such a name, which the command says


def _named(folder: Path, name: str) -> Iterator[str]:
    if glob.has_magic(name) and not (folder / name).exists():
        matches = glob.iglob(name, root_dir=folder, recursive=True)  # noqa: PTH207
        yield from islice(matches, MOST_FILES_OF_FOLDER)
    else:
        yield name


def _require_inside(folder: Path, path: str, name: str) -> None:
    if not (folder / path).resolve().is_relative_to(folder):
        raise InputError(
            f"outside the folder that tools may read: {one_line(name)}; expected a path inside "
            "it, or start headway mcp with another folder"
        )


def _require_small(folder: Path, paths: Iterable[str], name: str) -> None:
    total_bytes = 0
    for num_files, size_bytes in enumerate(_sizes_bytes(folder, paths)):
        total_bytes += size_bytes
        if total_bytes > LARGEST_LOGS_BYTES or num_files > MOST_FILES_OF_FOLDER:
            raise InputError(
                f"{one_line(name)}: more than {LARGEST_LOGS_BYTES / 2**30:g} GiB or "
                f"{MOST_FILES_OF_FOLDER:,} files, the most a tool reads; profile them with "
                "'headway profile', and give the profile"
            )


def _sizes_bytes(folder: Path, paths: Iterable[str]) -> Iterator[int]:
    for path in paths:
        if not (folder / path).is_dir():
            yield _size_bytes(folder / path)
        for parent, _, files in os.walk(folder / path):
            yield from (_size_bytes(Path(parent, file)) for file in files)


def _size_bytes(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # the command says why it cannot be read


def confine(folder: Path) -> None:
    """From now on, this process reads in a folder only, and uses neither network nor programs."""
    sys.addaudithook(look_at(folder))


def look_at(folder: Path) -> Look:
    """What refuses events of the interpreter.

    Files may be read in the folder, and where Python, its packages and the time zones are; they may
    be written in the temporary folder of this process. Only Python may be started, which
    reads parts of large logs that this process has opened before, and computes.
    """
    scratch = os.path.realpath(tempfile.gettempdir())
    roots = (str(folder), scratch, *_of_python(), *_TIME_ZONES)
    readable = {os.path.realpath(root) for root in roots}

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _WITH_A_PATH:
            path = arguments[0] if arguments[0] is not None else "."
            # What is a number has been opened before.
            if not isinstance(path, int):
                writes = event == "open" and arguments[2] & os.O_ACCMODE != os.O_RDONLY
                _require_allowed(os.fsdecode(path), {scratch} if writes else readable)
        elif event.startswith("socket."):
            raise PermissionError(errno.EACCES, "tools use no network")
        elif event == "subprocess.Popen" and arguments[0] != sys.executable:
            program = os.fsdecode(arguments[0])
            raise PermissionError(errno.EACCES, "tools start no programs", program)

    return look


def _of_python() -> Iterator[str]:
    """Folders of the interpreter, of its packages, and of this package."""
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield sysconfig.get_path(name)
    yield from (path for path in sys.path if path.endswith(("site-packages", "dist-packages")))
    yield str(Path(headway.__file__).parent)


def _require_allowed(path: str, roots: Iterable[str]) -> None:
    file = os.path.realpath(path)
    is_allowed = file in _DEVICES or any(
        file == root or file.startswith(root.rstrip(os.sep) + os.sep) for root in roots
    )
    if not is_allowed:
        raise PermissionError(errno.EACCES, "outside the folder that tools may read", path)
