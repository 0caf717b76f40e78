"""Shared cores: the published bound, both fixed points, and the event simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.stages.shared_resources import (
    ThreadGroup,
    alternating_slowdown,
    clocked_slowdowns,
    published_slowdown,
    slowdown_beside,
)
from tests.seeds import examples

# Cores, other threads, their busy share, and the slowdown of one more thread as simulated, with
# the error of the paper's rule.
ALTERNATING = [
    (4, 3, 0.5, 1.000, 0.00),
    (4, 7, 0.3, 1.049, -0.05),
    (4, 7, 0.5, 1.251, 0.60),
    (4, 12, 0.25, 1.215, -0.18),
    (8, 15, 0.4, 1.058, -0.06),
]


def group(num_threads: int, busy_ratio: float) -> ThreadGroup:
    return ThreadGroup(num_threads=num_threads, busy_ratio=busy_ratio)


@pytest.mark.parametrize(("cores", "num_threads", "busy", "simulated", "published"), ALTERNATING)
def test_slowdown_and_its_published_bound_are_those_of_the_table(
    cores: int, num_threads: int, busy: float, simulated: float, published: float
) -> None:
    slowdown = float(alternating_slowdown(cores, group(num_threads, busy)))
    assert slowdown == pytest.approx(simulated, rel=0.03)
    bound = float(published_slowdown(cores, num_threads * busy))
    assert bound / simulated - 1.0 == pytest.approx(published, abs=0.006)


def test_broadcasts_to_what_single_numbers_give() -> None:
    cores = np.array([4.0, 4.0, 8.0])
    threads = ThreadGroup(num_threads=np.array([7, 12, 15]), busy_ratio=np.array([0.5, 0.25, 0.4]))
    alone = [
        float(alternating_slowdown(4, group(7, 0.5))),
        float(alternating_slowdown(4, group(12, 0.25))),
        float(alternating_slowdown(8, group(15, 0.4))),
    ]
    assert alternating_slowdown(cores, threads) == pytest.approx(alone)
    busy = np.array([0.1, 0.2])[:, np.newaxis]
    first, second = clocked_slowdowns(
        cores, [ThreadGroup(num_threads=4, busy_ratio=busy), group(3, 0.4)]
    )
    assert first.shape == second.shape == (2, 3)


def test_no_more_threads_than_cores_do_not_meet() -> None:
    assert float(alternating_slowdown(4, group(3, 0.9))) == pytest.approx(1.0)
    slowdowns = clocked_slowdowns(4, [group(2, 0.9), group(2, 0.7)])
    assert [float(value) for value in slowdowns] == pytest.approx([1.0, 1.0])


def test_always_active_threads_share_evenly() -> None:
    assert float(slowdown_beside(2, [group(3, 1.0)])) == pytest.approx(2.0)
    assert float(slowdown_beside(0.5, [group(1, 0.0)])) == pytest.approx(2.0)


def test_clocked_threads_get_all_their_work_done() -> None:
    # Busy shares u' = u * slowdown must use exactly the servers that the work asks for.
    servers, num_threads, busy = 3, 6, 0.4
    (slowdown,) = clocked_slowdowns(servers, [group(num_threads, busy)])
    share = busy * float(slowdown)
    active = np.random.default_rng(1).binomial(num_threads, share, 400_000)
    assert np.minimum(active, servers).mean() == pytest.approx(num_threads * busy, rel=0.003)


@pytest.mark.parametrize("num_threads", [2, 15, 29, 31, 40, 70])
def test_one_server_and_many_threads_as_the_closed_network_has_it(num_threads: int) -> None:
    # Mean value analysis: exact for one shared server and rests of any law.
    busy, waiting, cycle = 1 / 29, 0.0, 1.0
    for threads in range(1, num_threads + 1):
        at_server = busy * (1.0 + waiting)
        cycle = 1.0 - busy + at_server
        waiting = threads * at_server / cycle
    slowdown = float(alternating_slowdown(1, group(num_threads - 1, busy)))
    assert 1.0 - busy + busy * slowdown == pytest.approx(cycle, rel=0.035)


def test_overload_is_infinite() -> None:
    assert np.isinf(published_slowdown(4, 4.5))
    for slowdown in clocked_slowdowns(4, [group(4, 0.5), group(4, 0.5)]):
        assert np.isinf(slowdown)
    # The node has time left, but not for one that needs 0.97 of a core all the time.
    for slowdown in clocked_slowdowns(4, [group(1, 0.97), group(20, 0.145)]):
        assert np.isinf(slowdown)


@examples(15, 30)
@given(
    st.integers(1, 8),
    st.integers(0, 8),
    st.integers(0, 8),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
)
def test_never_below_one_nor_nan_and_monotone(
    cores: int, first: int, second: int, busy: float, other_busy: float
) -> None:
    share = np.array([0.5, 0.75, 1.0]) * busy
    groups = [
        ThreadGroup(num_threads=first, busy_ratio=share),
        ThreadGroup(num_threads=second, busy_ratio=other_busy),
    ]
    for slowdown in (
        *clocked_slowdowns(cores, groups),
        alternating_slowdown(cores, groups[0]),
        slowdown_beside(cores, groups),
        published_slowdown(cores, first * share),
    ):
        assert np.all(slowdown >= 1.0 - 1e-12)
        finite = np.minimum(slowdown, 1e6)
        assert np.all(finite[1:] >= finite[:-1] * (1.0 - 1e-6))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="busy_ratio"):
        group(2, 1.1)
    with pytest.raises(ValueError, match="num_threads"):
        ThreadGroup(num_threads=1.5, busy_ratio=0.5)
    with pytest.raises(ValueError, match="num_servers"):
        clocked_slowdowns(0.0, [group(2, 0.1)])
    with pytest.raises(ValueError, match="at least one group"):
        clocked_slowdowns(1.0, [])
    with pytest.raises(ValueError, match="num_servers"):
        published_slowdown(-1.0, 0.5)
