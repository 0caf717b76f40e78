"""A patch changes what the plan decides and leaves every other byte alone."""

from __future__ import annotations

import difflib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headway.emitters.patch import patch
from headway.emitters.submission import Submission
from headway.errors import InputError
from headway.formats.yaml_patch import documents_of, patched
from tests.factories import a_plan
from tests.seeds import examples

KUBEFLOW = """\
# Deployed by hand, see runbook.
apiVersion: sparkoperator.k8s.io/v1beta2   # the old operator
kind: SparkApplication
metadata: {name: orders, namespace: data}
spec:
    type: Python
    sparkConf:
        "spark.sql.shuffle.partitions": '200'   # default
        spark.ui.enabled: "true"

    # sizes
    executor:
        cores: 4
        instances: 10 # too many?
        labels: {a: b}
    driver:
        memory: 2g
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
"""
BUNDLE = """\
resources:
  jobs:
    orders:   # ours
      job_clusters:
        - job_cluster_key: main
          new_cluster:
            num_workers: 20
            spark_conf: {spark.sql.shuffle.partitions: "200", spark.a: "true"}
      tasks:
        - task_key: a
          job_cluster_key: main
    other:
      tasks:
        - task_key: b
          new_cluster:
            num_workers: 1
"""


def patch_of(text: str, job: str | None = None) -> str:
    return patch(text, a_plan(), name="f.yaml", submission=Submission(), job=job)[0]


def changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]


def test_a_manifest_keeps_comments_order_and_indentation() -> None:
    after = patch_of(KUBEFLOW)
    assert changed_lines(KUBEFLOW, after) == [
        "-        \"spark.sql.shuffle.partitions\": '200'   # default",
        '+        "spark.sql.shuffle.partitions": "8"   # default',
        '+        spark.dynamicAllocation.enabled: "false"',
        "-        instances: 10 # too many?",
        "+        instances: 2 # too many?",
        '+        memory: "8g"',
    ]
    spec = next(yaml.safe_load_all(after))["spec"]
    assert spec["executor"] == {"cores": 4, "instances": 2, "labels": {"a": "b"}, "memory": "8g"}
    assert patch_of(after) == after


def test_the_apache_operator_gets_all_of_it_as_configuration() -> None:
    text = (
        "apiVersion: spark.apache.org/v1\nkind: SparkApplication\nmetadata: {name: a}\n"
        "spec:\n  runtimeVersions: {sparkVersion: '4.0.1'}"
    )
    conf = yaml.safe_load(patch_of(text))["spec"]["sparkConf"]
    assert conf == dict(a_plan().spark_conf)
    assert patch_of(text).startswith(text)


def test_sizes_doubled_in_the_configuration_agree() -> None:
    text = KUBEFLOW.replace("spark.ui.enabled", "spark.executor.instances")
    spec = next(yaml.safe_load_all(patch_of(text)))["spec"]
    assert spec["sparkConf"]["spark.executor.instances"] == "2"
    assert spec["executor"]["instances"] == 2


def test_dynamic_allocation_of_the_operator_is_turned_off() -> None:
    text = KUBEFLOW.replace("    driver:", "    dynamicAllocation: {enabled: true}\n    driver:")
    assert next(yaml.safe_load_all(patch_of(text)))["spec"]["dynamicAllocation"] == {
        "enabled": False
    }


def test_a_bundle_is_patched_at_the_job_that_is_named() -> None:
    after = patch_of(BUNDLE, job="orders")
    assert changed_lines(BUNDLE, after) == [
        "-            num_workers: 20",
        '-            spark_conf: {spark.sql.shuffle.partitions: "200", spark.a: "true"}',
        "+            num_workers: 2",
        '+            spark_conf: {spark.sql.shuffle.partitions: "8", spark.a: "true"}',
    ]
    assert yaml.safe_load(patch_of(BUNDLE, job="other"))["resources"]["jobs"]["other"]["tasks"][0][
        "new_cluster"
    ] == {"num_workers": 2, "spark_conf": {"spark.sql.shuffle.partitions": "8"}}


@pytest.mark.parametrize(
    ("text", "job", "expected"),
    [
        (BUNDLE, None, "several jobs, orders, other; name one with job"),
        (BUNDLE, "none", "job 'none': no such job; expected one of: orders, other"),
        ("a: 1", None, "nothing to put a plan into"),
        ("a: [", None, "f.yaml:1:5: not YAML"),
        ("", None, "nothing to put a plan into"),
        ("[" * 5000, None, "not YAML"),
        (KUBEFLOW.replace("    executor:\n", "    executor: 5\n    x:\n"), None, "f.yaml:12:1: "),
        (
            KUBEFLOW.replace("instances: 10", "instances: &c 10"),
            None,
            "instances is shared by an anchor in line 14",
        ),
        (
            "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nspec:\n- []\n",
            None,
            ": a list; expected a mapping",
        ),
    ],
)
def test_what_cannot_be_patched_says_why(text: str, job: str | None, expected: str) -> None:
    with pytest.raises(InputError, match="f") as caught:
        patch_of(text, job)
    assert expected in str(caught.value)


def test_what_ends_at_one_line_is_added_deepest_first() -> None:
    text = "b:\n  b: 0\n"
    after = patched_whole(text, {"b": {"a": 0}, "a": 0}, "t")
    assert after == "b:\n  b: 0\n  a: 0\na: 0\n"
    after = patched_whole(text[:-1], {"b": {"a": 0}, "a": 0}, "t")
    assert after == "b:\n  b: 0\n  a: 0\na: 0"


def patched_whole(text: str, changes: dict[str, object], name: str) -> str:
    documents = documents_of(text, name)
    return patched(text, documents, documents[0], changes, name)  # type: ignore[arg-type]


KEYS = st.sampled_from(["a", "b", "spark.c", "d-e"])
SCALARS = st.one_of(st.integers(0, 99), st.text(max_size=8), st.booleans())
TREES = st.dictionaries(KEYS, st.one_of(SCALARS, st.dictionaries(KEYS, SCALARS, max_size=3)))


def merged(tree: object, changes: object) -> object:
    if not (isinstance(tree, dict) and isinstance(changes, dict)):
        return changes
    return {**tree, **{key: merged(tree.get(key), value) for key, value in changes.items()}}


@examples(30, 150)
@given(tree=TREES.filter(bool), changes=TREES, flow=st.sampled_from([None, False, True]))
def test_a_patched_text_says_what_was_asked(
    tree: object, changes: object, flow: bool | None
) -> None:
    """Mappings only replace mappings, as in a plan; the rest of the tree stays."""
    assert isinstance(tree, dict)
    assert isinstance(changes, dict)
    fitting = {
        key: value
        for key, value in changes.items()
        if key not in tree or isinstance(tree[key], dict) == isinstance(value, dict)
    }
    text = yaml.safe_dump(tree, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    after = patched_whole(text, fitting, "t")
    assert yaml.safe_load(after) == merged(tree, fitting)


def test_items_of_lists_are_changed_in_place() -> None:
    text = "a:   # all\n- b: 1  # one\n  c: x\n- {b: 2} # two\n"
    after = patched_whole(text, {"a": {"1": {"b": 3}, "0": {"b": 4, "d": 5}}}, "t")
    assert after == "a:   # all\n- b: 4  # one\n  c: x\n  d: 5\n- {b: 3} # two\n"
    shared = "x: &x {b: 1}\na:\n- *x\n"
    with pytest.raises(InputError, match="the list in line 3 is shared by an anchor in line 1"):
        patched_whole(shared, {"a": {"0": {"b": 2}}}, "t")


def test_what_a_cluster_takes_from_an_anchor_is_seen() -> None:
    text = (
        "base: &base\n  autoscale: {min_workers: 1, max_workers: 2}\nresources:\n  clusters:\n"
        "    shared:\n      <<: *base\n      node_type_id: m6i.xlarge\n"
    )
    with pytest.raises(InputError, match=r"f\.yaml:2: autoscale contradicts"):
        patch_of(text)
    conf = (
        "base: &base {spark.task.cpus: '2'}\nresources:\n  clusters:\n    shared:\n"
        "      spark_conf:\n        <<: *base\n"
    )
    spark_conf = yaml.safe_load(patch_of(conf))["resources"]["clusters"]["shared"]["spark_conf"]
    assert spark_conf["spark.task.cpus"] == "1"
