"""Gains of switches: predicted from the run before alone, beside those that were measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.domain import Application, Configuration, JobProfile
from headway.domain.switches import Switch
from headway.models.batches.intervals import held_back_trigger_s
from headway.models.job.predict import predict
from headway.models.job.switches import turned
from switches.pairs import AFTER, BEFORE, Pair, Split

Row = Mapping[str, Any]
WINDOWS, LATENCY = "windows", "latency"
_SWITCH_OF = {"coalescing-off": Switch.NO_COALESCING}
_TWO_SIDED_95 = 1.96


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
    duration_s: float
    measured_s: float
    noise_s: float
    predicted: Gain | str

    @property
    def error_s(self) -> float | None:
        """How far the prediction is off; None if there is none."""
        if isinstance(self.predicted, str):
            return None
        return self.predicted.expected_s - self.measured_s

    def is_within(self, allowed_ratio: float) -> bool:
        """Whether the prediction is as close as was asked."""
        error_s = self.error_s
        allowed_s = max(allowed_ratio * abs(self.measured_s), self.noise_s)
        return error_s is not None and abs(error_s) <= allowed_s


def judged_pairs(
    split: Split, runs: Sequence[Row], profiles: Mapping[str, JobProfile]
) -> Iterator[Judged]:
    """Each pair of which both sides were measured."""
    by_name = {row["run"]: row for row in runs if row.get("truth")}
    noise_ratios = {kind: noise_ratio(split, by_name, kind) for kind in (LATENCY, WINDOWS)}
    for pair in split.pairs:
        before, after = (by_name.get(f"{pair.name}/{side}/1") for side in (BEFORE, AFTER))
        if before is None or after is None:
            continue
        kind = statistic_of(pair)
        before_s, after_s = mean_s(before, kind), mean_s(after, kind)
        if before_s is None or after_s is None:
            continue
        duration_s = before["truth"]["duration"]["mean"]
        base_s = duration_s if kind == LATENCY else before_s
        profile = profiles.get(pair.name)
        yield Judged(
            pair=pair,
            before_s=before_s,
            duration_s=duration_s,
            measured_s=after_s - before_s,
            noise_s=noise_ratios[kind] * base_s,
            predicted="the run before has no profile"
            if profile is None
            else predicted_gain(pair, profile),
        )


def statistic_of(pair: Pair) -> str:
    """What of a pair is judged."""
    return LATENCY if pair.window_s is None else WINDOWS


def mean_s(row: Row, kind: str) -> float | None:
    """A mean latency of a run; None if it was not measured."""
    measured = row["truth"][kind]
    return None if measured is None else float(measured["mean"])


def noise_ratio(split: Split, by_name: Mapping[str, Row], kind: str) -> float:
    """What 95% of the differences between two runs of a setting do not exceed, by the repeats."""
    ratios = []
    for pair in split.pairs:
        first, second = (by_name.get(f"{pair.name}/{BEFORE}/{number}") for number in (1, 2))
        if statistic_of(pair) != kind or first is None or second is None:
            continue
        first_s, second_s = mean_s(first, kind), mean_s(second, kind)
        if first_s is not None and second_s is not None:
            base_s = first["truth"]["duration"]["mean"] if kind == LATENCY else first_s
            ratios.append((second_s - first_s) / base_s)
    return _TWO_SIDED_95 * float(np.sqrt(np.mean(np.square(ratios)))) if ratios else 0.0


def predicted_gain(pair: Pair, profile: JobProfile) -> Gain | str:
    """What turning the switch of a pair changes, by the profile of the run before; or why not."""
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
        assert profile.empty_batches is not None
        delay_s = profile.empty_batches.window_delay_s
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
