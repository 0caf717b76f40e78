"""The kinds of spec files: what each may say, declared once."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headway.spec.kinds.capacity import CapacityPlan
from headway.spec.kinds.catalog import NodeCatalog, NodeEntry
from headway.spec.kinds.cluster import Cluster
from headway.spec.kinds.jobs import BatchJob, StreamingJob
from headway.spec.kinds.rates import DailyCurve, RateTrace

#: Noun of each kind, by the name in the file.
KINDS: Mapping[str, type[Any]] = MappingProxyType(
    {
        "StreamingJob": StreamingJob,
        "BatchJob": BatchJob,
        "Cluster": Cluster,
        "NodeCatalog": NodeCatalog,
        "CapacityPlan": CapacityPlan,
    }
)

__all__ = [
    "KINDS",
    "BatchJob",
    "CapacityPlan",
    "Cluster",
    "DailyCurve",
    "NodeCatalog",
    "NodeEntry",
    "RateTrace",
    "StreamingJob",
]
