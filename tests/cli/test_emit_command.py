"""`headway emit`: from a plan's JSON or a spec, to a format, a patch, or three files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from headway.cli.main import run
from headway.emitters import ALL_FORMATS
from headway.formats.as_json import json_text, plan_json
from headway.sparkconf import parse_properties
from tests.factories import a_plan, an_infeasible_plan

ROOT = Path(__file__).parents[2]
ORDERS = str(ROOT / "configs" / "orders.yaml")


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json_text(plan_json(a_plan())))
    return str(path)


def test_a_plan_file_is_emitted(plan_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["emit", plan_file, "--format", "spark-defaults"]) == 0
    assert parse_properties(capsys.readouterr().out) == dict(a_plan().spark_conf)


def test_from_standard_input_json_tells_its_reasons_beside(
    plan_file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(Path(plan_file).read_text()))
    assert run(["emit", "-", "--format", "emr"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["Properties"] == dict(a_plan().spark_conf)
    assert "spark.executor.instances: was 1; applies when" in err


def test_from_a_spec_with_what_its_cluster_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["emit", ORDERS, "--format", "kubeflow"]) == 0
    tree = yaml.safe_load(capsys.readouterr().out)
    assert tree["metadata"] == {"name": "orders", "namespace": "data"}
    assert tree["spec"]["sparkVersion"] == "4.0.1"
    assert tree["spec"]["executor"]["memory"] == "4g"
    assert tree["spec"]["driver"]["serviceAccount"] == "spark"


@pytest.mark.parametrize(
    ("profiled", "image", "said"),
    [
        ("4.3.0", "docker.io/apache/spark:4.3.0-python3", "name your own with --image\n"),
        ("3.5.6-amzn-2", "docker.io/apache/spark:3.5.6-python3", "name your own with --image\n"),
        ("3.3.2", "docker.io/apache/spark:4.0.1-python3", "(profiled on Spark 3.3.2)\n"),
    ],
)
def test_the_image_is_of_the_spark_that_was_profiled(
    profiled: str, image: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json_text(plan_json(a_plan(spark_version=profiled))))
    assert run(["emit", str(path), "--format", "kubeflow"]) == 0
    text = capsys.readouterr().out
    assert yaml.safe_load(text)["spec"]["image"] == image
    assert said in text


def test_only_what_differs(
    plan_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    current = tmp_path / "spark-defaults.conf"
    current.write_text("spark.executor.memory 8192m\nspark.executor.cores 4\n")
    words = ["emit", plan_file, "--format", "spark-defaults", "--diff-from", str(current)]
    assert run(words) == 0
    found = parse_properties(capsys.readouterr().out)
    assert set(found) == set(a_plan().spark_conf) - {
        "spark.executor.memory",
        "spark.executor.cores",
    }
    assert run(["emit", plan_file, "--files", str(tmp_path / "o"), "--diff-from", plan_file]) == 0
    assert parse_properties((tmp_path / "o" / "must-set.conf").read_text()) == {}
    assert parse_properties((tmp_path / "o" / "merged.conf").read_text()) == a_plan().spark_conf
    assert (tmp_path / "o" / "reasons.txt").read_text()


@pytest.mark.parametrize("name", [n for n, one in ALL_FORMATS.items() if one.fills_in_sizes])
def test_a_platform_with_sizes_of_its_own_is_always_given_those_of_the_plan(
    name: str, plan_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Left out, the operator of kubeflow would give each executor one core."""
    current = tmp_path / "spark-defaults.conf"
    current.write_text("".join(f"{key} {one}\n" for key, one in a_plan().spark_conf.items()))
    assert run(["emit", plan_file, "--format", name, "--diff-from", str(current)]) == 0
    text = capsys.readouterr().out
    if name == "kubeflow":
        executor = yaml.safe_load(text)["spec"]["executor"]
        assert executor == {"instances": 2, "cores": 4, "memory": "8g"}
    else:
        assert "spark.executor.instances" in text
        assert "spark.executor.memory" in text
    assert "spark.sql.shuffle.partitions" not in text


def test_a_patch_is_printed_or_written(
    plan_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "app.yaml"
    before = (
        "apiVersion: spark.apache.org/v1 # ours\nkind: SparkApplication\nmetadata: {name: a}\n"
        "spec:\n  sparkConf: {}\n  runtimeVersions: {sparkVersion: '4.0.1'}\n"
    )
    manifest.write_text(before)
    assert run(["emit", plan_file, "--patch", str(manifest)]) == 0
    printed = capsys.readouterr().out
    assert manifest.read_text() == before
    assert run(["emit", plan_file, "--patch", str(manifest), "--write"]) == 0
    assert manifest.read_text() == printed
    assert "# ours" in printed
    assert run(["emit", plan_file, "--patch", str(manifest), "--write"]) == 0
    assert "already as planned" in capsys.readouterr().err


def test_a_plan_that_misses_its_target_is_written_and_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json_text(plan_json(an_infeasible_plan())))
    assert run(["emit", str(path), "--format", "tfvars"]) == 3
    assert "INFEASIBLE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["emit", ORDERS], "expected --format, or --patch, or --files"),
        (["emit", ORDERS, "--files", "x"], "give --diff-from"),
        (["emit", ORDERS, "--format", "emr", "--patch", "x"], "--format and --patch contradict"),
        (["emit", "none.json", "--format", "emr"], "none.json: no such file"),
        (["emit", "none.yaml", "--format", "emr"], "none.yaml: no such file"),
        (["emit", ORDERS, "--format", "kubeflow", "--spark-version", "2.4"], "expected a version"),
        (
            ["emit", ORDERS, "--format", "emr", "--spark-version", "4.0.1"],
            "emr has no place for it",
        ),
        (["emit", ORDERS, "--format", "emr", "--diff-from", "none.conf"], "none.conf: no such"),
        (["emit", ORDERS, "--format", "xml"], "'xml' is not one of"),
        (
            ["emit", ORDERS, "--format", "kubeflow", "--namespace", "Data_EU"],
            "--namespace 'Data_EU': no name that Kubernetes takes; expected lower case letters",
        ),
        (["emit", ORDERS, "--format", "kubeflow", "--namespace", "a" * 64], "at most 63"),
        (["emit", ORDERS, "--format", "kubeflow", "--namespace", "a.b"], "--namespace 'a.b'"),
        (["emit", ORDERS, "--format", "kubeflow", "--namespace", ""], "--namespace ''"),
        (["emit", ORDERS, "--format", "kubeflow", "--namespace", "a\n"], "--namespace 'a\\n'"),
        (["emit", ORDERS, "--format", "airflow", "--name", " "], "--name ' ': expected a name"),
        (["emit", ORDERS, "--format", "airflow", "--main", ""], "--main '': expected a text"),
        (["emit", ORDERS, "--format", "kubeflow", "--image", "a b"], "without blanks"),
    ],
)
def test_bad_usage_is_one_line(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err
    assert len(err.splitlines()) == 1
