"""Output paths of commands, which are checked before the work, not after it."""

from __future__ import annotations

import os
from pathlib import Path

from headway.cli.options import Parsed
from headway.errors import InputError


def is_folder(path: str) -> bool:
    """Whether an output path stands for a folder: it ends in ``/``, or is one."""
    return path.endswith(("/", os.sep)) or Path(path).is_dir()


def file_complaint(file: Path) -> str | None:
    """Why a file cannot be written, as far as this is known without writing it."""
    try:
        if not str(file).strip() or file.name == "":
            return "no file name"
        if file.is_dir():
            return "it is a folder; expected a file"
        folder = file.absolute().parent
        if not folder.exists():
            return f"the folder {folder} does not exist; create it, or give another file"
        if not folder.is_dir():
            return f"{folder} is not a folder; give another file"
        # A file is replaced by a new one beside it; a device is written to as it is.
        if not (file.exists() and not file.is_file()) and not os.access(folder, os.W_OK | os.X_OK):
            return f"no permission to write to the folder {folder}"
        if file.exists() and not os.access(file, os.W_OK):
            return "no permission to write to it"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def folder_complaint(folder: Path) -> str | None:
    """Why a folder cannot be created or written to, as far as this is known."""
    try:
        ancestor = folder.absolute()
        while not ancestor.exists():
            ancestor = ancestor.parent
        if not ancestor.is_dir():
            is_itself = ancestor == folder.absolute()
            return f"{'it' if is_itself else ancestor} is a file; expected a folder"
        if not os.access(ancestor, os.W_OK | os.X_OK):
            return f"no permission to write to the folder {ancestor}"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def _file(path: str) -> str:
    return _without(file_complaint(Path(path)), path)


def _file_or_folder(path: str) -> str:
    return _without(folder_complaint(Path(path)), path) if is_folder(path) else _file(path)


def _folder(path: str) -> Path:
    return Path(_without(folder_complaint(Path(path)), path))


def _without(complaint: str | None, path: str) -> str:
    """A path as it was given, if there is no complaint about it."""
    if complaint is not None:
        raise InputError(f"{path}: {complaint}")
    return path


#: A file to write, existing or not, in an existing and writable folder.
OUTPUT_FILE = Parsed("file", _file)
#: The same, or a folder for several files.
OUTPUT_FILE_OR_FOLDER = Parsed("file", _file_or_folder)
#: A folder to write to; it is created if missing, with its parents.
OUTPUT_FOLDER = Parsed("folder", _folder)
