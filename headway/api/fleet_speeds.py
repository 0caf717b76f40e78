"""What the jobs of a fleet need on cores of each speed, searched where a plan may use them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from headway.api.fleet_needs import FleetJob, KnownNeeds
from headway.api.fleet_streaming import search_together


class NeedsBySpeed:
    """Executors of jobs by the speed of cores; at speeds not searched yet, a lower bound of them.

    With the bounds a fleet is cheaper than it is, so what no plan of it can cost, no plan of the
    fleet itself can cost either.

    Parameters
    ----------
    speeds : collection of float
        Speeds of the cores on offer.
    drawn_jobs : iterable of (FleetJob, float, str)
        All jobs that will be asked for, with the arguments of `FleetJob.executors`.
    """

    def __init__(
        self,
        speeds: Collection[float],
        drawn_jobs: Iterable[tuple[FleetJob, float, str]],
        known_needs: KnownNeeds,
    ) -> None:
        self.unsearched = set(speeds)
        self._drawn_jobs, self._known_needs = list(drawn_jobs), known_needs

    def search(
        self, speeds: Collection[float], *, first: Callable[[], object] | None = None
    ) -> None:
        """Search some speeds at once, and what bounds the unsearched ones.

        This process does something else ``first``.
        """
        self.unsearched -= set(speeds)
        search_together(
            (
                (job, speed, scale, end, speed not in self.unsearched)
                for speed in (*speeds, *self.unsearched)
                for job, scale, end in self._drawn_jobs
            ),
            self._known_needs,
            first=first,
        )

    def executors(
        self, job: FleetJob, speed: float, scale: float, end: str
    ) -> tuple[int, ...] | None:
        """Executors in each hour, or a lower bound of them; None if no number is enough."""
        if speed in self.unsearched and job.takes_search:
            return job.least_executors(speed, scale, end)
        return job.executors(speed, scale, end)
