from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pydantic_core import ValidationError

from headway.domain import (
    Application,
    ApplicationProfile,
    Arrivals,
    DriverPhase,
    JobProfile,
    QueryShape,
    RowsLaw,
)
from headway.errors import InputError
from headway.formats.codec import noun_or_faults, plain_data
from headway.formats.profile_file import dump_profile, load_any_profile, load_profile, save_profile
from headway.formats.yaml_document import Document, Plain, Route, parse_document
from headway.limits import LONGEST_S
from tests.domain.test_application_profile import a_batch_application, a_dstreams_application
from tests.factories import a_configuration, a_profile
from tests.seeds import examples

GOOD = dump_profile(a_profile()) + "notes: []\n"

fast = settings(examples(12, 60), suppress_health_check=[HealthCheck.function_scoped_fixture])
amounts = st.floats(min_value=0, max_value=1e15)
seconds = st.floats(min_value=0, max_value=LONGEST_S)
positive = st.floats(min_value=1e-9, max_value=1e15)
texts = st.text() | st.sampled_from(
    [
        "1e3",
        "2",
        "on",
        "~",
        "null",
        "1:30",
        "010",
        "",
        " ",
        "- a",
        "\x85",
        "a\u2028 b",
        "a \n b",
        " \t",
    ]
)


def loaded(folder: Path, text: str | bytes) -> JobProfile:
    file = folder / "job.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_profile(file)


def faults(folder: Path, text: str | bytes) -> list[str]:
    """What is said about the text, line by line, without the folder's name."""
    with pytest.raises(InputError) as caught:
        loaded(folder, text)
    assert caught.value.exit_code == 2
    # A cause or context would print as a second traceback.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value).replace(f"{folder}{os.sep}", "").split("\n")


def with_line(before: str, after: str) -> str:
    assert GOOD.count(before) == 1, before
    return GOOD.replace(before, after)


def test_a_profile_survives_its_file(tmp_path: Path) -> None:
    save_profile(a_profile(), tmp_path / "job.yaml")
    assert load_profile(tmp_path / "job.yaml") == a_profile()
    assert load_profile(str(tmp_path / "job.yaml")) == a_profile()


@st.composite
def profiles(draw: st.DrawFn) -> JobProfile:
    base = a_profile()
    stages = tuple(
        replace(
            draw(st.sampled_from(base.stages)),
            name=draw(texts),
            rows=RowsLaw(scale=draw(amounts), exponent=draw(st.floats(0, 1))),
            task_fixed_s=draw(seconds),
            task_per_row_s=draw(st.floats(0, 1e-3)),
        )
        for _ in range(draw(st.integers(1, 3)))
    )
    limits = st.none() | st.integers(1, 10**15)
    observed = tuple(
        replace(
            base.settings[0],
            query_name=draw(st.none() | texts),
            configuration=a_configuration(
                trigger_s=draw(st.just(0.0) | st.floats(1e-3, 1e4)),
                max_offsets_per_trigger=draw(limits),
            ),
            rate_per_s=draw(positive),
        )
        for _ in range(draw(st.integers(1, 2)))
    )
    return replace(
        base,
        headway_version=draw(texts),
        applications=tuple(
            draw(
                st.lists(
                    st.builds(
                        Application,
                        id=texts,
                        name=texts,
                        spark_version=texts,
                        executor_memory=st.none() | texts,
                    ),
                    min_size=1,
                    max_size=2,
                )
            )
        ),
        shape=QueryShape(
            sources=tuple(draw(st.lists(texts, max_size=3))),
            sink=draw(texts),
            state_rows=draw(st.integers(0, 2**63 - 1)),
            watermarked=draw(st.booleans()),
        ),
        arrivals=draw(st.builds(Arrivals, rate_per_s=positive, dispersion_ratio=amounts)),
        driver_phases=tuple(
            draw(
                st.lists(
                    st.builds(DriverPhase, name=texts, mean_s=seconds, sd_s=seconds), max_size=3
                )
            )
        ),
        stages=tuple(sorted(stages, key=lambda stage: stage.level)),
        settings=observed,
        notes=tuple(draw(st.lists(texts, max_size=2))),
    )


@fast
@given(profile=profiles())
def test_any_profile_survives_up_to_six_digits(profile: JobProfile, tmp_path: Path) -> None:
    text = dump_profile(profile)
    again = loaded(tmp_path, text)
    assert plain_data(again) == plain_data(profile)
    assert dump_profile(again) == text


def test_other_yaml_readers_read_the_same(tmp_path: Path) -> None:
    profile = replace(a_profile(), notes=("1e3", "on", "1:30", "2", "a # b"))
    assert yaml.safe_load(dump_profile(profile)) == plain_data(profile)


def test_the_text_is_made_for_people() -> None:
    lines = GOOD.splitlines()
    assert "headway 0.1.0" in lines[0]
    assert any("headway predict" in line for line in lines[:4])
    assert any("headway plan" in line for line in lines[:4])
    keys = [line.split(":")[0] for line in lines if line[0].isalpha()]
    in_order = [field.name for field in fields(JobProfile)]
    assert keys == [name for name in in_order if name in keys]
    assert {"schema", "stages", "settings"} <= set(keys)
    assert max(map(len, lines)) <= 100
    assert len(GOOD) < 2500
    assert "null" not in GOOD


def test_numbers_have_six_digits_and_unbounded_ones_are_refused() -> None:
    text = dump_profile(replace(a_profile(), arrivals=Arrivals(rate_per_s=1 / 3)))
    assert "rate_per_s: 0.333333," in text
    settings = (replace(a_profile().settings[0], batch_duration_mean_s=float("nan")),)
    with pytest.raises(ValueError, match=r"settings\[0\]\.batch_duration_mean_s is nan"):
        dump_profile(replace(a_profile(), settings=settings))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            "executors: 2\n",
            'executors: "2"\n',
            "settings[0].configuration.executors: got '2'; expected a whole number",
        ),
        ("executors: 2\n", "executors: true\n", "executors: got true; expected a whole number"),
        ("executors: 2\n", "executors: 2.0\n", "executors: got 2.0; expected a whole number"),
        ("executors: 2\n", "executors: \n", "executors: got nothing; expected a whole number"),
        ("executors: 2\n", "executors: [2]\n", "executors: got a list; expected a whole number"),
        (
            "executors: 2\n",
            "executors: 0\n",
            "settings[0].configuration: executors is 0; expected at least 1",
        ),
        ("trigger_s: 1.0", "trigger_s: 1s", "trigger_s: got '1s'; expected a number"),
        ("trigger_s: 1.0", "trigger_s: .inf", "trigger_s: got '.inf'; expected a number"),
        ("trigger_s: 1.0", "trigger_s: true", "trigger_s: got true; expected a number"),
        ("level: 0", "levle: 0", "stages[0].levle: unknown key; did you mean 'level'?"),
        ("sink: noop", "sink: noop\n  zzz: 1", "shape.zzz: unknown key; expected one of sources"),
        ("rule: source", "rule: sauce", "got 'sauce'; expected one of source, shuffle"),
        ("  level: 0\n", "", "stages[0].level: missing; expected a whole number"),
        ("watermarked: true", "watermarked: yes", "got 'yes'; expected true or false"),
        ("sink: noop", "sink: 5", "shape.sink: got 5; expected text"),
        ("sink: noop", "sink: a\n  sink: b", "shape.sink: this key is already in line 10"),
        ("notes: []", "notes: none", "notes: got 'none'; expected a list, each item text"),
        ("drift: {", "drift: [] #", "drift: got a list; expected a mapping with the keys exponent"),
        ("exponent: 0.7", "exponent: 7", "stages[1].rows: rows law is 3.5 * n ** 7.0; expected"),
        ("  num_source_tasks: 4\n", "", "stages[0]: stage scan: num_source_tasks belongs"),
        ("notes: []", "notes: !!python/object/apply:os.getcwd []", "notes: the tag"),
        ("notes: []", "notes: &a []", "notes: an anchor"),
        ("notes: []", "notes: *a", "an alias"),
        ("notes: []", "notes: [", "not YAML"),
        ("notes: []", "notes: {<<: 1}", "notes: got a mapping; expected a list"),
        ("notes: []", "notes: ['\x07']", "the character '\\x07'; expected text"),
        ("notes: []", 'notes: ["\\uD800"]', ""),
        ("trigger_s: 1.0", "trigger_s: " + "9" * 5000, "expected a number"),
    ],
)
def test_a_fault_is_one_line_with_its_place(
    tmp_path: Path, before: str, after: str, expected: str
) -> None:
    text = with_line(before, after)
    (said,) = faults(tmp_path, text)
    name, line, column, message = said.split(":", 3)
    assert (name, line.isdecimal(), column.isdecimal()) == ("job.yaml", True, True)
    assert 1 <= int(line) <= len(text.splitlines()) + 1
    assert expected in message
    assert len(said) < 300


def test_the_place_is_the_place(tmp_path: Path) -> None:
    lines = GOOD.splitlines()
    number, line = next((n, t) for n, t in enumerate(lines, 1) if "trigger_s: 1.0" in t)
    (said,) = faults(tmp_path, with_line("trigger_s: 1.0", "trigger_s: fast"))
    column = line.index("1.0") + 1
    assert said.startswith(f"job.yaml:{number}:{column}: settings[0].configuration.trigger_s: ")


def test_all_faults_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = with_line("trigger_s: 1.0", "trigger_s: fast")
    text = text.replace("sink: noop", "sink: noop\n  sink: noop").replace("level: 0", "levle: 0")
    said = faults(tmp_path, text.replace("num_batches: 120", "num_batches: many"))
    places = [line.split(": ")[1] for line in said]
    assert places == [
        "shape.sink",
        "stages[0].levle",
        "settings[0].configuration.trigger_s",
        "settings[0].num_batches",
    ]


def test_very_many_faults_are_not_all_printed(tmp_path: Path) -> None:
    said = faults(tmp_path, with_line("notes: []", f"notes: {list(range(500))}"))
    assert len(said) == 31
    assert said[-1] == "job.yaml: and 470 more faults"


@pytest.mark.parametrize("keep", [0, 1])
def test_a_profile_needs_stages_and_settings(tmp_path: Path, keep: int) -> None:
    data: Any = plain_data(a_profile())
    data["stages" if keep else "settings"] = []
    (said,) = faults(tmp_path, yaml.safe_dump(data))
    assert "a profile needs at least one" in said


@pytest.mark.parametrize("schema", ["headway.profile/v2", "1"])
def test_another_version_is_one_line_that_says_what_to_do(tmp_path: Path, schema: str) -> None:
    text = with_line("headway.profile/v1", schema).replace("level: 0", "levle: zero")
    (said,) = faults(tmp_path, text)
    assert schema in said
    assert "headway.profile/v1" in said
    assert "run 'headway profile' on the log again" in said
    assert said.startswith("job.yaml:4:9: schema: ")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\x28\xb5\x2f\xfd\x00\x01", "not a text file in UTF-8"),
        (b"a: \x00", "not a text file in UTF-8"),
        ("a: ä".encode("latin-1"), "not a text file in UTF-8"),
        (GOOD.encode("utf-16"), "not a text file in UTF-8"),
        (b"# nothing but a comment\n", "got nothing; expected a job profile"),
        (b"just words\n", "got 'just words'; expected a job profile"),
        (b"- a\n- b\n", "got a list; expected a job profile"),
        (b"a: 1\n", "schema: missing; expected headway.profile/v1"),
        (b'{"Event":"SparkListenerLogStart"}\n{"Event":"x"}\n', "a Spark event log"),
        (b"%%%", "not YAML"),
        (b"\tschema: x", "not YAML"),
        (b"x" * 1_000_000, "expected a job profile"),
        (b"[" * 1_000_000, "nested more than 50 deep"),
        (b"[a, " * 250_000, "nested more than 50 deep"),
        (b"a: 1\n" * 200_000, "schema: missing"),
        (b"- [}\n" * 200_000, "not YAML"),
        (bytes(range(1, 256)) * 4000, "not a text file in UTF-8"),
        (b"#" * 5_000_000, "larger than 4 MiB"),
    ],
)
def test_what_is_no_profile_at_all_is_one_line(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    (said,) = faults(tmp_path, content)
    assert said.startswith("job.yaml")
    assert expected in said
    assert len(said) < 300


def test_a_file_that_is_not_there_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_profile(tmp_path / "absent.yaml")
    with pytest.raises(InputError, match="a folder"):
        load_profile(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        load_profile("a\0b")
    with pytest.raises(InputError, match="cannot be read"):
        load_profile("x" * 5000)
    (tmp_path / "file").write_text("a: 1")
    with pytest.raises(InputError, match="cannot be read"):
        load_profile(tmp_path / "file" / "below")


def test_editors_of_all_kinds_may_have_touched_the_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, GOOD.encode("utf-8-sig")) == a_profile()
    assert loaded(tmp_path, GOOD.replace("\n", "\r\n")) == a_profile()
    assert loaded(tmp_path, GOOD.replace("1.25e-05", "1.25E-5")) == a_profile()


@fast
@given(place=st.integers(0, len(GOOD) - 1), cut=st.integers(0, 8), put=st.text(max_size=6))
def test_a_damaged_profile_loads_or_is_explained(
    tmp_path: Path, place: int, cut: int, put: str
) -> None:
    text = GOOD[:place] + put + GOOD[place + cut :]
    try:
        profile = loaded(tmp_path, text)
    except InputError as error:
        for line in str(error).split("\n"):
            assert line.startswith(f"{tmp_path}{os.sep}job.yaml")
            assert line.isprintable()
    else:
        assert load_profile(tmp_path / "job.yaml") == profile


@fast
@given(
    place=st.integers(0, len(GOOD) - 1), cut=st.integers(0, 12), put=st.text("01.e-:x ", max_size=4)
)
def test_the_reader_agrees_with_pydantic(place: int, cut: int, put: str) -> None:
    text = GOOD[:place] + put + GOOD[place + cut :]
    try:
        document = parse_document(text, name="x")
    except InputError as fault:
        assert re.match(r"x:\d+:\d+: ", str(fault))
        return
    assert _verdict(replace(document, faults=()), JobProfile) == _of_pydantic(
        document.root, JobProfile
    )


def _verdict(document: Document, noun: type[JobProfile | ApplicationProfile]) -> object:
    """What is read, or where the faults are; a missing key beside a strange one may be meant."""
    value, found = noun_or_faults(document, noun)
    strange = {fault.route[:-1] for fault in found if fault.message.startswith("unknown key")}
    return _faulty(
        [(fault.route, fault.message.startswith("missing")) for fault in found], strange
    ) or [value]


def _of_pydantic(root: Plain, noun: type[JobProfile | ApplicationProfile]) -> object:
    text = json.dumps(_by_field(root, noun))
    try:
        return [TypeAdapter(noun).validate_json(text, strict=True, extra="forbid")]
    except ValidationError as error:
        found = [(_route(fault["loc"], noun), fault["type"]) for fault in error.errors()]
    strange = {route[:-1] for route, kind in found if kind == "unexpected_keyword_argument"}
    return _faulty([(route, kind == "missing") for route, kind in found], strange)


def _faulty(found: Iterable[tuple[Route, bool]], strange: set[Route]) -> list[Route]:
    routes = {
        route
        for route, is_missing in found
        if not (is_missing and {route[:-1], route[:-2]} & strange)
    }
    return sorted(routes, key=str)


def _by_field(plain: Any, hint: Any) -> Any:
    """The data of a file by the names of fields, which is how pydantic reads dataclasses.

    A key that leads to no field becomes a name that none has, of the keys before it and a "?".
    """
    hint = _without_none(hint)
    if get_origin(hint) is tuple and isinstance(plain, list):
        return [_by_field(item, get_args(hint)[0]) for item in plain]
    if not (is_dataclass(hint) and isinstance(plain, dict)):
        return plain
    hints, paths = get_type_hints(hint), _paths(hint)
    names = {path: name for name, path in paths.items()}
    groups = {path[0] for path in names if len(path) > 1}
    data: dict[str, Any] = {}
    for key, value in plain.items():
        is_group = key in groups and isinstance(value, dict)
        parts = {(key, name): part for name, part in value.items()} if is_group else {(key,): value}
        for path, part in parts.items():
            name = names.get(path)
            data[name or "\n".join(path) + "?"] = _by_field(part, hints[name]) if name else part
    return data


def _route(loc: Route, noun: Any) -> Route:
    """Where in the file a fault is that pydantic found in the data by the names of fields."""
    route: list[str | int] = []
    hint = noun
    for part in loc:
        hint = _without_none(hint)
        if is_dataclass(hint):
            path = _paths(hint).get(str(part))
            route.extend(path or str(part).removesuffix("?").split("\n"))
            hint = get_type_hints(hint)[str(part)] if path else Any
        else:
            route.append(part)
            hint = get_args(hint)[0] if get_origin(hint) is tuple else Any
    return tuple(route)


def _paths(noun: Any) -> dict[str, Route]:
    return {
        field.name: tuple(field.metadata.get("key", field.name).split("."))
        for field in fields(noun)
    }


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return next(kind for kind in get_args(hint) if kind is not NoneType)
    return hint


@fast
@given(content=st.binary(max_size=200))
def test_noise_is_explained(tmp_path: Path, content: bytes) -> None:
    for line in faults(tmp_path, content):
        assert line.startswith("job.yaml")


def test_importing_costs_nothing_and_loading_stays_light(tmp_path: Path) -> None:
    save_profile(a_profile(), tmp_path / "job.yaml")
    script = (
        "import sys; from headway.formats.profile_file import load_profile\n"
        "assert not {'yaml', 'pydantic_core'} & set(sys.modules)\n"
        f"load_profile({str(tmp_path / 'job.yaml')!r})\n"
        "assert not {'numpy', 'pandas', 'scipy', 'pyspark', 'pydantic'} & set(sys.modules)\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True, timeout=60)


@pytest.mark.parametrize("make", [a_batch_application, a_dstreams_application])
def test_an_application_survives_its_file(
    tmp_path: Path, make: Callable[[], ApplicationProfile]
) -> None:
    save_profile(make(), tmp_path / "app.yaml")
    assert load_any_profile(tmp_path / "app.yaml") == make()
    text = dump_profile(make())
    assert (tmp_path / "app.yaml").read_text(encoding="utf-8") == text
    assert yaml.safe_load(text) == plain_data(make())
    lines = text.splitlines()
    assert lines[2] == "schema: headway.application-profile/v1"
    assert max(map(len, lines)) <= 100
    assert "null" not in text


@st.composite
def applications(draw: st.DrawFn) -> ApplicationProfile:
    base = a_batch_application()
    submitted_s = st.floats(0, 1e6)
    stages = tuple(
        replace(
            stage,
            job=draw(st.none() | st.integers(0, 10**6)),
            task_mean_s=draw(seconds),
            task_sd_s=draw(st.none() | seconds),
            task_max_s=draw(seconds),
            task_fixed_s=draw(seconds),
            submitted_s=(at_s := draw(submitted_s)),
            completed_s=2 * at_s,
            rows_read=draw(st.integers(0, 2**63 - 1)),
            rows_written=draw(st.integers(0, 2**63 - 1)),
            largest_task_ratio=draw(st.none() | amounts),
        )
        for stage in base.stages
    )
    return replace(
        base,
        headway_version=draw(texts),
        application=draw(st.builds(Application, id=texts, name=texts, spark_version=texts)),
        started=draw(texts),
        stages=stages[: draw(st.integers(1, len(stages)))],
        notes=tuple(draw(st.lists(texts, max_size=2))),
    )


@fast
@given(profile=applications())
def test_any_application_survives_up_to_six_digits(
    profile: ApplicationProfile, tmp_path: Path
) -> None:
    text = dump_profile(profile)
    (tmp_path / "app.yaml").write_bytes(text.encode())
    again = load_any_profile(tmp_path / "app.yaml")
    assert plain_data(again) == plain_data(profile)
    assert dump_profile(again) == text


@pytest.mark.parametrize(
    ("make", "named"), [(a_batch_application, "batch"), (a_dstreams_application, "DStreams")]
)
def test_an_application_is_no_job_to_plan(
    tmp_path: Path, make: Callable[[], ApplicationProfile], named: str
) -> None:
    (said,) = faults(tmp_path, dump_profile(make()))
    assert said.startswith("job.yaml:3:9: schema: ")
    assert f"the profile of a {named} application" in said
    assert "expected that of a streaming job, headway.profile/v1" in said
    assert ("headway plan PROFILE --target 'deadline <= 10m'" in said) is (named == "batch")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\n", "schema: missing; expected headway.profile/v1, the first line of a profile"),
        ("schema: headway.application-profile/v2\n", "this Headway reads headway.profile/v1: run"),
        ("- a\n", "got a list; expected a profile"),
        ('{"Event":"SparkListenerLogStart"}\n', "a Spark event log, not a profile; run"),
        (
            dump_profile(a_batch_application()).replace("parents: [0]", "parents: [7]"),
            "stage 2: parents are [7]; expected places before its own, 1",
        ),
        (
            dump_profile(a_batch_application()).replace("num_jobs: 2", "num_jobs: two"),
            "num_jobs: got 'two'; expected a whole number",
        ),
    ],
)
def test_what_is_no_application_is_one_line(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_any_profile(tmp_path / "job.yaml")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("make", [a_batch_application, a_dstreams_application])
def test_the_reader_of_applications_agrees_with_pydantic(
    make: Callable[[], ApplicationProfile],
) -> None:
    document = parse_document(dump_profile(make()), name="x")
    assert _verdict(document, ApplicationProfile) == _of_pydantic(document.root, ApplicationProfile)
