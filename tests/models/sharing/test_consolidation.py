"""Least merges: the numbers of the paper and of hand counts, and enumeration as the oracle."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

import pytest

from headway.domain.window_set import WindowSet, WindowSpec
from headway.models.sharing.consolidation import (
    MergePlan,
    one_per_piece,
    possible_rollups,
    present_keys,
    steady_horizon_ms,
    with_rollups,
)

MINUTE = 60_000
HOUR = 60 * MINUTE


def plan(*sizes: int, pane: int = 1) -> MergePlan:
    """Tumbling windows of some minutes over panes of one."""
    return MergePlan(windows=WindowSet.parse([f"{size}m" for size in sizes]), pane_ms=pane * MINUTE)


@pytest.mark.parametrize(
    ("sizes", "pane", "horizon", "least", "naive"),
    [
        ((5, 10, 15, 20), 1, HOUR, 86, 240),  # Enorm, figures 7 and 8
        ((5, 10), 1, HOUR, 72, 120),
        ((5, 10, 15, 20, 25, 30), 1, HOUR, 95, 350),
        ((5, 10, 15, 20, 25, 30), 1, 5 * HOUR, 478, 1800),
        ((10, 30, 60, 360, 1440), 10, 24 * HOUR, 364, 720),
        ((20, 30), 1, HOUR, 82, 120),
    ],
)
def test_merges_of_tumbling_windows(
    sizes: tuple[int, ...], pane: int, horizon: int, least: int, naive: int
) -> None:
    made = plan(*sizes, pane=pane)
    assert made.total_cost(horizon) == least
    assert made.naive_cost(horizon) == naive


def test_sliding_windows_in_steady_state() -> None:
    windows = WindowSet.parse(["1h every 5m", "10m"])
    made = MergePlan(windows=windows, pane_ms=windows.pane_ms)
    assert (made.total_cost(HOUR), made.naive_cost(HOUR)) == (90, 156)


@pytest.mark.parametrize(
    ("sizes", "horizon", "without", "rollup", "best"),
    [((20, 30), HOUR, 82, 10, 70), ((30, 45, 60), 3 * HOUR, 250, 15, 206)],
)
def test_a_roll_up_pays(
    sizes: tuple[int, ...], horizon: int, without: int, rollup: int, best: int
) -> None:
    made = with_rollups(plan(*sizes), horizon)
    assert plan(*sizes).total_cost(horizon) == without
    assert [each.size_ms for each in made.rollups] == [rollup * MINUTE]
    assert made.total_cost(horizon) == best
    assert best == least_of_all_rollups(plan(*sizes), horizon)


def least_of_all_rollups(made: MergePlan, horizon: int) -> float:
    """Every set of up to three roll-ups of any size that the pane divides."""
    sizes = range(2 * made.pane_ms, made.windows.longest_ms, made.pane_ms)
    taken = {spec.size_ms for spec in made.windows.windows}
    rollups = [WindowSpec(size_ms=s, slide_ms=s) for s in sizes if s not in taken]
    return min(
        MergePlan(windows=made.windows, pane_ms=made.pane_ms, rollups=chosen).total_cost(horizon)
        for number in (0, 1, 2)
        for chosen in combinations(rollups, number)
    )


def test_keys_decide_what_a_window_is_merged_from() -> None:
    by_count = plan(5, 10, 15, 20)
    twenty = by_count.windows.windows[-1]
    assert by_count.cost(twenty, 0) == 2
    by_keys = MergePlan(
        windows=by_count.windows, pane_ms=MINUTE, weight=present_keys(1000, 1000 / MINUTE)
    )
    pieces = by_keys.pieces(twenty, 0)
    assert sorted(piece.length_ms for piece in pieces) == [5 * MINUTE, 15 * MINUTE]
    assert by_keys.cost(twenty, 0) == pytest.approx(1993.26, abs=0.005)


def test_every_window_costs_as_enumeration_says() -> None:
    """All sets of windows of up to six units, sliding ones too, and two kinds of weights."""
    specs = [
        WindowSpec(size_ms=size, slide_ms=slide, offset_ms=offset)
        for size in range(1, 7)
        for slide in range(1, size + 1)
        for offset in {0, slide - 1}
    ]
    checked = 0
    for number in (1, 2, 3):
        for chosen in combinations(specs, number):
            if len({spec.size_ms for spec in chosen}) < number:
                continue
            windows = WindowSet.of(chosen)
            for weight in (lambda _: 1.0, present_keys(4.0, 1.0)):
                made = MergePlan(windows=windows, pane_ms=1, weight=weight)
                spec = windows.windows[-1]
                start = spec.offset_ms
                assert made.cost(spec, start) == pytest.approx(enumerated(made, spec, start))
                checked += 1
    assert checked > 5000


def enumerated(made: MergePlan, spec: WindowSpec, start: int) -> float:
    """The least weight over all ways to lay pieces end to end, by plain recursion."""
    smaller = [each for each in made.windows.windows if each.size_ms < spec.size_ms]
    end = start + spec.size_ms

    @cache
    def least(at: int) -> float:
        if at == end:
            return 0.0
        lengths = {1} | {
            each.size_ms for each in smaller if (at - each.offset_ms) % each.slide_ms == 0
        }
        return min(
            (made.weight(length) + least(at + length) for length in lengths if at + length <= end),
            default=math.inf,
        )

    return least(start)


def test_pieces_lie_end_to_end() -> None:
    made = plan(5, 10, 15, 20, 25, 30)
    for spec in made.windows.windows:
        at = 7 * spec.slide_ms
        for piece in made.pieces(spec, at):
            assert piece.start_ms == at
            at += piece.length_ms
        assert at == 7 * spec.slide_ms + spec.size_ms


def test_a_pane_divides_every_window() -> None:
    with pytest.raises(ValueError, match="a pane of 180000 ms does not divide"):
        plan(5, 10, pane=3)


def test_no_roll_up_where_none_pays() -> None:
    made = plan(5, 10, pane=5)
    assert possible_rollups(made) == []
    assert with_rollups(made) == made
    assert steady_horizon_ms(made) == 10 * MINUTE


@pytest.mark.parametrize(
    "texts", [["1h every 1m", "10m"], ["30s every 5s", "20s every 7s"], ["5m every 1m offset 10s"]]
)
@pytest.mark.parametrize("rollup", [None, 3, 6])
def test_windows_that_are_counted_together_cost_what_each_costs(
    texts: list[str], rollup: int | None
) -> None:
    windows = WindowSet.parse(texts)
    rollup_ms = (rollup or 0) * windows.pane_ms
    rollups = () if rollup is None else (WindowSpec(size_ms=rollup_ms, slide_ms=rollup_ms),)
    for weight in (one_per_piece, present_keys(1000.0, 0.02)):
        plan = MergePlan(windows=windows, pane_ms=windows.pane_ms, rollups=rollups, weight=weight)
        horizon_ms = 2 * windows.longest_ms
        one_by_one = sum(
            plan.cost(spec, end_ms - spec.size_ms)
            for spec in plan.made
            for end_ms in spec.ends_between(0, horizon_ms)
        )
        assert plan.total_cost(horizon_ms) == pytest.approx(one_by_one, rel=1e-12)


@pytest.mark.parametrize(("text", "most_ratio"), [("1d every 1m", 0.03), ("7d every 1m", 0.2)])
def test_roll_ups_of_windows_of_very_many_panes_are_found_in_seconds(
    text: str, most_ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a day every minute took three minutes: all multiples, again for each roll-up."""
    windows = WindowSet.parse([text])
    plan = MergePlan(windows=windows, pane_ms=windows.pane_ms)
    steps, total_cost = list[int](), MergePlan.total_cost

    def counted_cost(plan: MergePlan, horizon_ms: int) -> float:
        steps.append(plan.num_steps(horizon_ms))
        return total_cost(plan, horizon_ms)

    monkeypatch.setattr(MergePlan, "total_cost", counted_cost)
    better = with_rollups(plan)
    # The last round may be a single one that is too long.
    assert sum(steps) - 2 * max(steps) <= 1_200_000
    horizon_ms = steady_horizon_ms(better)
    assert total_cost(better, horizon_ms) <= most_ratio * better.naive_cost(horizon_ms)
