"""Switches as candidates of the search: which can be turned, and offers of the job with them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from headway.domain import Change, Finding, FindingCode, JobProfile, Metric
from headway.domain.question import Checkpoint
from headway.domain.switches import Switch, SwitchSetting
from headway.errors import InputError
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.models.job.switches import turned
from headway.models.job.turned import TurnedJob
from headway.planner.checkpoint import when_applied
from headway.planner.explained_setting import ExplainedSetting
from headway.planner.purchase import Offer, at_core_speed
from headway.planner.question import Question
from headway.sparkconf.knobs import (
    ASYNC_PROGRESS_KEY,
    CHANGELOG_KEY,
    CHECKSUMS_KEY,
    EMPTY_BATCHES_KEY,
    FILE_MANAGER_KEY,
    PROVIDER_KEY,
    STATELESS_ADAPTIVE_KEY,
    UNLOAD_KEY,
    knob_of,
)
from headway.sparkconf.switches import switch_setting

_ASYNC_SINKS = ("kafka", "noop", "console", "memory")
_ASYNC_SINCE, _STATELESS_ADAPTIVE_SINCE = (3, 4), (4, 1)
_NO_TIME_S = 1e-9

OffersOf: TypeAlias = Callable[[Question], tuple[list[Offer], tuple[str, ...]]]
"""The offers of a question, and why others are none."""


def variants(
    profile: JobProfile, allowed: Sequence[Switch], checkpoint: Checkpoint | None, metric: Metric
) -> Iterator[tuple[tuple[Switch, ...], JobProfile]]:
    """The job with the allowed switches turned that save time, one more each time; and these.

    **(P33)** Switches as candidates: the search tries the job as it is, then with the switch turned
    that saves most of the profiled batch, then with the two that save most, and so on; switches
    that are expected to make batches longer are left out. A job with switches turned is planned
    with the least gain of (Y1), so that its targets are met at the confidence level. If two have as
    many nodes and cost as much, the plan takes the one with fewer switches turned.
    """
    turned_jobs: dict[Switch, TurnedJob] = {}
    for switch in dict.fromkeys(allowed):
        job = _candidate(profile, switch, checkpoint, metric)
        if not isinstance(job, str):
            turned_jobs[switch] = job
    gains_s = {switch: _expected_gain_s(profile, job) for switch, job in turned_jobs.items()}
    order = sorted(gains_s, key=lambda switch: -gains_s[switch])
    switches, with_switches = tuple[Switch, ...](), profile
    for switch in (switch for switch in order if gains_s[switch] >= -_NO_TIME_S):
        job = turned(with_switches, switch) if switches else turned_jobs[switch]
        # What a switch before it has changed may leave nothing to turn.
        if not isinstance(job, str) and why_not(with_switches, switch) is None:
            switches = (*switches, switch)
            with_switches = with_setting(job.least, setting_of_switch(profile, switch))
            yield switches, with_switches


def turned_offers(question: Question, offers: Sequence[Offer], offers_of: OffersOf) -> list[Offer]:
    """The offers of a job, then those with switches turned, the fewest switches first: (P33)."""
    if not question.allowed:
        return list(offers)

    def with_unturned(offer: Offer, switches: tuple[Switch, ...] = ()) -> Offer:
        unturned = at_core_speed(question.profile, offer.question.space.core_speed_ratio)
        return replace(offer, switches=switches, unturned=unturned)

    all_offers = list(map(with_unturned, offers))
    metric, checkpoint = question.target.metric, question.checkpoint
    for switches, job in variants(question.profile, question.allowed, checkpoint, metric):
        # A job with switches turned may need memory that no node has.
        with contextlib.suppress(InputError):
            turned_on_nodes, _ = offers_of(replace(question, profile=job))
            all_offers += [with_unturned(offer, switches) for offer in turned_on_nodes]
    return all_offers


def _candidate(
    profile: JobProfile, switch: Switch, checkpoint: Checkpoint | None, metric: Metric
) -> TurnedJob | str:
    """The job with an allowed switch turned, or why that is no candidate for a target."""
    if switch is Switch.ROCKSDB and checkpoint == "existing":
        return "the existing checkpoint keeps its state store"
    if switch is Switch.NO_EMPTY_BATCHES and metric is Metric.WINDOW:
        return "windows would be emitted later, and the target is about them"
    return why_not(profile, switch) or turned(profile, switch)


def why_not(profile: JobProfile, switch: Switch) -> str | None:
    """Why a switch cannot be turned, by what the log shows; None if it can."""
    return next(_reasons(profile, switch), None)


def _reasons(profile: JobProfile, switch: Switch) -> Iterator[str]:
    properties, release = profile.application.properties, profile.application.release
    is_stateful, store = bool(profile.shape.stateful_operators), profile.shape.checkpoint_store
    if all(
        properties.get(key) == value
        for key, value in setting_of_switch(profile, switch).settings.items()
    ):
        yield "it is on already"
    match switch:
        case Switch.ASYNC_PROGRESS:
            if is_stateful:
                yield "queries with state cannot have it"
            if not any(name in profile.shape.sink.lower() for name in _ASYNC_SINKS):
                yield f"the sink {profile.shape.sink} cannot have it"
            if (0, 0) < release < _ASYNC_SINCE:
                yield "it needs Spark 3.4"
            if properties.get(ASYNC_PROGRESS_KEY) == "true":
                yield "it is on already"
        case Switch.CHANGELOG:
            if not profile.is_rocksdb:
                yield "the log does not show state in RocksDB"
            if properties.get(CHANGELOG_KEY) == "true":
                yield "it is on already"
        case Switch.ROCKSDB:
            if not is_stateful:
                yield "the query has no state"
            if profile.is_rocksdb or PROVIDER_KEY in properties:
                yield "the query has a state store of its own already"
        case Switch.FILE_MANAGER:
            if not properties:
                yield "the log shows no settings of the query"
            if FILE_MANAGER_KEY in properties:
                yield "the query has a file manager of its own already"
            on_disk = store == "disk" or (store is None and profile.application.is_local)
            if not on_disk:
                yield "the checkpoint is not known to be on a mounted disk"
        case Switch.NO_CHECKSUMS:
            if properties.get(CHECKSUMS_KEY) != "true":
                yield "the log does not show that checksums are on"
        case Switch.KEEP_LOADED:
            if properties.get(UNLOAD_KEY) != "true":
                yield "the log does not show that state is unloaded"
        case Switch.NO_EMPTY_BATCHES:
            if properties.get(EMPTY_BATCHES_KEY) == "false":
                yield "it is on already"
        case Switch.ADAPTIVE:
            if (0, 0) < release < _STATELESS_ADAPTIVE_SINCE:
                yield f"streams have it since Spark 4.1 ({STATELESS_ADAPTIVE_KEY})"
            if any(stage.tasks_rule == "coalesced" for stage in profile.stages):
                yield "it is on already"
        case Switch.NO_COALESCING:
            pass


def setting_of_switch(profile: JobProfile, switch: Switch) -> SwitchSetting:
    """What turning a switch takes in the job's release of Spark."""
    return switch_setting(switch, profile.application.release)


def with_setting(profile: JobProfile, setting: SwitchSetting) -> JobProfile:
    """The job as if its log showed the settings of a switch, by which files are counted (F2)."""
    application = profile.application
    changed = replace(application, properties={**application.properties, **setting.settings})
    state_store = profile.state_store
    if PROVIDER_KEY in setting.conf:
        state_store = setting.conf[PROVIDER_KEY].rpartition(".")[2]
    applications = (*profile.applications[:-1], changed)
    return replace(profile, applications=applications, state_store=state_store)


def with_switches_of(profile: JobProfile, settings: Mapping[str, str]) -> JobProfile:
    """The job with the switches that settings turn, each with the least gain, as a plan counts it.

    Settings are Spark's and those of the query, for instance of a plan on record.
    """
    for switch in Switch:
        setting = setting_of_switch(profile, switch)
        if setting.settings.items() <= settings.items() and why_not(profile, switch) is None:
            job = turned(profile, switch)
            if not isinstance(job, str):
                profile = with_setting(job.least, setting)
    return profile


def turned_ends(profile: JobProfile, switch: Switch) -> TurnedJob | str:
    """The job with a switch and its settings turned, or why its gain is unknown."""
    job = turned(profile, switch)
    if isinstance(job, str):
        return job
    return TurnedJob(*(with_setting(end, setting_of_switch(profile, switch)) for end in job))


def _expected_gain_s(profile: JobProfile, job: TurnedJob) -> float:
    """By how much the batch of the profiled setting becomes shorter [s]."""
    configuration = profile.baseline
    size = configuration.size
    before = duration_model(profile, *size)
    rows = settled_batch_rows(before, profile.arrivals.rate_per_s, configuration.trigger_s)
    return float(before.mean_s(rows) - duration_model(job.expected, *size).mean_s(rows))


def findings_of_switches(offer: Offer, explained: ExplainedSetting) -> Iterator[Finding]:
    """What became of each allowed switch: turned, with the gain of all, or why it was not."""
    before, question = offer.unturned, offer.question
    if before is None:
        return
    if offer.switches:
        settings = [setting_of_switch(before, switch) for switch in offer.switches]
        numbers, without_s = {"latency_s": explained.latency_s}, explained.latency_with(before)
        if math.isfinite(without_s):
            numbers["latency_without_s"] = without_s
        yield Finding(
            code=FindingCode.SWITCHES_TURNED,
            numbers=numbers,
            names={
                "switches": " and ".join(setting.label for setting in settings),
                "cautions": "; ".join(setting.caution for setting in settings if setting.caution),
            },
        )
    for switch in dict.fromkeys(question.allowed):
        if switch in offer.switches:
            continue
        job = _candidate(before, switch, question.checkpoint, question.target.metric)
        yield Finding(
            code=FindingCode.SWITCH_NOT_TURNED,
            numbers={} if isinstance(job, str) else {"gain_s": _expected_gain_s(before, job)},
            names={"switch": str(switch), **({"why": job} if isinstance(job, str) else {})},
        )


def settings_of_switches(offer: Offer) -> tuple[dict[str, str], dict[str, str]]:
    """What turned switches set: in Spark's configuration, and as options of the query."""
    conf: dict[str, str] = {}
    options: dict[str, str] = {}
    for switch in offer.switches:
        setting = setting_of_switch(offer.question.profile, switch)
        conf |= setting.conf
        options |= setting.writer_options
    return conf, options


def changes_of_switches(offer: Offer) -> tuple[Change, ...]:
    """What turned switches change, and what it takes to apply each change."""
    if offer.unturned is None:
        return ()
    before = offer.unturned.application.properties
    conf, options = settings_of_switches(offer)
    return tuple(
        Change(
            setting=knob_of(key).label,
            before=before.get(key, "Spark's default"),
            after=value,
            applies=when_applied(knob_of(key), offer.question.profile),
        )
        for key, value in {**conf, **options}.items()
        if before.get(key) != value
    )
