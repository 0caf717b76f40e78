"""One word for each thing: what docs/glossary.md refuses is written nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
PLACES = (
    "*.md", "docs/adr/*.md", "docs/ci.md", "docs/cli.md", "docs/emit.md",
    "docs/planning.md", "docs/profiling.md", "docs/recorder.md", "docs/sessions.md",
    "docs/spec.md", "docs/tuning.md",
    "docs/how-to/*.md", "docs/accuracy-in-short.md", "docs/comparison.md",
    "docs/concepts.md",
    "docs/index.md", "docs/json.md", "docs/start.md",
    "docs/ordered-streams.md",
    "configs/**/*.yaml", "examples/**/*.*", "headway/**/*.py", "headway/**/*.jinja",
    "headway/spec/scaffolds/*.yaml",
    "benchmarks/**/*.py", "scripts/*.py", "tests/**/test_*.py",
)  # fmt: skip
# Keys of files keep their names: texts that hold a refused word all the same, with the reason.
KEYS = {
    r"\btold_up_to_per_s\b": "headway.prediction/v1",
    r'\bpins(?=:)|"pins(?=\.)': "headway.profile/v1",
    r"\btold_s\b": "benchmarks/accuracy/results/checkpoint-plans.jsonl",
    r'"plays?"|\bplay=': "benchmarks/accuracy/results/campaign.jsonl.gz",
}


def refused(text: str) -> list[str]:
    """The words in code type in the last column of the glossary's tables."""
    rows = [line.rstrip(" |").split("|") for line in text.splitlines() if line.startswith("| ")]
    return sorted(_in_code(row[-1] for row in rows if len(row) == 6))


def names(text: str) -> list[str]:
    """The names in the tables' column before, which may hold a refused word: `core_speed_ratio`."""
    rows = [line.rstrip(" |").split("|") for line in text.splitlines() if line.startswith("| ")]
    return sorted(word for word in _in_code(row[4] for row in rows if len(row) >= 5) if "_" in word)


def _in_code(cells: Iterable[str]) -> set[str]:
    return {word.lower() for cell in cells for word in re.findall("`([^`]+)`", cell)}


def found_in(text: str, words: list[str]) -> list[tuple[int, str]]:
    """Line and word of each place; an underscore parts words as a blank does."""
    text = re.sub("|".join((*NAMES, *KEYS)), lambda match: "-" * len(match[0]), text)
    whole = re.sub(r'"\s*\n\s*f?"', lambda match: "\n" * match[0].count("\n"), text)
    known = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in words)
    return [
        (whole.count("\n", 0, match.start()) + 1, " ".join(match[0].lower().split()))
        for match in re.finditer(rf"(?<![A-Za-z])(?:{known})(?![A-Za-z])", whole, re.IGNORECASE)
    ]


# What follows no number, stands before one, or is a pattern of logging is no percentage.
PERCENT = re.compile(r"[0-9}] %(?=[\s.,;:!?)\]|\"'`*/&-]|$)(?! (?:[0-9{(]|len))")

WORDS = refused(GLOSSARY.read_text(encoding="utf-8"))
NAMES = names(GLOSSARY.read_text(encoding="utf-8"))


@pytest.mark.parametrize("place", PLACES)
def test_refused_words_are_written_nowhere(place: str) -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {word!r}; docs/glossary.md has the word for it"
        for path in sorted(ROOT.glob(place))
        if path != Path(__file__)
        for line, word in found_in(path.read_text(encoding="utf-8"), WORDS)
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("place", ["*.md", "docs/**/*.md", "headway/**/*.py", "benchmarks/**/*.py"])
def test_percent_stands_without_a_blank(place: str) -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{number}: {found[0]!r}; percent stands without a blank"
        for path in sorted(ROOT.glob(place))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := PERCENT.search(line)) is not None
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("key", KEYS)
def test_exceptions_are_needed(key: str) -> None:
    files = (path for place in PLACES for path in ROOT.glob(place) if path != Path(__file__))
    assert any(re.search(key, path.read_text(encoding="utf-8")) for path in files)


def test_the_search_finds_words_of_names_and_of_broken_lines() -> None:
    assert "luck" in WORDS
    assert "told" in WORDS
    assert "core_speed_ratio" in NAMES
    assert found_in("core_speed_ratio = speed_ratio", WORDS) == [(1, "speed_ratio")]
    text = 'num_told = f(\n    "what it "\n    "pins"\n)\nuntoldx = 1'
    assert found_in(text, ["told", "what it pins"]) == [(1, "told"), (2, "what it pins")]
