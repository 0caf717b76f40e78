"""Tasks that read a source follow the rule of the source, and a note says which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import headway
from headway.domain import (
    DefaultParallelism,
    JobProfile,
    RecordSplits,
    SourceTasks,
)
from headway.models.job.duration import stacked
from headway.models.job.setting import duration_model
from headway.planner.tasks import short_of_tasks, with_source_partitions, with_usual_tasks
from tests.profiler.event_log import PROGRESS, AppLog, Query, Stage, write_plain

RATE = "RateStreamV2[rowsPerSecond=20000, rampUpTimeSeconds=0, numPartitions="
FILES = "FileStreamSource[file:/data/in]"
REDUCE = Stage(fixed_s=0.03, per_row_s=1e-6, num_tasks=None, rows_scale=0.5)


def profile_of(
    folder: Path,
    query: Query,
    *more: Query,
    cores: int = 4,
    change: Callable[[AppLog], None] = lambda log: None,
    **properties: str,
) -> JobProfile:
    log = AppLog(executors=(cores,))
    for run in (query, *more):
        log.add(run)
    for event in log.of("EnvironmentUpdate"):
        event["Spark Properties"] |= {
            key.replace("_", "."): text for key, text in properties.items()
        }
    change(log)
    return headway.profile(write_plain(log.lines, folder / "log"))


def reads(num_tasks: int, source: str, **changes: object) -> Query:
    """A query whose source is read by a number of tasks."""
    query = Query(
        source=source,
        jobs=((Stage(num_tasks=num_tasks, per_row_s=20e-6), REDUCE),),
        rate_per_s=8_000.0,
        load=((20.0, 16_000.0),),
    )
    return replace(query, **changes)  # type: ignore[arg-type]


def rule_of(profile: JobProfile) -> SourceTasks | None:
    return profile.stages[0].source_tasks


def note_of(profile: JobProfile) -> str:
    (note,) = [note for note in profile.notes if "source tasks" in note]
    return note


def source_s(profile: JobProfile, cores: int, rate: str = "8k/s") -> float:
    prediction = headway.predict(profile, rate=rate, executors=1, cores=cores)
    return prediction.phases_s["stage 0"]


def test_a_rate_source_without_the_option_follows_the_cores(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, reads(4, RATE + "default]"))
    rule = rule_of(profile)
    assert rule == SourceTasks(parallelism=DefaultParallelism(at_least=2))
    assert "follow the cores: RateStreamV2 without numPartitions" in note_of(profile)
    assert source_s(profile, 4) > 1.5 * source_s(profile, 16)
    fixed = with_source_partitions(profile, 4)
    assert source_s(fixed, 4) == pytest.approx(source_s(profile, 4))
    assert source_s(fixed, 16) == pytest.approx(source_s(fixed, 4), rel=0.02)
    place = tmp_path / "job.profile.yaml"
    profile.save(place)
    assert headway.load_profile(place).stages[0].source_tasks == rule


def test_the_option_of_a_rate_source_fixes_its_tasks(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, reads(6, RATE + "6]"))
    assert rule_of(profile) is None
    assert "fixed by numPartitions=6 of RateStreamV2" in note_of(profile)


def beside(description: str) -> Callable[[AppLog], None]:
    """Half of the rows come from another source."""

    def change(log: AppLog) -> None:
        for event in log.of("QueryProgressEvent"):
            (source,) = event["progress"]["sources"]
            half = source["numInputRows"] // 2
            other = {**source, "description": description, "numInputRows": half}
            source["numInputRows"] -= half
            event["progress"]["sources"].append(other)

    return change


@pytest.mark.parametrize(("num_tasks", "num_scans"), [(8, 2), (4, 1)], ids=["union", "join"])
def test_several_sources_with_one_rule_follow_it(
    tmp_path: Path, num_tasks: int, num_scans: int
) -> None:
    other = "RateStreamV2[rowsPerSecond=50, rampUpTimeSeconds=0, numPartitions=default]"
    profile = profile_of(tmp_path, reads(num_tasks, RATE + "default]"), change=beside(other))
    parallelism = DefaultParallelism(at_least=2)
    assert rule_of(profile) == SourceTasks(parallelism=parallelism, num_scans=num_scans)
    assert "follow the cores: RateStreamV2 without numPartitions" in note_of(profile)
    assert source_s(profile, 4) > 1.5 * source_s(profile, 16)


def test_stages_that_read_by_the_same_rule_share_a_note(tmp_path: Path) -> None:
    read = Stage(num_tasks=4, per_row_s=20e-6)
    twice = reads(4, RATE + "default]", jobs=((read,), (read,)))
    assert note_of(profile_of(tmp_path, twice)).startswith("stage 0, stage 1: source tasks follow")


@pytest.mark.parametrize("other", ["KafkaV2[Subscribe[orders]]", RATE + "3]"])
def test_of_several_sources_with_other_rules_the_number_is_kept(tmp_path: Path, other: str) -> None:
    profile = profile_of(tmp_path, reads(4, RATE + "default]"), change=beside(other))
    assert rule_of(profile) is None
    assert profile.stages[0].num_source_tasks == 4
    assert "taken as in the profiled runs, whatever the cores: the query has 2 sources" in note_of(
        profile
    )


def test_a_number_that_may_be_the_default_is_said_to_be_open(tmp_path: Path) -> None:
    source = "RatePerMicroBatchStream[rowsPerBatch=100, numPartitions=4, startTimestamp=0]"
    profile = profile_of(tmp_path, reads(4, source))
    assert rule_of(profile) is not None
    assert "if the option is set, state --source-partitions" in note_of(profile)


def test_a_default_parallelism_that_is_set_is_no_number_of_cores(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, reads(3, RATE + "default]"), spark_default_parallelism="3")
    assert "spark.default.parallelism=3, whatever the cores" in note_of(profile)
    assert source_s(profile, 3) == pytest.approx(source_s(profile, 12), rel=0.02)


def test_tasks_that_contradict_the_rule_are_a_number(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, reads(9, RATE + "default]"))
    assert rule_of(profile) is None
    assert profile.stages[0].num_source_tasks == 9
    assert not [note for note in profile.notes if "source tasks" in note]


def test_a_union_with_itself_reads_with_twice_the_tasks(tmp_path: Path) -> None:
    rule = rule_of(profile_of(tmp_path, reads(8, RATE + "default]")))
    assert rule is not None
    assert rule.num_scans == 2


def test_files_are_packed_and_read_faster_by_more_cores(tmp_path: Path) -> None:
    # 1,000 rows and 8 kB each: a batch has 8 or 16 files, which 4 cores read as 4 tasks.
    scan = Stage(num_tasks=4, per_row_s=20e-6, scopes=("Scan parquet ",))
    query = reads(4, FILES, file_rows=1_000, jobs=((scan, REDUCE),))
    profile = profile_of(tmp_path, query)
    rule = rule_of(profile)
    assert rule is not None
    assert rule.files is not None
    assert rule.files.file_bytes == pytest.approx(8_000, rel=0.1)
    note = note_of(profile)
    assert "follow the files of a batch and the cores" in note
    assert "less than 4m" in note
    assert "taken not to be" not in note  # parquet, which Spark splits
    assert source_s(profile, 4) > 1.15 * source_s(profile, 8)
    # There are no more tasks than files.
    assert source_s(profile, 64) == pytest.approx(source_s(profile, 16), rel=0.1)


def offsets_of(partitions: int) -> Callable[[AppLog], None]:
    """Offsets of topic partitions that count the rows of the batches."""

    def change(log: AppLog) -> None:
        taken = 0
        for event in log.events:
            if event["Event"] == PROGRESS:
                source = event["progress"]["sources"][0]
                ends = (taken, taken + source["numInputRows"])
                source["startOffset"], source["endOffset"], source["latestOffset"] = (
                    {"orders": {str(place): (end + place) // partitions
                                for place in range(partitions)}}
                    for end in (*ends, ends[1])
                )  # fmt: skip
                taken = ends[1]

    return change


def test_topic_partitions_fix_the_tasks(tmp_path: Path) -> None:
    query = reads(6, "KafkaV2[Subscribe[orders]]")
    profile = profile_of(tmp_path, query, change=offsets_of(6))
    assert rule_of(profile) is None
    assert note_of(profile).endswith("are fixed: one for each of 6 topic partitions")


def test_more_tasks_than_topic_partitions_are_those_of_the_option(tmp_path: Path) -> None:
    query = reads(6, "KafkaV2[Subscribe[orders]]")
    profile = profile_of(tmp_path, query, change=offsets_of(2))
    assert rule_of(profile) is None
    assert "6 for 2 topic partitions, as by minPartitions" in note_of(profile)


def test_rows_of_a_partition_may_decide_the_tasks(tmp_path: Path) -> None:
    by_rows = Stage(
        num_tasks=None, per_row_s=20e-6, tasks_of_bytes=lambda rows: sum(
            -(-((rows + place) // 2) // 3_000) for place in range(2)
        ), bytes_per_row=1,
    )  # fmt: skip
    query = reads(4, "KafkaV2[Subscribe[orders]]", jobs=((by_rows, REDUCE),))
    profile = profile_of(tmp_path, query, change=offsets_of(2))
    rule = rule_of(profile)
    assert rule == SourceTasks(records=RecordSplits(topic_partitions=2, max_records=3_000))
    assert "one for every 3,000 rows of a topic partition" in note_of(profile)
    # Settings of a search stand side by side, whatever their slots.
    models = [duration_model(profile, slots, 4) for slots in (1, 4, 64)]
    few_s, _, many_s = stacked(models).over_axes(2).mean_s(np.full((3, 1), 6e4)).ravel()
    assert few_s > 4 * many_s


def test_a_source_that_follows_the_cores_leaves_no_slot_idle(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, reads(4, RATE + "default]"))
    assert profile.stages[0].tasks_rule == "source"
    assert not list(short_of_tasks(profile, 16))
    ((_, num_tasks),) = short_of_tasks(with_source_partitions(profile, 4), 16)
    assert num_tasks == 4


def test_files_leave_slots_idle_if_a_batch_has_few(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, reads(4, FILES, file_rows=1_000))
    assert "they are taken not to be" in note_of(profile)
    assert not list(short_of_tasks(profile, 64))  # at which rows is not said
    ((_, num_tasks),) = short_of_tasks(profile, 64, 8_000.0)
    assert num_tasks == 8
    assert not with_usual_tasks(profile).stages[0].follows_rows
