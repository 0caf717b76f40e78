"""The kinds of spec files: the content of each, declared once; a kind is loaded when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.lazy_names import loads_when_used

if TYPE_CHECKING:
    from headway.spec.kinds.capacity import CapacityPlan
    from headway.spec.kinds.catalog import NodeCatalog
    from headway.spec.kinds.cluster import Cluster
    from headway.spec.kinds.jobs import BatchJob, StreamingJob
    from headway.spec.kinds.ordered import OrderedPipeline
    from headway.spec.kinds.pipelines import MicroBatchPipeline
    from headway.spec.kinds.schedule import QuerySchedule
    from headway.spec.kinds.tuning import Exploration, Tuning
    from headway.spec.kinds.windows import SharedWindows

# A kind is called in files what its noun is called here.
_HOMES = {
    "headway.spec.kinds.jobs": "StreamingJob BatchJob",
    "headway.spec.kinds.cluster": "Cluster",
    "headway.spec.kinds.catalog": "NodeCatalog",
    "headway.spec.kinds.capacity": "CapacityPlan",
    "headway.spec.kinds.schedule": "QuerySchedule",
    "headway.spec.kinds.tuning": "Exploration Tuning",
    "headway.spec.kinds.pipelines": "MicroBatchPipeline",
    "headway.spec.kinds.ordered": "OrderedPipeline",
    "headway.spec.kinds.windows": "SharedWindows",
}
#: The kinds, by their names in files.
KINDS = tuple(" ".join(_HOMES.values()).split())

#: The noun of a kind, by its name.
noun_of_kind = __getattr__ = loads_when_used(__name__, _HOMES)

__all__ = [
    "KINDS", "BatchJob", "CapacityPlan", "Cluster", "Exploration", "MicroBatchPipeline",
    "NodeCatalog", "OrderedPipeline", "QuerySchedule", "SharedWindows", "StreamingJob", "Tuning",
    "noun_of_kind",
]  # fmt: skip
