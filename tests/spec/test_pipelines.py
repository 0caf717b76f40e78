"""Spec files of pipelines: what they say comes out, and each fault has its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.errors import InputError
from headway.models.pipeline.parameters import PipelineSetting
from headway.spec.kinds.ordered import OrderedPipeline
from headway.spec.kinds.pipelines import MicroBatchPipeline
from headway.spec.pipelines import pipelines_of, rounds_of, space_of, thread_counts
from headway.spec.spec_file import load_spec_of, parse_spec, scaffold

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipelines"
MICRO, ORDERED = (
    scaffold(kind, name="p", file="p.yaml") for kind in ("MicroBatchPipeline", "OrderedPipeline")
)


def faults(text: str) -> list[str]:
    with pytest.raises(InputError) as raised:
        parse_spec(text, name="p.yaml", folder=Path())
    return str(raised.value).splitlines()


def place_of(text: str, part: str) -> str:
    """Line and column where a part of a text begins."""
    before = text[: text.index(part)]
    return f"p.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


@pytest.mark.parametrize(
    ("old", "new", "wrong", "said"),
    [
        ("map: 14us", "map: -14us", "-14us", "expected a duration"),
        ("map: 14us", "map: 0us", "0us", "expected a duration"),
        ("reduce: 1.5us", "reduce: 15", "15", "a bare number has no unit"),
        ("outputs: 10", "outputs: 0", "0", "expected rows per row, above 0"),
        ("mappers: 2", "mappers: 0", "0, red", "expected a whole number, at least 1"),
        ("nodes: 10", "nodes: 0", "0, mapp", "expected a whole number, at least 1"),
        ("poll_period: 200ms", "poll_period: 0s", "0s", "expected a duration"),
        ("network: 112m/s", "network: 112m", "112m,", "did you mean '112m/s'?"),
        ("network: 112m/s", "network: 1gbit/s", "1gbit/s", "bits are not read"),
        ("rate: 1M/s", "rate: 0/s", "0/s", "expected a rate"),
        ("map_noise: 20%", "map_noise: 200%", "200%", "expected a share"),
        ("target: mean <= 1s", "target: catch_up <= 1m after 5m", "catch_up", "a latency target"),
        ("cores: 4,", "cores: 4, corez: 1,", "corez", "unknown key; did you mean 'cores'?"),
    ],
)
def test_a_fault_of_mini_batches_has_its_place(old: str, new: str, wrong: str, said: str) -> None:
    assert MICRO.count(old) == 1
    text = MICRO.replace(old, new)
    (line,) = faults(text)
    assert said in line
    at = MICRO.index(old) + new.index(wrong.split(",")[0])
    assert line.startswith(place_of(text[:at] + "\0" + text[at:], "\0") + ": ")


@pytest.mark.parametrize(
    ("old", "new", "wrong", "said"),
    [
        ("cost: 10us", "cost: -10us", "-10us", "expected a duration"),
        ("selectivity: 0.05", "selectivity: 0", "0", "expected rows per row, above 0"),
        ("workers: 16", "workers: 0", "0", "expected a whole number, at least 1"),
        ("name: top,", "name: top, after: top,", "top, type", "which would make a cycle"),
        ("name: top,", "name: top, after: parse,", "parse", "only chains are modelled"),
        ("name: top,", "name: top, after: tap,", "tap", "no operator of that name"),
        ("name: parse,", "name: parse, after: top,", "top", "which would make a cycle"),
        ("name: top,", "name: parse,", "parse", "a second operator is called 'parse'"),
        ("type: stateful", "type: statefull", "statefull", "did you mean 'stateful'?"),
        ("rate: 900k/s", "rate: saturatd", "saturatd", "or saturated"),
    ],
)
def test_a_fault_of_ordered_operators_has_its_place(
    old: str, new: str, wrong: str, said: str
) -> None:
    assert ORDERED.count(old) == 1
    text = ORDERED.replace(old, new)
    (line,) = faults(text)
    assert said in line
    at = ORDERED.index(old) + new.rindex(wrong.split(",")[0])
    assert line.startswith(place_of(text[:at] + "\0" + text[at:], "\0") + ": ")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    partitions: 100\n", "", "partitions: missing"),
        ("name: parse, type", "name: parse, partitions: 4, type", "only of a partitioned operator"),
        ("compare: [CT, LP", "compare: [CT, CT", "a scheduler is given twice"),
        ("target: p99 <= 50ms", "target: window p99 <= 50ms", "it has no windows"),
    ],
)
def test_what_does_not_go_together_is_said(old: str, new: str, said: str) -> None:
    assert ORDERED.count(old) == 1
    (line,) = faults(ORDERED.replace(old, new))
    assert said in line
    assert line.startswith("p.yaml:")


def test_windows_need_a_target_of_windows_and_one_round() -> None:
    windowed = MICRO.replace("# windows:", "windows:")
    (line,) = faults(windowed)
    assert "its results come by the window" in line
    text = windowed.replace("mean <= 1s", "window mean <= 1s")
    assert parse_spec(text, name="p.yaml", folder=Path()).spec.is_windowed
    head, _, job = text.partition("  job:\n")
    listed = "  job:\n  - " + job.strip() + "\n  - {map: 1us, reduce: 1us}\n"
    assert "windows in a pipeline of several rounds" in faults(head + listed)[0]


def test_the_examples_are_the_papers_three_jobs() -> None:
    words, windows, clicks = (
        load_spec_of(EXAMPLES / f"{name}.yaml", MicroBatchPipeline)
        for name in ("word-count", "windowed-word-count", "sessionization")
    )
    assert (words.rate_per_s, clicks.rate_per_s) == (1e6, 8e6)
    assert (words.is_windowed, windows.is_windowed, clicks.is_windowed) == (False, True, False)
    (pipeline,) = pipelines_of(windows)
    assert pipeline.finalizing is not None
    assert float(pipeline.finalizing.window_s) == pytest.approx(1.4)
    assert float(pipeline.nodes.link_bytes_per_s) == 118e6
    (clicked,) = pipelines_of(clicks)
    assert float(clicked.job.outputs_per_row) == 1.0
    assert float(clicked.job.fetch_fixed_s) == 0.003


def test_operators_come_out_as_the_models_take_them() -> None:
    pipeline = load_spec_of(EXAMPLES / "sessions.yaml", OrderedPipeline).pipeline()
    assert [one.type for one in pipeline.operators] == ["stateless", "partitioned", "stateful"]
    assert pipeline.compare == (
        "CT", "CT keep", "LP", "ET", "QST"
    )  # fmt: skip
    assert pipeline.operators[1].num_keys == 100_000
    assert pipeline.reordering.send_s == 5e-7
    saturated = parse_spec(
        ORDERED.replace("rate: 900k/s", "rate: saturated"), name="p.yaml", folder=Path()
    )
    assert saturated.spec.pipeline().rate_per_s is None


def test_rounds_feed_each_other() -> None:
    head, _, job = MICRO.partition("  job:\n")
    text = head + "  job:\n  - " + job.strip() + "\n    results: 0.5\n"
    text += "  - {map: 1us, reduce: 2us, setting: {nodes: 3, mappers: 1, reducers: 1, "
    text += "shuffle_period: 50ms, poll_period: 50ms}}\n"
    spec = parse_spec(text, name="p.yaml", folder=Path()).spec
    first, second = pipelines_of(spec)
    assert float(second.rate_per_s) == 10 * 0.5 * float(first.rate_per_s)
    assert (first.setting.num_nodes, second.setting.num_nodes) == (10, 3)


def with_state() -> MicroBatchPipeline:
    start = MICRO.index("# state:")
    line = "state: {memory: 1k, key: 100b, keys: 1000, on_disk: 30us}\n"
    spec = parse_spec(MICRO[:start] + line, name="p.yaml", folder=Path()).spec
    assert isinstance(spec, MicroBatchPipeline)
    return spec


def test_more_reducers_hold_more_keys() -> None:
    (one,) = rounds_of(with_state())
    # 1024 bytes hold ten keys of 1000, evenly: of 1, 20 and 200 reducers.
    shares = one.state.disk_share(np.array([1, 20, 100, 200])) if one.state else None
    assert shares is not None
    assert shares.tolist() == pytest.approx([0.99, 0.796, 0.0, 0.0], abs=1e-3)
    setting = PipelineSetting(
        num_nodes=np.array([1, 10]), mappers_per_node=1, reducers_per_node=2, num_distributors=10,
        input_period_s=0.005, shuffle_period_s=0.2, poll_period_s=0.2,
    )  # fmt: skip
    found = one.at(setting, 1e6).job.reduce_per_row_s
    assert np.asarray(found) == pytest.approx(
        [1.5e-6 + share * 28.5e-6 for share in (0.98, 0.796)], rel=1e-3
    )


def test_a_search_that_is_too_wide_is_refused() -> None:
    many = ", ".join(f"{one}ms" for one in range(10, 50))
    text = MICRO.replace(
        "  job:", f"  search: {{input_period: [{many}], shuffle_period: [{many}]}}\n  job:"
    )
    spec = parse_spec(text, name="p.yaml", folder=Path()).spec
    with pytest.raises(InputError, match="307,200 settings of each number of nodes; expected"):
        space_of(spec)


def test_threads_are_tried_up_to_the_cores() -> None:
    assert thread_counts(1) == (1,)
    assert thread_counts(4) == (1, 2, 3, 4)
    assert thread_counts(4096)[-1] == 4096
    assert len(thread_counts(4096)) < 45
