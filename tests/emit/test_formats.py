"""Every format is what its platform reads, and holds the plan."""

from __future__ import annotations

import ast
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import headway
from headway.api.emit import emitted
from headway.domain import NodeType, StreamAnswer
from headway.emitters import ALL_FORMATS
from headway.emitters.dataproc import properties_flag
from headway.emitters.emr import worker_heap_bytes
from headway.emitters.submission import Submission
from headway.errors import InputError
from headway.formats.yaml_lines import yaml_document, yaml_scalar
from headway.units import parse_size_bytes
from tests.factories import a_plan, an_infeasible_plan
from tests.shared_data import SHARED, needs

EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEMAS = SHARED / "schemas"
ORDERS = Submission(
    name="Orders (EU)",
    main="app/orders.py",
    arguments=("--from", "two words"),
    spark_version="4.1.2",
    node_type="m6i.xlarge",
    service_account="spark",
)
AWKWARD = {
    "spark.executor.instances": "2",
    "spark.headway.sign": '=: # $HOME `id` "quoted" it\'s é \u2028 , on',
    "spark.headway.no": "no",
}


def text_of(name: str, plan: StreamAnswer | None = None, submission: Submission = ORDERS) -> str:
    return ALL_FORMATS[name].render(plan or a_plan(), version="9.8.7", submission=submission)


@pytest.mark.parametrize("name", [name for name in ALL_FORMATS if name != "databricks"])
def test_every_setting_of_the_plan_is_in_every_format(name: str) -> None:
    plan = a_plan(spark_conf={**a_plan().spark_conf, "spark.headway.extra": "1"})
    text = text_of(name, plan)
    for key in plan.spark_conf:
        assert key in text or key.startswith("spark.executor."), key
    assert "8Gi" not in text


@pytest.mark.parametrize("name", [n for n, each in ALL_FORMATS.items() if each.has_comments])
def test_settings_stand_with_their_reasons(name: str) -> None:
    text = text_of(name)
    assert "headway 9.8.7" in text
    assert 'processingTime="2 seconds"' in text or "TRIGGER" in text
    assert "as profiled" in text
    assert text_of(name, an_infeasible_plan()).startswith("# !!! INFEASIBLE")


@pytest.mark.parametrize("name", [n for n, each in ALL_FORMATS.items() if not each.has_comments])
def test_json_formats_can_be_parsed(name: str) -> None:
    plan = a_plan(spark_conf={**a_plan().spark_conf, **AWKWARD})
    assert json.loads(text_of(name, plan))


def conf_of(tree: Any) -> dict[str, str]:
    conf = tree["spec"]["sparkConf"]
    assert all(isinstance(value, str) for value in conf.values())
    return dict(conf)


def test_kubeflow_takes_sizes_in_fields_and_the_rest_as_texts() -> None:
    tree = yaml.safe_load(
        text_of("kubeflow", a_plan(spark_conf={**a_plan().spark_conf, **AWKWARD}))
    )
    assert tree["spec"]["executor"] == {"instances": 2, "cores": 4, "memory": "8g"}
    assert conf_of(tree) == {
        "spark.dynamicAllocation.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        **{key: value for key, value in AWKWARD.items() if "headway" in key},
    }
    assert tree["spec"]["sparkVersion"] == "4.1.2"
    assert tree["metadata"]["name"] == "orders-eu"


def test_the_apache_operator_takes_all_as_configuration() -> None:
    conf = conf_of(yaml.safe_load(text_of("spark-operator")))
    assert conf.items() >= dict(a_plan().spark_conf).items()
    assert conf["spark.kubernetes.container.image"] == "apache/spark:4.1.2-python3"


def strict(schema: Any) -> Any:
    """A schema that also refuses keys that it does not know: servers would drop them silently."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: strict(value) for key, value in schema.items() if key != "description"}
    if isinstance(schema.get("properties"), dict):
        found["additionalProperties"] = False
    return found


TEXT, COUNT = {"type": "string"}, {"type": "integer", "minimum": 1}
TEXTS = {"type": "array", "items": TEXT}
CONF = {"type": "object", "additionalProperties": TEXT}
#: What the operators take of the fields that plans fill, by their documentation.
FIELDS: dict[str, dict[str, Any]] = {
    "kubeflow": {
        "type": {"enum": ["Java", "Python", "R", "Scala"]},
        "pythonVersion": {"enum": ["2", "3"]},
        "mode": {"enum": ["client", "cluster"]},
        "image": TEXT,
        "sparkVersion": TEXT,
        "mainApplicationFile": TEXT,
        "arguments": TEXTS,
        "restartPolicy": {"properties": {"type": {"enum": ["Never", "OnFailure", "Always"]}}},
        "sparkConf": CONF,
        "driver": {"properties": {"cores": COUNT, "memory": TEXT, "serviceAccount": TEXT}},
        "executor": {
            "properties": {
                "instances": COUNT, "cores": COUNT, "memory": TEXT, "memoryOverhead": TEXT
            }
        },
    },
    "spark-operator": {
        "pyFiles": TEXT,
        "driverArgs": TEXTS,
        "sparkConf": CONF,
        "runtimeVersions": {"properties": {"sparkVersion": TEXT}},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_manifests_have_fields_and_types_that_operators_take(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = strict({"type": "object", "properties": FIELDS[name]})
    spec = yaml.safe_load(text_of(name))["spec"]
    validator = jsonschema.Draft7Validator(schema)
    assert [error.message for error in validator.iter_errors(spec)] == []
    assert list(validator.iter_errors({**spec, "instnces": 3}))


def crd_schema(file: str, version: str) -> Any:
    crd = yaml.load(
        (SCHEMAS / file).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    (found,) = (each for each in crd["spec"]["versions"] if each["name"] == version)
    schema = found["schema"]["openAPIV3Schema"]
    schema["properties"] |= {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    return strict(schema)


@pytest.mark.parametrize(
    ("name", "file", "version"),
    [
        ("kubeflow", "kubeflow-v2.5.2-sparkapplications.crd.yaml", "v1beta2"),
        ("spark-operator", "apache-sparkapplications-v1.crd.yaml", "v1"),
    ],
)
@needs(
    SCHEMAS,
    stand_in="tests/emit/test_formats.py::test_manifests_have_fields_and_types_that_operators_take",
)
def test_manifests_pass_the_operators_own_schemas(name: str, file: str, version: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    tree = yaml.safe_load(text_of(name))
    schema = crd_schema(file, version)
    assert [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(tree)] == []
    tree["spec"]["instnces"] = 3
    assert list(jsonschema.Draft7Validator(schema).iter_errors(tree))


STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
NAMED = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}},
}
SIZE = {"type": "string", "pattern": "^[0-9]+[mg]$"}
SLIM = {
    "kubeflow": {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": "sparkoperator.k8s.io/v1beta2"},
            "kind": {"const": "SparkApplication"},
            "metadata": NAMED,
            "spec": {
                "type": "object",
                "required": ["type", "mainApplicationFile", "sparkVersion", "driver", "executor"],
                "additionalProperties": False,
                "properties": {
                    "type": {"enum": ["Java", "Python", "R", "Scala"]},
                    "pythonVersion": {"enum": ["2", "3"]},
                    "mode": {"enum": ["cluster", "client"]},
                    "image": {"type": "string"},
                    "sparkVersion": {"type": "string"},
                    "mainApplicationFile": {"type": "string"},
                    "arguments": {"type": "array", "items": {"type": "string"}},
                    "restartPolicy": {"type": "object"},
                    "sparkConf": STRINGS,
                    "driver": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "cores": {"type": "integer"},
                            "memory": SIZE,
                            "serviceAccount": {"type": "string"},
                        },
                    },
                    "executor": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "instances": {"type": "integer", "minimum": 1},
                            "cores": {"type": "integer", "minimum": 1},
                            "memory": SIZE,
                            "memoryOverhead": SIZE,
                        },
                    },
                },
            },
        },
    },
    "spark-operator": {
        "type": "object",
        "properties": {
            "apiVersion": {"const": "spark.apache.org/v1"},
            "kind": {"const": "SparkApplication"},
            "metadata": NAMED,
            "spec": {
                "type": "object",
                "required": ["runtimeVersions"],
                "additionalProperties": False,
                "properties": {
                    "pyFiles": {"type": "string"},
                    "driverArgs": {"type": "array", "items": {"type": "string"}},
                    "sparkConf": STRINGS,
                    "runtimeVersions": {"type": "object", "required": ["sparkVersion"]},
                },
            },
        },
    },
    "databricks": {
        "type": "object",
        "required": ["bundle", "resources"],
        "properties": {
            "resources": {
                "type": "object",
                "properties": {
                    "jobs": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "object",
                            "required": ["name", "job_clusters", "tasks"],
                        },
                    }
                },
            }
        },
    },
}


@pytest.mark.parametrize("name", SLIM)
def test_manifests_pass_a_slim_schema_of_our_own(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    tree = yaml.safe_load(text_of(name, a_plan(spark_conf={**a_plan().spark_conf, **AWKWARD})))
    assert [e.message for e in jsonschema.Draft202012Validator(SLIM[name]).iter_errors(tree)] == []


def test_databricks_gets_workers_not_executors() -> None:
    tree = yaml.safe_load(text_of("databricks"))
    job = tree["resources"]["jobs"]["orders_eu"]
    cluster = job["job_clusters"][0]["new_cluster"]
    assert cluster == {
        "spark_version": "18.0.x-scala2.13",
        "node_type_id": "m6i.xlarge",
        "num_workers": 2,
        "spark_conf": {"spark.sql.shuffle.partitions": "8"},
    }
    assert job["tasks"][0]["job_cluster_key"] == job["job_clusters"][0]["job_cluster_key"]


def botocore_faults(service: str, operation: str, parameters: Any) -> str:
    session = pytest.importorskip("botocore.session").get_session()
    validate = pytest.importorskip("botocore.validate").ParamValidator()
    shape = session.get_service_model(service).operation_model(operation).input_shape
    report: str = validate.validate(parameters, shape).generate_report()
    return report


def test_emr_takes_the_shapes() -> None:
    ec2 = json.loads(text_of("emr"))
    assert ec2[0]["Properties"] == dict(a_plan().spark_conf)
    assert botocore_faults("emr", "RunJobFlow", {
        "Name": "x", "Instances": {}, "Configurations": ec2,
    }) == ""  # fmt: skip
    eks = json.loads(text_of("emr-eks"))
    assert botocore_faults("emr-containers", "StartJobRun", {
        "virtualClusterId": "v", "clientToken": "t", **eks,
    }) == ""  # fmt: skip
    serverless = json.loads(text_of("emr-serverless"))
    assert botocore_faults("emr-serverless", "StartJobRun", {
        "applicationId": "a", "clientToken": "t", "executionRoleArn": "arn:aws:iam::1:role/x",
        **serverless,
    }) == ""  # fmt: skip
    flags = shlex.split(serverless["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"])
    assert flags[:2] == ["--conf", "spark.executor.instances=2"]


@pytest.mark.parametrize("cores", [1, 2, 4, 8, 16, 32])
def test_a_serverless_worker_holds_the_heap_and_its_overhead(cores: int) -> None:
    for heap_gb in (0.5, 1.4, 1.6, 3.7):
        heap = worker_heap_bytes(cores, int(heap_gb * 2**30))
        container = heap + max(heap // 10, parse_size_bytes("384m"))
        assert heap >= heap_gb * 2**30
        assert container / 2**30 <= (60 if cores == 32 else 8 * cores)


def test_a_heap_that_fills_a_worker_is_not_said_to_be_as_profiled() -> None:
    profile = EXAMPLES / "nightly-totals.profile.yaml"
    plan = headway.plan(profile, target="deadline <= 30m", node_cores=4)
    names, lines = ("emr", "emr-serverless"), {}
    files = {name: emitted(plan, name, Submission(), None) for name in names}
    for name, file in files.items():
        (lines[name],) = (line for line in file.beside if "executor.memory:" in line)
    assert lines["emr"] == "spark.executor.memory: as profiled"
    assert lines["emr-serverless"] == (
        "spark.executor.memory: fills the smallest worker with room for the planned 4g"
    )
    assert (
        "spark.executor.memory=4g" not in emitted(plan, "emr-serverless", Submission(), None).text
    )


@pytest.mark.parametrize(("cores", "heap"), [(3, "8g"), (1, "8g"), (4, "30g")])
def test_a_size_that_no_worker_has_is_refused(cores: int, heap: str) -> None:
    with pytest.raises(InputError, match="emr-serverless"):
        worker_heap_bytes(cores, parse_size_bytes(heap))


def test_commands_survive_the_shell() -> None:
    plan = a_plan(spark_conf={**a_plan().spark_conf, **AWKWARD})
    words = shlex.split(text_of("spark-submit", plan), comments=True)
    assert [w for w in words if w.startswith("spark.headway")] == [
        f"{key}={value}" for key, value in AWKWARD.items() if "headway" in key
    ]
    assert words[-3:] == ["app/orders.py", "--from", "two words"]
    words = shlex.split(text_of("dataproc", plan), comments=True)
    (flag,) = (word for word in words if word.startswith("--properties="))
    value = flag.removeprefix("--properties=")
    delimiter = value[1]
    assert dict(pair.split("=", 1) for pair in value[3:].split(delimiter)) == dict(plan.spark_conf)


def test_a_delimiter_is_found_or_the_fault_said() -> None:
    assert properties_flag({}) == ""
    with pytest.raises(InputError, match="properties file"):
        properties_flag({"a": ",#|;@~!+"})


def test_airflow_gets_a_dictionary() -> None:
    plan = a_plan(spark_conf={**a_plan().spark_conf, **AWKWARD})
    (assignment,) = ast.parse(text_of("airflow", plan)).body
    assert isinstance(assignment, ast.Assign)
    assert ast.literal_eval(assignment.value) == {
        "task_id": "orders_eu",
        "name": "Orders (EU)",
        "application": "app/orders.py",
        "application_args": ["--from", "two words"],
        "conf": dict(plan.spark_conf),
    }


def test_pipelines_get_a_specification_that_spark_reads(tmp_path: Path) -> None:
    (tmp_path / "spark-pipeline.yml").write_text(text_of("declarative-pipelines"))
    try:
        cli = pytest.importorskip("pyspark.pipelines.cli", exc_type=ImportError)
    except SystemExit:
        # In a process that gets its program from another, Spark takes itself for its doctests.
        pytest.skip("needs the packages of Spark Connect")
    found = cli.load_pipeline_spec(tmp_path / "spark-pipeline.yml")
    assert found.configuration == {"spark.sql.shuffle.partitions": "8"}


def test_pipelines_hold_what_a_session_can_still_take() -> None:
    tree = yaml.safe_load(text_of("declarative-pipelines"))
    assert set(tree) == {"name", "storage", "configuration", "libraries"}
    assert tree["configuration"] == {"spark.sql.shuffle.partitions": "8"}
    assert "--conf spark.executor.instances=2" in text_of("declarative-pipelines")
    with pytest.raises(InputError, match=r"4\.1"):
        text_of("declarative-pipelines", None, replace(ORDERS, spark_version="4.0.1"))


@pytest.mark.parametrize(
    ("version", "image", "runtime"),
    [("3.5.9", "3.5.9", "15.4.x-scala2.12"), ("4.0.1-amzn-0", "4.0.1", "17.3.x-scala2.13")],
)
def test_spellings_follow_the_version(version: str, image: str, runtime: str) -> None:
    submission = replace(ORDERS, spark_version=version)
    assert f"docker.io/apache/spark:{image}-python3" in text_of("kubeflow", None, submission)
    assert runtime in text_of("databricks", None, submission)


@pytest.mark.parametrize("version", ["3.4.0", "5.0.0", "four", "4"])
def test_a_version_that_nobody_knows_is_refused(version: str) -> None:
    with pytest.raises(InputError, match="expected a version"):
        assert Submission(spark_version=version).release


def test_databricks_has_the_node_type_that_the_plan_is_made_for() -> None:
    plan = a_plan(node_type=NodeType(name="r5.large", cores=2))
    unnamed = replace(ORDERS, node_type=None)
    for submission, name in ((unnamed, "r5.large"), (ORDERS, ORDERS.node_type)):
        tree = yaml.safe_load(text_of("databricks", plan, submission))
        (job,) = tree["resources"]["jobs"].values()
        assert job["job_clusters"][0]["new_cluster"]["node_type_id"] == name


def test_databricks_without_a_node_type_says_what_to_give() -> None:
    with pytest.raises(InputError, match="give node_type"):
        text_of("databricks", None, replace(ORDERS, node_type=None))


@pytest.mark.parametrize("text", ["yes", "1e3", "", " x", "a\nb", "\u2028\x85", "😀", "'\"", "0o7"])
def test_texts_in_yaml_are_read_as_they_are(text: str) -> None:
    assert yaml.safe_load(f"a: {yaml_scalar(text)}") == {"a": text}
    document = yaml_document({"x": {text: [text, {"k": text}]}}, comments={"k": "why"})
    assert yaml.safe_load(document) == {"x": {text: [text, {"k": text}]}}


@pytest.mark.parametrize(
    ("beside", "memory_gb"),
    [
        ({}, 9),
        ({"spark.executor.pyspark.memory": "2g"}, 11),
        ({"spark.executor.memoryOverhead": "4g"}, 12),
        ({"spark.executor.pyspark.memory": "2g", "spark.executor.memoryOverhead": "4g"}, 14),
        ({"spark.memory.offHeap.size": "3g"}, 12),
    ],
)
def test_a_serverless_worker_holds_all_that_spark_puts_into_its_container(
    beside: dict[str, str], memory_gb: int
) -> None:
    """Heap, overhead, Python and memory off the heap together fill the smallest worker there is."""
    plan = a_plan(spark_conf={**a_plan().spark_conf, **beside})
    tree = json.loads(text_of("emr-serverless", plan))
    words = shlex.split(tree["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"])
    conf = {
        **dict(word.split("=", 1) for word in words if word != "--conf"),
        **tree["configurationOverrides"]["applicationConfiguration"][0]["properties"],
    }
    assert conf.items() >= beside.items()
    heap = parse_size_bytes(conf["spark.executor.memory"])
    overhead = beside.get("spark.executor.memoryOverhead")
    container = (
        heap
        + (max(heap / 10, 384 * 2**20) if overhead is None else parse_size_bytes(overhead))
        + sum(parse_size_bytes(one) for key, one in beside.items() if "Overhead" not in key)
    )
    assert heap >= 8 * 2**30
    assert memory_gb * 2**30 - 2 * 2**20 < container <= memory_gb * 2**30


def test_a_serverless_worker_too_small_for_all_of_it_is_refused() -> None:
    with pytest.raises(InputError, match="a heap of 8g, 20g beside it and an overhead of 4g"):
        text_of(
            "emr-serverless",
            a_plan(
                spark_conf={
                    **a_plan().spark_conf,
                    "spark.executor.pyspark.memory": "20g",
                    "spark.executor.memoryOverhead": "4g",
                }
            ),
        )


@pytest.mark.parametrize("name", ["2024 orders", "9"])
def test_a_name_of_a_kubernetes_object_begins_with_a_letter(name: str) -> None:
    assert Submission(name=name).slug.startswith("job-")
    assert len(Submission(name="9" * 80).slug) <= 63


@pytest.mark.parametrize("account", ["Spark", "a..b", "-a", "a" * 254])
def test_a_service_account_is_a_name_that_kubernetes_takes(account: str) -> None:
    with pytest.raises(InputError, match="no name that Kubernetes takes"):
        Submission(service_account=account)
    assert Submission(service_account="spark.eu-1").service_account == "spark.eu-1"
