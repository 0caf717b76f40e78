"""Offsets of every form that sources write, and whether they count rows."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.profiler.offsets import counts_rows, num_source_partitions, read_offset, rows_between
from tests.shared_data import KAFKA_LOG, needs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"orders":{"0":123,"1":456}}', {"orders/0": 123, "orders/1": 456}),
        ('{"a":{"0":1},"b":{"0":2}}', {"a/0": 1, "b/0": 2}),
        ("12", {"offset": 12}),
        ('"12"', {"offset": 12}),
        ('"{\\"a\\":{\\"0\\":7}}"', {"a/0": 7}),
        ('{"n": 260064}', {"n": 260064}),
        ('{"logOffset":3}', {"logOffset": 3}),
        ('{"reservoirVersion":5,"index":-1,"isStartingVersion":true}', {"reservoirVersion": 5}),
        (str(2**63 - 1), {"offset": 2**63 - 1}),
    ],
)
def test_positions_by_partition(text: str, expected: dict[str, int]) -> None:
    assert read_offset(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "null",
        "true",
        "-1",
        "1.5",
        "NaN",
        "Infinity",
        "1e400",
        str(2**63),
        "9" * 5000,
        "[1, 2]",
        "{}",
        '{"shard-0": {"iteratorPosition": "4959"}}',
        '{"a": {"0":',
        "[" * 100_000,
        '{"a":' * 20_000 + "1" + "}" * 20_000,
        "MicroBatch offset 12",
        "\ud800",
    ],
)
def test_what_holds_no_position_is_none(text: str | None) -> None:
    assert read_offset(text) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(st.text() | json_values.map(json.dumps))
def test_any_text_gives_positions_or_none(text: str) -> None:
    offset = read_offset(text)
    assert offset is None or offset
    assert all(type(position) is int and position >= 0 for position in (offset or {}).values())


def test_a_partition_without_start_or_gone_back_is_left_out() -> None:
    start = {"t/0": 10, "t/1": 10, "t/3": 1}
    end = {"t/0": 15, "t/1": 9, "t/2": 100, "t/3": 1}
    assert rows_between(start, end) == {"t/0": 5, "t/3": 0}
    assert rows_between(None, end) == {}
    assert rows_between(start, None) == {}


def batch(first: int, last: int) -> list[tuple[dict[str, int] | None, dict[str, int] | None]]:
    return [({"t/0": first}, {"t/0": last})]


def test_rows_are_reported_where_sums_agree() -> None:
    assert counts_rows([batch(0, 10), batch(10, 35), batch(35, 50)], [10, 25, 15])


def test_two_sources_are_summed() -> None:
    both = [*batch(0, 10), ({"u/0": 0}, {"u/0": 5})]
    assert counts_rows([both] * 3, [15] * 3)
    assert not counts_rows([both] * 3, [10] * 3)


def test_a_source_whose_start_is_unknown_says_nothing() -> None:
    first = [(None, {"t/0": 48279})]
    reported = [batch(0, 10), batch(10, 20), batch(20, 30)]
    assert counts_rows([first, *reported], [3, 10, 10, 10])
    assert not counts_rows([first] * 9, [3] * 9)


def test_seconds_files_and_versions_are_no_rows() -> None:
    assert not counts_rows([batch(0, 2), batch(2, 4), batch(4, 5)], [200, 200, 100])
    assert not counts_rows([batch(1000, 2000)] * 3, [10] * 3)


def test_commit_markers_of_a_transactional_topic_are_tolerated() -> None:
    assert counts_rows([batch(0, 1010)] * 5, [1000] * 5)
    assert not counts_rows([batch(0, 1100)] * 5, [1000] * 5)


def test_fewer_positions_than_rows_are_no_rows() -> None:
    assert not counts_rows([batch(0, 999)] * 5, [1000] * 5)


def test_one_odd_batch_in_many_is_forgiven_unless_it_is_large() -> None:
    most, sizes = [batch(0, 100)] * 40, [100.0] * 40
    assert counts_rows([*most, batch(0, 101)], [*sizes, 90])
    assert not counts_rows([*most, batch(0, 9000)], [*sizes, 90])


def test_idle_batches_are_no_evidence() -> None:
    assert not counts_rows([batch(5, 5)] * 50, [0] * 50)
    assert not counts_rows([batch(0, 7), batch(7, 9)], [7, 2])
    assert not counts_rows([], [])


def test_every_batch_needs_its_number_of_rows() -> None:
    with pytest.raises(ValueError, match="zip"):
        counts_rows([batch(0, 1)], [])


def test_partitions_are_counted_only_by_topic() -> None:
    assert num_source_partitions(read_offset('{"a":{"0":1,"1":2},"b":{"0":3}}')) == 3
    for text in ("12", '{"logOffset":3}', '{"a":{"b":1}}', '{"a":{"b":{"0":1}}}', "null"):
        assert num_source_partitions(read_offset(text)) is None


def test_offsets_of_a_kafka_query_count_rows() -> None:
    """As Kafka's source writes them: the first batch has no start, a topic of two partitions."""
    ends = [(40, 0), (40, 25), (47, 25), (60, 31)]
    texts = [None, *(json.dumps({"orders": {"0": one, "1": two}}) for one, two in ends)]
    pairs = [[(read_offset(start), read_offset(end))] for start, end in pairwise(texts)]
    assert counts_rows(pairs, [40, 25, 7, 19])
    assert not counts_rows(pairs, [40, 25, 7, 20])
    assert num_source_partitions(pairs[0][0][1]) == 2


@needs(
    KAFKA_LOG,
    stand_in="tests/profiler/test_offsets.py::test_offsets_of_a_kafka_query_count_rows",
)
def test_offsets_of_a_published_kafka_query_count_rows() -> None:
    events = map(json.loads, KAFKA_LOG.read_text().splitlines())
    sources = [event["progress"]["sources"][0] for event in events if "progress" in event]
    pairs = [
        [(read_offset(source["startOffset"]), read_offset(source["endOffset"]))]
        for source in sources
    ]
    assert len(pairs) == 8
    assert pairs[0][0][0] is None
    assert counts_rows(pairs, [source["numInputRows"] for source in sources])
    assert num_source_partitions(pairs[0][0][1]) == 1
