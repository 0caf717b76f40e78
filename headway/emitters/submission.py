"""What is submitted besides the plan: names that the platforms' files need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from headway.domain import Answer
from headway.domain.checks import require_label, require_subdomain
from headway.domain.later import with_changes
from headway.domain.profile import spark_release
from headway.errors import InputError, argument
from headway.sparkconf.conflicts import conflicts, overhead_ratio_of
from headway.sparkconf.container import OVERHEAD_KEY, planned_resources

SomePlan = TypeVar("SomePlan", bound=Answer)

OLDEST_RELEASE = (3, 5)
_NEWEST_MAJOR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """An application as its platform knows it; None means the platform's usual form.

    ``main`` is the application's file, ``spark_version`` the Spark that will run it, e.g.
    ``4.0.1``, and ``runtime`` the platform's release, e.g. ``17.3.x-scala2.13`` or ``emr-7.10.0``;
    ``node_type`` is as the platform calls it. Image, namespace and service account are for
    Kubernetes. A name that is not valid on its platform is an InputError.

    >>> Submission(name="Orders (EU)").slug
    'orders-eu'
    """

    name: str = "app"
    main: str | None = None
    arguments: tuple[str, ...] = ()
    spark_version: str = "4.0.1"
    image: str | None = None
    namespace: str | None = None
    service_account: str | None = None
    runtime: str | None = None
    node_type: str | None = None

    def __post_init__(self) -> None:
        if self.namespace is not None:
            require_label(self.namespace, argument("namespace"))
        if self.service_account is not None:
            require_subdomain(self.service_account, "service account")
        for name in ("name", "main", "image", "node_type", "runtime"):
            value, form = getattr(self, name), "a text on one line, not empty"
            if value is not None and not (value.strip() and value.isprintable()):
                form = "a name on one line, e.g. orders" if name == "name" else form
                raise InputError(f"{argument(name)} {value!r}: expected {form}")
        if self.image is not None and " " in self.image:
            raise InputError(
                f"{argument('image')} {self.image!r}: expected a reference without blanks"
            )

    @property
    def slug(self) -> str:
        """The name in the form of Kubernetes names: lower case letters, digits, hyphens.

        It begins with a letter, as the services that operators create from it require.
        """
        return self._joined("-")[:63].rstrip("-")

    @property
    def identifier(self) -> str:
        """The name as an identifier of programming languages."""
        return self._joined("_")

    def _joined(self, separator: str) -> str:
        text = re.sub(r"[^a-z0-9]+", separator, self.name.lower()).strip(separator) or "app"
        return f"job{separator}{text}" if text[0].isdigit() else text

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version of Spark; InputError if Headway writes no files for it."""
        release = _release(self.spark_version)
        if release is None:
            expected = f"a version from 3.5 to 4.x, e.g. 4.0.1; give {argument('spark_version')}"
            raise InputError(f"Spark {self.spark_version}: expected {expected}")
        return release

    @property
    def full_version(self) -> str:
        """The version with three numbers, without a vendor's suffix."""
        match = re.match(r"\d+\.\d+\.\d+", self.spark_version)
        return match[0] if match else "{}.{}.0".format(*self.release)


def writes_for(spark_version: str) -> bool:
    """Whether there are formats for a version of Spark.

    >>> writes_for("3.5.6-amzn-2"), writes_for("4.3.0"), writes_for("3.3.2")
    (True, True, False)
    """
    return _release(spark_version) is not None


def _release(spark_version: str) -> tuple[int, int] | None:
    release = spark_release(spark_version)
    if release is None or release < OLDEST_RELEASE or release[0] > _NEWEST_MAJOR:
        return None
    return release


def executor_conf(plan: Answer) -> dict[str, str]:
    """The settings that size executors."""
    return {key: value for key, value in plan.spark_conf.items() if is_executor_size(key)}


def other_conf(plan: Answer) -> dict[str, str]:
    """The settings that do not size executors."""
    return {key: value for key, value in plan.spark_conf.items() if not is_executor_size(key)}


def sizeless_conf(plan: Answer) -> dict[str, str]:
    """The settings that neither size executors nor decide whether their number is fixed."""
    dynamic = "spark.dynamicAllocation."
    return {key: value for key, value in other_conf(plan).items() if not key.startswith(dynamic)}


def is_executor_size(key: str) -> bool:
    """Whether a key says how many executors there are, or how large one is.

    >>> is_executor_size("spark.executor.memory"), is_executor_size("spark.sql.shuffle.partitions")
    (True, False)
    """
    prefix, _, size = key.rpartition(".")
    return prefix == "spark.executor" and size in ("instances", "cores", "memory", "memoryOverhead")


def with_kubernetes_overhead(plan: SomePlan) -> SomePlan:
    """The plan with the overhead of its containers written out, if Kubernetes would change it.

    There, containers of jobs that are not JVM ones get a larger overhead unless one is set.
    """
    ratio = overhead_ratio_of(is_on_kubernetes=True, is_jvm_job=False)
    resources = planned_resources(plan)
    settings = {
        conflict.key: conflict.planned
        for conflict in conflicts(resources, plan.spark_conf, usual_overhead_ratio=ratio)
        if conflict.key == OVERHEAD_KEY
    }
    return with_changes(plan, spark_conf={**plan.spark_conf, **settings}) if settings else plan


def conf_arguments(conf: Mapping[str, str]) -> list[str]:
    """``--conf`` and its value for each key, for lists of arguments."""
    return [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
