"""Hook of the documentation site: links to files beside ``docs/`` become their names.

Pages are read in the repository, too, where such links work. A link to a file that is not there
fails the build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]+)\]\((?P<to>(?:\.\./)+[^)\s#]+)(?:#[^)\s]*)?\)")


def inside(text: str, page: Path) -> str:
    """The page with links that leave ``docs/`` replaced by their texts.

    Raises
    ------
    FileNotFoundError
        If what is linked is not there.
    """

    def named(match: re.Match[str]) -> str:
        target = (page.parent / match["to"]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return match[0]
        if not target.exists():
            raise FileNotFoundError(f"{page}: a link to {match['to']}, which is not there")
        name = target.relative_to(ROOT).as_posix()
        return match["text"] if name in match["text"] else f"{match['text']} (`{name}`)"

    return _LINK.sub(named, text)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """As MkDocs calls it for each page."""
    return inside(markdown, Path(page.file.abs_src_path))
