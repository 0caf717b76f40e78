"""Files of Headway's own that are read by hand: whatever they contain, refused in a sentence."""

from __future__ import annotations

import copy
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headway.domain import Configuration
from headway.domain.tuner import Phase, TunerState
from headway.errors import HeadwayError, InputError
from headway.formats import own_files
from headway.formats.exploration_file import ExplorationState, load_state
from headway.formats.from_json import load_any_plan, load_result
from headway.formats.key_counts import read_key_counts
from headway.formats.own_files import beginning_of, parse_json, read_text
from headway.formats.rate_trace import read_rate_trace
from headway.formats.setting_file import answer_file, load_answer, load_setting
from headway.formats.tuner_files import (
    TunerLock,
    explained_change,
    load_tuner,
    lock_file,
    save_tuner,
    switch_file,
    switch_word,
)
from headway.runtime.gate.decision_log import read_decision_log

SETTING = Configuration(
    executors=2, cores_per_executor=4, shuffle_partitions=8, trigger_s=1.0, task_cpus=1
)
QUESTION = ExplorationState(rate_per_s=1000.0, target="p99 <= 3s")
EXPLORED = {
    "schema": "headway.exploration/v1",
    "rate_per_s": 1000.0,
    "target": "p99 <= 3s",
    "runs": [
        {
            "setting": {
                "executors": 1,
                "cores_per_executor": 2,
                "shuffle_partitions": 4,
                "trigger_s": 1.0,
                "max_offsets_per_trigger": None,
                "rate_per_s": 1000.0,
            },
            "duration_s": 60.0,
            "recording": "run-001.jsonl",
            "query_id": "q",
        }
    ],
    "queue": [],
}
HOSTILE = {
    "no UTF-8": b"\xff\xfe{}",
    "cut in a character": b'{"batch":{"name":"\xf0"}}\n{}\n',
    "deep": b"[" * 100_000,
    "deep objects": b'{"schema":' * 5_000,
    "deep and closed": b"[" * 500 + b"]" * 500,
    "a long number": b'{"schema": ' + b"9" * 5_000 + b"}",
    "beyond floats": b'{"schema": 1' + b"0" * 400 + b"}",
    "no number": b'{"schema": NaN}',
    "half a character": rb'{"schema": "\ud800"}',
    "nothing": b"",
    "a list": b"[]",
    "a null byte": b'{"a": 1}\0',
    "null": b"null",
}
READERS: dict[str, Callable[[Path], object]] = {
    "a tuner's state": load_tuner,
    "a tuner's log": lambda path: explained_change(path, 1),
    "an exploration": lambda path: load_state(path, QUESTION),
    "a setting": load_setting,
    "a result": load_result,
    "a plan": load_any_plan,
    "a rate trace": read_rate_trace,
    "counts of keys": read_key_counts,
    "a decision log": lambda path: list(read_decision_log(path)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", HOSTILE)
def test_a_hostile_file_is_refused_in_a_sentence(tmp_path: Path, reader: str, content: str) -> None:
    file = tmp_path / "file.jsonl"
    # Two lines, since the last one of a log may be cut off.
    file.write_bytes(HOSTILE[content] + b"\n{}\n" if reader.endswith("log") else HOSTILE[content])
    try:
        READERS[reader](file)
    except InputError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 1000
    else:
        # A line of a log that says nothing that is asked for.
        assert reader == "a decision log"
        assert content in ("nothing", "a list", "null")


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('{"a":\n [NaN]}', "2:3", "NaN; expected a finite number"),
        ('{"a": 1e999}', "1:7", "1e999; expected a finite number"),
        ('{"a": -Infinity}', "1:7", "-Infinity; expected a finite number"),
        ('{"a": 9223372036854775808}', "1:7", "9223372036854775808; expected a finite number"),
        ('\n{"a": "\\udfff"}', "2:8", "half a character"),
        ("[" * 101 + "]" * 101, "1:101", "no JSON: nested more than 100 deep"),
        # Python 3.13 names the comma, earlier ones the brace.
        ('{"a": 1,}', "1:8" if sys.version_info >= (3, 13) else "1:9", "no JSON"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, place: str, what: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_json(text, name="a.json", expected="rates")
    assert str(refused.value).startswith(f"a.json:{place}: {what}"), refused.value


def test_what_is_right_is_read_as_it_stands() -> None:
    text = '{"a": [1, -2.5, "\\ud83d\\ude00", true, null, 9223372036854775807, "[[[{{{"]}'
    assert parse_json(text, name="a", expected="b") == json.loads(text)
    assert parse_json("[Infinity]", name="a", expected="b", has_infinity=True) == [float("inf")]


def test_what_is_no_file_is_read_within_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_files, "_SILENT_S", 0.05)
    pipe, loop = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path, why in {
            Path("/dev/zero"): "larger than 4 MiB",
            Path("/dev/null"): "is empty",
            pipe: "nothing came from it",
            loop: "symbolic links",
            tmp_path: "a folder",
            tmp_path / "socket": "cannot be read",
            Path(__file__) / "child": "cannot be read",
            tmp_path / "a\0b": "cannot be read",
        }.items():
            with pytest.raises(InputError, match=why):
                read_text(path, expected="a text")
            assert beginning_of(path, 100) == ""


def test_a_pipe_with_a_writer_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"time,rate\n")
    os.close(writing)
    try:
        assert read_text(Path(f"/dev/fd/{reading}"), expected="a text") == "time,rate\n"
    finally:
        os.close(reading)


# Recordings and settings of an exploration.


def explored(folder: Path, **of_run: object) -> ExplorationState:
    data = copy.deepcopy(EXPLORED)
    run: dict[str, Any] = data["runs"][0]  # type: ignore[index]
    run |= {key: value for key, value in of_run.items() if key in run}
    run["setting"] |= {key: value for key, value in of_run.items() if key not in run}
    (folder / "state.json").write_text(json.dumps(data))
    (folder / "run-001.jsonl").touch()
    return load_state(folder / "state.json", QUESTION)


def test_an_exploration_goes_on_with_its_recordings(tmp_path: Path) -> None:
    assert [run.recording for run in explored(tmp_path).runs] == ["run-001.jsonl"]


@pytest.mark.parametrize(
    "recording", ["/etc/passwd", "../x", "..", "a/b", "a\0b", "a\nb", "", "x" * 5000, 5, None]
)
def test_a_recording_stays_in_its_folder(tmp_path: Path, recording: object) -> None:
    with pytest.raises(InputError, match="recording"):
        explored(tmp_path, recording=recording)


@pytest.mark.parametrize("key", ["executors", "shuffle_partitions", "trigger_s", "rate_per_s"])
@pytest.mark.parametrize("value", [-1, "8", True, [], {}, 2**62])
def test_a_setting_of_an_exploration_is_checked(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(InputError):
        explored(tmp_path, **{key: value})


# A tuner's state, lock and switch.


def every_route(data: Any, route: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if route:
        yield route
    if isinstance(data, dict):
        for key in data:
            yield from every_route(data[key], (*route, key))
    elif isinstance(data, list):
        for place in range(len(data)):
            yield from every_route(data[place], (*route, place))


def test_no_damage_of_a_tuners_state_is_more_than_a_refusal(tmp_path: Path) -> None:
    state = TunerState(
        profile_hash="a", target="p99 <= 3s", phase=Phase.HOLD, original=SETTING,
        last_good=SETTING, changed_at_s=(1.0,), daily_per_s={1: 2.0}, up_late_s=float("inf"),
        returns_late_s={2: (3.0,)},
    )  # fmt: skip
    file = tmp_path / "orders.tuner.json"
    save_tuner(state, file)
    assert load_tuner(file) == state
    good = msgspec.to_builtins(state, str_keys=True)
    good = json.loads(json.dumps(good))
    values: tuple[Any, ...] = (
        None,
        -1,
        2**70,
        float("nan"),
        "nan",
        "",
        "\ud800",
        [],
        {},
        True,
        [[1]],
    )
    for route in every_route(good):
        for value in values:
            data = copy.deepcopy(good)
            place = data
            for step in route[:-1]:
                place = place[step]
            place[route[-1]] = value
            file.write_text(json.dumps(data))
            try:
                read = load_tuner(file)
            except InputError:
                continue
            assert "nan" not in json.dumps(msgspec.to_builtins(read)).lower().split(), route
            assert value is not values[3], route


@pytest.mark.parametrize(
    "rest", ["", "x", "99999999999999999999999999 1", "0 1", "-1 1", "٣ 1", "9" * 5000 + " 1"]
)
def test_a_lock_that_is_damaged_is_one_that_is_held(tmp_path: Path, rest: str) -> None:
    state = tmp_path / "orders.tuner.json"
    lock_file(state).write_text(f"{socket.gethostname()} {rest}")
    with pytest.raises(HeadwayError, match="tunes with this state"):
        TunerLock(state)


def test_a_switch_that_is_no_text_is_off(tmp_path: Path) -> None:
    state = tmp_path / "orders.tuner.json"
    assert switch_word(state) is None
    switch_file(state).write_bytes(b"\xff")
    assert switch_word(state) == "off"


def test_an_answer_that_is_no_answer_is_none(tmp_path: Path) -> None:
    state = tmp_path / "orders.setting.json"
    for content in HOSTILE.values():
        answer_file(state).write_bytes(content)
        assert load_answer(state, 1) is None


# Numbers of traces and settings.


@pytest.mark.parametrize(
    "samples", ['[[0,"20000"],[60,"1e300"]]', '[[0,"1"],[1e300,"2"]]', '[[0,"1"],["nan","2"]]']
)
def test_a_trace_from_prometheus_is_within_limits(tmp_path: Path, samples: str) -> None:
    file = tmp_path / "rates.json"
    file.write_text(f'{{"data":{{"result":[{{"metric":{{}},"values":{samples}}}]}}}}')
    with pytest.raises(InputError, match=r"rates\.json: (rate|time|no rates)"):
        read_rate_trace(file)


def test_no_rows_may_arrive_for_a_while(tmp_path: Path) -> None:
    """Simulations print such a rate as 0/s."""
    file = tmp_path / "rates.csv"
    file.write_text("time,rate\n0,20k/s\n60,0/s\n120,0\n180,0 rows/min\n240,800\n")
    assert read_rate_trace(file).rates_per_s == (20_000.0, 0.0, 0.0, 0.0, 800.0)
    file.write_text("time,rate\n0,20k/s\n60,0/fortnight\n")
    with pytest.raises(InputError, match="rate is '0/fortnight'; expected 0 or more"):
        read_rate_trace(file)


def test_a_trace_in_csv_is_within_the_same_limits(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("time,rate\n0,1\n60,1e25\n")
    with pytest.raises(InputError, match="expected 0 or more records per second"):
        read_rate_trace(file)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("executors", 1_000_000),
        ("cores_per_executor", 5_000),
        ("shuffle_partitions", 1_000_000),
        ("task_cpus", 5_000),
    ],
)
def test_a_setting_has_the_limits_of_the_options(name: str, number: int) -> None:
    setting: dict[str, Any] = {
        "executors": 1,
        "cores_per_executor": 4,
        "shuffle_partitions": 8,
        "trigger_s": 1.0,
        name: number,
    }
    with pytest.raises(ValueError, match=f"{name} is {number}"):
        Configuration(**setting)
