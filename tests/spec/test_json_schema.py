"""The published schema is the one that files are read by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.spec.forms.entries import entries_of
from headway.spec.json_schema import json_schema
from headway.spec.kinds import KINDS, noun_of_kind
from headway.spec.spec_file import scaffold

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


def test_the_published_schema_is_fresh() -> None:
    published = (ROOT / "configs" / "schema" / "v1.json").read_text(encoding="utf-8")
    assert json.loads(published) == json_schema(), "run: headway schema > configs/schema/v1.json"


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(json_schema())
    return jsonschema.Draft202012Validator(json_schema())


@pytest.mark.parametrize("kind", KINDS)
def test_a_scaffold_passes_the_schema(validator: Any, kind: str) -> None:
    data = json.loads(json.dumps(yaml.safe_load(scaffold(kind, name="x", file="x")), default=str))
    assert [error.message for error in validator.iter_errors(data)] == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_sample_passes_the_schema(validator: Any, path: Path) -> None:
    data = json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))
    if "include" in data:
        pytest.skip("part of it stands in another file")
    assert [error.message for error in validator.iter_errors(data)] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rate: 20k/s", "rate: 20Ki/s"),
        ("target:", "targt:"),
        ("source_partitions: 12", "source_partitions: 0"),
        ("checkpoint: new", "checkpoint: on"),
        ("p99 <= 5s", "p99 >= 5s"),
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(validator: Any, old: str, new: str) -> None:
    text = scaffold("StreamingJob", name="x", file="x")
    data = yaml.safe_load(text.replace(old, new))
    assert old in text
    assert list(validator.iter_errors(data))


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_described(kind: str) -> None:
    definition = json_schema()["$defs"][noun_of_kind(kind).__name__]
    for each in entries_of(noun_of_kind(kind)):
        assert definition["properties"][each.key]["description"].endswith((".", "`"))
