"""Figures 8 to 14 of the paper on ordered streams, by formula and simulation: docs/ordered.md.

python benchmarks/run.py ordered_pipelines --output docs/ordered.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import ordered_figures as figures
from ordered_bands import bands
from ordered_threads import run_threads
from pages import headed, save_svg, svg_pyplot

from headway.domain.ordered import ReorderScheme, Scheduler
from headway.models.ordered.chain import pipeline_allocation
from headway.models.ordered.placement import placed_keys, skewed_stage_s
from headway.models.stages.skew import random_partition_loads, zipf_key_shares
from headway.units import format_duration, format_rate
from tests.factories import a_shuffle_stage

PICTURES = Path(__file__).parents[2] / "docs" / "img"
HEAD = """\
# Ordered pipelines

Made by `make ordered`. Prasaad, Ramalingam and Rajan (2018, "Scaling Ordered Stream Processing on
Shared-Memory Multicores") run chains of operators on the cores of one machine and keep the order of
the input. Spark has no such runtime, so this page simulates it, (S10)-(S12), and compares the
simulations with the closed forms (O1)-(O10) of [theory.md](theory.md). Each statement of the paper
about a figure is compared with our result, with the reason if they differ. The paper prints curves
without numbers, and neither costs nor selectivities: the chains here have the paper's operators,
with costs that we chose.

A Spark job can use one part of this: `headway ordered PROFILE --keys FILE` chooses shuffle
partitions under skew and places heavy keys ([skewed keys](how-to/skewed-keys.md)). A table near the
end of this page shows how much that saves.
"""


def options(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.add_argument(
        "--tuples", type=int, default=1_000_000, help="tuples of each simulation and of the threads"
    )
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="folder of the pictures")


def text(given: argparse.Namespace) -> str:
    """The page."""
    given.pictures.mkdir(parents=True, exist_ok=True)
    parts = [
        [HEAD],
        schedulers(given.tuples, given.pictures),
        skew(given.tuples, given.pictures),
        latency(given.tuples),
        queues(),
        reordering(given.tuples),
        threads(given.tuples),
        placement(),
        bands(given.tuples),
        corrections(given.tuples),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def verdict(says: str, comes_out: bool, found: str) -> str:
    """A statement of the paper, whether it is confirmed, and what was found."""
    return f"| {says} | {'yes' if comes_out else 'no'} | {found} |"


def schedulers(num: int, pictures: Path) -> Iterator[str]:
    yield "## Schedulers (figure 8)\n"
    yield (
        "Unlimited input. Each cell contains the throughput in source tuples per second, its share "
        "of the maximum (O1), and the mean latency from the start of a tuple to its exit. (S10) "
        "describes the schedulers. CT keep is CT whose workers stay on an operator that only few "
        "workers may process (see the last section).\n"
    )
    peaks = {name: figures.peak_workers(name) for name in figures.CHAINS}
    runs = {
        (name, one): figures.scheduled(name, peaks[name], one, num=num)
        for name in figures.CHAINS
        for one in figures.SCHEDULERS
    }
    yield from headed(
        f"| chain | cores at the peak | maximum | {' | '.join(map(str, figures.SCHEDULERS))} |"
    )
    possible = {
        name: pipeline_allocation(figures.chain(name, peaks[name])).throughput_per_s
        for name in figures.CHAINS
    }
    for name in figures.CHAINS:
        cells = [
            f"{format_rate(runs[name, one].throughput_per_s)} "
            f"({runs[name, one].throughput_per_s / possible[name]:.0%}), "
            f"{format_duration(runs[name, one].mean_s)}"
            for one in figures.SCHEDULERS
        ]
        yield f"| {name} | {peaks[name]} | {format_rate(possible[name])} | {' | '.join(cells)} |"
    yield (
        "\nMean and p99 of the latency with input at 0.9 of the maximum. All schedulers keep up "
        "with it. Slices then consist of a few tuples, and latencies, which are read from the "
        "curves of starts and exits, are of the order of the costs:\n"
    )
    yield from headed(f"| chain | {' | '.join(map(str, figures.SCHEDULERS))} |")
    fed = {
        (name, one): figures.scheduled(name, peaks[name], one, load=0.9, num=num)
        for name in figures.CHAINS
        for one in figures.SCHEDULERS
    }
    for name in figures.CHAINS:
        cells = [
            f"{format_duration(fed[name, one].mean_s)}, {format_duration(fed[name, one].p99_s)}"
            for one in figures.SCHEDULERS
        ]
        yield f"| {name} | {' | '.join(cells)} |"
    scheduler_picture(num, pictures / "ordered-schedulers.svg")
    yield "\n![Throughput by cores](img/ordered-schedulers.svg)\n"
    yield from headed("| statement of the paper | confirmed | found |")
    share = {key: run.throughput_per_s / possible[key[0]] for key, run in runs.items()}
    keep = [share[name, "CT keep"] for name in figures.CHAINS]
    plain = [share[name, "CT"] for name in figures.CHAINS]
    yield verdict(
        "CT reaches the best possible throughput", min(plain) > 0.98,
        f"{min(plain):.0%} to {max(plain):.0%} of it; CT keep {min(keep):.0%} to "
        f"{max(keep):.0%}. On Q3, one key allows 3.5 workers, so three or four work",
    )  # fmt: skip
    both = [share[name, "LP"] / share[name, "CT"] for name in ("Q1", "Q15")]
    others = [share[name, "LP"] / share[name, "CT"] for name in ("Q2", "Q3", "Q4")]
    yield verdict(
        "LP as good as CT on Q1 and Q15", min(both) > 0.9, f"at least {min(both):.2f} of CT"
    )
    yield verdict(
        "LP below CT on Q2, Q3 and Q4", max(others) < 0.99,
        f"{min(others):.2f} to {max(others):.2f} of CT. In our simulation, a further worker on an "
        "operator causes no overhead; the paper attributes the difference to such overheads",
    )  # fmt: skip
    worst = [max(share[name, one] for one in ("ET",)) for name in figures.CHAINS]
    qst = [share[name, "QST"] / share[name, "CT"] for name in figures.CHAINS]
    yield verdict("ET below CT and LP", max(worst) < 0.9, f"{max(worst):.0%} of the maximum")
    yield verdict(
        "QST below CT and LP", max(qst) < 0.99,
        f"{min(qst):.2f} to {max(qst):.2f} of CT; below it on {sum(one < 0.99 for one in qst)} of "
        "5 chains, where queues at their limit leave workers idle",
    )  # fmt: skip
    pairs: tuple[tuple[Scheduler, Scheduler], ...] = (("LP", "CT"), ("CT", "ET"))
    ordered = [
        all(runs[name, a].mean_s <= runs[name, b].mean_s for a, b in pairs)
        for name in figures.CHAINS
    ]
    slower = [runs[name, "CT"].mean_s < runs[name, "QST"].mean_s for name in figures.CHAINS]
    yield verdict(
        "latency LP < CT, both far below ET", all(ordered), f"on {sum(ordered)} of 5 chains"
    )
    yield verdict(
        "latency CT < QST", all(slower),
        f"on {sum(slower)} of 5 chains. CT has no backpressure: if one operator is the bottleneck, "
        "its queue grows as long as the input is unlimited; with QST it does not",
    )  # fmt: skip
    yield ""


def skew(num: int, pictures: Path) -> Iterator[str]:
    yield "## Skew (figure 9)\n"
    yield (
        "Busy workers out of 16 with unlimited input, by (O8) and simulated. Keys are normal, "
        "truncated to -1..1, and partitioned into ranges of equal width: p = 16 for partitioned "
        "and 100 for hybrid queues.\n"
    )
    found = list(figures.skews(num))
    yield from headed("| sigma | partitioned | simulated | hybrid | simulated |")
    for one in found:
        sigma = "even" if np.isinf(one.sigma) else f"{one.sigma:g}"
        cells = [f"{value:.1f}" for value in one[1:]]
        yield f"| {sigma} | {' | '.join(cells)} |"
    pyplot = svg_pyplot()
    picture, panel = pyplot.subplots(figsize=(5.0, 3.4), layout="constrained")
    places = range(len(found))
    panel.plot(places, [one.hybrid for one in found], label="hybrid, formula")
    panel.plot(places, [one.partitioned for one in found], label="partitioned, formula")
    panel.scatter(places, [one.hybrid_simulated for one in found], s=18)
    panel.scatter(places, [one.partitioned_simulated for one in found], s=18, label="simulated")
    labels = ["even" if np.isinf(one.sigma) else f"{one.sigma:g}" for one in found]
    panel.set_xticks(list(places), labels=labels)
    panel.set(xlabel="sigma of the keys", ylabel="busy workers of 16", ylim=(0.0, None))
    panel.legend(frameon=False, fontsize=8)
    save_svg(picture, pictures / "ordered-skew.svg")
    yield "\n![Busy workers under skew](img/ordered-skew.svg)\n"
    steady = [one.hybrid_simulated for one in found if one.sigma >= 0.2]
    alike = found[0]
    yield from headed("| statement of the paper | confirmed | found |")
    yield verdict(
        "both equal if keys are even",
        abs(alike.partitioned_simulated / alike.hybrid_simulated - 1.0) < 0.05,
        f"{alike.partitioned_simulated:.1f} and {alike.hybrid_simulated:.1f}",
    )
    yield verdict(
        "hybrid steady, partitioned falls", min(steady) > 0.95 * alike.hybrid_simulated,
        f"hybrid at least {min(steady):.1f} down to sigma 0.2, partitioned "
        f"{found[-3].partitioned_simulated:.1f}; for lower sigma, even one of a hundred partitions "
        "is too much for one worker",
    )  # fmt: skip
    yield ""


def latency(num: int) -> Iterator[str]:
    yield "## Latency of queues (figure 10)\n"
    yield (
        "Even keys, 16 workers, Poisson arrivals, costs with cv 0.3. The formulas are (O7), from "
        "start to exit, and (O6), from arrival to exit. The last column is from start to exit, as "
        "the paper measures.\n"
    )
    found = list(figures.latencies(num))
    yield from headed(
        "| cost | busy | hybrid (O7) | simulated | partitioned (O6) | simulated | start to exit |"
    )
    for one in found:
        cells = [format_duration(value) for value in one[2:]]
        yield (
            f"| {format_duration(one.cost_us * 1e-6)} | {one.utilization_ratio:.0%} | "
            f"{' | '.join(cells)} |"
        )
    full = [one for one in found if one.utilization_ratio == 0.9]
    near = max(one.hybrid_simulated_s / (one.cost_us * 1e-6) for one in full)
    far = min(one.partitioned_start_s / one.hybrid_simulated_s for one in full)
    yield ""
    yield from headed("| statement of the paper | confirmed | found |")
    yield verdict("hybrid near the cost", near <= 1.6, f"{near:.2f} times the cost at 90%")
    yield verdict("partitioned far above", far >= 5.0, f"at least {far:.1f} times hybrid, at 90%")
    yield ""


def queues() -> Iterator[str]:
    yield "## Queues in chains (figure 11)\n"
    yield (
        "Maximum throughput with each scheme (O8), (O10), and the sum of the operators' mean "
        "latencies (O5)-(O7) at 0.8 of the rate that both schemes carry. These are formulas, not "
        "simulations. Keys are even, or Zipf 0.8 over 10,000 keys.\n"
    )
    yield from headed(
        "| chain | cores | hybrid / partitioned, even | Zipf | latency hybrid, even | partitioned |"
    )
    even = list(figures.queue_schemes())
    zipf = list(figures.queue_schemes(num_keys=10_000, exponent=0.8))
    for one, other, ratio, uneven in zip(
        even, zipf, figures.ratios(even), figures.ratios(zipf), strict=True
    ):
        if one.num_workers in (4, 8, 16):
            yield (
                f"| {one.name} | {one.num_workers} | {ratio:.2f} | {uneven:.2f} | "
                f"{format_duration(one.first_s)} | {format_duration(other.second_s)} |"
            )
    yield ""
    yield from headed("| statement of the paper | confirmed | found |")
    more = {
        name: max(r for one, r in zip(zipf, figures.ratios(zipf), strict=True) if one.name == name)
        for name in figures.CHAINS
    }
    yield verdict(
        "hybrid has more throughput on all except Q15",
        all(more[name] > 1.02 for name in more if name != "Q15"),
        ", ".join(f"{name} {ratio:.2f}" for name, ratio in more.items())
        + ". The paper does not print which worker serves which partition if there are fewer "
        "workers than partitions; with a worker for each, even partitions cost no throughput",
    )
    lower = [
        one.name for one in even
        if one.num_workers == 16 and one.first_s < 0.8 * one.second_s
    ]  # fmt: skip
    yield verdict(
        "latency lower on the chains with more partitioned operators", len(lower) >= 3,
        f"lower by at least a fifth on {', '.join(lower)}",
    )  # fmt: skip
    yield ""


def reordering(num: int) -> Iterator[str]:
    yield "## Putting outputs in order (figures 12 to 14)\n"
    for figure, (cost_us, send_us, selectivity) in zip((12, 13), figures.REORDERED, strict=True):
        outputs = f"{selectivity:g} output{'' if selectivity == 1.0 else 's'}"
        yield (
            f"Figure {figure}: {cost_us:.0f} us of work and {outputs} of {send_us:g} us per tuple, "
            "0.1 us to store and to lock, and a buffer of four outputs per worker. The table shows "
            "the speedup by (O3), the simulated speedup, and the simulated worker time per tuple.\n"
        )
        found = list(figures.reordered(cost_us, send_us, num, selectivity))
        yield from headed(
            "| workers | non-blocking | simulated | per tuple | lock | simulated | per tuple |"
        )
        free, locked = (
            [one for one in found if one.scheme == scheme]
            for scheme in reversed(get_args(ReorderScheme))
        )
        for one, other in zip(free, locked, strict=True):
            cells = [
                f"{each.speedup:.1f} | {each.speedup_simulated:.1f} | "
                f"{format_duration(each.cost_s)}"
                for each in (one, other)
            ]
            yield f"| {one.num_workers} | {' | '.join(cells)} |"
        most = max(
            a.speedup_simulated / b.speedup_simulated for a, b in zip(free, locked, strict=True)
        )
        least = min(
            a.speedup_simulated / b.speedup_simulated for a, b in zip(free, locked, strict=True)
        )
        yield ""
        yield from headed("| statement of the paper | confirmed | found |")
        said = "non-blocking scales further" if figure == 12 else "the same for heavy operators"
        yield verdict(
            said, least > 0.99 and most > 1.05,
            f"{least:.2f} to {most:.2f} times the lock's throughput; beyond the knee, both send "
            "one output after another and are equally fast",
        )  # fmt: skip
        yield ""
    yield (
        "Figure 14: 16 workers, 0.2 us to send and 0.02 us to store and to lock (O10). Our workers "
        "never migrate and have no caches, so waiting is the only difference.\n"
    )
    chains = list(figures.reorder_schemes())
    yield from headed("| chain | non-blocking | lock | ratio | latency | with the lock |")
    for each, ratio in zip(chains, figures.ratios(chains), strict=True):
        yield (
            f"| {each.name} | {format_rate(each.first_per_s)} | {format_rate(each.second_per_s)} | "
            f"{ratio:.2f} | {format_duration(each.first_s)} | {format_duration(each.second_s)} |"
        )
    found_ratios = figures.ratios(chains)
    yield ""
    yield from headed("| statement of the paper | confirmed | found |")
    yield verdict(
        "non-blocking best on all", min(found_ratios) > 1.0,
        f"{min(found_ratios):.2f} to {max(found_ratios):.2f} times the lock's throughput; 1.00 if "
        "something else is the bottleneck",
    )  # fmt: skip
    yield ""


def threads(num: int) -> Iterator[str]:
    yield "## As real threads\n"
    yield (
        "Hybrid queues and the reordering buffer, run with Python threads and state by key. The "
        "output is compared tuple by tuple with that of a single worker.\n"
    )
    yield from headed("| tuples | threads | buffer | lost | duplicated | out of order | wrong |")
    for num_threads, size in ((2, 8), (8, 32), (16, 64)):
        random = np.random.default_rng(num_threads)
        run = run_threads(
            random.zipf(1.5, num).clip(max=100).tolist(), num_threads=num_threads, size=size
        )
        yield (
            f"| {run.num_tuples:,} | {num_threads} | {size} | {run.num_lost} | {run.num_doubled} | "
            f"{run.num_out_of_order} | {run.num_wrong} |"
        )
    yield ""


def placement() -> Iterator[str]:
    yield "## On Spark: partitions and placed keys\n"
    yield (
        "A stage of 200,000 rows on 16 slots, with 20 us per row and 30 ms per task. The table "
        "shows its mean and p99 duration over 1,000 placements of the keys by hash (K3), (K10), "
        "and with the 1,000 heaviest keys placed (K8).\n"
    )
    numbers = (16, 48, 96, 200, 400)
    yield from headed(
        f"| keys | {' | '.join(f'{n} partitions' for n in numbers)} | placed, 16 | "
        "best p99 by hash over placed |"
    )
    for exponent, num_keys in ((0.8, 1_000), (1.0, 100_000), (1.2, 100_000)):
        keys = zipf_key_shares(num_keys, exponent)
        cells, best = [], float("inf")
        for number in numbers:
            loads = random_partition_loads(keys, number, num_replications=1000, seed=3)
            times = _stage(loads)
            p99 = float(np.quantile(times, 0.99))
            cells.append(f"{times.mean():.2f} / {p99:.2f} s")
            best = min(best, p99)
        _, even_loads = placed_keys(keys.share[:1000], 16)
        times = _stage(np.tile(even_loads, (200, 1)))
        p99 = float(np.quantile(times, 0.99))
        yield (
            f"| Zipf {exponent:g}, {num_keys:,} | {' | '.join(cells)} | {times.mean():.2f} / "
            f"{p99:.2f} s | {best / p99:.2f} |"
        )
    yield ""


def corrections(num: int) -> Iterator[str]:
    yield "## Where the paper is not followed\n"
    printed = figures.scheduled("Q2", 8, "CT as printed", num=num)
    right = figures.scheduled("Q2", 8, "CT keep", num=num)
    yield (
        "* Equation (3) also divides by the selectivity of the operator itself; only those of the "
        "operators before it are correct. As printed, it gives Q2 "
        f"{format_rate(printed.throughput_per_s)} instead of {format_rate(right.throughput_per_s)}."
    )
    yield (
        "* CT leaves an operator that only one worker may process: the worker that finishes its "
        "slice takes another operator, and the first one idles until the next worker asks for "
        "work. With `CT keep`, the worker stays."
    )
    yield (
        "* CT and LP have no backpressure: with unlimited input, the queue of the bottleneck grows "
        "without limit. Keep the input rate below the maximum."
    )
    yield (
        "* `No worker gets blocked` is true until the buffer is full. Then workers spin, and the "
        "latency is that of the buffer (O4), so four outputs per worker are enough."
    )


def scheduler_picture(num: int, path: Path) -> None:
    """Throughput of each chain by number of workers under CT keep, and the maximum."""
    pyplot = svg_pyplot()
    picture, panel = pyplot.subplots(figsize=(5.4, 3.8), layout="constrained")
    for at, name in enumerate(figures.CHAINS):
        possible = [
            pipeline_allocation(figures.chain(name, n)).throughput_per_s for n in figures.WORKERS
        ]
        reached = [
            figures.scheduled(name, n, "CT keep", num=num).throughput_per_s for n in figures.WORKERS
        ]
        panel.plot(figures.WORKERS, np.array(possible) / 1e6, color=f"C{at}", label=name)
        panel.scatter(figures.WORKERS, np.array(reached) / 1e6, color=f"C{at}", s=18)
    panel.set(xlabel="workers", ylabel="million tuples/s", ylim=(0.0, None), xlim=(0.0, None))
    panel.set_title("possible (lines), CT keep (dots)", fontsize=9)
    panel.legend(frameon=False, fontsize=8)
    save_svg(picture, path)


def _stage(loads: Any) -> Any:
    stage = a_shuffle_stage(name="sums", task_fixed_s=0.03, task_per_row_s=2e-5)
    return skewed_stage_s(stage, loads, 16, batch_rows=2e5, seed=1)
