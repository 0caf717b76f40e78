"""Files written in one step: whoever reads sees the old one or the whole new one."""

from __future__ import annotations

import os
from pathlib import Path

from headway.errors import HeadwayError


def write_text(path: str | Path, text: str, *, what: str) -> None:
    """Write a file whole or not at all; an existing one is replaced, a link stays.

    Parameters
    ----------
    path : str or Path
        The file. A device or pipe is written to as it is.
    text : str
        What it is to hold.
    what : str
        What it is, for the message.

    Raises
    ------
    HeadwayError
        If it cannot be written.
    """
    data = text.encode()
    # Through a link, so that the link stays and what it points to is replaced.
    file = Path(os.path.realpath(path))
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        if file.exists() and not file.is_file() and not file.is_dir():
            # Replacing /dev/null by a file would be a surprise to the whole machine.
            file.write_bytes(data)
            return
        try:
            temporary.write_bytes(data)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise HeadwayError(
            f"{path}: {what} cannot be written: {error.strerror}; "
            "expected a file name in a folder that exists and can be written to"
        ) from None
