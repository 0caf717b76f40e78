"""A plan as a ``SparkApplication`` of either Kubernetes operator."""

from __future__ import annotations

from headway.domain import Answer
from headway.emitters.submission import Submission, other_conf, with_kubernetes_overhead
from headway.emitters.wording import comment_lines, reasons
from headway.formats.yaml_lines import Tree, yaml_document
from headway.redaction import printable
from headway.sparkconf import KNOBS
from headway.sparkconf.conflicts import DRIVER_CORES_KEY, DRIVER_HEAP_KEY
from headway.sparkconf.container import OVERHEAD_KEY

_MAIN = "local:///opt/app/app.py"
_ABOUT_IMAGE = "the Spark project's image, by its usual name; name your own with --image"


def kubeflow_executor(plan: Answer) -> dict[str, Tree]:
    """The fields of an executor in ``sparkoperator.k8s.io/v1beta2`` that a plan determines."""
    conf = plan.spark_conf
    counts = {"instances": "spark.executor.instances", "cores": "spark.executor.cores"}
    sizes = {"memory": "spark.executor.memory", "memoryOverhead": OVERHEAD_KEY}
    return {
        **{field: int(conf[key]) for field, key in counts.items() if key in conf},
        **{field: conf[key] for field, key in sizes.items() if key in conf},
    }


def render_kubeflow(plan: Answer, *, version: str, submission: Submission) -> str:
    """The manifest for the operator of kubeflow, ``v1beta2``."""
    plan = with_kubernetes_overhead(plan)
    driver: dict[str, Tree] = {
        "cores": int(plan.spark_conf.get(DRIVER_CORES_KEY, 1)),
        "memory": plan.spark_conf.get(DRIVER_HEAP_KEY, "2g"),
    }
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
        "sparkConf": {
            key: value
            for key, value in other_conf(plan).items()
            if key not in (DRIVER_CORES_KEY, DRIVER_HEAP_KEY)
        },
        "driver": driver,
        "executor": kubeflow_executor(plan),
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
    comments = reasons(plan)
    for field, key in (("instances", KNOBS["executors"].key), ("memoryOverhead", OVERHEAD_KEY)):
        if key in comments:
            comments[field] = comments[key]
    if submission.image is None:
        # It is not checked whether a registry has the default image.
        profiled, text = plan.spark_version, _ABOUT_IMAGE
        if profiled is not None and not profiled.startswith(submission.full_version):
            text = printable(f"{text} (profiled on Spark {profiled})")
        comments |= {"image": text, "spark.kubernetes.container.image": text}
    return yaml_document(tree, header=comment_lines(plan, version=version), comments=comments)
