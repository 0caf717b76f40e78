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
    index_by_units: dict[bytes, int] = {}
    keep: list[int] = []
    hours: list[float] = []
    for period in range(fleet.num_periods):
        cases = np.flatnonzero(fleet.period_of == period)
        key = np.ascontiguousarray(fleet.units[:, :, cases]).tobytes()
        if key in index_by_units:
            hours[index_by_units[key]] += float(fleet.hours[period])
        else:
            index_by_units[key] = len(keep)
            keep.append(period)
            hours.append(float(fleet.hours[period]))
    kept_cases = np.flatnonzero(np.isin(fleet.period_of, keep))
    new_index_of = np.full(fleet.num_periods, -1)
    new_index_of[keep] = np.arange(len(keep))
    return replace(
        fleet,
        units=fleet.units[:, :, kept_cases],
        period_of=new_index_of[fleet.period_of[kept_cases]],
        hours=np.array(hours),
    )


def _without_lighter_cases(fleet: Fleet) -> Fleet:
    num_cases = len(fleet.period_of)
    if num_cases == fleet.num_periods or num_cases > _MOST_COMPARED:
        return fleet
    drop = np.zeros(num_cases, dtype=bool)
    for case in range(num_cases):
        for other in range(num_cases):
            same_period = fleet.period_of[case] == fleet.period_of[other]
            if case == other or drop[other] or not same_period:
                continue
            if np.all(fleet.units[:, :, case] <= fleet.units[:, :, other]):
                drop[case] = True
                break
    return replace(fleet, units=fleet.units[:, :, ~drop], period_of=fleet.period_of[~drop])
