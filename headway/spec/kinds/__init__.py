"""The kinds of spec files: the content of each, declared once; a kind is loaded when needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

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
_KINDS = " ".join(_HOMES.values()).split()

__getattr__ = loads_when_used(__name__, _HOMES)


class _Nouns(Mapping[str, type[Any]]):
    def __getitem__(self, name: str) -> type[Any]:
        if name not in _KINDS:
            raise KeyError(name)
        noun = __getattr__(name)
        assert isinstance(noun, type)
        return noun

    def __iter__(self) -> Iterator[str]:
        return iter(_KINDS)

    def __len__(self) -> int:
        return len(_KINDS)


#: Noun of each kind, by the name in the file.
KINDS: Mapping[str, type[Any]] = _Nouns()

__all__ = [
    "KINDS", "BatchJob", "CapacityPlan", "Cluster", "Exploration", "MicroBatchPipeline",
    "NodeCatalog", "OrderedPipeline", "QuerySchedule", "SharedWindows", "StreamingJob", "Tuning",
]  # fmt: skip
