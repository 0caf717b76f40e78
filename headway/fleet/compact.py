"""The same problem with fewer load cases: hours equal to or lighter than others are merged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headway.fleet.nouns import Fleet

_MOST_COMPARED = 200


def compact(fleet: Fleet) -> Fleet:
    """A fleet with the same plans and costs, without load cases that are covered by others.

    Periods with the same load cases have the same nodes in a cheapest plan, so they become one with
    the hours of all. Within a period, a case that needs no more than another one, for any job on
    any supply, never determines the nodes.
    """
    return _without_lighter_cases(_with_like_periods_joined(fleet))


def _with_like_periods_joined(fleet: Fleet) -> Fleet:
    seen: dict[bytes, int] = {}
    keep: list[int] = []
    hours: list[float] = []
    for period in range(fleet.num_periods):
        cases = np.flatnonzero(fleet.period_of == period)
        key = np.ascontiguousarray(fleet.units[:, :, cases]).tobytes()
        if key in seen:
            hours[seen[key]] += float(fleet.hours[period])
        else:
            seen[key] = len(keep)
            keep.append(period)
            hours.append(float(fleet.hours[period]))
    kept = np.flatnonzero(np.isin(fleet.period_of, keep))
    place = np.full(fleet.num_periods, -1)
    place[keep] = np.arange(len(keep))
    return replace(
        fleet,
        units=fleet.units[:, :, kept],
        period_of=place[fleet.period_of[kept]],
        hours=np.array(hours),
    )


def _without_lighter_cases(fleet: Fleet) -> Fleet:
    num_cases = len(fleet.period_of)
    if num_cases == fleet.num_periods or num_cases > _MOST_COMPARED:
        return fleet
    drop = np.zeros(num_cases, dtype=bool)
    for case in range(num_cases):
        for other in range(num_cases):
            alike = fleet.period_of[case] == fleet.period_of[other]
            if case == other or drop[other] or not alike:
                continue
            if np.all(fleet.units[:, :, case] <= fleet.units[:, :, other]):
                drop[case] = True
                break
    return replace(fleet, units=fleet.units[:, :, ~drop], period_of=fleet.period_of[~drop])
