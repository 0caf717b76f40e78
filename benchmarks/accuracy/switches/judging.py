"""Gains of switches: predicted from the runs before alone, beside those that were measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from headway.domain import Application, Configuration, JobProfile
from headway.domain.switches import Switch
from headway.models.batches.intervals import held_back_trigger_s
from headway.models.job.predict import predict
from headway.models.job.switches import turned
from switches.pairs import AFTER, BEFORE, Pair, Row, Split, measured_runs

WINDOWS, LATENCY = "windows", "latency"
_SWITCH_OF = {"coalescing-off": Switch.NO_COALESCING}
_TWO_SIDED_95 = 1.96
_RESIDUAL_VARIANCES = 20.0
"""Variance of `o - 3 i` of the split, in variances of one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """A change of a mean latency [s], negative if it becomes shorter, with its 90% interval."""

    expected_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A pair: what was predicted, or why not, and what was measured [s]."""

    pair: Pair
    before_s: float
    measured_s: float
    noise_s: float
    predicted: Gain | str

    @property
    def error_s(self) -> float | None:
        """How far the prediction is off; None if there is none."""
        if isinstance(self.predicted, str):
            return None
        return self.predicted.expected_s - self.measured_s

    def is_close(self, allowed_ratio: float) -> bool:
        """Whether the prediction is as close to the measured change as was asked."""
        return self._is_off_by(allowed_ratio * abs(self.measured_s))

    def is_within(self, allowed_ratio: float) -> bool:
        """Whether it is as close as that, or as the noise of repeats."""
        return self._is_off_by(max(allowed_ratio * abs(self.measured_s), self.noise_s))

    def _is_off_by(self, most_s: float) -> bool:
        return self.error_s is not None and abs(self.error_s) <= most_s


def judged_pairs(
    split: Split, lines: Sequence[Row], profiles: Mapping[str, JobProfile]
) -> Iterator[Judged]:
    """Each pair whose runs were all measured."""
    runs = measured_runs(split, lines)
    noise_ratios = {kind: noise_ratio(split, runs, kind) for kind in (LATENCY, WINDOWS)}
    for pair in split.pairs:
        if pair.name not in runs:
            continue
        rows, kind = runs[pair.name], statistic_of(pair)
        before_s = mean(mean_s(row, kind) for row in rows if row["side"] == BEFORE)
        after_s = mean(mean_s(row, kind) for row in rows if row["side"] == AFTER)
        profile = profiles.get(pair.name)
        yield Judged(
            pair=pair,
            before_s=before_s,
            measured_s=after_s - before_s,
            noise_s=noise_ratios[kind] * _base_s(rows, kind),
            predicted="the runs before have no profile"
            if profile is None
            else predicted_gain(pair, profile),
        )


def statistic_of(pair: Pair) -> str:
    """What of a pair is judged."""
    return LATENCY if pair.window_s is None else WINDOWS


def mean_s(row: Row, kind: str) -> float:
    """A mean latency of a run."""
    if kind == WINDOWS:
        return float(row["facts"]["window_delay_s"])
    return float(row["truth"][LATENCY]["mean"])


def noise_ratio(split: Split, runs: Mapping[str, Sequence[Row]], kind: str) -> float:
    """What 95% of measured changes are off by at most, by the repeats: as the split states it."""
    squares = []
    for pair in split.pairs:
        if statistic_of(pair) != kind or pair.name not in runs:
            continue
        first_s, second_s, third_s, fourth_s = (mean_s(row, kind) for row in runs[pair.name])
        residual_s = (fourth_s - first_s) - 3.0 * (third_s - second_s)
        ratio = residual_s / _base_s(runs[pair.name], kind)
        squares.append(ratio * ratio / _RESIDUAL_VARIANCES)
    return _TWO_SIDED_95 * math.sqrt(mean(squares)) if squares else 0.0


def _base_s(rows: Sequence[Row], kind: str) -> float:
    """What noise is relative to: the duration of a batch before, or the latency of its windows."""
    before = [row for row in rows if row["side"] == BEFORE]
    if kind == WINDOWS:
        return mean(mean_s(row, kind) for row in before)
    return mean(float(row["truth"]["duration"]["mean"]) for row in before)


def predicted_gain(pair: Pair, profile: JobProfile) -> Gain | str:
    """What turning the switch of a pair changes, by the profile of the runs before; or why not."""
    setting = replace(profile.baseline, trigger_s=pair.trigger_s)
    if pair.switch == "partitions":
        partitions = pair.after.partitions or pair.partitions
        return _change(profile, profile, setting, replace(setting, shuffle_partitions=partitions))
    if pair.switch == "min-offsets":
        interval_s = held_back_trigger_s(
            setting.trigger_s,
            profile.arrivals.rate_per_s,
            float(pair.after.reader["minOffsetsPerTrigger"]),
        )
        return _change(profile, profile, setting, replace(setting, trigger_s=interval_s))
    switch = _SWITCH_OF.get(pair.switch) or Switch(pair.switch)
    job = turned(profile, switch)
    if isinstance(job, str):
        return job
    if switch is Switch.NO_EMPTY_BATCHES:
        empty = profile.empty_batches
        assert empty is not None
        delay_s = empty.emitted_share * empty.ahead_s
        return Gain(expected_s=delay_s, low_s=delay_s, high_s=delay_s)
    changes = [_change(profile, end, setting, setting) for end in job]
    gains_s = [change if isinstance(change, str) else change.expected_s for change in changes]
    if any(isinstance(gain_s, str) for gain_s in gains_s):
        return next(gain_s for gain_s in gains_s if isinstance(gain_s, str))
    expected_s, least_s, most_s = (float(gain_s) for gain_s in gains_s)
    return Gain(expected_s=expected_s, low_s=min(least_s, most_s), high_s=max(least_s, most_s))


def _change(
    before: JobProfile, after: JobProfile, setting: Configuration, changed: Configuration
) -> Gain | str:
    """The change of the mean latency of rows; or why it is not quoted."""
    first, second = (
        predict(job, configuration, before.arrivals).tuple_latency
        for job, configuration in ((before, setting), (after, changed))
    )
    if first is None or second is None:
        return "no latency is quoted"
    change_s = second.mean_s - first.mean_s
    return Gain(expected_s=change_s, low_s=change_s, high_s=change_s)


def as_logged(profile: JobProfile, conf: Mapping[str, str]) -> JobProfile:
    """The profile of a run as its log would be if it had run alone, with its settings at the start.

    Several runs share a JVM, whose log has the settings of the JVM only.
    """
    last = profile.applications[-1]
    application: Application = replace(last, properties={**last.properties, **conf})
    return replace(profile, applications=(*profile.applications[:-1], application))
