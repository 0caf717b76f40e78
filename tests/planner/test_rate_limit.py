"""Each source is given the limit that it understands, or none, and the plan says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headway.api.results import as_text
from headway.domain import (
    Arrivals,
    JobProfile,
    ObservedArrivals,
    RateTrace,
    RowsLaw,
    StreamAnswer,
    Target,
)
from headway.emitters import ALL_FORMATS
from headway.emitters.submission import Submission
from headway.formats.as_json import json_text, plan_json
from headway.formats.from_json import parse_plan
from headway.planner.playback import simulate_plan
from headway.planner.question import SearchSpace
from headway.sparkconf import reader_limit
from headway.words import all_words
from tests.factories import a_profile
from tests.planner.plans import plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBMISSION = Submission(node_type="m6i.xlarge", spark_version="4.1.0")


def profile_of(*sources: str) -> JobProfile:
    """A job that reads ``sources``, with batches of up to 50,000 rows on record."""
    profile = a_profile()
    seen = replace(profile.settings[0], rows_per_batch_high=50_000.0)
    scan, aggregate = profile.stages
    dear = replace(aggregate, rows=RowsLaw(scale=1.0, exponent=1.0), task_per_row_s=6e-5)
    return replace(
        profile,
        shape=replace(profile.shape, sources=sources),
        settings=(seen,),
        stages=(scan, dear),
    )


def plan_of(profile: JobProfile) -> StreamAnswer:
    return plan(
        profile,
        Arrivals(rate_per_s=20_000.0),
        Target.parse("p99 <= 3s"),
        SearchSpace(max_nodes=4, cores_per_executor=4),
    )


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ("KafkaV2[Subscribe[orders]]", "maxOffsetsPerTrigger"),
        ("KafkaSource[SubscribePattern[ord.*]]", "maxOffsetsPerTrigger"),
        ("EventHubsSource", "maxEventsPerTrigger"),
        ("SparkMicroBatchStream", "streaming-max-rows-per-micro-batch"),
        ("clock: 16000.0 rows/s in 4 partitions", "maxRowsPerTrigger"),
    ],
)
def test_a_source_that_counts_rows_gets_its_own_option(source: str, key: str) -> None:
    answer = plan_of(profile_of(source))
    rows = answer.configuration.max_offsets_per_trigger
    assert rows is not None
    assert dict(answer.query_options)[key] == str(rows)
    assert set(answer.query_options) == {"trigger", key}
    assert not [text for text in all_words(answer.findings) if "rate limit" in text]


def with_files(profile: JobProfile, mean_rows: float, mean_bytes: float) -> JobProfile:
    """The same job, its source of files with the sizes of those on record."""
    seen = ObservedArrivals(
        counted="rows",
        rate_p05_per_s=20e3,
        rate_p50_per_s=20e3,
        rate_p95_per_s=20e3,
        rate_max_per_s=20e3,
        file_mean_rows=mean_rows,
        file_mean_bytes=mean_bytes,
    )
    return replace(profile, observed_arrivals=seen)


@pytest.mark.parametrize(
    ("source", "key", "each"),
    [
        ("FileStreamSource[#83457fe3]", "maxFilesPerTrigger", 1),
        ("DeltaSource[#83457fe3]", "maxBytesPerTrigger", 20_000),
        ("CloudFilesSource[#83457fe3]", "cloudFiles.maxBytesPerTrigger", 20_000),
    ],
)
def test_a_source_of_files_is_limited_by_the_files_on_record(
    source: str, key: str, each: int
) -> None:
    in_rows = plan_of(profile_of("KafkaV2[Subscribe[orders]]"))
    most = in_rows.configuration.max_offsets_per_trigger
    assert most is not None
    answer = plan_of(with_files(profile_of(source), 1000.0, 20_000.0))
    option_value = int(answer.query_options[key])
    assert option_value == most // 1000 * each
    assert answer.configuration.max_offsets_per_trigger == most // 1000 * 1000
    assert not [text for text in all_words(answer.findings) if text.startswith("no rate limit")]
    assert parse_plan(json_text(plan_json(answer)), name="p").query_options == answer.query_options
    # One file of more rows than a batch may take cannot be shared out.
    coarse = plan_of(with_files(profile_of(source), 0.9 * most, 20_000.0))
    assert int(coarse.query_options[key]) == each
    for rows in (1.1 * most, 100.0 * most):
        none = plan_of(with_files(profile_of(source), rows, 20_000.0))
        assert set(none.query_options) == {"trigger"}
        (why,) = (text for text in all_words(none.findings) if text.startswith("no rate limit"))
        assert "takes whole files, of " in why


def test_the_planned_number_of_files_is_what_the_reader_takes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A real reader, of files of 25 rows, with the option of the plan."""
    profile = profile_of("FileStreamSource[#83457fe3]")
    most = plan_of(profile_of("KafkaV2[Subscribe[a]]")).configuration.max_offsets_per_trigger
    assert most is not None
    answer = plan_of(with_files(profile, most / 3.5, 1e6))
    options = {key: one for key, one in answer.query_options.items() if key != "trigger"}
    assert options == {"maxFilesPerTrigger": "3"}
    for number in range(7):
        (tmp_path / f"{number}.txt").write_text("row\n" * 25)
    query = (
        spark.readStream.format("text")
        .options(**options)
        .load(str(tmp_path))
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "_checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = [progress["numInputRows"] for progress in query.recentProgress]
    assert [number for number in rows if number] == [75, 75, 25]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("FileStreamSource[#83457fe3]", "the file source limits files or bytes, not rows"),
        ("DeltaSource[#83457fe3]", "Delta limits files or bytes, not rows"),
        ("CloudFilesSource[#83457fe3]", "cloudFiles.maxFilesPerTrigger"),
        ("RateStreamV2[rowsPerSecond=100, rampUpTimeSeconds=0]", "the rate source has no limit"),
        ("RatePerMicroBatchStream[rowsPerBatch=100]", "makes rowsPerBatch rows for each batch"),
        ("KinesisV2[#83457fe3]", "fetches ahead of the query"),
        ("TextSocketV2[#83457fe3]", "the socket source has no limit"),
        ("MemoryStream[#83457fe3]", "the memory source has no limit"),
        ("declared", "the source was not declared"),
        ("PulsarSource[#83457fe3]", "no option of PulsarSource is known that limits"),
        ("unknown", "no option of"),
    ],
)
def test_a_source_that_does_not_count_rows_gets_none_and_a_sentence(source: str, said: str) -> None:
    answer = plan_of(profile_of(source))
    assert answer.configuration.max_offsets_per_trigger is None
    assert set(answer.query_options) == {"trigger"}
    assert not [change for change in answer.changes if change.setting == "rate limit"]
    (warning,) = (text for text in all_words(answer.findings) if text.startswith("no rate limit"))
    assert said in warning
    assert "batches of up to " in warning


def test_several_sources_have_a_limit_each() -> None:
    answer = plan_of(profile_of("KafkaV2[Subscribe[a]]", "KafkaV2[Subscribe[b]]"))
    assert set(answer.query_options) == {"trigger"}
    assert any(
        "each of the 2 sources has its own rate limit" in one for one in all_words(answer.findings)
    )


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ("KinesisV2MicrobatchStream", "kinesis.maxFetchRecordsPerShard"),
        ("KinesisSource[#83457fe3]", "kinesis.executor.maxFetchRecordsPerShard"),
    ],
)
def test_kinesis_limits_each_shard(source: str, key: str) -> None:
    """The job has four source partitions: what they may bring together is the planned limit."""
    answer = plan_of(profile_of(source))
    rows = answer.configuration.max_offsets_per_trigger
    assert rows == 4 * int(answer.query_options[key])
    busy = replace(
        profile_of(source),
        observed_arrivals=ObservedArrivals(
            counted="offsets",
            rate_p05_per_s=20e3,
            rate_p50_per_s=20e3,
            rate_p95_per_s=20e3,
            rate_max_per_s=20e3,
            largest_partition_share=1.0,
        ),
    )
    skewed = plan_of(busy)
    assert set(skewed.query_options) == {"trigger"} or int(
        skewed.query_options[key]
    ) >= 1.5 * 20e3 * max(skewed.configuration.trigger_s, 0.1)


def test_shards_that_no_stage_reads_one_by_one_count_as_one() -> None:
    profile = profile_of("KinesisV2MicroBatchStream[clicks]")
    stages = (replace(profile.stages[0], tasks_rule="fixed"), *profile.stages[1:])
    assert plan_of(replace(profile, stages=stages)).feasible


def test_a_limit_far_beyond_every_profiled_batch_is_no_limit() -> None:
    """Nothing tells what a batch of 310,000,000,000 rows costs, and none will ever come."""
    profile = profile_of("KafkaV2[Subscribe[orders]]")
    stages = tuple(replace(one, task_per_row_s=1e-13) for one in profile.stages)
    answer = plan_of(replace(profile, stages=stages))
    assert answer.configuration.max_offsets_per_trigger is None
    assert set(answer.query_options) == {"trigger"}
    (warning,) = (text for text in all_words(answer.findings) if text.startswith("no rate limit"))
    assert (
        "even batches of 500,000 rows, 10 times the largest profiled one, meet the target"
        in warning
    )


@pytest.mark.parametrize(
    "source", ["KafkaV2[Subscribe[a]]", "clock: 1 rows/s", "DeltaSource[#1]", "KinesisSource[#1]"]
)
def test_all_outputs_speak_the_same_option(source: str) -> None:
    answer = plan_of(profile_of(source))
    options = {key: one for key, one in answer.query_options.items() if key != "trigger"}
    assert parse_plan(json_text(plan_json(answer)), name="p").query_options == answer.query_options
    texts = {
        name: one.render(answer, version="9.8.7", submission=SUBMISSION)
        for name, one in ALL_FORMATS.items()
        if one.has_comments
    } | {"text": as_text(answer)}
    for name, text in texts.items():
        for key, value in options.items():
            assert key in text, name
            assert value in text, name
        if "maxOffsetsPerTrigger" not in options:
            assert "maxOffsetsPerTrigger" not in text, name
    settings = {one.key: one.value for one in answer.settings}
    assert settings.items() >= dict(answer.query_options).items()
    namespace: dict[str, object] = {}
    exec(compile(texts["pyspark"], "snippet.py", "exec"), namespace)
    assert namespace["READ_OPTIONS"] == options


def test_a_simulation_holds_batches_to_the_limit_only_where_the_source_does() -> None:
    trace = RateTrace(times_s=(0.0, 60.0, 90.0), rates_per_s=(20e3, 300e3, 20e3), end_s=240.0)
    held = plan_of(profile_of("KafkaV2[Subscribe[a]]"))
    free = plan_of(profile_of("DeltaSource[#1]"))
    assert held.configuration.max_offsets_per_trigger is not None
    assert replace(held.configuration, max_offsets_per_trigger=None) == free.configuration
    without = replace(held, configuration=free.configuration)
    assert simulate_plan(free, trace, num_runs=2) == simulate_plan(without, trace, num_runs=2)


def test_the_limit_lets_a_backlog_be_worked_off() -> None:
    answer = plan_of(profile_of("KafkaV2[Subscribe[a]]"))
    limit = answer.configuration.max_offsets_per_trigger
    assert limit is not None
    assert answer.durations is not None
    level = answer.durations.levels
    fixed_s = answer.durations.driver_s + sum(one.fixed_s for one in level)
    per_row_s = sum(term.per_row_s for one in level for term in one.terms)
    trigger_s = answer.configuration.trigger_s
    spare_per_s = limit / max(trigger_s, fixed_s + per_row_s * limit) - 20e3
    assert 0.0 < 20e3 * 60.0 / spare_per_s < 600.0


def _source(spark: SparkSession, folder: Path, kind: str) -> DataFrame:
    reader = spark.readStream
    if kind == "rate":
        return reader.format("rate").option("rowsPerSecond", 1000).load()
    if kind == "rate-micro-batch":
        return reader.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    for number in range(4):
        (folder / f"{number}.txt").write_text("row\n" * 25)
    # What was emitted for every source once: files are read on as if it were not there.
    return reader.format("text").option("maxOffsetsPerTrigger", "10").load(str(folder))


@pytest.mark.parametrize(
    ("kind", "words", "least_rows"),
    [
        ("rate", "the rate source has no limit", 0),
        ("rate-micro-batch", "rowsPerBatch", 10),
        ("files", "the file source limits files or bytes", 100),
    ],
)
def test_sources_call_themselves_what_is_looked_for(
    spark: SparkSession, tmp_path: Path, kind: str, words: str, least_rows: int
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rows = _source(spark, folder, kind)
    query = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        while query.lastProgress is None and query.isActive:
            query.awaitTermination(1)
        assert query.exception() is None
        progress = query.recentProgress[0]
        assert words in reader_limit(progress["sources"][0]["description"]).why_none
        assert progress["numInputRows"] >= least_rows
    finally:
        query.stop()
