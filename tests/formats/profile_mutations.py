"""Damaged profiles: one value, one key, or the text of a good one changed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from headway.formats.profile_file import dump_profile
from tests.factories import a_profile
from tests.spec.mutations import damaged

ROOT = Path(__file__).parents[2]
_VALUES: tuple[Any, ...] = (
    *(0, -1, 1, 2, 0.5, -0.5, 1e-300, 1e300, -1e300, 2**31, 2**63, 2**64, -(2**63) - 1, 10**300),
    *(None, True, False, "", " ", "x", "1", "nan", "~", "\u2028", "p99 <= 1s", "a" * 500),
    *([], {}, [None], [0], [[]], {"a": 1}, {"": 0}, {" ": 0}, {"exponent": None}),
)
_KEYS = ("", " ", "unknown", "__class__", "self", "schema ", "0", "é", "a.b", "a[0]", "x" * 200)


def profile_texts() -> list[str]:
    """Good profiles: of streaming jobs and of applications."""
    examples = [path.read_text() for path in sorted((ROOT / "examples").glob("*.profile.yaml"))]
    return [dump_profile(a_profile()), *examples]


def profile_mutations(count: int, seed: int) -> Iterator[str]:
    """So many damaged texts, the same for the same seed."""
    rng = random.Random(seed)
    texts = profile_texts()
    documents = [yaml.safe_load(text) for text in texts]
    for _ in range(count):
        which = rng.randrange(len(texts))
        if rng.random() < 0.25:
            yield damaged(rng, texts[which])
            continue
        document = copy.deepcopy(documents[which])
        for _ in range(rng.choice((1, 1, 1, 2))):
            _change(rng, document)
        yield _written(rng, document)


def _written(rng: random.Random, document: Any) -> str:
    # JSON is YAML too, and has numbers that a YAML writer would round.
    if rng.random() < 0.5:
        return json.dumps(document, ensure_ascii=False)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _change(rng: random.Random, document: Any) -> None:
    places = list(_places(document))
    holder, key = rng.choice(places)
    match rng.randrange(10):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[f"{key}{rng.choice((' ', '  ', 's', chr(9), '_'))}"] = holder.pop(key)
        case 2 if isinstance(holder, dict):
            holder[rng.choice(_KEYS)] = rng.choice(_VALUES)
        case 3 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case 4:
            other, other_key = rng.choice(places)
            if key in range(len(holder)) if isinstance(holder, list) else key in holder:
                holder[key] = copy.deepcopy(other[other_key])
        case 5 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * rng.choice((-1, 0, 10, 1e-9, 1e9))
        case _:
            holder[key] = copy.deepcopy(rng.choice(_VALUES))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)
