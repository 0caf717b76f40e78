"""How likely one setting keeps what is promised, and what would settle it where that is open."""

from __future__ import annotations

from headway.domain import Advice, Verdict
from headway.models.job.calibration import of_runs_and_fit
from headway.models.laws.normal import ndtr
from headway.planner.candidates import Candidates
from headway.units import format_rate

_FARTHEST_SCORE = 3.0
_HALVINGS = 7


def kept_probability(setting: Candidates) -> float:
    """Probability that one setting keeps every promise at the asked rate. [-]

    Parameters
    ----------
    setting : Candidates
        One setting, with the question it is held against.

    Notes
    -----
    **(P23)** The promises are kept with the probability `Φ(z)` at the score `z` at which durations,
    `e^(z s)` times as long as expected with `s` of (P2), just keep the worst of them: found by
    halving between -3 and 3, and of declared figures along their ranges (P19). They are kept where
    that is at least the confidence `q` of the plan, not kept where it is at most `1-q`, and too
    close to tell between.
    """
    low, high = -_FARTHEST_SCORE, _FARTHEST_SCORE
    # Most plans are far from the edge: one look at the last step of the halving spares the others.
    last_step = 2.0 * _FARTHEST_SCORE / 2**_HALVINGS
    if setting.excess_at_score(high - last_step) <= 0.0:
        low = high - last_step
    while high - low > last_step:
        middle = 0.5 * (low + high)
        if setting.excess_at_score(middle) <= 0.0:
            low = middle
        else:
            high = middle
    return float(ndtr(0.5 * (low + high)))


def settling_advice(setting: Candidates, verdict: Verdict) -> tuple[Advice, ...]:
    """What a run of this very setting would teach, where it is too close to tell.

    Parameters
    ----------
    setting : Candidates
        One setting, with the question it is held against.
    verdict : Verdict
        On its promises.

    Notes
    -----
    theory.md (P2). With one run more at the asked setting, nothing of it lies beyond what was
    profiled, and the fit rests on one run more.
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
