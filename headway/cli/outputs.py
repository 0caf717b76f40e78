"""Output paths of commands, which are checked before the work, not after it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class OutputFile(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """A file to write, existing or not, in an existing and writable folder.

    A path that ends in ``/`` is a folder, if a command can write several files.
    """

    name = "file"

    def __init__(self, *, or_folder: bool = False) -> None:
        self._or_folder = or_folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path as it was given."""
        if self._or_folder and (value.endswith(("/", os.sep)) or Path(value).is_dir()):
            complaint = folder_complaint(Path(value))
        else:
            complaint = file_complaint(Path(value))
        if complaint is not None:
            self.fail(f"{value}: {complaint}", param, ctx)
        return value


class OutputFolder(click.ParamType):  # type: ignore[type-arg]
    """A folder to write to; it is created if missing, with its parents."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The folder as a path."""
        complaint = folder_complaint(Path(value))
        if complaint is not None:
            self.fail(f"{value}: {complaint}", param, ctx)
        return Path(value)


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
