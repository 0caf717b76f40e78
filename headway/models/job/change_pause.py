"""How long a change pauses a running query, and how many arrivals that makes late."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median, quantiles

from headway.assumptions import live
from headway.domain import JobProfile
from headway.domain.live import ChangeKind


def pause_late_s(pause_s: float, slack_s: float, load_ratio: float) -> float:
    r"""Seconds of arrivals that a pause of the query makes late.

    A load above 0.98 counts as 0.98.

    Parameters
    ----------
    pause_s : float, >= 0, how much longer than usual no batch ends
    slack_s : float, >= 0, limit of the target less the planned latency
    load_ratio : float, >= 0, arrivals over the rate at which a backlog is worked off

    **(A7)** A pause `p` makes the arrivals of `max(0, p - s)/(1 - r)` seconds late, with `s` the
    slack, `L` less the planned latency, and `r` the load, as in (N7): the backlog of the pause is
    worked off at the spare rate, and all rows that arrive until the delay has fallen to `s` are
    late. New executors pause the query by `p = (g - 1)D` in each of the first 2 batches, which take
    `g = 2` times as long as usual. After changes of the same kind, the 90% quantile of the late
    seconds of the last 10 replaces this estimate.

    >>> pause_late_s(5.9, 0.4, 0.5)
    11.0
    """
    if not (pause_s >= 0.0 and slack_s >= 0.0 and load_ratio >= 0.0):
        raise ValueError("need pause_s, slack_s and load_ratio of 0 or more")
    return max(pause_s - slack_s, 0.0) / (1.0 - min(load_ratio, live.MOST_LOADED_RATIO.value))


def prior_pause_s(kind: ChangeKind, duration_s: float) -> float:
    r"""How long a change is expected to pause the query before one of its kind was seen (A7).

    Parameters
    ----------
    duration_s : float, >= 0, usual batch duration

    >>> prior_pause_s(ChangeKind.RESTART, 0.8), prior_pause_s(ChangeKind.ADD, 0.8)
    (2.2, 1.6)
    """
    if kind is ChangeKind.ADD:
        return live.FIRST_BATCHES.value * (live.FIRST_BATCHES_RATIO.value - 1.0) * duration_s
    return {
        ChangeKind.REMOVE: live.REMOVAL_PAUSE_S.value,
        ChangeKind.RESTART: live.RESTART_PAUSE_S.value,
        ChangeKind.APPLICATION: live.APPLICATION_PAUSE_S.value,
        ChangeKind.REPARTITION: live.REPARTITION_PAUSE_S.value,
    }[kind]


def expected_pause_s(
    kind: ChangeKind, duration_s: float, seen_s: Sequence[float], cpu_ratio: float = 1.0
) -> float:
    r"""How long one more change of a kind is expected to pause the query: the middle.

    It is for the record of a change; whether one pays is decided by `learned_late_s`.

    Parameters
    ----------
    duration_s : float, >= 0, usual batch duration
    seen_s : sequence of float, >= 0, pauses by earlier changes of the kind, oldest first
    cpu_ratio : float, share of the batch duration in which executors compute

    **(A18)** What is expected of a change is written down before it and compared afterwards, so it
    is in the middle, whereas (A7) decides by upper ends. The pause `p` is the median of the last 10
    of a kind; the prior is one of them until there are 10. The prior of a restart is 1.5 s, the
    middle of the measurements whose upper end is in (A7). That of new executors is the one of (A7)
    times the share of `D` in which executors compute: they take longer to compute since they first
    compile what they run, but not to wait for others or for the driver. A query is restarted after
    a batch of duration `D`, instead of waiting for the next trigger: the oldest row that is delayed
    waits `D + p` until the first new batch starts, and would wait `max(B', D')` at the new trigger
    interval `B'` and batch duration `D'`. So the pause in (A7) is `max(0, D + p - max(B', D'))`.

    >>> [expected_pause_s(ChangeKind.RESTART, 0.8, [0.5] * n) for n in (0, 1, 2)]
    [1.5, 1.0, 0.5]
    """
    prior_s = prior_pause_s(kind, duration_s)
    if kind is ChangeKind.RESTART:
        prior_s = live.USUAL_RESTART_PAUSE_S.value
    elif kind is ChangeKind.ADD:
        prior_s *= cpu_ratio
    return float(median(_known_s(prior_s, seen_s)))


def computing_ratio(profile: JobProfile, duration_s: float) -> float:
    r"""Share of a batch in which executors compute, instead of waiting or being idle (A18).

    The driver's time is not theirs; of theirs, tasks compute for the observed share, including that
    of Python workers. It is 1 if nothing was observed of any stage.

    Parameters
    ----------
    profile : JobProfile, stages of which nothing was observed count like the others
    duration_s : float, >= 0, usual batch duration

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> computing_ratio(profile, 1.0)  # of its tasks nothing else was observed
    1.0
    """
    driver_s = profile.driver_s
    observed_stages = [
        (stage.task_per_row_s * stage.rows.scale, stage.observed)
        for stage in profile.stages
        if stage.observed is not None
    ]
    total_s = sum(per_row_s for per_row_s, _ in observed_stages)
    if not observed_stages or total_s <= 0.0 or duration_s <= 0.0:
        return 1.0
    computed_s = sum(
        per_row_s * min(observed.cpu_ratio + (observed.python_ratio or 0.0), 1.0)
        for per_row_s, observed in observed_stages
    )
    return max(1.0 - driver_s / duration_s, 0.0) * computed_s / total_s


def expected_wait_s(seen_s: Sequence[float]) -> float:
    r"""How long new executors are expected to take until they are available: the middle (A18).

    The prior counts as one of them until there are 10.

    Parameters
    ----------
    seen_s : sequence of float, >= 0, how long earlier ones took, oldest first

    >>> expected_wait_s([]), expected_wait_s([2.0]), expected_wait_s([2.0, 3.0])
    (60.0, 31.0, 3.0)
    """
    return float(median(_known_s(live.PROVISIONING_S.value, seen_s)))


def restart_delay_s(pause_s: float, before_s: float, trigger_s: float, duration_s: float) -> float:
    r"""How much longer than usual rows wait because a query is restarted between two batches (A18).

    Parameters
    ----------
    pause_s : float, >= 0, time from the stop to the start, and the excess of the first batch
    before_s : float, >= 0, batch duration before the restart
    trigger_s, duration_s : float, >= 0, trigger interval and batch duration after it

    >>> round(restart_delay_s(0.5, 1.3, 1.0, 0.7), 3), restart_delay_s(0.5, 0.4, 1.0, 0.4)
    (0.8, 0.0)
    """
    return max(before_s + pause_s - max(trigger_s, duration_s), 0.0)


def learned_late_s(prior_s: float, seen_s: Sequence[float]) -> float:
    r"""Expected late seconds of one more change of a kind, after those that were seen (A7).

    The prior counts as one of them until there are 10.

    Parameters
    ----------
    prior_s : float, >= 0
    seen_s : sequence of float, >= 0, seconds of arrivals that earlier ones made late, oldest first

    >>> learned_late_s(4.0, []), round(learned_late_s(4.0, [1.0] * 20), 2)
    (4.0, 1.0)
    """
    late_s = _known_s(prior_s, seen_s)
    if len(late_s) < 2:
        return prior_s
    hundredths = quantiles(late_s, n=100, method="inclusive")
    return hundredths[round(100 * live.COST_LEVEL_RATIO.value) - 1]


def _known_s(prior_s: float, seen_s: Sequence[float]) -> list[float]:
    """The last ones that were seen; the prior is one of them until there are enough."""
    latest_s = [*seen_s][-live.COSTS_REMEMBERED.value :]
    return latest_s if len(latest_s) >= live.COSTS_REMEMBERED.value else [prior_s, *latest_s]
