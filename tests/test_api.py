"""The library calls that need no Spark."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import headway
from headway.cli.overview import COMMANDS
from headway.domain import Applies
from headway.errors import HeadwayError, InputError
from tests.factories import a_profile

ASKED: dict[str, Any] = {
    "rate": 20000.0,
    "trigger": 2.0,
    "executors": 2,
    "cores": 4,
    "partitions": 8,
    "max_offsets": 90000,
}


def test_strings_and_numbers_mean_the_same() -> None:
    by_number = headway.predict(a_profile(), **ASKED, jvm_age=120.0)
    in_words = headway.predict(
        a_profile(), **{**ASKED, "rate": "20k/s", "trigger": "2s"}, jvm_age="2min"
    )
    assert by_number == in_words
    assert by_number.arrivals.rate_per_s == 20000.0
    assert by_number.configuration == headway.Configuration(
        executors=2,
        cores_per_executor=4,
        shuffle_partitions=8,
        trigger_s=2.0,
        max_offsets_per_trigger=90000,
    )


def test_what_is_not_given_is_as_profiled() -> None:
    profile = a_profile()
    prediction = headway.predict(profile)
    assert prediction.configuration == profile.baseline
    assert prediction.arrivals == profile.arrivals


def test_a_rate_keeps_the_burstiness_of_the_profile() -> None:
    assert headway.predict(a_profile(), rate="1k/s").arrivals.dispersion_ratio == 1.0


@pytest.mark.parametrize("zero", [0, 0.0, "0", "0s", "0 ms"])
def test_a_trigger_of_zero_is_as_fast_as_possible(zero: float | str) -> None:
    assert headway.predict(a_profile(), trigger=zero).configuration.trigger_s == 0.0


def test_a_profile_may_be_a_path(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    headway.save_profile(a_profile(), path)
    assert headway.load_profile(str(path)) == a_profile()
    assert headway.predict(path, rate=800) == headway.predict(a_profile(), rate=800)
    asked: dict[str, Any] = {"rate": "8k/s", "target": "p99 <= 3s", "max_nodes": 2}
    assert headway.plan(str(path), **asked) == headway.plan(a_profile(), **asked)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rate", "fast"),
        ("rate", 0),
        ("rate", -5.0),
        ("rate", float("nan")),
        ("rate", float("inf")),
        ("trigger", -1.0),
        ("trigger", float("nan")),
        ("executors", 0),
        ("executors", 1.5),
        ("cores", -1),
        ("cores", True),
        ("partitions", 0),
        ("max_offsets", 0),
        ("jvm_age", -3.0),
    ],
)
def test_predict_names_the_value_it_refuses(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        headway.predict(a_profile(), **{name: value})


@pytest.mark.parametrize("name", ["trigger", "jvm_age"])
def test_a_text_that_is_no_duration_is_refused(name: str) -> None:
    changes: dict[str, Any] = {name: "soon"}
    with pytest.raises(InputError, match="'soon' is not a duration"):
        headway.predict(a_profile(), **changes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rate", 0),
        ("rate", "many"),
        ("target", "fast enough"),
        ("target", "p99 <= soon"),
        ("target", "window p95 <= 5s"),
        ("max_nodes", 0),
        ("node_cores", -4),
        ("cores", -1),
        ("partitions", 0),
        ("trigger", -1),
        ("confidence", 0.4),
        ("confidence", 1.0),
    ],
)
def test_plan_names_the_value_it_refuses(name: str, value: Any) -> None:
    asked: dict[str, Any] = {"rate": 8000, "target": "p99 <= 3s", "max_nodes": 2, name: value}
    with pytest.raises(InputError, match=name):
        headway.plan(a_profile(), **asked)


def test_a_missing_profile_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(HeadwayError, match="nowhere"):
        headway.predict(tmp_path / "nowhere.yaml")


def test_a_plan_is_ready_to_run() -> None:
    answer = headway.plan(a_profile(), rate="50k/s", target="p99 <= 3s", max_nodes=8)
    assert answer.feasible
    assert answer.configuration.cores_per_executor == 4
    assert answer.spark_conf["spark.executor.instances"] == str(answer.configuration.executors)
    assert answer.query_options["trigger"].split()[1] in ("seconds", "milliseconds")
    assert answer.planned_latency_s <= 3.0
    assert {change.applies for change in answer.changes} <= set(get_args(Applies))


def test_a_target_may_be_an_object() -> None:
    asked: dict[str, Any] = {"rate": 8000, "max_nodes": 2}
    target = headway.Target(quantile=0.99, limit_s=3.0)
    in_words = headway.plan(a_profile(), target="p99 <= 3s", **asked)
    assert headway.plan(a_profile(), target=target, **asked) == in_words


def test_executors_fill_nodes() -> None:
    answer = headway.plan(
        a_profile(), rate=8000, target="p99 <= 3s", node_cores=9, cores=4, max_nodes=3
    )
    assert answer.configuration.executors == 2 * answer.nodes
    with pytest.raises(InputError, match="no room"):
        headway.plan(a_profile(), rate=8000, target="p99 <= 3s", node_cores=2, cores=4)


def test_what_is_fixed_stays() -> None:
    answer = headway.plan(
        a_profile(), rate=8000, target="p99 <= 3s", partitions=11, trigger="700ms", max_nodes=3
    )
    assert answer.configuration.shuffle_partitions == 11
    assert answer.configuration.trigger_s == pytest.approx(0.7)


def test_infeasible_is_an_answer() -> None:
    answer = headway.plan(a_profile(), rate=8000, target="p99 <= 1ms", max_nodes=2)
    assert not answer.feasible
    assert answer.floor_s > answer.target.limit_s


def test_public_names_are_few_and_exist() -> None:
    nouns = [name for name in headway.__all__ if name[0].isupper()]
    assert len(nouns) <= 9
    # One more with each command: a call of its own. Those on a running Spark have no command.
    assert len(headway.__all__) - len(nouns) <= 40
    assert dir(headway) == headway.__all__
    assert headway.__all__ == sorted(headway.__all__)
    for name in headway.__all__:
        assert getattr(headway, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = headway.nonsense


def test_what_a_command_does_a_call_of_its_name_does() -> None:
    # The demonstration is a session of its own; a schema, its pages and a server are no calls.
    # Of a report the call is `page`: `headway.report` is a package.
    # `headway.ordered` keeps the order of a running stream; its plan is `ordered_plan`.
    named = {"report": "page", "ordered": "ordered_plan"}
    calls = {named.get(name, name) for name in COMMANDS}
    assert calls - {"demo", "mcp", "schema"} <= set(headway.__all__)


def test_import_is_light() -> None:
    script = (
        "import sys, headway; headway.Target.parse('p99 <= 3s'); headway.predict; "
        "heavy = {'numpy', 'scipy', 'pandas', 'pyspark', 'pydantic', 'cvxpy'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(headway.__file__).parent.parent,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ({"executors": "abc"}, "executors"),
        ({"executors": float("nan")}, "executors"),
        ({"cores": 0}, "cores"),
        ({"jvm_age": 0}, "jvm_age"),
        ({"rate": True}, "rate"),
        ({"trigger": "abc"}, "trigger"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(call: dict[str, object], named: str) -> None:
    with pytest.raises(headway.HeadwayError, match=named):
        headway.predict(a_profile(), **call)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ({"confidence": "x"}, "confidence"),
        ({"target": 3}, "target"),
        ({"rate": 0}, "rate"),
        ({"cores": 0}, "cores"),
        ({"node_cores": 0}, "node_cores"),
    ],
)
def test_a_plan_names_the_value_it_cannot_use(call: dict[str, Any], named: str) -> None:
    asked: dict[str, Any] = {"rate": "1k/s", "target": "p99 <= 3s"}
    with pytest.raises(headway.HeadwayError, match=named):
        headway.plan(a_profile(), **(asked | call))


def test_editors_and_type_checkers_see_each_name_where_it_is_loaded_from() -> None:
    tree = ast.parse(Path(headway.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (statement.module, name.name)
        for statement in typed.body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }
    loaded = {(home, name) for home, names in headway._HOMES.items() for name in names.split()}
    assert seen == loaded
    assert {name for _, name in loaded} == {*headway.__all__} - {"__version__"}
    assert (Path(headway.__file__).parent / "py.typed").exists()
