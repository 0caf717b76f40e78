"""What Headway writes is read alike without PyYAML; anything else is left to it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headway.errors import InputError
from headway.formats.profile_file import dump_profile
from headway.formats.written_yaml import written_data
from headway.formats.yaml_document import parse_document, plain_scalar, written_document
from tests.factories import a_profile
from tests.seeds import seeds

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [*ROOT.glob("examples/*.profile.yaml"), *ROOT.glob("benchmarks/*/results/**/*.profile.yaml")]
)
TEXTS = [dump_profile(a_profile()), *(file.read_text(encoding="utf-8") for file in FILES)]
PUT_IN = (*" \n:-#'\"[]{},.&*!|>%@?`\\~=<0aé+\t/$(", "\n  ", ": ", ", ", "''", "- ", "key: ", " #")


@pytest.mark.parametrize("text", TEXTS, ids=["made", *(file.stem for file in FILES)])
def test_profiles_are_read_alike(text: str) -> None:
    document = parse_document(text, name="job.yaml")
    data = written_data(text, plain_scalar)
    assert data == document.root
    assert repr(data) == repr(document.root), "in the same order, of the same types"
    assert written_document(text, name="job.yaml") == document


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n",
        "a: 1\na: 2\n",
        "a: &b 1\n",
        "a: *b\n",
        "a: !c 1\n",
        "a: |\n  b\n",
        'a: "b"\n',
        "a: 1 # b\n",
        "a: b\n  c\n",
        "a: b: c\n",
        "a: [1, [2]]\n",
        "a: [1,2]\n",
        "a: {b}\n",
        "a: 'b\n",
        "a:\n  b: 1\n c: 2\n",
        "- - 1\n",
        "'a': 1\n",
        "a: 1\n\nb: 2\n",
        "a: 1\n---\nb: 2\n",
        "a:\t1\n",
        "\ufeffa: 1\n",
    ],
)
def test_other_forms_are_left_to_pyyaml(text: str) -> None:
    assert written_data(text, plain_scalar) is None


def test_long_text_in_quotes_is_on_several_lines() -> None:
    text = "notes:\n- 'a: one\n  two''s'\n- b\nlast:\n"
    assert written_data(text, plain_scalar) == {"notes": ["a: one two's", "b"], "last": None}


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_damaged_files_are_read_alike_or_not_at_all(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        lines = chance.choice(TEXTS).split("\n")
        begin = chance.randrange(len(lines))
        text = "\n".join(lines[begin : begin + chance.randrange(1, 12)])
        for _ in range(chance.randrange(4)):
            place, num_cut = chance.randrange(len(text) + 1), chance.randrange(2)
            text = text[:place] + chance.choice(PUT_IN) + text[place + num_cut :]
        data = written_data(text, plain_scalar)
        if data is None:
            continue
        try:
            document = parse_document(text, name="job.yaml")
        except InputError as error:
            pytest.fail(f"{text!r} is read as {data}, but {error}")
        assert not document.faults, text
        assert repr(document.root) == repr(data), text
