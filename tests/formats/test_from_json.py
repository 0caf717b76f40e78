"""Plans come back from their JSON as they were, and what is no plan is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway
from headway.domain import (
    Arrivals,
    NodeType,
    StreamAnswer,
    Target,
)
from headway.errors import InputError
from headway.formats.as_json import json_text, plan_json
from headway.formats.from_json import load_plan, parse_any_plan, parse_plan
from headway.planner.question import SearchSpace
from tests.factories import a_plan, a_profile
from tests.planner.enumeration import random_case
from tests.planner.jobs import with_memory
from tests.planner.plans import plan
from tests.planner.test_deadline import a_long_job
from tests.seeds import examples, seeds


def text_of(found: StreamAnswer) -> str:
    return json_text(plan_json(found))


@pytest.mark.parametrize("seed", seeds(4, 12))
def test_what_is_written_is_read_back(seed: int) -> None:
    text = text_of(random_case(seed).answer())
    assert text_of(parse_plan(text, name="plan.json")) == text


def test_a_plan_with_everything_is_read_back() -> None:
    found = plan(
        with_memory(rocksdb=True),
        Arrivals(rate_per_s=5000.0),
        Target.parse("p99 <= 2s"),
        SearchSpace(max_nodes=3),
        further_targets=[Target.parse("batch p99 <= 1s")],
        node_types=[NodeType(name="a", cores=4, memory_bytes=2**34, price_per_hour=0.2)],
    )
    again = parse_plan(text_of(found), name="plan.json")
    assert again.node_type == found.node_type
    assert again.also == found.also
    assert again.memory == found.memory
    assert again.settings == found.settings
    assert text_of(again) == text_of(found)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text_of(a_plan()), encoding="utf-8")
    assert load_plan(path).nodes == a_plan().nodes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"nodes: 2", "no JSON"),
        (b"\xff\xfe", "not a text file in UTF-8"),
        (b"[]", "no headway.plan/v1"),
        (b"{}", "no headway.plan/v1"),
        (b'{"schema": "headway.plan/v1"}', "feasible: missing"),
        (b"[" * 100000, "no JSON"),
    ],
)
def test_what_is_no_plan_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as raised:
        load_plan(path)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_a_folder_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder; expected a plan"):
        load_plan(tmp_path)


SAMPLE = plan(
    a_profile(),
    Arrivals(rate_per_s=5000.0),
    Target.parse("p99 <= 2s"),
    SearchSpace(max_nodes=2, cores_per_executor=4),
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(data, dict):
        inner = [place for key, value in data.items() for place in places(value, (*path, key))]
    elif isinstance(data, list):
        inner = [place for key, value in enumerate(data) for place in places(value, (*path, key))]
    else:
        inner = []
    return [path, *inner] if path else inner


PLACES = places(json.loads(text_of(SAMPLE)))


@examples(30, 150)
@given(
    place=st.sampled_from(PLACES),
    value=st.sampled_from([None, True, -1, 0, 3.5, "x", [], {}, [1], {"a": 1}, "delete"]),
)
def test_a_damaged_plan_is_read_or_refused_in_one_line(
    place: tuple[Any, ...], value: object
) -> None:
    data = json.loads(text_of(SAMPLE))
    holder = data
    for key in place[:-1]:
        holder = holder[key]
    if value == "delete":
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    try:
        parse_plan(json.dumps(data), name="plan.json")
    except InputError as error:
        assert str(error).startswith("plan.json")
        assert "\n" not in str(error)


def test_a_plan_without_its_trigger_is_refused(tmp_path: Path) -> None:
    data = plan_json(a_plan())
    data["query_options"] = {}
    path = tmp_path / "plan.json"
    path.write_text(json_text(data))
    with pytest.raises(InputError, match=r"plan.json: query_options.trigger: missing"):
        load_plan(path)


@pytest.mark.parametrize("nodes", [0, -3])
def test_a_plan_has_nodes(nodes: int) -> None:
    data = json.loads(text_of(a_plan()))
    with pytest.raises(InputError, match=rf"p.json: nodes is {nodes}; expected at least 1"):
        parse_plan(json.dumps({**data, "nodes": nodes}), name="p.json")


@pytest.mark.parametrize("key", ["nodes", "executors", "cores_per_executor"])
def test_so_has_that_of_a_batch_job(key: str) -> None:
    data = headway.plan(a_long_job(), target="deadline <= 10m").to_dict()
    assert parse_any_plan(json.dumps(data), name="p.json").ends
    with pytest.raises(InputError, match=f"p.json: {key} is 0; expected at least 1"):
        parse_any_plan(json.dumps({**data, key: 0}), name="p.json")
    run = {**data["run"], "mean_s": 0}
    with pytest.raises(InputError, match=r"p.json: run: mean_s is 0.0; expected a positive"):
        parse_any_plan(json.dumps({**data, "run": run}), name="p.json")


@pytest.mark.parametrize("numbers", [{"cores": 0}, {"cores": 4, "nonsense": 1}])
def test_a_finding_with_figures_that_it_cannot_have_is_refused(numbers: dict[str, int]) -> None:
    data = json.loads(text_of(a_plan()))
    node_reserve = {"code": "node_reserve", "numbers": numbers, "names": {"node_type": "big"}}
    with pytest.raises(InputError, match=r"^p.json: findings: a finding with figures"):
        parse_any_plan(json.dumps({**data, "findings": [node_reserve]}), name="p.json")
