"""Probability that a setting meets its targets, and what would settle an open verdict."""

from __future__ import annotations

import math
from functools import partial

from headway.domain import Advice, Verdict
from headway.models.job.calibration import of_runs_and_fit
from headway.models.laws.inverse import last_kept
from headway.models.laws.normal import ndtr, ndtri
from headway.planner.candidates import Candidates
from headway.units import format_rate

_FARTHEST_SCORE = 3.0
_NUM_STEPS = 128
_STEPS_PER_SCORE = _NUM_STEPS / (2.0 * _FARTHEST_SCORE)


def kept_probability(setting: Candidates, *, is_kept: bool = False) -> float:
    """Probability that one setting meets every target at the requested rate. [-]

    Parameters
    ----------
    setting : Candidates
        One setting, with its question.
    is_kept : bool
        Whether it is known to meet them at the requested confidence.

    Notes
    -----
    **(P23)** The targets are met with the probability `Φ(z)`, where `z` is the score at which the
    worst of them is just met with durations `e^(z s)` times as long as expected, `s` of (P2). The
    score is found among 128 steps from -3 to 3; for declared figures, along their ranges (P19). The
    verdict is *kept* if the probability is at least the confidence `q` of the plan, *not kept* if
    it is at most `1-q`, and *too close to tell* in between.
    """

    def excess(step: int, *, with_gain: bool = True) -> float:
        score = step / _STEPS_PER_SCORE - _FARTHEST_SCORE
        return setting.excess_at_score(score, with_gain=with_gain)

    but_for_gain = partial(excess, with_gain=False)
    lowest, high, at_lowest, at_high = 0, _NUM_STEPS, -math.inf, math.inf
    least = 0.0
    if is_kept:
        least = setting.question.confidence
        score = float(ndtri(least))
        lowest = min(math.floor((score + _FARTHEST_SCORE) * _STEPS_PER_SCORE), high - 1)
        at_lowest = setting.certified_excess(setting.question.rate_per_s, with_gain=False)
    low, at_low = lowest, at_lowest
    if is_kept:
        # Most plans are far from the edge, so testing the last step makes the others unnecessary.
        last, at_last = high - 1, but_for_gain(high - 1)
        low, high, at_high = (last, high, at_high) if at_last <= 0.0 else (low, last, at_last)
    step = last_kept(but_for_gain, low, high, at_low, at_high)
    # The gain of errors needs a second chain, so it is computed only if everything else is met.
    if step > lowest and (at_step := excess(step)) > 0.0:
        step = last_kept(excess, lowest, step, at_lowest, at_step)
    return max(float(ndtr((step + 0.5) / _STEPS_PER_SCORE - _FARTHEST_SCORE)), least)


def settling_advice(setting: Candidates, verdict: Verdict) -> tuple[Advice, ...]:
    """Effect of a run of this setting on the verdict, if it is too close to tell.

    Parameters
    ----------
    setting : Candidates
        One setting, with its question.
    verdict : Verdict
        The verdict on its targets.

    Notes
    -----
    theory.md (P2). With one more run at this setting, it would be within the profiled range, and
    the fit would be based on one more run.
    """
    question, profile = setting.question, setting.question.profile
    if verdict is not Verdict.TOO_CLOSE or profile.declared is not None:
        return ()
    now = setting.spread_ratio()
    then = of_runs_and_fit(profile.noise.run_to_run_ratio, len(profile.settings) + 1)
    if not then < now:
        return ()
    text = (
        f"a run of this configuration, two minutes at {format_rate(question.rate_per_s)}, would "
        f"narrow the uncertainty of its batch durations from {now:.0%} to {then:.0%}"
    )
    return (Advice(text=text),)
