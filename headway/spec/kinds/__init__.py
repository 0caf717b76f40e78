"""The kinds of spec files: the content of each, declared once; a kind is loaded when needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from headway.lazy_names import loads_when_used

if TYPE_CHECKING:
    from headway.spec.kinds.capacity import CapacityPlan
    from headway.spec.kinds.catalog import NodeCatalog, NodeEntry
    from headway.spec.kinds.cluster import Cluster
    from headway.spec.kinds.exploration import Exploration
    from headway.spec.kinds.jobs import BatchJob, StreamingJob
    from headway.spec.kinds.ordered import OrderedPipeline
    from headway.spec.kinds.pipelines import MicroBatchPipeline
    from headway.spec.kinds.rates import DailyCurve, RateTrace
    from headway.spec.kinds.schedule import QuerySchedule
    from headway.spec.kinds.tuning import Tuning
    from headway.spec.kinds.windows import SharedWindows

# A kind is called in files what its noun is called here.
_HOME_OF = {
    "StreamingJob": "headway.spec.kinds.jobs",
    "BatchJob": "headway.spec.kinds.jobs",
    "Cluster": "headway.spec.kinds.cluster",
    "NodeCatalog": "headway.spec.kinds.catalog",
    "CapacityPlan": "headway.spec.kinds.capacity",
    "QuerySchedule": "headway.spec.kinds.schedule",
    "Exploration": "headway.spec.kinds.exploration",
    "Tuning": "headway.spec.kinds.tuning",
    "MicroBatchPipeline": "headway.spec.kinds.pipelines",
    "OrderedPipeline": "headway.spec.kinds.ordered",
    "SharedWindows": "headway.spec.kinds.windows",
}


class _Kinds(Mapping[str, type[Any]]):
    def __getitem__(self, name: str) -> type[Any]:
        noun = getattr(import_module(_HOME_OF[name]), name)
        assert isinstance(noun, type)
        return noun

    def __iter__(self) -> Iterator[str]:
        return iter(_HOME_OF)

    def __len__(self) -> int:
        return len(_HOME_OF)


#: Noun of each kind, by the name in the file.
KINDS: Mapping[str, type[Any]] = _Kinds()

__all__ = [
    "KINDS", "BatchJob", "CapacityPlan", "Cluster", "DailyCurve", "Exploration",
    "MicroBatchPipeline", "NodeCatalog", "NodeEntry", "OrderedPipeline",
    "QuerySchedule", "RateTrace", "SharedWindows", "StreamingJob", "Tuning",
]  # fmt: skip

__getattr__ = loads_when_used(
    __name__,
    {
        **{home: name for name, home in _HOME_OF.items()},
        "headway.spec.kinds.jobs": "BatchJob StreamingJob",
        "headway.spec.kinds.catalog": "NodeCatalog NodeEntry",
        "headway.spec.kinds.rates": "DailyCurve RateTrace",
    },
)
