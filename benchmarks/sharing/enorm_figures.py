"""The experiments of the paper's section 7, reproduced by the models: figures 7.1 to 7.7."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from headway.domain.window_set import WindowSet
from headway.models.sharing.consolidation import MergePlan
from headway.models.sharing.fusion import (
    OperatorGraph,
    attributes_score,
    fused,
    rows_between,
    rows_score,
)
from headway.models.sharing.modes import WindowWork, flux_moves, mode_work_s
from tests.oracles.migrations import Migration, migration_costs

NODES = 6
ROWS = 1.8e7
ROW_S = 1.5e-4
"""With 6 / 40,000 s per row, six nodes process the 40,000 rows/s of the paper."""
COPY_S, MERGE_S = 5e-5, 5e-6
"""Time to send or to merge the state of a key: our choice, the paper names none."""
KEYS = (10_000, 20_000, 50_000, 100_000, 200_000)


@dataclass(frozen=True)
class Throughput:
    keys: int
    sizes: int
    combined_per_s: float
    split_per_s: float


def work_of(keys: int, sizes: Sequence[int]) -> WindowWork:
    """18 million rows at 40,000 rows/s over panes of a minute."""
    minutes = ROWS / 40_000 / 60
    windows = WindowSet.parse([f"{size}m" for size in sizes])
    plan = MergePlan(windows=windows, pane_ms=60_000)
    merges = plan.total_cost(300 * 60_000) * minutes / 300
    return WindowWork(
        num_rows=ROWS,
        row_s=ROW_S,
        num_windows=float(len(sizes)),
        num_panes=minutes,
        num_groups=float(keys),
        num_keys=float(keys),
        num_merges=merges,
        copy_s=COPY_S,
        merge_s=MERGE_S,
    )


def throughput() -> Iterator[Throughput]:
    """7.1: rows per second by keys, for two and six windows, in one component and in two."""
    for sizes in ((5, 10), (5, 10, 15, 20, 25, 30)):
        for keys in KEYS:
            work = work_of(keys, sizes)
            _, combined, split = (ROWS * NODES / work_s for work_s in mode_work_s(work).values())
            yield Throughput(keys, len(sizes), combined, split)


def pauses() -> Iterator[tuple[int, float, float, float]]:
    """7.2, 7.3: keys of the moving group; pause if instant, if disruptive; time if smooth."""
    for keys in (1_000, 10_000, 50_000, 100_000):
        costs = migration_costs(
            state_copies=keys, copy_s=COPY_S, longest_window_s=600.0, rows_work_s=0.0
        )
        yield (
            keys,
            costs[Migration.INSTANT].pause_s,
            costs[Migration.DISRUPTIVE].pause_s,
            costs[Migration.SMOOTH].takes_s,
        )


def moved_work() -> Iterator[tuple[float, float, float]]:
    """7.4: share of the groups that move; work relative to no moves, instant and disruptive."""
    work = work_of(10_000, (5,))
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        rest_s = mode_work_s(work)["shared, split"]
        costs = migration_costs(
            state_copies=share * work.num_keys,
            copy_s=COPY_S,
            longest_window_s=300.0,
            rows_work_s=0.0,
        )
        yield (
            share,
            1.0 + costs[Migration.INSTANT].work_s / rest_s,
            1.0 + costs[Migration.DISRUPTIVE].work_s / rest_s,
        )


def overload_latency_s(period_s: int, pause_s: float, seed: int = 1) -> float:
    """7.5: mean wait of rows while the load of one node after another rises by half.

    A fluid queue per node, second by second, over half an hour. Every ``period_s``, Flux moves
    groups according to the load of the last second, and the rows of both nodes wait ``pause_s``.
    """
    seeded = random.Random(seed)
    groups = 20
    loads = {(node, place): 0.7 / groups for node in range(NODES) for place in range(groups)}
    home = {group: group[0] for group in loads}
    waiting_s, total_s, rows = [0.0] * NODES, 0.0, 0.0
    chosen = 0
    for second in range(1800):
        phase = second % 300
        if phase == 0:
            chosen = seeded.randrange(NODES)
            loads = dict.fromkeys(loads, 0.7 / groups)
        grown = 1.0 + 0.5 * min(phase / 180.0, 1.0)
        now = {g: load * (grown if home[g] == chosen else 1.0) for g, load in loads.items()}
        if second % period_s == 0:
            nodes = [[now[g] for g in now if home[g] == node] for node in range(NODES)]
            moves = flux_moves(nodes)
            for source, target, load in moves:
                group = next(g for g in now if home[g] == source and now[g] == load)
                loads[group] = now[group] if home[group] == chosen else loads[group]
                home[group] = target
                for node in (source, target):
                    waiting_s[node] += pause_s
        for node in range(NODES):
            busy = sum(load for g, load in now.items() if home[g] == node)
            waiting_s[node] = max(waiting_s[node] + busy - 1.0, 0.0)
            total_s += busy * waiting_s[node]
            rows += busy
    return total_s / rows


@dataclass(frozen=True)
class Reading:
    """One reading of the paper's description of random jobs, which leaves choices open.

    An operator has ``least`` to ``most`` attributes, up to ``step`` more or fewer than the one
    before; levels are ``even`` or random in size; the baseline ``joins`` existing components.
    """

    words: str
    least: int = 1
    most: int = 30
    step: int = 7
    even: bool = False
    joins: bool = False


TAKEN = Reading("as above")
READINGS = (
    TAKEN,
    Reading("operators may have no attributes", least=0),
    Reading("the number of attributes changes by at most 3", step=3),
    Reading("at most 15 attributes, the initial number", most=15),
    Reading("levels of equal size", even=True),
    Reading("the baseline may join components", joins=True),
)


def random_job(
    num_operators: int, seeded: random.Random, reading: Reading = TAKEN
) -> OperatorGraph:
    """7.6: operators with random attributes of 30, on random levels, sending random parts."""
    size, attributes = 15, []
    for _ in range(num_operators):
        size += seeded.randint(-reading.step, reading.step)
        size = min(max(size, reading.least), reading.most)
        attributes.append(frozenset(f"a{n}" for n in seeded.sample(range(30), size)))
    num_levels = seeded.randint(3, max(int(0.75 * num_operators), 3))
    cuts = sorted(seeded.sample(range(1, num_operators), num_levels - 1))
    if reading.even:
        cuts = [round(place * num_operators / num_levels) for place in range(1, num_levels)]
    levels = [range(a, b) for a, b in zip([0, *cuts], [*cuts, num_operators], strict=True)]
    edges = []
    for above, below in pairwise(levels):
        for source in above:
            left = 100.0
            for target in below:
                sent = seeded.uniform(0.0, left) * seeded.random()
                left -= sent
                if sent > 0:
                    edges.append((source, target, sent))
    return OperatorGraph(attributes=tuple(attributes), edges=tuple(edges))


def baseline(
    graph: OperatorGraph, seeded: random.Random, reading: Reading = TAKEN
) -> tuple[float, float]:
    """The paper's baseline: from one operator on, add the neighbour with most common attributes."""
    home = list(range(len(graph.attributes)))
    free, attributes = set(home), list(graph.attributes)
    current = 0
    while free:
        free.discard(current)
        while True:
            near = [
                (len(attributes[current] & attributes[home[target]]), target)
                for source, target, _ in graph.edges
                if home[source] == current
                and home[target] != current
                and (reading.joins or target in free)
            ]
            common, target = max(near, default=(0, -1))
            if common == 0:
                break
            gone = home[target]
            attributes[current] &= attributes[gone]
            joined = {place for place, each in enumerate(home) if each == gone}
            home = [current if place in joined else each for place, each in enumerate(home)]
            free -= joined
        if free:
            current = seeded.choice(sorted(free))
    crossing = sum(rows for a, b, rows in graph.edges if home[a] != home[b])
    return float(len(set(home))), crossing


def fusion(
    num_operators: int, num_jobs: int, reading: Reading = TAKEN
) -> dict[str, tuple[float, float]]:
    """7.6: components and the share of rows that cross between them, means over random jobs."""
    found: dict[str, list[tuple[float, float]]] = {"COMM": [], "PA": [], "baseline": []}
    for seed in range(num_jobs):
        seeded = random.Random(seed)
        graph = random_job(num_operators, seeded, reading)
        total = sum(rows for _, _, rows in graph.edges)
        for name, score in (("COMM", rows_score), ("PA", attributes_score)):
            components = fused(graph, score)
            found[name].append((len(components), rows_between(graph, components) / total))
        number, crossing = baseline(graph, seeded, reading)
        found["baseline"].append((number, crossing / total))
    return {
        name: (fmean(n for n, _ in values), fmean(share for _, share in values))
        for name, values in found.items()
    }


def narrow_share(num_operators: int, num_jobs: int, reading: Reading = TAKEN) -> float:
    """7.6: share of the operators with at most three attributes, over the same jobs."""
    jobs = (random_job(num_operators, random.Random(seed), reading) for seed in range(num_jobs))
    return fmean(len(found) <= 3 for job in jobs for found in job.attributes)


def split_ratio(keys: int) -> float:
    """7.7: work of two components over that of one."""
    work = work_of(keys, (5, 10))
    _, combined, split = mode_work_s(work).values()
    return split / combined


def fast_job(sent_over_counted: float) -> list[float]:
    """7.7: four cheap operators, 0, 2, 3, 4 of them fused; time over that of all fused."""
    edges = {0: 3, 2: 2, 3: 1, 4: 0}
    return [(4.0 + crossing * sent_over_counted) / 4.0 for crossing in edges.values()]
