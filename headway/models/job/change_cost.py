"""What a change of a running query costs in late rows, and when it is worth that."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median, quantiles

from headway.assumptions.live import (
    APPLICATION_PAUSE_S,
    BUDGET_OF_CHANGES_RATIO,
    COST_LEVEL_RATIO,
    COSTS_REMEMBERED,
    FIRST_BATCHES,
    FIRST_BATCHES_RATIO,
    LEAST_IDLE_S,
    MARGIN_SPREADS,
    MOST_BUDGET_USED,
    MOST_LOADED_RATIO,
    REMOVAL_PAUSE_S,
    REPARTITION_PAUSE_S,
    RESTART_PAUSE_S,
    USUAL_RESTART_PAUSE_S,
)
from headway.domain.live import ChangeKind

_LEAST_LOAD = 1e-9


def pause_late_s(pause_s: float, slack_s: float, load_ratio: float) -> float:
    r"""Seconds of arrivals that a pause of the query makes late.

    Parameters
    ----------
    pause_s : float, >= 0
        How much longer than usual no batch ends. [s]
    slack_s : float, >= 0
        Limit of the target less the planned latency. [s]
    load_ratio : float, >= 0
        Arrivals over the rate at which a backlog is worked off. [-]

    Returns
    -------
    float
        For loads above 0.98, the value at 0.98. [s]

    Raises
    ------
    ValueError
        If an argument is negative.

    Notes
    -----
    **(A7)** A pause `p` makes the arrivals of `max(0, p - s)/(1 - r)` seconds late, with `s` the
    slack, `L` less the planned latency, and `r` the load, as in (N7): the backlog of the pause is
    worked off at the spare rate, and all rows that arrive until the delay has fallen to `s` are
    late. New executors pause the query by `p = (g - 1)D` in each of the first 2 batches, which take
    `g = 2` times as long as usual. After changes of the same kind, the 90% quantile of the late
    seconds of the last 10 replaces this estimate.

    Examples
    --------
    >>> pause_late_s(5.9, 0.4, 0.5)
    11.0
    """
    if not (pause_s >= 0.0 and slack_s >= 0.0 and load_ratio >= 0.0):
        raise ValueError("need pause_s, slack_s and load_ratio of 0 or more")
    return max(pause_s - slack_s, 0.0) / (1.0 - min(load_ratio, MOST_LOADED_RATIO.value))


def prior_pause_s(kind: ChangeKind, duration_s: float) -> float:
    r"""How long a change is expected to pause the query before one of its kind was seen.

    Parameters
    ----------
    kind : ChangeKind
        What is changed.
    duration_s : float, >= 0
        Usual batch duration. [s]

    Returns
    -------
    float
        For `pause_late_s`. [s]

    Notes
    -----
    theory.md (A7).

    Examples
    --------
    >>> prior_pause_s(ChangeKind.RESTART, 0.8), prior_pause_s(ChangeKind.ADD, 0.8)
    (2.2, 1.6)
    """
    if kind is ChangeKind.ADD:
        return FIRST_BATCHES.value * (FIRST_BATCHES_RATIO.value - 1.0) * duration_s
    return {
        ChangeKind.REMOVE: REMOVAL_PAUSE_S.value,
        ChangeKind.RESTART: RESTART_PAUSE_S.value,
        ChangeKind.APPLICATION: APPLICATION_PAUSE_S.value,
        ChangeKind.REPARTITION: REPARTITION_PAUSE_S.value,
    }[kind]


def expected_pause_s(kind: ChangeKind, duration_s: float, seen_s: Sequence[float]) -> float:
    r"""How long one more change of a kind is expected to pause the query: the middle.

    Parameters
    ----------
    kind : ChangeKind
        What is changed.
    duration_s : float, >= 0
        Usual batch duration. [s]
    seen_s : sequence of float, >= 0
        Pauses by earlier changes of the kind, oldest first. [s]

    Returns
    -------
    float
        For the record of a change; whether it pays is decided by `learned_late_s`. [s]

    Notes
    -----
    **(A18)** What is expected of a change is written down before it and compared afterwards, so it
    is in the middle, whereas (A7) decides by upper ends. The pause `p` is the median of the last 10
    of a kind; the prior is one of them until there are 10. The prior of a restart is 1.5 s, the
    middle of the measurements whose upper end is in (A7). A query is restarted after a batch of
    duration `D`, instead of waiting for the next trigger: the oldest row that is delayed waits
    `D + p` until the first new batch starts, and would wait `max(B', D')` at the new trigger
    interval `B'` and batch duration `D'`. So the pause in (A7) is `max(0, D + p - max(B', D'))`.

    Examples
    --------
    >>> pauses_s = [expected_pause_s(ChangeKind.RESTART, 0.8, [0.5] * n) for n in (0, 1, 2)]
    >>> pauses_s
    [1.5, 1.0, 0.5]
    """
    is_restart = kind is ChangeKind.RESTART
    prior_s = USUAL_RESTART_PAUSE_S.value if is_restart else prior_pause_s(kind, duration_s)
    return float(median(_known_s(prior_s, seen_s)))


def restart_delay_s(pause_s: float, before_s: float, trigger_s: float, duration_s: float) -> float:
    r"""How much longer than usual rows wait because a query is restarted between two batches.

    Parameters
    ----------
    pause_s : float, >= 0
        Time from the stop to the start, and the excess of the first batch. [s]
    before_s : float, >= 0
        Batch duration before the restart. [s]
    trigger_s, duration_s : float, >= 0
        Trigger interval and batch duration after it. [s]

    Returns
    -------
    float
        For `pause_late_s`. [s]

    Notes
    -----
    theory.md (A18).

    Examples
    --------
    >>> round(restart_delay_s(0.5, 1.3, 1.0, 0.7), 3), restart_delay_s(0.5, 0.4, 1.0, 0.4)
    (0.8, 0.0)
    """
    return max(before_s + pause_s - max(trigger_s, duration_s), 0.0)


def learned_late_s(prior_s: float, seen_s: Sequence[float]) -> float:
    r"""Expected late seconds of one more change of a kind, after those that were seen.

    Parameters
    ----------
    prior_s : float, >= 0
        Expected before any was seen. [s]
    seen_s : sequence of float, >= 0
        Seconds of arrivals that earlier ones made late, oldest first. [s]

    Returns
    -------
    float
        The prior counts as one of them. [s]

    Notes
    -----
    theory.md (A7).

    Examples
    --------
    >>> learned_late_s(4.0, []), round(learned_late_s(4.0, [1.0] * 20), 2)
    (4.0, 1.0)
    """
    known = _known_s(prior_s, seen_s)
    if len(known) < 2:
        return prior_s
    hundredths = quantiles(known, n=100, method="inclusive")
    return hundredths[round(100 * COST_LEVEL_RATIO.value) - 1]


def _known_s(prior_s: float, seen_s: Sequence[float]) -> list[float]:
    """The last ones that were seen; the prior is one of them until there are enough."""
    known = [*seen_s][-COSTS_REMEMBERED.value :]
    return known if len(known) >= COSTS_REMEMBERED.value else [prior_s, *known]


def purse_node_s(down_late_s: float, up_late_s: float, quantile: float) -> float:
    r"""Node-seconds that may idle before removing nodes and adding them again is cheaper.

    Parameters
    ----------
    down_late_s, up_late_s : float, >= 0
        Seconds of arrivals that a step down and the next step up make late. [s]
    quantile : float, 0 to 1
        Of the target. [-]

    Returns
    -------
    float
        Node-seconds. [s]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(A8)** Two budgets. Changes may use the share `α = 0.5` of the late budget `1 - q`, so that
    `t` late seconds are allowed in `t/(α(1-q))` seconds; a node that is kept for that long costs as
    much. Idle nodes are removed when they have cost `K = (t_1 + t_2)/(α(1-q))` node-seconds, with
    `t_1` and `t_2` the late seconds of the step down and of the next step up. This is the
    rent-or-buy rule, which costs at most twice as much as knowing the future (Karlin, Manasse,
    Rudolph and Sleator 1988, doi:10.1007/BF01762111). `t_2` is what steps up made late so far, at
    most (A16). In addition, the late seconds of the two changes themselves, `t_1` and the `t_0` of
    new executors (A7), are allowed again only `(t_1 + t_0)/(α(1-q))` seconds after the previous
    change: there is no step down earlier, and none within half an hour. If the late budget is
    overspent, `u > 1` by (A6), changes may use less of it: `K` is `u` times as large.

    Examples
    --------
    >>> round(purse_node_s(11.0, 5.0, 0.99))
    3200
    """
    if not (down_late_s >= 0.0 and up_late_s >= 0.0 and 0.0 < quantile < 1.0):
        raise ValueError("need late seconds of 0 or more, and a quantile between 0 and 1")
    return (down_late_s + up_late_s) * late_price(quantile)


def late_price(quantile: float) -> float:
    r"""Node-seconds that a second of late arrivals is worth.

    Parameters
    ----------
    quantile : float, 0 to 1
        Of the target. [-]

    Returns
    -------
    float
        Node-seconds per second. [-]

    Notes
    -----
    theory.md (A8).

    Examples
    --------
    >>> round(late_price(0.99))
    200
    """
    return 1.0 / (BUDGET_OF_CHANGES_RATIO.value * (1.0 - quantile))


def is_worth_leaving(num_idle: int, idle_s: float, purse: float) -> bool:
    r"""Whether nodes have idled for as much as removing and adding them again costs.

    Parameters
    ----------
    num_idle : int, >= 0
        Nodes beyond the maximum that was needed since they were last in use. [-]
    idle_s : float, >= 0
        Time since then. [s]
    purse : float, >= 0
        Of `purse_node_s`, in node-seconds. [s]

    Returns
    -------
    bool
        Never True before two minutes.

    Notes
    -----
    theory.md (A8).

    Examples
    --------
    >>> is_worth_leaving(4, 700.0, 3200.0), is_worth_leaving(4, 900.0, 3200.0)
    (False, True)
    """
    return num_idle > 0 and idle_s >= LEAST_IDLE_S.value and num_idle * idle_s >= purse


def return_late_s(
    new_late_s: float, late_ratio: float, lead_s: float, load_ratio: float, load_after_ratio: float
) -> float:
    r"""Late seconds if a load returns to a query that has been scaled down meanwhile.

    Parameters
    ----------
    new_late_s : float, >= 0
        Late seconds by new executors alone. [s]
    late_ratio : float, 0 to 1
        Share of late rows at that load, with the smaller size. [-]
    lead_s : float, >= 0
        Time until the return is seen and more executors are available. [s]
    load_ratio, load_after_ratio : float, >= 0
        That load over the rate at which the smaller and the larger size work off a backlog. [-]

    Returns
    -------
    float
        Seconds of arrivals. [s]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(A16)** A load `λ` returns to a query whose size carries `d` rows per second, and `d'` after
    the next step up. Until that step has been made, a time `t_a`, the share `g` of the arrivals is
    late, and so are all rows that arrive while the resulting backlog is worked off:
    `t_0 + g t_a + t_a max(λ-d, 0)/(d'-λ)`, with `t_0` for new executors (A7). A fluid model: exact
    if rows flow evenly. In (A8) `λ` is the highest rate of the last six hours.

    Examples
    --------
    >>> loads = ((1.0, 90.0, 1.2, 0.8), (0.0, 90.0, 0.9, 0.8))
    >>> [round(return_late_s(2.0, *each)) for each in loads]
    [152, 2]
    """
    if not (new_late_s >= 0.0 and 0.0 <= late_ratio <= 1.0 and lead_s >= 0.0):
        raise ValueError("need times of 0 or more, and a share of late rows between 0 and 1")
    if not (load_ratio >= 0.0 and load_after_ratio >= 0.0):
        raise ValueError("need loads of 0 or more")
    waiting_s = lead_s * max(1.0 - 1.0 / load_ratio, 0.0) if load_ratio > 0.0 else 0.0
    left = 1.0 / max(min(load_after_ratio, MOST_LOADED_RATIO.value), _LEAST_LOAD) - 1.0
    return new_late_s + late_ratio * lead_s + waiting_s / left


def margin_score(budget_used_ratio: float) -> float:
    r"""Margin over the forecast, in spreads of the forecast errors.

    Parameters
    ----------
    budget_used_ratio : float, >= 0
        Share of late rows over what the target allows. [-]

    Returns
    -------
    float
        From 0.4 to 1.96. [-]

    Notes
    -----
    **(A6)** Margin over the forecast: `z = 0.4 + 1.3 min(u, 1.2)`, with `u` the share of late rows
    in the last six hours over `1 - q`, phased in over the first hour. A target that is met easily
    is thus met with fewer nodes. The planned rate is (A3) at this score.

    Examples
    --------
    >>> [round(margin_score(used), 2) for used in (0.0, 0.5, 2.0)]
    [0.4, 1.05, 1.96]
    """
    least, more = MARGIN_SPREADS.value
    return least + more * min(budget_used_ratio, MOST_BUDGET_USED.value)


def planned_rate_per_s(forecast_per_s: float, score: float, spread_ratio: float) -> float:
    r"""The rate that a running query is planned for.

    Parameters
    ----------
    forecast_per_s : float, >= 0
        Of `models.estimation.forecast`. [rows/s]
    score : float
        Of `margin_score`. [-]
    spread_ratio : float, >= 0
        Of the forecast errors. [-]

    Returns
    -------
    float
        At least 0. [rows/s]

    Notes
    -----
    **(A3)** Planned rate: `(λ + m t)(1 + z σ)`, the forecast (A1) over the lead `t`, with the
    spread (A2). The lead is the 90% quantile of the time until executors are available, plus one
    bin.

    Examples
    --------
    >>> planned_rate_per_s(1000.0, 0.5, 0.1)
    1050.0
    """
    return max(forecast_per_s * (1.0 + score * spread_ratio), 0.0)
