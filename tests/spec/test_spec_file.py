"""Spec files: what is right is read in base units, what is wrong is reported with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.domain import Target
from headway.errors import InputError
from headway.formats.rate_trace import read_rate_trace
from headway.spec.forms.quantities import COST, Quantity
from headway.spec.kinds import KINDS
from headway.spec.kinds.capacity import CapacityPlan
from headway.spec.kinds.catalog import NodeCatalog
from headway.spec.kinds.jobs import StreamingJob
from headway.spec.kinds.rates import hourly_rates, peak_rate
from headway.spec.parts import built_in_catalog, container_memory_bytes
from headway.spec.spec_file import SpecFile, parse_spec, scaffold

ROOT = Path(__file__).parents[2]
HEAD = "apiVersion: headway/v1\nkind: StreamingJob\nmetadata: {name: orders}\nspec:\n"
DECLARED = "  declared: {source_partitions: 4, task_per_row: 20us}\n"
GOOD = HEAD + DECLARED + "  rate: 50k/s\n  target: p99 <= 3s\n"


def parsed(text: str, folder: Path = Path()) -> SpecFile:
    return parse_spec(text, name="a.yaml", folder=folder)


def faults(text: str, folder: Path = Path()) -> list[str]:
    with pytest.raises(InputError) as caught:
        parsed(text, folder)
    return str(caught.value).splitlines()


def test_units_become_base_units() -> None:
    job = parsed(GOOD).spec
    assert isinstance(job, StreamingJob)
    assert job.rate == Quantity.exactly(50_000.0)
    assert job.targets == (Target.parse("p99 <= 3s"),)
    assert job.declared is not None
    assert job.declared.task_per_row_s == COST.about(2e-5)
    assert job.declared.driver_s.mid == 0.15


def test_a_trigger_is_zero_or_a_millisecond_or_more() -> None:
    for trigger, trigger_s in (("0s", 0.0), ("1ms", 0.001)):
        job = parsed(GOOD + f"  pinned: {{trigger: {trigger}}}\n").spec
        assert job.pinned.trigger_s == trigger_s
    (fault,) = faults(GOOD + "  pinned: {trigger: 400us}\n")
    assert fault.startswith("a.yaml:8:21: spec.pinned.trigger: got '400us'; expected")
    assert "of at least 1ms, or 0s" in fault


def test_a_range_stands_wherever_a_measured_quantity_does() -> None:
    text = GOOD.replace("20us", "{low: 10us, mid: 20us, high: 1ms}").replace(
        "50k/s", "{low: 1e3, mid: 2k/s, high: 3000}"
    )
    job = parsed(text).spec
    assert job.declared.task_per_row_s == Quantity(low=1e-5, mid=2e-5, high=1e-3)
    assert job.rate == Quantity(low=1000.0, mid=2000.0, high=3000.0)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("50k/s", "50Ki/s", "a.yaml:6:9: spec.rate: got '50Ki/s'; expected a rate"),
        ("50k/s", "50Ki/s", "did you mean '50K/s'? Ki, Mi and Gi are bytes"),
        ("50k/s", "50kps", "did you mean '50k/s'?"),
        ("50k/s", "-5", "a.yaml:6:9: spec.rate: got -5; expected a rate"),
        ("50k/s", "on", "spec.rate: got 'on'"),
        ("50k/s", "1:30", "a clock's notation"),
        ("50k/s", "50_000", "did you mean 50000?"),
        ("50k/s", "{low: 3, mid: 2, high: 1}", "out of order; expected low <= mid <= high"),
        ("50k/s", "{low: 3, high: 4}", "spec.rate.mid: missing"),
        ("50k/s", "{daily: [1, 2]}", "spec.rate.daily: a list of 2; expected a list of 24"),
        ("50k/s", "{trace: none.csv}", "'none.csv': no such file"),
        ("20us", "20", "spec.declared.task_per_row: got 20; expected a duration"),
        ("20us", "0s", "got '0s'; expected a duration"),
        ("source_partitions: 4", "source_partitions: 4.0", "did you mean 4?"),
        ("source_partitions: 4", "source_partitions: 010", "did you mean 10?"),
        ("source_partitions: 4", "source_partitions: true", "got true; expected a whole number"),
        ("source_partitions: 4", "sourcePartitions: 4", "did you mean 'source_partitions'?"),
        ("task_per_row: 20us", "task_per_row: 20us, stateful: yes", "did you mean true?"),
        ("p99 <= 3s", "p99 >= 3s", "did you mean 'p99 <= 3s'?"),
        ("p99 <= 3s", "p99 3s", "did you mean 'p99 <= 3s'?"),
        ("  target: p99 <= 3s\n", "", "a.yaml:5:3: spec.target: missing; expected a target"),
        ("  rate:", "  target: p50 <= 1s\n  rate:", "this key is already in line 6"),
        (DECLARED, "", "neither of profile and declared; expected one of the two"),
        ("headway/v1", "headway/v2", "a.yaml:1:13: apiVersion: got 'headway/v2'"),
        ("StreamingJob", "StreamJob", "a.yaml:2:7: kind: got 'StreamJob'; expected one of"),
        ("{name: orders}", "{name: 7}", "did you mean '7', in quotes?"),
        ("{name: orders}", "{}", "metadata.name: missing"),
        ("spec:", "specs:", "specs: unknown key; did you mean 'spec'?"),
    ],
)
def test_each_fault_has_its_place_and_what_was_meant(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert any(expected in line for line in faults(GOOD.replace(old, new)))


def test_all_faults_are_reported_at_once_in_the_order_of_the_file() -> None:
    text = GOOD.replace("50k/s", "fast").replace("3s", "3").replace("20us", "20 parsecs")
    lines = faults(text + "  colour: blue\n")
    assert [line.split(": ")[0] for line in lines] == [
        "a.yaml:5:50", "a.yaml:6:9", "a.yaml:7:11", "a.yaml:8:3",
    ]  # fmt: skip


def test_a_rate_over_the_day_is_planned_at_its_peak() -> None:
    hours = ", ".join(f"{hour + 1}k/s" for hour in range(24))
    job = parsed(GOOD.replace("50k/s", f"{{daily: [{hours}], scale: 2x}}")).spec
    assert peak_rate(job.rate).high == 48_000.0
    assert hourly_rates(job.rate)[0].mid == 2000.0


def test_a_trace_gives_the_highest_rate_of_each_hour(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("time,rate_per_s\n3600,5\n1h30m,9\n11400,7\n")
    job = parsed(GOOD.replace("50k/s", "{trace: rates.csv}"), tmp_path).spec
    hours = [rate.mid for rate in hourly_rates(job.rate)]
    # Before the first line stands what the last one said: the day is a circle. The 9 hold until
    # ten minutes past three.
    assert hours[:5] == [7.0, 9.0, 9.0, 9.0, 7.0]


def test_a_spec_takes_the_trace_that_simulate_takes(tmp_path: Path) -> None:
    burst = (ROOT / "examples" / "burst.csv").read_text(encoding="utf-8")
    (tmp_path / "burst.csv").write_text(burst, encoding="utf-8")
    job = parsed(GOOD.replace("50k/s", "{trace: burst.csv}"), tmp_path).spec
    assert peak_rate(job.rate).high == 70_000.0
    assert [rate.mid for rate in hourly_rates(job.rate)][1:] == [24_000.0] * 23


@pytest.mark.parametrize("time", ["time", "time_s", "timestamp", "t"])
@pytest.mark.parametrize("rate", ["rate", "rate_per_s"])
@pytest.mark.parametrize(
    "lines",
    [
        ["0,800", "90,20000", "3600,500"],
        ["0s,800/s", "1.5min,20k/s", "1h,500"],
        ["2026-01-01T00:00,800", "2026-01-01T00:01:30,1.2M/min", "2026-01-01T01:00:00,500"],
    ],
)
def test_every_spelling_of_a_trace_says_the_same(
    tmp_path: Path, time: str, rate: str, lines: list[str]
) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("\n".join([f"zone,{time},{rate}", *(f"a,{line}" for line in lines)]))
    found = read_rate_trace(path)
    assert found.times_s == (0.0, 90.0, 3600.0)
    assert found.rates_per_s == (800.0, 20_000.0, 500.0)
    assert found.hourly_peaks_per_s() == (20_000.0, *[500.0] * 23)
    assert found.to_simulate().end_s == 3600.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "when,rate_per_s\n0,1\n",
            "rates.csv:1:1: no column 'time'",
        ),
        ("time,rate_per_s\n0,1\nnoon,2\n", "rates.csv:3:1: time is 'noon'"),
        ("time,rate_per_s\n0,fast\n", "rates.csv:2:1: rate is 'fast'"),
        ("time,rate_per_s\n0\n", "rates.csv:2:1: 1 values; expected 2"),
        ("time,rate_per_s\n0,0\n", "no rate above 0"),
    ],
)
def test_a_trace_that_is_wrong_says_where(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "rates.csv").write_text(text)
    lines = faults(GOOD.replace("50k/s", "{trace: rates.csv}"), tmp_path)
    assert expected in lines[0]
    assert lines[0].startswith("a.yaml:6:17: spec.rate.trace: ")


def test_a_file_says_otherwise_than_the_one_it_includes(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("spec:\n  target: p50 <= 1s\n  confidence: 0.8\n")
    file = parsed(f"include: base.yaml\n{GOOD}", tmp_path)
    assert file.spec.targets[0].quantile == 0.99
    assert file.spec.confidence == 0.8
    assert str(file.place("confidence")).endswith("base.yaml:3:15")


def test_a_fault_in_an_included_file_is_reported_there(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("spec:\n  confidence: very\n")
    (line,) = faults(f"include: base.yaml\n{GOOD}", tmp_path)
    assert line.startswith(f"{tmp_path / 'base.yaml'}:2:15: spec.confidence: got 'very'")


@pytest.mark.parametrize("name", ["loop.yaml", "none.yaml", "."])
def test_an_include_that_cannot_be_is_one_fault(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop.yaml").write_text("include: loop.yaml\n")
    (line,) = faults(f"include: {name}\n{GOOD}", tmp_path)
    assert ":1:10: include: " in line


def test_a_kind_that_does_not_exist_has_no_scaffold() -> None:
    with pytest.raises(InputError, match=r"^kind is '\.\./Job'; expected one of StreamingJob, "):
        scaffold("../Job", name="x", file="x.yaml")


@pytest.mark.parametrize("kind", KINDS)
def test_a_scaffold_is_valid_as_it_stands(kind: str, tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text("def build(spark, setting): ...\n")
    (tmp_path / "x.profile.yaml").write_text("")
    file = parsed(scaffold(kind, name="x", file="x.yaml"), tmp_path)
    assert (file.kind, file.metadata.name) == (kind, "x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "got a list; expected a spec file"),
        ("schema: headway.profile/v1", "a profile, or another file of Headway's"),
        ("kind: Cluster\nspec: 5", "spec: got 5; expected a mapping"),
    ],
)
def test_another_file_is_distinguished(text: str, expected: str) -> None:
    assert any(expected in line for line in faults(text))


FLEET = """\
apiVersion: headway/v1
kind: CapacityPlan
metadata: {name: f}
spec:
  jobs:
  - {name: a, batch: {declared: {work: 1h, tasks: 9}, deadline: 1h}, pool: p}
  pools: [{name: p}]
"""


def test_a_fleet_file_becomes_a_capacity_plan() -> None:
    plan = parsed(FLEET).spec
    assert isinstance(plan, CapacityPlan)
    assert plan.jobs[0].pools == ("p",)
    assert plan.jobs[0].batch is not None
    assert plan.jobs[0].batch.deadline_s == 3600.0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("pool: p", "file: x.yaml", "'x.yaml': no such file"),
        ("  jobs:\n", "  budget: {}\n  jobs:\n", "expected one of per_day and per_month"),
        ("[{name: p}]", "[]", "pools is empty"),
    ],
)
def test_a_fleet_that_contradicts_itself(old: str, new: str, expected: str) -> None:
    assert any(expected in line for line in faults(FLEET.replace(old, new)))


def test_the_catalogue_that_comes_along_is_dated_and_sourced() -> None:
    catalog = built_in_catalog()
    assert isinstance(catalog, NodeCatalog)
    assert catalog.date.startswith("20")
    assert catalog.source
    assert {node.provider for node in catalog.nodes} == {"aws", "gcp", "azure", "on-premises"}
    for node in catalog.nodes:
        assert node.source
        # What can be bought for a machine lies within bounds that a slip of the pen leaves.
        assert 0.01 < node.price_per_hour / node.cores < 0.1
        assert 1 < node.memory_bytes / 2**30 / node.cores <= 8


def test_the_container_of_an_executor_is_larger_than_its_heap() -> None:
    assert container_memory_bytes(2**30) == 2**30 + 384 * 2**20
    assert container_memory_bytes(10 * 2**30) == 11 * 2**30


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("p99 <= 3s", f"p99 <= {'9' * 400}s", "spec.target: got"),
        ("50k/s", f"{'9' * 400}k/s", "spec.rate: got"),
    ],
)
def test_a_number_without_end_is_a_fault_with_its_place(
    before: str, after: str, expected: str
) -> None:
    (line,) = faults(GOOD.replace(before, after))
    assert expected in line


CATALOG = """\
apiVersion: headway/v1
kind: NodeCatalog
metadata: {name: c}
spec:
  date: 2026-11-01
  currency: EUR
  nodes: [{name: n, cores: 4, memory: 16Gi, price_per_hour: 0.2}]
  reserves: [{platform: yarn, date: 2026-11-02, source: s}]
"""


@pytest.mark.parametrize("date", ["2026-13-40", "2026-02-30", "0000-01-01", "26-11-01"])
@pytest.mark.parametrize("replaced", ["2026-11-01", "2026-11-02"])
def test_a_date_is_in_the_calendar(replaced: str, date: str) -> None:
    assert parsed(CATALOG).spec.date == "2026-11-01"
    (line,) = faults(CATALOG.replace(replaced, date))
    assert f"got '{date}'; expected a date of the calendar" in line


def hourly(rates: str) -> str:
    return STREAM_OF_HOURS.replace("HOURS", rates)


STREAM_OF_HOURS = """\
apiVersion: headway/v1
kind: StreamingJob
metadata: {name: s}
spec:
  declared: {source_partitions: 4, task_per_row: 20us}
  rate: {daily: [HOURS]}
  target: p99 <= 3s
"""


def test_an_hour_may_have_no_input() -> None:
    rate = parsed(hourly("0, " * 23 + "5k/s")).spec.rate
    assert [hour.high for hour in rate.hourly] == [0.0] * 23 + [5000.0]
    (line,) = faults(hourly("0, " * 23 + "0/s"))
    assert "all 24 rates are 0; expected a rate above 0 in some hour" in line
    (line,) = faults(hourly("5, " * 23 + "{low: 0, mid: 0, high: 9}"))
    assert "hour 23: a range from 0 to 9 records per second" in line
    (line,) = faults(STREAM_OF_HOURS.replace("{daily: [HOURS]}", "0"))
    assert "got 0; expected a rate of records above 0" in line


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("20us", "20", "a bare number has no unit, did you mean '20us'?"),
        ("HOURS]}", "HOURS]}\n  retention: 20", "a bare number has no unit, did you mean '20s'?"),
        ("p99 <= 3s", "3", "a bare number has no unit"),
    ],
)
def test_a_bare_number_gets_the_unit_that_is_usual_for_it(old: str, new: str, hint: str) -> None:
    (line,) = faults(STREAM_OF_HOURS.replace(old, new).replace("HOURS", "5, " * 23 + "5"))
    assert line.endswith(hint)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("Aufträge", "'Aufträge'"), ("注文", "'注文'"), ("a\u202eb\u200b", r"'a\u202eb\u200b'")],
)
def test_a_message_has_the_letters_of_the_file_and_no_invisible_characters(
    name: str, shown: str
) -> None:
    spec = f"apiVersion: headway/v1\nkind: StreamingJob\nmetadata: {{name: {name}}}\n"
    with pytest.raises(InputError) as caught:
        parse_spec(spec, name="a.yaml", folder=Path())
    assert f"metadata.name: got {shown}; expected" in str(caught.value)
