"""When a change of a running query is worth the late rows that it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headway.assumptions import live

_LEAST_LOAD = 1e-9


def purse_node_s(down_late_s: float, up_late_s: float, quantile: float) -> float:
    r"""Node-seconds that may idle before removing nodes and adding them again is cheaper.

    Parameters
    ----------
    down_late_s, up_late_s : float, >= 0, arrivals that a step down and the next up make late [s]
    quantile : float, 0 < quantile < 1, of the target

    **(A8)** Two budgets. Changes may use the share `α = 0.25` of the late budget `1 - q`, so that
    `t` late seconds are allowed in `t/(α(1-q))` seconds; a node that is kept for that long costs as
    much. Idle nodes are removed when they have cost `K = (t_1 + t_2)/(α(1-q))` node-seconds, with
    `t_1` and `t_2` the late seconds of the step down and of the next step up. This is the
    rent-or-buy rule, which costs at most twice as much as knowing the future (Karlin, Manasse,
    Rudolph and Sleator 1988, doi:10.1007/BF01762111); (A20) is what becomes of it once the load
    has come back before. `t_2` is what steps up made late so far, at most the larger of (A16) and
    what those from the smaller size made late. There is no step down within half an hour of another
    change.

    >>> round(purse_node_s(11.0, 5.0, 0.99))
    6400
    """
    if not (down_late_s >= 0.0 and up_late_s >= 0.0 and 0.0 < quantile < 1.0):
        raise ValueError("need late seconds of 0 or more, and a quantile between 0 and 1")
    return (down_late_s + up_late_s) * late_price(quantile)


def late_price(quantile: float) -> float:
    r"""Node-seconds that a second of late arrivals is worth (A8).

    Parameters
    ----------
    quantile : float, 0 < quantile < 1, of the target

    >>> round(late_price(0.99))
    400
    """
    return 1.0 / (live.BUDGET_OF_CHANGES_RATIO.value * (1.0 - quantile))


def is_worth_leaving(
    num_idle: int, idle_s: float, purse: float, calms_s: Sequence[float] = ()
) -> bool:
    r"""Whether idle nodes have cost as much as removing and adding them again, over all calms.

    They are not before they have idled for two minutes.

    Parameters
    ----------
    num_idle : int, >= 0, nodes beyond the maximum that was needed since they were last in use
    idle_s : float, >= 0, time since then
    purse : float, >= 0, of `purse_node_s`
    calms_s : sequence of float, >= 0, earlier times until these nodes were needed again [s]

    **(A20)** Calms. A load needs no more than a size for times `I_1, I_2, ...`, between which it
    needs `n` more nodes. Keeping them costs `n I_j` node-seconds in each, removing them at once
    `K` (A8). After `k` calms of `T` seconds together they are removed at once if `k > 0` and
    `n T >= k K`, else once they have idled for `e` with `n(T + e) >= (k + 1) K`: whichever would
    have cost less so far is followed, and the first calm is rent or buy. This costs at most
    `min(n Σ I_j, k K) + c K`, with `c` the number of times that the cheaper of the two has
    changed: while one stays cheaper, as much is added to the cost as to that of the cheaper one;
    and when the order changes, the two differ by at most `K`. Keeping them is the fixed size, so
    the regret against the best one in hindsight is at most `c K`. It is the bound of following
    the leader (Cesa-Bianchi and Lugosi 2006, chapter 3), here without a term that grows with the
    number of calms, since a calm is left when the order changes, not after it.

    >>> is_worth_leaving(4, 700.0, 3200.0), is_worth_leaving(4, 900.0, 3200.0)
    (False, True)

    Loads that always came back soon, and loads that stayed away:

    >>> is_worth_leaving(4, 900.0, 3200.0, [300.0, 300.0])
    False
    >>> is_worth_leaving(4, 120.0, 3200.0, [7200.0, 5400.0])
    True
    """
    num_calms, calm_s = len(calms_s), math.fsum(calms_s)
    if num_idle <= 0 or idle_s < live.LEAST_IDLE_S.value:
        return False
    if num_calms and num_idle * calm_s >= num_calms * purse:
        return True
    return num_idle * (calm_s + idle_s) >= (num_calms + 1) * purse


def return_late_s(
    new_late_s: float, late_ratio: float, lead_s: float, load_ratio: float, load_after_ratio: float
) -> float:
    r"""Late seconds if a load returns to a query that has been scaled down meanwhile.

    Parameters
    ----------
    new_late_s : float, >= 0, late seconds by new executors alone
    late_ratio : float, 0 to 1, share of late rows at that load, with the smaller size
    lead_s : float, >= 0, time until the return is seen and more executors are available
    load_ratio, load_after_ratio : float, >= 0, `λ/d` and `λ/d'`

    **(A16)** A load `λ` returns to a query whose size carries `d` rows per second, and `d'` after
    the next step up. Until that step has been made, a time `t_a`, the share `g` of the arrivals is
    late, and so are all rows that arrive while the resulting backlog is worked off:
    `t_0 + g t_a + t_a max(λ-d, 0)/(d'-λ)`, with `t_0` for new executors (A7). A fluid model: exact
    if rows flow evenly. In (A8) `λ` is the highest rate of the last six hours.

    >>> loads = ((1.0, 90.0, 1.2, 0.8), (0.0, 90.0, 0.9, 0.8))
    >>> [round(return_late_s(2.0, *load)) for load in loads]
    [152, 2]
    """
    if not (new_late_s >= 0.0 and 0.0 <= late_ratio <= 1.0 and lead_s >= 0.0):
        raise ValueError("need times of 0 or more, and a share of late rows between 0 and 1")
    if not (load_ratio >= 0.0 and load_after_ratio >= 0.0):
        raise ValueError("need loads of 0 or more")
    waiting_s = lead_s * max(1.0 - 1.0 / load_ratio, 0.0) if load_ratio > 0.0 else 0.0
    spare_ratio = 1.0 / max(min(load_after_ratio, live.MOST_LOADED_RATIO.value), _LEAST_LOAD) - 1.0
    return new_late_s + late_ratio * lead_s + waiting_s / spare_ratio


def margin_score(budget_used_ratio: float) -> float:
    r"""Margin over the forecast, in spreads of the forecast errors.

    Parameters
    ----------
    budget_used_ratio : float, >= 0, share of late rows over what the target allows

    **(A6)** Margin over the forecast: `z = 0.4 + 1.3 min(u, 1.2)`, with `u` the share of late rows
    in the last six hours over `1 - q`, phased in over the first hour. A target that is met easily
    is thus met with fewer nodes. The planned rate is (A3) at this score.

    >>> [round(margin_score(used), 2) for used in (0.0, 0.5, 2.0)]
    [0.4, 1.05, 1.96]
    """
    least, more = live.MARGIN_SPREADS.value
    return least + more * min(budget_used_ratio, live.MOST_BUDGET_USED.value)


def planned_rate_per_s(forecast_per_s: float, score: float, spread_ratio: float) -> float:
    r"""The rate that a running query is planned for.

    Parameters
    ----------
    forecast_per_s : float, >= 0, of `models.estimation.forecast`
    score : float, of `margin_score`
    spread_ratio : float, >= 0, of the forecast errors

    **(A3)** Planned rate: `(λ + m t)(1 + z σ)`, the forecast (A1) over the lead `t`, with the
    spread (A2). The lead is the 90% quantile of the time until executors are available, plus one
    bin.

    >>> planned_rate_per_s(1000.0, 0.5, 0.1)
    1050.0
    """
    return max(forecast_per_s * (1.0 + score * spread_ratio), 0.0)
