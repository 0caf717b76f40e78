"""Offers of a job with allowed switches turned, beside those of the job as it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from headway.domain import Change, Finding, JobProfile
from headway.domain.question import Checkpoint
from headway.errors import InputError
from headway.planner.checkpoint import when_applied
from headway.planner.explained_setting import ExplainedSetting
from headway.planner.purchase import Offer, at_core_speed
from headway.planner.question import Question
from headway.planner.switches import setting_of_switch, switch_findings, variants
from headway.sparkconf.knobs import knob_of

OffersOf: TypeAlias = Callable[[Question], tuple[list[Offer], tuple[str, ...]]]
"""The offers of a question, and why others are none."""


def turned_offers(
    question: Question, offers: Sequence[Offer], checkpoint: Checkpoint | None, offers_of: OffersOf
) -> list[Offer]:
    """The offers of a job, then those with switches turned, the fewest switches first: (P33)."""
    if not question.allowed:
        return list(offers)

    def unturned_on(offer: Offer) -> JobProfile:
        node_type = offer.node_type
        core_speed_ratio = 1.0 if node_type is None else node_type.core_speed_ratio
        return at_core_speed(question.profile, core_speed_ratio)

    all_offers = [replace(offer, unturned=unturned_on(offer)) for offer in offers]
    metric = question.target.metric
    for variant in variants(question.profile, question.allowed, checkpoint, metric)[1:]:
        # A job with switches turned may need memory that no node has.
        with contextlib.suppress(InputError):
            turned, _ = offers_of(replace(question, profile=variant.profile))
            all_offers += [
                replace(offer, switches=variant.switches, unturned=unturned_on(offer))
                for offer in turned
            ]
    return all_offers


def findings_of_switches(
    offer: Offer, explained: ExplainedSetting, checkpoint: Checkpoint | None
) -> Iterator[Finding]:
    """What became of each allowed switch, with what the setting gains by those that are turned."""
    if offer.unturned is None:
        return
    yield from switch_findings(
        offer.question,
        offer.unturned,
        offer.switches,
        explained.latency_with(offer.unturned),
        explained.latency_s,
        checkpoint,
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
