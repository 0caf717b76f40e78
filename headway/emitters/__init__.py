"""A plan in the formats of tools that run Spark jobs; only the requested one is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from headway.lazy_names import loads_when_used

if TYPE_CHECKING:
    from headway.domain import Answer
    from headway.emitters.submission import Submission


class Render(Protocol):
    """Interface of a format that needs only the plan, and returns the text of a file."""

    def __call__(self, plan: Answer, *, version: str) -> str: ...


class RenderFor(Protocol):
    """Interface of a platform's format, which also gets the submission."""

    def __call__(self, plan: Answer, *, version: str, submission: Submission) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One output format: its function, whether it supports comments, and its purpose.

    A platform that ``fills_in_sizes`` gives executors its own default sizes if the file has none,
    whatever Spark's own files contain. ``uses`` are the fields of a submission that appear in it.
    """

    render: RenderFor
    has_comments: bool
    about: str
    fills_in_sizes: bool = False
    uses: frozenset[str] = frozenset()


def _of_plan_alone(render: Render) -> RenderFor:
    def render_for(plan: Answer, *, version: str, submission: Submission) -> str:  # noqa: ARG001
        return render(plan, version=version)

    return render_for


def _later(dotted_path: str) -> Callable[..., str]:
    """A function of a module of this package, loaded when it is called."""
    module, _, function = dotted_path.partition(".")

    def render(plan: Answer, **keywords: Any) -> str:
        renderer: Callable[..., str] = getattr(import_module(f"{__name__}.{module}"), function)
        return renderer(plan, **keywords)

    return render


#: The formats that need nothing but the plan.
FORMATS: Mapping[str, Render] = MappingProxyType(
    {
        "spark-defaults": _later("spark_defaults.render"),
        "spark-submit": _later("spark_submit.render"),
        "pyspark": _later("pyspark_snippet.render"),
    }
)


def _format(
    render: RenderFor,
    about: str,
    *,
    uses: str = "",
    has_comments: bool = True,
    fills_in_sizes: bool = False,
) -> Format:
    return Format(
        render=render,
        has_comments=has_comments,
        about=about,
        fills_in_sizes=fills_in_sizes,
        uses=frozenset(uses.split()),
    )


_KUBERNETES = "name namespace main image spark_version service_account arguments"


#: Every output format, by the name that ``headway emit --format`` takes.
ALL_FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "spark-defaults": _format(
            _of_plan_alone(_later("spark_defaults.render")),
            "spark-defaults.conf, a properties file",
        ),
        "spark-submit": _format(
            _later("spark_submit.render_for"), "a spark-submit command", uses="main arguments"
        ),
        "pyspark": _format(
            _of_plan_alone(_later("pyspark_snippet.render")), "Python to paste into the job"
        ),
        "kubeflow": _format(
            _later("kubernetes.render_kubeflow"),
            "SparkApplication v1beta2 of kubeflow's operator",
            uses=_KUBERNETES,
            fills_in_sizes=True,
        ),
        "spark-operator": _format(
            _later("kubernetes.render_apache"),
            "SparkApplication v1 of the Apache Spark operator",
            uses=_KUBERNETES,
            fills_in_sizes=True,
        ),
        "databricks": _format(
            _later("databricks.render"),
            "a Databricks bundle",
            uses="name main node_type runtime spark_version arguments",
        ),
        "emr": _format(_later("emr.render_ec2"), "EMR on EC2: configurations", has_comments=False),
        "emr-eks": _format(
            _later("emr.render_eks"),
            "EMR on EKS: a job run",
            uses="name main runtime arguments",
            has_comments=False,
            fills_in_sizes=True,
        ),
        "emr-serverless": _format(
            _later("emr.render_serverless"),
            "EMR Serverless: a job run",
            uses="name main arguments",
            has_comments=False,
            fills_in_sizes=True,
        ),
        "dataproc": _format(
            _later("dataproc.render_job"),
            "a gcloud command for a Dataproc cluster",
            uses="main arguments",
        ),
        "dataproc-serverless": _format(
            _later("dataproc.render_serverless"),
            "the body of a Dataproc batch",
            uses="main runtime arguments",
            has_comments=False,
            fills_in_sizes=True,
        ),
        "airflow": _format(
            _later("airflow.render"),
            "keyword arguments of SparkSubmitOperator",
            uses="name main arguments",
        ),
        "declarative-pipelines": _format(
            _later("pipelines.render"),
            "spark-pipeline.yml, Spark 4.1 or later",
            uses="name spark_version",
        ),
        "tfvars": _format(
            _later("tfvars.render"), "Terraform variables", uses="name", has_comments=False
        ),
    }
)

__all__ = ["ALL_FORMATS", "FORMATS", "Format", "Render", "RenderFor", "Submission"]

__getattr__ = loads_when_used(__name__, {"headway.emitters.submission": "Submission"})
