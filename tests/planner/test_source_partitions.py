"""Plans for a stated number of source partitions say what it takes to get them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import headway
from headway.api.page import page as page_of
from headway.api.results import as_table, as_text
from headway.domain import Finding, FindingCode, JobProfile, RateTrace, StreamAnswer
from headway.emitters import ALL_FORMATS
from headway.errors import InputError
from headway.formats.as_json import json_text, plan_json
from headway.formats.from_json import parse_plan
from headway.planner.playback import simulate_plan
from headway.planner.tasks import with_source_partitions
from headway.report.explanation import explanation_text
from headway.report.playback import playback_sheet
from headway.words import words_of
from tests.factories import a_profile

ASKED: dict[str, Any] = {"rate": 5000.0, "target": "p99 <= 3s", "max_nodes": 4}
NAMES = {"node_type": "m6i.xlarge", "spark_version": "4.1.0"}


def reading(*sources: str, topic_partitions: int | None = None) -> JobProfile:
    """The counting query, which reads its source by four tasks."""
    profile = a_profile(source_partitions=topic_partitions)
    return replace(profile, shape=replace(profile.shape, sources=sources))


KAFKA = reading("KafkaV2[Subscribe[orders]]", topic_partitions=4)


def planned(profile: JobProfile, source_partitions: int | None) -> StreamAnswer:
    plan: StreamAnswer = headway.plan(profile, source_partitions=source_partitions, **ASKED)
    return plan


def change_of(plan: StreamAnswer) -> tuple[str, str, str] | None:
    changes = (
        (change.before, change.after, str(change.applies))
        for change in plan.changes
        if change.setting == "source partitions"
    )
    return next(changes, None)


def codes_of(plan: StreamAnswer) -> set[FindingCode]:
    at_source = {FindingCode.TOPIC_HAS_MORE_PARTITIONS, FindingCode.SOURCE_TO_REPARTITION}
    return at_source & {finding.code for finding in plan.findings}


def test_more_tasks_than_a_topic_has_partitions_are_an_option_of_the_reader() -> None:
    plan = planned(KAFKA, 8)
    assert plan.query_options["minPartitions"] == "8"
    assert change_of(plan) == ("4", "8", "restart")
    assert not codes_of(plan)
    assert plan.source_partitions == plan.prediction.source_partitions == 8
    as_profiled = planned(KAFKA, None)
    assert as_profiled.source_partitions is None
    assert "minPartitions" not in as_profiled.query_options
    assert change_of(as_profiled) is None


def test_tasks_as_many_as_partitions_need_nothing() -> None:
    plan = planned(KAFKA, 4)
    assert "minPartitions" not in plan.query_options
    assert change_of(plan) is None
    assert not codes_of(plan)


def test_tasks_that_were_split_in_the_profiled_run_keep_their_option() -> None:
    """Two partitions were read by four tasks: four still need the option, two need it gone."""
    profile = reading("KafkaV2[Subscribe[orders]]", topic_partitions=2)
    same, fewer = planned(profile, 4), planned(profile, 2)
    assert same.query_options["minPartitions"] == "4"
    assert change_of(same) is None
    assert "minPartitions" not in fewer.query_options
    assert change_of(fewer) == ("4", "2", "restart")
    assert not codes_of(fewer)


def test_fewer_tasks_than_partitions_need_another_topic() -> None:
    plan = planned(KAFKA, 2)
    assert "minPartitions" not in plan.query_options
    assert codes_of(plan) == {FindingCode.TOPIC_HAS_MORE_PARTITIONS}
    assert "this needs a topic with 2 partitions" in as_text(plan).replace("\n  ", " ")


def test_another_source_is_repartitioned_itself() -> None:
    plan = planned(reading("RateStreamV2[rowsPerSecond=1]"), 8)
    assert "minPartitions" not in plan.query_options
    assert change_of(plan) == ("4", "8", "restart")
    assert codes_of(plan) == {FindingCode.SOURCE_TO_REPARTITION}
    emitted = headway.emit(plan, "emr")
    assert "minPartitions" not in emitted.text + "".join(emitted.beside)


@pytest.mark.parametrize("name", ALL_FORMATS)
def test_every_format_has_the_option(name: str) -> None:
    emitted = headway.emit(planned(KAFKA, 8), name, submission=NAMES)
    assert "minPartitions" in emitted.text + "".join(emitted.beside)


def test_text_page_and_explanation_name_them() -> None:
    plan = planned(KAFKA, 8)
    for text in (as_text(plan), page_of(plan), explanation_text(plan)):
        assert "minPartitions" in text
    for text in (as_text(plan.prediction), explanation_text(plan)):
        assert "8 source partitions" in text


def test_a_notebook_shows_what_to_do_at_the_source() -> None:
    plan = planned(reading("RateStreamV2"), 8)
    assert codes_of(plan) == {FindingCode.SOURCE_TO_REPARTITION}
    assert "repartition the source first" in plan._repr_html_()


def test_a_simulation_names_them() -> None:
    plan = planned(KAFKA, 8)
    trace = RateTrace(times_s=(0.0,), rates_per_s=(5000.0,), end_s=60.0)
    sheet = playback_sheet(simulate_plan(plan, trace, num_runs=1), plan)
    (setting,) = (fact[1] for fact in sheet.facts if fact[0] == "setting")
    assert setting.startswith("8 source partitions, ")


def test_a_saved_plan_has_them() -> None:
    plan = planned(KAFKA, 8)
    data = json.loads(json_text(plan_json(plan)))
    assert data["source_partitions"] == data["prediction"]["source_partitions"] == 8
    saved = parse_plan(json.dumps(data), name="plan.json")
    assert (saved.source_partitions, change_of(saved)) == (8, ("4", "8", "restart"))
    with pytest.raises(InputError, match="source_partitions is -3; expected at least 1"):
        parse_plan(json.dumps(data | {"source_partitions": -3}), name="plan.json")
    del data["source_partitions"], data["prediction"]["source_partitions"]
    assert parse_plan(json.dumps(data), name="earlier.json").source_partitions is None


def test_the_printed_configuration_is_predicted_as_planned() -> None:
    plan = planned(KAFKA, 8)
    setting = plan.configuration
    prediction = headway.predict(
        KAFKA,
        rate=5000.0,
        source_partitions=plan.source_partitions,
        executors=setting.executors,
        cores=setting.cores_per_executor,
        partitions=setting.shuffle_partitions,
        trigger=setting.trigger_s,
    )
    assert prediction.source_partitions == 8
    assert prediction.tuple_latency == plan.prediction.tuple_latency


def test_plans_are_compared_by_them() -> None:
    difference = headway.diff(planned(KAFKA, None), planned(KAFKA, 8))
    changed = {value.name: (value.before, value.after) for value in difference.values}
    assert changed["source partitions"] == ("as profiled", "8")
    assert "minPartitions" not in changed


@pytest.mark.usefixtures("small_pages")
def test_the_profile_beside_a_plan_is_read_by_as_many_tasks() -> None:
    """The table of other settings predicts the job of the plan, not as it was profiled."""
    plan = planned(KAFKA, 8)
    of_profile, as_planned = (
        as_table(plan, "what_if", profile=job) for job in (KAFKA, with_source_partitions(KAFKA, 8))
    )
    assert of_profile.equals(as_planned)
    page = page_of(plan, profile=KAFKA)
    assert "--source-partitions 8" in page
    assert 'id="rate-chart-caption">8 source partitions, ' in page


def test_none_leaves_a_job_as_it_is() -> None:
    assert with_source_partitions(KAFKA, None) is KAFKA
    with pytest.raises(InputError, match="source_partitions"):
        planned(KAFKA, 0)


@pytest.mark.parametrize(
    ("num_tasks", "words"),
    [(4, "so 4 of 8 slots are idle"), (7, "so 1 of 8 slots is idle")],
)
def test_idle_slots_are_counted_in_words(num_tasks: int, words: str) -> None:
    numbers = {"source_tasks": num_tasks, "slots": 8}
    idle = Finding(code=FindingCode.IDLE_SLOTS, numbers=numbers, names={"stage": "stage 0"})
    assert words in words_of(idle)
