"""After a patch, a file gives exactly the cluster that the plan assumes, or its line is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.main import run
from headway.domain import MemoryPlan, NodeType
from headway.emitters import ALL_FORMATS
from headway.emitters.difference import CurrentSettings, merged_text, with_assumptions
from headway.emitters.patch import patch
from headway.emitters.submission import Submission
from headway.errors import InputError
from headway.formats.as_json import json_text, plan_json
from headway.sparkconf import parse_properties
from tests.emit.platform_rules import (
    Cluster,
    application_in,
    of_application,
    of_conf,
    of_databricks_cluster,
)
from tests.factories import a_plan
from tests.seeds import examples

GIB = 2**30
MEMORY = MemoryPlan(
    heap_bytes=8 * GIB,
    overhead_bytes=round(0.8 * GIB),
    needed_heap_bytes=GIB,
    native_bytes=0,
    parts={},
)
PLAN = a_plan(memory=MEMORY, node_type=NodeType(name="n4", cores=4, memory_bytes=12 * GIB))
#: What the plan assumes, written out by hand.
ASSUMED = {
    "executors": 2,
    "slots_per_executor": 4,
    "cpu_request": 4.0,
    "shuffle_partitions": 8,
}
CONTAINER_MIB = 8192 + 820


def require_assumed(cluster: Cluster, *, has_container: bool = True) -> None:
    """The cluster is the one that the plan assumes."""
    assert {name: getattr(cluster, name) for name in ASSUMED} == ASSUMED
    assert cluster.is_admitted
    if has_container:
        assert abs(cluster.container_mib - CONTAINER_MIB) <= 1


def patched(text: str, job: str | None = None) -> str:
    return patch(text, PLAN, name="f.yaml", submission=Submission(), job=job)[0]


def kubeflow(
    *, conf: str = "{}", executor: str = "{instances: 3, cores: 1}", spec: str = "type: Python"
) -> str:
    return (
        "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\n"
        f"metadata: {{name: orders}}\nspec:\n  {spec}\n  sparkConf: {conf}\n"
        f"  executor: {executor}\n"
    )


def apache(*, conf: str = "{}", spec: str = "pyFiles: local:///opt/app.py") -> str:
    return (
        "apiVersion: spark.apache.org/v1\nkind: SparkApplication\nmetadata: {name: orders}\n"
        f"spec:\n  {spec}\n  sparkConf: {conf}\n"
    )


def bundle(cluster: str) -> str:
    return (
        "resources:\n  jobs:\n    orders:\n      job_clusters:\n"
        f"        - job_cluster_key: main\n          new_cluster: {cluster}\n"
    )


def in_template(name: str, amounts: str) -> str:
    """An executor with limits and requests in its pod template."""
    container = f"{{{name}, resources: {{limits: {amounts}, requests: {amounts}}}}}"
    return f"{{template: {{spec: {{containers: [{container}]}}}}}}"


def pipeline_with(more: str, clusters: str) -> str:
    return f"resources:\n  pipelines:\n    orders:\n      {more}\n      clusters: {clusters}\n"


def cluster_of(text: str) -> Any:
    return yaml.safe_load(text)["resources"]["jobs"]["orders"]["job_clusters"][0]["new_cluster"]


SETTINGS = (
    '{spark.task.cpus: "2"}',
    '{spark.cores.max: "2"}',
    "{spark.executor.memoryOverhead: 6g}",
    '{spark.yarn.executor.memoryOverhead: "6144"}',
    '{spark.executor.memoryOverhead: "400", spark.yarn.executor.memoryOverhead: 5g}',
    '{spark.executor.memoryOverheadFactor: "0.5"}',
    '{spark.kubernetes.memoryOverheadFactor: "0.3"}',
    "{spark.executor.minMemoryOverhead: 3g}",
    '{spark.memory.offHeap.enabled: "false", spark.memory.offHeap.size: 4g}',
    '{spark.kubernetes.executor.limit.cores: "1"}',
    "{spark.kubernetes.executor.limit.cores: 3500m, spark.kubernetes.executor.request.cores: 500m}",
    '{spark.kubernetes.executor.request.cores: "8"}',
    '{spark.dynamicAllocation.enabled: "true", spark.dynamicAllocation.minExecutors: "5"}',
    '{spark.streaming.dynamicAllocation.enabled: "true"}',
    '{spark.executor.cores: "1", spark.executor.instances: "9", spark.executor.memory: 1g}',
)


@pytest.mark.parametrize("conf", SETTINGS)
def test_settings_that_contradict_the_plan_are_set_in_every_kind_of_file(conf: str) -> None:
    require_assumed(of_application(application_in(patched(kubeflow(conf=conf)))))
    require_assumed(of_application(application_in(patched(apache(conf=conf)))))
    cluster = cluster_of(patched(bundle(f"{{num_workers: 9, spark_conf: {conf}}}")))
    found = of_databricks_cluster(cluster, worker_cores=4)
    assert (found.executors, found.slots_per_executor, found.shuffle_partitions) == (2, 4, 8)
    current = CurrentSettings(name="c", conf=yaml.safe_load(conf))
    merged = merged_text(with_assumptions(PLAN, current), current.conf, version="1")
    require_assumed(of_conf(parse_properties(merged)))


@pytest.mark.parametrize(
    "executor",
    [
        "{coreLimit: 1200m}",
        "{coreLimit: 1200m, coreRequest: 500m, cores: 1}",
        '{coreRequest: "0.5", memoryOverhead: 512m, memory: 4g}',
        "{memoryOverhead: 4g}",
        "{memoryLimit: 5Gi}",
        "{memoryLimit: 5g, coreLimit: 6000m}",
        "{memoryLimit: 9G}",
        in_template("name: spark-kubernetes-executor", "{cpu: 2, memory: 4Gi}"),
        in_template("name: other", "{cpu: 500m}"),
    ],
)
@pytest.mark.parametrize("kind", ["Python", "Scala"])
def test_fields_of_the_executor_that_contradict_the_plan_are_set(executor: str, kind: str) -> None:
    text = kubeflow(executor=executor, spec=f"type: {kind}")
    after = patched(text)
    require_assumed(of_application(application_in(after)))
    assert patched(after) == after


def test_limits_with_room_stay_as_they_are() -> None:
    executor = (
        '{instances: 2, cores: 4, memory: "8g", coreLimit: 5000m, coreRequest: "4", '
        "memoryOverhead: 820m, memoryLimit: 10Gi}"
    )
    conf = '{spark.dynamicAllocation.enabled: "false", spark.sql.shuffle.partitions: "8"}'
    text = kubeflow(executor=executor, conf=conf)
    assert patched(text) == text


def test_python_on_kubernetes_gets_its_overhead_written_out() -> None:
    """Kubernetes would reserve 0.4 of the heap, which does not fit on the node."""
    assert "memoryOverhead" in patched(kubeflow())
    assert "memoryOverhead" not in patched(kubeflow(spec="type: Scala"))
    assert "memoryOverhead" in patched(apache())
    assert "memoryOverhead" not in patched(apache(spec="mainClass: A"))


def test_a_second_factor_is_overridden() -> None:
    text = kubeflow(spec='memoryOverheadFactor: "0.7"\n  type: Java')
    require_assumed(of_application(application_in(patched(text))))


def test_the_apache_operator_waits_for_no_more_executors_than_planned() -> None:
    limits = "{resources: {limits: {cpu: 1500m, memory: 2Gi}}, name: executor}"
    spec = (
        f"executorSpec: {{podTemplateSpec: {{spec: {{containers: [{limits}]}}}}}}\n"
        "  applicationTolerations: {instanceConfig: {minExecutors: 3, initExecutors: 3}}"
    )
    after = patched(apache(spec=spec))
    require_assumed(of_application(application_in(after)))
    assert yaml.safe_load(after)["spec"]["applicationTolerations"] == {
        "instanceConfig": {"minExecutors": 2, "initExecutors": 2}
    }


def test_scheduled_applications_and_lists_of_manifests() -> None:
    scheduled = (
        "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: ScheduledSparkApplication\n"
        "metadata: {name: nightly}\nspec:\n  schedule: '@daily'   # at night\n  template:\n"
        "    type: Scala\n    executor:\n      coreLimit: 1000m\n      instances: 1\n"
    )
    after = patched(scheduled)
    require_assumed(of_application(application_in(after)))
    assert "schedule: '@daily'   # at night\n" in after
    items = "".join(f"  {line}\n" for line in kubeflow().splitlines())
    listed = f"apiVersion: v1\nkind: List\nitems:\n- {items.lstrip()}"
    require_assumed(of_application(application_in(patched(listed))))


def test_shared_clusters_and_pipelines_of_a_bundle() -> None:
    shared = "resources:\n  clusters:\n    shared: {num_workers: 7, node_type_id: n4}\n"
    cluster = yaml.safe_load(patched(shared))["resources"]["clusters"]["shared"]
    found = of_databricks_cluster(cluster, worker_cores=4)
    assert (found.executors, found.slots_per_executor) == (2, 4)
    pipelines = (
        "resources:\n  pipelines:\n    orders:\n      continuous: true # all day\n"
        "      configuration: {spark.sql.shuffle.partitions: '400'}\n      clusters:\n"
        "        - label: maintenance\n          num_workers: 1\n"
        "        - label: default   # the other one\n          num_workers: 4\n"
    )
    after = patched(pipelines)
    pipeline = yaml.safe_load(after)["resources"]["pipelines"]["orders"]
    conf = pipeline["configuration"]
    found = of_databricks_cluster(pipeline["clusters"][1], worker_cores=4, conf=conf)
    assert (found.executors, found.shuffle_partitions) == (2, 8)
    assert pipeline["clusters"][0] == {"label": "maintenance", "num_workers": 1}
    assert conf["pipelines.trigger.interval"] == "2 seconds"
    assert "# all day\n" in after
    assert "label: default   # the other one\n" in after


REFUSED = [
    (kubeflow(conf="\n    spark.master: local[*]"), "f.yaml:7: spark.master is local[*]: "),
    (apache(conf="{spark.master: local}"), "f.yaml:6: spark.master is local: a local master has"),
    (
        kubeflow(conf="{spark.executor.pyspark.memory: 2g}"),
        "f.yaml:6: spark.executor.pyspark.memory is 2g: it adds 2g to each container",
    ),
    (
        kubeflow(conf='{spark.memory.offHeap.size: "1048576", spark.memory.offHeap.enabled: TRUE}'),
        "f.yaml:6: spark.memory.offHeap.enabled is TRUE: it adds 1m to each container",
    ),
    (
        kubeflow(
            conf='\n    spark.executor.resource.gpu.amount: "1"\n'
            '    spark.task.resource.gpu.amount: "0.5"'
        ),
        "f.yaml:8: spark.task.resource.gpu.amount is 0.5: an executor runs 2 tasks at a time",
    ),
    (
        bundle("{num_workers: 0, spark_conf: {spark.databricks.cluster.profile: singleNode}}"),
        "f.yaml:6: spark.databricks.cluster.profile is singleNode: a single node has no workers",
    ),
    (bundle("{custom_tags: {ResourceClass: SingleNode}}"), "f.yaml:6: ResourceClass is Single"),
    (bundle("{is_single_node: true, num_workers: 0}"), "f.yaml:6: is_single_node contradicts"),
    (bundle("{autoscale: {min_workers: 1, max_workers: 9}}"), "f.yaml:6: autoscale contradicts"),
    (
        pipeline_with("serverless: true", "[{num_workers: 1}]"),
        "f.yaml:4: serverless contradicts the plan's fixed number of workers",
    ),
    (
        pipeline_with("name: orders", "[{num_workers: 1}, {label: updates}]"),
        "f.yaml:5: clusters has 2 of label default or updates",
    ),
]


@pytest.mark.parametrize(("text", "expected"), REFUSED)
def test_what_no_value_sets_right_is_refused_with_its_line(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=re.escape(expected)) as caught:
        patched(text)
    assert str(caught.value).endswith("then try again")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apiVersion: spark.apache.org/v1\nkind: SparkCluster\n", "SparkCluster of spark.apache"),
        ("kind: SparkApplication\napiVersion: spark.stackable.tech/v1\n", "in line 1"),
        ('[{"Classification": "spark-defaults", "Properties": {}}]', "the format emr writes new"),
        ("resources: {jobs: {a: {tasks: []}}}", "job a in line 1 has no cluster of its own"),
        ("resources: {pipelines: {a: {serverless: true}}}", "pipeline a in line 1 has no cluster"),
    ],
)
def test_a_file_without_a_place_is_refused_by_what_it_contains(text: str, expected: str) -> None:
    with pytest.raises(InputError, match="nothing to put a plan into") as caught:
        patched(text)
    assert expected in str(caught.value)


def test_all_that_contradicts_is_named_at_once() -> None:
    text = bundle(
        "\n            spark_conf:\n              spark.databricks.cluster.profile: singleNode\n"
        "              spark.master: local[*, 4]\n"
        "            custom_tags: {ResourceClass: SingleNode}"
    )
    with pytest.raises(InputError, match="take them out") as caught:
        patched(text)
    assert re.findall(r"f\.yaml:(\d+): ", str(caught.value)) == ["8", "9", "10"]


def test_a_cluster_of_several_is_named_by_its_key() -> None:
    text = (
        "resources:\n  jobs:\n    orders:\n      job_clusters:\n"
        "        - {job_cluster_key: a, new_cluster: {num_workers: 1}}\n"
        "        - {job_cluster_key: b, new_cluster: {num_workers: 1}}\n"
    )
    with pytest.raises(InputError, match=r"several jobs, orders\.a, orders\.b; name one"):
        patched(text)
    clusters = yaml.safe_load(patched(text, "orders.b"))["resources"]["jobs"]["orders"]
    workers = [each["new_cluster"]["num_workers"] for each in clusters["job_clusters"]]
    assert workers == [1, 2]


def test_a_target_that_overrides_the_cluster_is_said() -> None:
    override = "targets:\n  dev:\n" + "".join(
        f"    {line}\n" for line in bundle("{num_workers: 1}").splitlines()
    )
    text = bundle("{num_workers: 9}") + override
    _, destination = patch(text, PLAN, name="f.yaml", submission=Submission(), job=None)
    assert destination.notes == (
        "target dev overrides num_workers in line 14: the plan does not hold for that target",
    )
    # Where only the target has a cluster, the plan is put there.
    assert patched(override).count("num_workers: 2") == 1


def in_conf(plan: Any, text: str, tmp_path: Path) -> list[str]:
    """Arguments that compare a plan with a properties file."""
    (tmp_path / "plan.json").write_text(json_text(plan_json(plan)))
    (tmp_path / "now.conf").write_text(text)
    return ["emit", str(tmp_path / "plan.json"), "--diff-from", str(tmp_path / "now.conf")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# mine\nspark.master  local[4]\n", "now.conf:2: spark.master is local[4]: a local mas"),
        ("spark.databricks.cluster.profile=singleNode", "now.conf:1: spark.databricks.cluster.pr"),
        ("spark.executor.pyspark.memory \\\n 1g\n", "now.conf:1: spark.executor.pyspark.memory"),
    ],
)
def test_a_difference_refuses_with_the_line(
    text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--format", "spark-submit"], ["--files", str(tmp_path / "o")]):
        assert run([*in_conf(PLAN, text, tmp_path), *words]) == 2
        out, err = capsys.readouterr()
        assert not out
        assert expected in err
    assert not (tmp_path / "o").exists()


def test_a_standalone_cluster_goes_by_the_cores_of_all_executors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = in_conf(PLAN, "spark.master spark://host:7077\n", tmp_path)
    assert run([*words, "--format", "spark-defaults"]) == 0
    assert parse_properties(capsys.readouterr().out)["spark.cores.max"] == "8"


@pytest.mark.parametrize("name", ["spark-defaults", "spark-submit", "airflow", "emr", "databricks"])
def test_each_format_carries_what_the_current_settings_need(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "spark.task.cpus 2\nspark.kubernetes.executor.podTemplateFile s3://b/pod.yaml\n"
    words = [*in_conf(PLAN, text, tmp_path), "--format", name]
    assert run([*words, *(["--node-type", "n4"] if name == "databricks" else [])]) == 0
    out, err = capsys.readouterr()
    assert "spark.task.cpus" in out
    assert "cores per task that the plan assumes" in out + err
    assert "now.conf:2: spark.kubernetes.executor.podTemplateFile names another file" in err


@pytest.mark.parametrize("name", ["kubeflow", "spark-operator"])
def test_emitted_manifests_hold_what_the_plan_assumes(name: str) -> None:
    text = ALL_FORMATS[name].render(PLAN, version="1", submission=Submission())
    require_assumed(of_application(application_in(text)))


@pytest.mark.parametrize(
    "name", ["spark-defaults", "spark-submit", "pyspark", "airflow", "declarative-pipelines"]
)
def test_a_format_for_any_cluster_says_what_kubernetes_needs(name: str) -> None:
    submission = Submission(spark_version="4.1.2")
    text = ALL_FORMATS[name].render(PLAN, version="1", submission=submission)
    assert "# On Kubernetes, a job in Python also needs spark.executor.memoryOverhead=820m" in text
    text = ALL_FORMATS[name].render(a_plan(), version="1", submission=submission)
    assert "Kubernetes" not in text


def test_a_patch_says_where_trigger_and_rate_limit_are_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").write_text(json_text(plan_json(PLAN)))
    file = tmp_path / "app.yaml"
    file.write_text(kubeflow())
    for words in ([], ["--write"]):
        assert run(["emit", str(tmp_path / "plan.json"), "--patch", str(file), *words]) == 0
        err = capsys.readouterr().err
        assert '.writeStream.trigger(processingTime="2 seconds")' in err
        assert '.readStream.option("maxOffsetsPerTrigger", "100000")' in err
    file.write_text(
        "resources: {pipelines: {orders: {continuous: true, clusters: [{num_workers: 1}]}}}\n"
    )
    assert run(["emit", str(tmp_path / "plan.json"), "--patch", str(file)]) == 0
    out, err = capsys.readouterr()
    assert 'pipelines.trigger.interval: "2 seconds"' in out
    assert "writeStream" not in err
    assert '.readStream.option("maxOffsetsPerTrigger", "100000")' in err


def test_a_plan_without_a_container_leaves_memory_besides_the_heap() -> None:
    text = kubeflow(executor="{instances: 1, memoryOverhead: 3g, memoryLimit: 9Gi}")
    after, _ = patch(text, a_plan(), name="f.yaml", submission=Submission(), job=None)
    executor = application_in(after)["spec"]["executor"]
    assert executor["memoryOverhead"] == "3g"
    # But a limit below what Spark then requests would be refused by Kubernetes.
    assert executor["memoryLimit"] == "11264Mi"


CONF = st.fixed_dictionaries(
    {},
    optional={
        "spark.task.cpus": st.sampled_from(["1", "2", "3"]),
        "spark.cores.max": st.sampled_from(["1", "8", "64"]),
        "spark.executor.cores": st.sampled_from(["1", "4"]),
        "spark.executor.memory": st.sampled_from(["1g", "30g"]),
        "spark.executor.memoryOverhead": st.sampled_from(["384", "820m", "6g"]),
        "spark.yarn.executor.memoryOverhead": st.sampled_from(["1000", "2g"]),
        "spark.executor.memoryOverheadFactor": st.sampled_from(["0.1", "0.9"]),
        "spark.kubernetes.memoryOverheadFactor": st.sampled_from(["0.1", "0.4"]),
        "spark.memory.offHeap.size": st.sampled_from(["2g", "536870912"]),
        "spark.kubernetes.executor.limit.cores": st.sampled_from(["1", "4", "3900m", "6"]),
        "spark.kubernetes.executor.request.cores": st.sampled_from(["1", "4000m", "100m"]),
        "spark.dynamicAllocation.enabled": st.sampled_from(["true", "false"]),
        "spark.streaming.dynamicAllocation.enabled": st.sampled_from(["true", "false"]),
        "spark.master": st.sampled_from(["k8s://https://h", "local[2]", "yarn"]),
    },
)
EXECUTOR = st.fixed_dictionaries(
    {},
    optional={
        "instances": st.integers(1, 9),
        "cores": st.integers(1, 9),
        "memory": st.sampled_from(["1g", "8192m"]),
        "memoryOverhead": st.sampled_from(["384", "4g"]),
        "coreLimit": st.sampled_from(["1", "4", "1200m", "4100m"]),
        "coreRequest": st.sampled_from(["0.5", "4", "1200m"]),
        "memoryLimit": st.sampled_from(["4Gi", "12Gi", "5g", "9000Mi"]),
    },
)


def flow(settings: object) -> str:
    return str(yaml.safe_dump(settings, default_flow_style=True, width=9999)).strip()


@examples(25, 1000)
@given(
    conf=CONF,
    executor=EXECUTOR,
    kind=st.sampled_from(["Python", "Java"]),
    is_kubeflow=st.booleans(),
)
def test_any_settings_end_as_the_plan_assumes_or_with_their_line(
    conf: dict[str, str], executor: dict[str, object], kind: str, is_kubeflow: bool
) -> None:
    text = apache(conf=flow(conf))
    if is_kubeflow:
        text = kubeflow(conf=flow(conf), executor=flow(executor), spec=f"type: {kind}")
    if conf.get("spark.master") == "local[2]":
        with pytest.raises(InputError, match=r"f\.yaml:6: spark\.master is local\[2\]"):
            patched(text)
        return
    after = patched(text)
    require_assumed(of_application(application_in(after)))
    assert patched(after) == after
