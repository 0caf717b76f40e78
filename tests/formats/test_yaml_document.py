from __future__ import annotations

import pytest

from headway.errors import InputError
from headway.formats.yaml_document import Mark, parse_document


def test_scalars_mean_what_they_look_like() -> None:
    text = "{on: off, y: no, a: 1e3, b: 1e-05, c: 1:30, d: 010, e: 10_000, f: '2', g: .5, h: -3}"
    assert parse_document(text, name="x").root == {
        "on": "off",
        "y": "no",
        "a": 1000.0,
        "b": 1e-05,
        "c": "1:30",
        "d": "010",
        "e": "10_000",
        "f": "2",
        "g": 0.5,
        "h": -3,
    }


def test_every_value_knows_its_place() -> None:
    document = parse_document("a:\n  - b: 1\n    c: [2, 3]\n", name="x")
    assert document.value_mark(("a", 0, "c", 1)) == Mark("x", 3, 12)
    assert document.key_mark(("a", 0, "c")) == Mark("x", 3, 5)
    assert document.value_mark(("a", 0, "missing")) == Mark("x", 2, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1", r"not YAML"),
        ("a: 'open", r"x:1:9: not YAML"),
        ("a: b: c", r"x:1:5: not YAML: mapping values"),
        ("a: *x", r"x:1:4: an alias"),
        ("? [1]\n: 2", r"x:1:3: a list or mapping as a key"),
        ("a: 1\n---\nb: 2", r"x:2:1: a second document"),
        ("a: 1\n---\n", r"x:2:1: a second document"),
        ("[" * 100, r"x:1:51: .*nested more than 50 deep"),
        ("[" * 100_000, r"x:1:(51|1001): .*nested more than 50 deep"),
        ("{a: " * 100_000, r"nested more than 50 deep"),
        ("- " * 100_000, r"nested more than 50 deep"),
        ("a: \x07", r"x:1:4: the character '\\x07'"),
        ("ok: 1\n\x1b[31m: 2", r"x:2:1: the character"),
    ],
)
def test_what_is_no_yaml_of_ours_is_one_line_with_a_place(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_document(text, name="x")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["a: !!python/object:os.system 1", "a: !!int '5'", "a: &x 1"])
def test_tags_and_anchors_are_faults(text: str) -> None:
    (fault,) = parse_document(text, name="x").faults
    assert fault.mark == Mark("x", 1, 4)


def test_the_first_of_two_equal_keys_is_named() -> None:
    (fault,) = parse_document("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3", name="x").faults
    assert str(fault) == "x:5:3: b.c: this key is already in line 3; expected each key once"
