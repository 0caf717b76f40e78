"""Rate traces as Prometheus and queries write them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.errors import InputError
from headway.formats.rate_trace import WrittenTrace, read_rate_trace

ROOT = Path(__file__).parents[2]


def read(tmp_path: Path, text: str) -> WrittenTrace:
    path = tmp_path / "rates.json"
    path.write_text(text)
    return read_rate_trace(path)


def answer(*series: list[list[Any]]) -> str:
    result = [{"metric": {"partition": str(at)}, "values": one} for at, one in enumerate(series)]
    data = {"resultType": "matrix", "result": result}
    return json.dumps({"status": "success", "data": data}, indent=1)


def progress(second: int, rows: int, run: str = "r1", **more: object) -> dict[str, object]:
    stamp = f"2026-11-21T08:00:{second:02}.000Z"
    return {"runId": run, "batchId": second, "timestamp": stamp, "numInputRows": rows, **more}


def test_series_of_prometheus_are_added_up(tmp_path: Path) -> None:
    morning = 1_795_248_000  # 2026-11-21T08:00:00Z
    first = [[morning, "100"], [morning + 60, "200.5"], [morning + 120, "NaN"]]
    found = read(tmp_path, answer(first, [[morning + 60, "50"], [morning + 120, "7"]]))
    assert found.times_s == (0.0, 60.0, 120.0)
    assert found.rates_per_s == (100.0, 250.5, 7.0)
    assert found.hourly_peaks_per_s()[8] == 250.5


def test_rows_of_a_batch_came_since_the_one_before(tmp_path: Path) -> None:
    lines = [progress(0, 900), progress(2, 100), progress(7, 1000)]
    found = read(tmp_path, "\n".join(map(json.dumps, lines)))
    assert found.times_s == (0.0, 2.0, 7.0)
    assert found.rates_per_s == (50.0, 200.0, 200.0)
    assert found.since_midnight_s == 8 * 3600


@pytest.mark.parametrize("how", ["list", "event", "text in an event"])
def test_progress_may_stand_in_lists_and_events(how: str, tmp_path: Path) -> None:
    found = [progress(0, 1), progress(1, 30), progress(5, 5, run="another")]
    if how == "list":
        text = json.dumps(found)
    else:
        inner = [json.dumps(one) if how == "text in an event" else one for one in found]
        others = [{"Event": "SparkListenerLogStart"}]
        text = "\n".join(map(json.dumps, [*others, *({"progress": one} for one in inner)]))
    assert read(tmp_path, text).rates_per_s == (30.0, 30.0)


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", '{"data": {"result": []}}', '{"data": {"result": [{"values": [[1]]}]}}',
     json.dumps(progress(0, 5)), '{"a": 1}\nnot json'],
)  # fmt: skip
def test_other_json_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rates\.json.*expected the answer of Prometheus"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"timestamp": "soon"}, "rates.json:3: timestamp is 'soon'; expected a time such as"),
        ({"timestamp": 7}, "rates.json:3: timestamp is '7'; expected a time such as"),
        ({"numInputRows": -1}, "rates.json:3: numInputRows is no number of rows"),
        ({"numInputRows": "nan"}, "rates.json:3: numInputRows is no number of rows"),
        ({"numInputRows": None}, "rates.json:3: numInputRows is no number of rows"),
    ],
)
def test_a_wrong_batch_is_named_with_its_line(
    wrong: dict[str, object], message: str, tmp_path: Path
) -> None:
    lines = [progress(0, 900), progress(2, 100), progress(7, 1000) | wrong]
    with pytest.raises(InputError, match=re.escape(message)):
        read(tmp_path, "\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=re.escape(message.replace("json:3", "json: entry 3"))):
        read(tmp_path, json.dumps(lines))


def test_a_plan_is_simulated_with_it(tmp_path: Path) -> None:
    plan = headway.plan(
        ROOT / "examples" / "word-count.profile.yaml", rate="24k/s", target="p99 <= 2s"
    )
    path = tmp_path / "rates.json"
    path.write_text(answer([[1_795_248_000 + 30 * at, "20000"] for at in range(4)]))
    found = headway.simulate(plan, path, runs=2)
    assert found.trace.length_s == 90.0
    assert found.trace.mean_rate_per_s == 20_000
