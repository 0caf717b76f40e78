"""A plan in the formats of tools that run Spark jobs; only the requested one is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from headway.domain import Answer
from headway.lazy_classes import dataclass
from headway.lazy_names import loads_when_called

#: The text of a file from a plan, and by keyword the ``version`` of Headway and the ``submission``.
Render: TypeAlias = Callable[..., str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One output format: its function, and whether it supports comments.

    A platform that ``fills_in_sizes`` gives executors its own default sizes if the file has none,
    whatever Spark's own files contain. ``uses`` are the fields of a submission that appear in it,
    ``reasons`` those of settings that it writes with another value than the plan's.
    """

    render: Render
    uses: frozenset[str]
    has_comments: bool
    fills_in_sizes: bool
    reasons: Callable[[Answer], Mapping[str, str]] = lambda _: {}


def _format(
    dotted_path: str,
    uses: str = "",
    *,
    has_comments: bool = True,
    fills_in_sizes: bool = False,
    reasons: str = "",
) -> Format:
    """A format whose function is in a module of this package, loaded when it is called."""
    functions = {"render": dotted_path, **({"reasons": reasons} if reasons else {})}
    return Format(
        **{name: loads_when_called(f"{__name__}.{path}") for name, path in functions.items()},
        uses=frozenset(uses.split()),
        has_comments=has_comments,
        fills_in_sizes=fills_in_sizes,
    )


_KUBERNETES = "name namespace main image spark_version service_account arguments"


#: Every output format, by the name that ``headway emit --format`` takes.
ALL_FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "spark-defaults": _format("spark_defaults.render"),
        "spark-submit": _format("spark_submit.render", "main arguments"),
        "pyspark": _format("pyspark_snippet.render"),
        "kubeflow": _format("kubernetes.render_kubeflow", _KUBERNETES, fills_in_sizes=True),
        "spark-operator": _format("kubernetes.render_apache", _KUBERNETES, fills_in_sizes=True),
        "databricks": _format(
            "databricks.render", "name main node_type runtime spark_version arguments"
        ),
        "emr": _format("emr.render_ec2", has_comments=False),
        "emr-eks": _format(
            "emr.render_eks", "name main runtime arguments", has_comments=False, fills_in_sizes=True
        ),
        "emr-serverless": _format(
            "emr.render_serverless",
            "name main arguments",
            has_comments=False,
            fills_in_sizes=True,
            reasons="emr.worker_reasons",
        ),
        "dataproc": _format("dataproc.render_job", "main arguments"),
        "dataproc-serverless": _format(
            "dataproc.render_serverless",
            "main runtime arguments",
            has_comments=False,
            fills_in_sizes=True,
        ),
        "airflow": _format("airflow.render", "name main arguments"),
        "declarative-pipelines": _format("pipelines.render", "name spark_version"),
        "tfvars": _format("tfvars.render", "name", has_comments=False),
    }
)

#: The functions of the formats that need nothing but the plan.
FORMATS: Mapping[str, Render] = MappingProxyType(
    {name: ALL_FORMATS[name].render for name in ("spark-defaults", "spark-submit", "pyspark")}
)
