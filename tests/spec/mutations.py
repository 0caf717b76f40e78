"""Damaged spec files: what editors, merges and tired people make of good ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from headway.spec.kinds import KINDS
from headway.spec.spec_file import scaffold

ROOT = Path(__file__).parents[2]
_WORDS = (
    "on", "yes", "~", "1:30", "1e3", "1e999", "-1", "0", "''", "[]", "{}", "&a", "*a", "!!int 5",
    "10_000", "0x1F", "010", ".nan", ".inf", "50Ki/s", "p99", "|", ">", "- -", "{low: 1}",
    "2026-11-21", "\t", "é", "\u2028", "9" * 400, "a: b: c", "? x", "%", "@", "`", '"', "null",
)  # fmt: skip


def sources() -> list[str]:
    """The texts that are damaged: every scaffold and every sample."""
    scaffolds = [scaffold(kind, name="x", file="x.yaml") for kind in KINDS]
    samples = [path.read_text() for path in sorted((ROOT / "configs").glob("*.yaml"))]
    return scaffolds + samples


def mutations(count: int, seed: int) -> Iterator[str]:
    """So many damaged texts, the same for the same seed."""
    rng = random.Random(seed)
    texts = sources()
    for _ in range(count):
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 3)):
            text = damaged(rng, text)
        yield text


def damaged(rng: random.Random, text: str) -> str:
    """A line, a word or a character of the text changed."""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    match rng.randrange(9):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines[at] = " " * rng.randint(1, 3) + lines[at]
        case 3:
            key, colon, _ = lines[at].partition(":")
            lines[at] = f"{key}{colon} {rng.choice(_WORDS)}"
        case 4:
            lines[at] = lines[at].replace(" ", "", 1)
        case 5:
            place = rng.randrange(len(text) + 1)
            return text[:place] + rng.choice(_WORDS) + text[place:]
        case 6:
            place = rng.randrange(len(text) + 1)
            return text[:place] + text[place + rng.randint(1, 9) :]
        case 7:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            key, colon, rest = lines[at].partition(":")
            lines[at] = f"{key[:-1]}{key[-1:] * 2}{colon}{rest}"
    return "\n".join(lines)
