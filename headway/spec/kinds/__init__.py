"""The kinds of spec files: the content of each, declared once; a kind is loaded when needed."""

from __future__ import annotations

from headway.lazy_names import loads_when_used

# A kind is called in files what its noun is called here.
_HOMES = {
    "headway.spec.kinds.jobs": "StreamingJob BatchJob",
    "headway.spec.kinds.catalog": "Cluster NodeCatalog",
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
noun_of_kind = loads_when_used(__name__, _HOMES)
