"""Real-Time Mode as planned from micro-batches: which predictions missed, and by which term."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pages import headed

from headway.assumptions.real_time import GAP_RATIOS, STATEFUL_GAP_S, STATELESS_GAP_S
from kafka.cases import Job
from kafka.runs import Record

_PREFACE = """\
Profiled in micro-batches, planned for Real-Time Mode with batches of 10 s, and run as planned
(`make planned-real-time`, {made}). Here no gap is known before the run: the plan assumes
{stateless:.0f} ms without state and {stateful:.0f} ms with state.
"""
_MECHANISM = """\
p99 is predicted too long, and only because of the gap: p50 and p95, which contain no gap, agree.
With batches of 10 s only 1 to 3% of the rows arrive in a gap. By (N7), p99 is therefore the gap
less `0.01 (T + g)(1 - ρ)`, a term of about 100 ms, so an error of the gap counts in full in the
little that is left. The gap implied by p99 follows from that. The mean of deduplicate, 3 ms
shorter than predicted, implies 158 ms by the same equation. The pause between batches, which is a
part of the gap, was 0.71 and 0.55 times that of the same jobs in the session of 22 November, on a
machine with more idle cores (1.3 and 1.6 compared with 0.6 and 0.9). The other parts of the gap
were not recorded, so it is unknown why it was shorter.

The prior of the gap is unchanged. Its interval was too narrow: 0.8 to 2.2 times the prior, after
four runs of one session. Four sessions until 23 November, three of this page (kept in its history)
and that of these plans, imply gaps of 0.83, 0.88, 1.02 and 0.56 times the prior in the mean of
their runs. That is a spread of 0.31 in logarithms between sessions and 0.13 within one. By
Student's t with four degrees of freedom, nine in ten new runs are therefore above {low:.2f} and
below 2.05 times the prior. The lower end is now {low:.2f}; the upper end, {high:g}, is a judgement
as before. Both runs are part of this evidence, so they do not test it. The four runs of 25
November above do: they imply gaps of 0.59, 0.66, 0.73 and 0.78 times the prior, all of them
inside.
"""


def planned_section(records: Sequence[Record]) -> Iterator[str]:
    """The plans, their measurements, and the gap that would have been right."""
    runs = [one for one in records if "job" in one]
    if not runs:
        return
    low, high = GAP_RATIOS.value
    yield "## Real-Time Mode as planned"
    yield ""
    yield _PREFACE.format(
        made=records[0]["about"]["made"],
        stateless=1e3 * STATELESS_GAP_S.value,
        stateful=1e3 * STATEFUL_GAP_S.value,
    )
    yield from headed(
        "| run | p50: predicted | measured | p95: predicted | measured | p99: predicted | measured "
        "| 90% interval then | gap: planned | implied by p99 | 90% interval now |"
    )
    for run in runs:
        gap_s = _gap_s(run)
        cells = [run["name"]]
        for name in ("p50", "p95", "p99"):
            cells += [_ms(run["predicted"][name]), _ms(run["measured"][name])]
        cells += [
            _between(*run["interval90_p99_s"]),
            _ms(gap_s),
            _ms(implied_gap_s(run)),
            _between(low * gap_s, high * gap_s),
        ]
        yield "| " + " | ".join(cells) + " |"
    yield ""
    yield _MECHANISM.format(low=low, high=high)


def implied_gap_s(run: Record) -> float:
    """The gap at which p99 would be predicted right, by (N7) with tasks that hardly work. [s]"""
    excess_s = run["predicted"]["p99"] - run["measured"]["p99"]
    return float(_gap_s(run) - excess_s / (1.0 - 0.01))


def _gap_s(run: Record) -> float:
    prior = STATELESS_GAP_S if run["job"] == Job.TRANSFORM.value else STATEFUL_GAP_S
    return prior.value


def _ms(value_s: float) -> str:
    return f"{1e3 * value_s:.0f} ms"


def _between(low_s: float, high_s: float) -> str:
    return f"{1e3 * low_s:.0f} to {1e3 * high_s:.0f} ms"
