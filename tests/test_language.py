"""One word for each thing: what docs/glossary.md refuses is written nowhere."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
PLACES = (
    "*.md", "docs/adr/*.md", "docs/capacity.md", "docs/ci.md", "docs/cli.md", "docs/emit.md",
    "docs/planning.md", "docs/profiling.md", "docs/recorder.md", "docs/spec.md",
    "configs/**/*.yaml", "examples/**/*.*", "headway/cli/*.py", "headway/**/*.jinja",
)  # fmt: skip
# Where a refused word stands all the same: files, words, reason.
EXCEPTIONS: tuple[tuple[str, str, str], ...] = ()


def refused(text: str) -> list[str]:
    """The words in code type in the last column of the glossary's tables."""
    rows = [line.rstrip(" |").split("|") for line in text.splitlines() if line.startswith("| ")]
    last = [row[-1] for row in rows if len(row) == 6]
    return sorted({word.lower() for cell in last for word in re.findall("`([^`]+)`", cell)})


def found_in(text: str, words: list[str]) -> list[tuple[int, str]]:
    """Line and word of each place; an underscore parts words as a blank does."""
    whole = re.sub(r'"\s*\n\s*f?"', lambda match: "\n" * match[0].count("\n"), text)
    known = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in words)
    return [
        (whole.count("\n", 0, match.start()) + 1, " ".join(match[0].lower().split()))
        for match in re.finditer(rf"(?<![A-Za-z])(?:{known})(?![A-Za-z])", whole, re.IGNORECASE)
    ]


WORDS = refused(GLOSSARY.read_text(encoding="utf-8"))


@pytest.mark.parametrize("place", PLACES)
def test_refused_words_are_written_nowhere(place: str) -> None:
    faults = []
    for path in sorted(ROOT.glob(place)):
        name = str(path.relative_to(ROOT))
        excused = [word for files, word, _ in EXCEPTIONS if fnmatch(name, files)]
        for line, word in found_in(path.read_text(encoding="utf-8"), WORDS):
            if not any(fnmatch(word, each) for each in excused):
                faults.append(f"{name}:{line}: {word!r}; docs/glossary.md has the word for it")
    assert not faults, "\n".join(faults)


def test_exceptions_are_needed() -> None:
    for files, word, _ in EXCEPTIONS:
        paths = [path for path in ROOT.glob(files.replace("*/", "**/")) if path.is_file()]
        found = {each for path in paths for _, each in found_in(path.read_text(), WORDS)}
        assert any(fnmatch(each, word) for each in found), (files, word)


def test_the_search_finds_words_of_names_and_of_broken_lines() -> None:
    assert "luck" in WORDS
    assert "told" in WORDS
    text = 'num_told = f(\n    "what it "\n    "pins"\n)\nuntoldx = 1'
    assert found_in(text, ["told", "what it pins"]) == [(1, "told"), (2, "what it pins")]
