"""A plan as a ``SparkApplication`` of either Kubernetes operator."""

from __future__ import annotations

from headway.domain import Answer
from headway.emitters.submission import Submission, is_executor_size, with_kubernetes_overhead
from headway.emitters.wording import header_lines, one_line, query_option_lines, reasons
from headway.formats.yaml_lines import Tree, yaml_document
from headway.sparkconf import KNOBS
from headway.sparkconf.container import OVERHEAD_KEY

_MAIN = "local:///opt/app/app.py"


def kubeflow_tree(plan: Answer, submission: Submission) -> dict[str, Tree]:  # noqa: ARG001
    """The fields of ``sparkoperator.k8s.io/v1beta2`` that a plan determines, by their path."""
    conf = plan.spark_conf
    executor: dict[str, Tree] = {}
    if "spark.executor.instances" in conf:
        executor["instances"] = int(conf["spark.executor.instances"])
    if "spark.executor.cores" in conf:
        executor["cores"] = int(conf["spark.executor.cores"])
    if "spark.executor.memory" in conf:
        executor["memory"] = conf["spark.executor.memory"]
    if "spark.executor.memoryOverhead" in conf:
        executor["memoryOverhead"] = conf["spark.executor.memoryOverhead"]
    others: dict[str, Tree] = {
        key: value for key, value in conf.items() if not is_executor_size(key)
    }
    return {"spec": {"sparkConf": others, "executor": executor}}


def apache_tree(plan: Answer, submission: Submission) -> dict[str, Tree]:  # noqa: ARG001
    """The fields of ``spark.apache.org/v1`` that a plan determines: all are configuration."""
    return {"spec": {"sparkConf": dict(plan.spark_conf)}}


def render_kubeflow(plan: Answer, *, version: str, submission: Submission) -> str:
    """The manifest for the operator of kubeflow, ``v1beta2``."""
    plan = with_kubernetes_overhead(plan)
    decided = kubeflow_tree(plan, submission)["spec"]
    assert isinstance(decided, dict)
    driver: dict[str, Tree] = {"cores": 1, "memory": "2g"}
    if submission.service_account is not None:
        driver["serviceAccount"] = submission.service_account
    spec: dict[str, Tree] = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "image": submission.image or f"docker.io/apache/spark:{submission.full_version}-python3",
        "sparkVersion": submission.full_version,
        "mainApplicationFile": submission.main or _MAIN,
        **({"arguments": list(submission.arguments)} if submission.arguments else {}),
        "restartPolicy": {"type": "Never" if plan.ends else "Always"},
        "sparkConf": decided["sparkConf"],
        "driver": driver,
        "executor": decided["executor"],
    }
    return _manifest(plan, "sparkoperator.k8s.io/v1beta2", spec, version, submission)


def render_apache(plan: Answer, *, version: str, submission: Submission) -> str:
    """The manifest for the operator of the Apache Spark project, ``v1``."""
    plan = with_kubernetes_overhead(plan)
    conf: dict[str, Tree] = dict(plan.spark_conf)
    conf["spark.kubernetes.container.image"] = (
        submission.image or f"apache/spark:{submission.full_version}-python3"
    )
    if submission.service_account is not None:
        conf["spark.kubernetes.authenticate.driver.serviceAccountName"] = submission.service_account
    spec: dict[str, Tree] = {
        "pyFiles": submission.main or _MAIN,
        **({"driverArgs": list(submission.arguments)} if submission.arguments else {}),
        "sparkConf": conf,
        "runtimeVersions": {"sparkVersion": submission.full_version},
    }
    return _manifest(plan, "spark.apache.org/v1", spec, version, submission)


def _about_image(plan: Answer, submission: Submission) -> str:
    """Comment on the default image; it is not checked whether a registry has it."""
    profiled = plan.spark_version
    text = "the Spark project's image, by its usual name; name your own with --image"
    if profiled is not None and not profiled.startswith(submission.full_version):
        text += f" (profiled on Spark {profiled})"
    return one_line(text)


def _manifest(
    plan: Answer, api_version: str, spec: dict[str, Tree], version: str, submission: Submission
) -> str:
    metadata: dict[str, Tree] = {"name": submission.slug}
    if submission.namespace is not None:
        metadata["namespace"] = submission.namespace
    tree: dict[str, Tree] = {
        "apiVersion": api_version,
        "kind": "SparkApplication",
        "metadata": metadata,
        "spec": spec,
    }
    why = reasons(plan)
    comments = dict(why)
    for field, key in (("instances", KNOBS["executors"].key), ("memoryOverhead", OVERHEAD_KEY)):
        if key in why:
            comments[field] = why[key]
    if submission.image is None:
        comments["image"] = comments["spark.kubernetes.container.image"] = _about_image(
            plan, submission
        )
    header = [*header_lines(plan, version=version), *query_option_lines(plan)]
    return yaml_document(tree, header=header, comments=comments)
