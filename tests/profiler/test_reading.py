"""From sources to profiles through the library, on one session."""

from __future__ import annotations

import contextlib
import gzip
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headway
from headway.api.profile import profile_and_tables
from headway.domain import ApplicationProfile, JobProfile
from headway.errors import EventLogError, InputError
from headway.formats.profile_file import dump_profile
from tests.profiler.event_log import AppLog, Query, Work, write_plain, write_rolling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = Query(num_batches=30, noise=0.2)


def test_two_profiles_of_a_log_are_the_same_to_the_byte(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = AppLog(executors=(4, 2)).add(QUERY).lines
    once = write_rolling(lines, tmp_path / "eventlog_v2_app-1")
    texts = {dump_profile(headway.profile(once, session=spark)) for _ in range(3)}
    # Neither how many tasks read it, nor how its parts are cut, may show.
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    try:
        texts.add(dump_profile(headway.profile(once, session=spark)))
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert len(texts) == 1


def test_properties_reach_the_session_that_is_started(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_plain(AppLog().add(QUERY).lines, tmp_path / "log")
    started: list[dict[str, str]] = []

    @contextlib.contextmanager
    def session(*, extra_conf: dict[str, str], **_: object) -> Iterator[SparkSession]:
        started.append(extra_conf)
        yield spark

    monkeypatch.setattr("headway.profiler.spark.session.embedded_session", session)
    headway.survey(log, conf={"spark.sql.adaptive.enabled": "true", "spark.jars.packages": "a:b:1"})
    headway.survey(log, master="spark://host:7077", conf={"spark.cores.max": "2"})
    at_home, on_a_cluster = started
    # What is asked for wins over what a local session has for itself.
    assert at_home["spark.sql.adaptive.enabled"] == "true"
    assert at_home["spark.jars.packages"] == "a:b:1"
    assert "spark.sql.shuffle.partitions" in at_home
    assert on_a_cluster == {"spark.cores.max": "2"}


def test_what_cannot_be_read_stops_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    write_plain(AppLog(app_id="app-1").add(QUERY).lines, tmp_path / "good")
    (tmp_path / "bad").write_text("once upon a time")
    reported: list[str] = []
    survey = headway.survey(
        tmp_path, session=spark, progress=lambda text, _done: reported.append(text)
    )
    assert [log.profile is not None for log in survey.logs] == [True]
    (failure,) = survey.failures
    assert failure.name == str(tmp_path / "bad")
    assert "reading events" in reported
    profile = headway.profile(tmp_path, session=spark)
    assert any("not read" in note and "bad" in note for note in profile.notes)


def test_batch_applications_are_profiled_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("one", "two"):
        log = AppLog(app_id=name)
        log.add_job([Work(rows=(5, 6))], 1_790_000_020.0)
        write_plain(log.lines, tmp_path / name)
    assert isinstance(
        profile_and_tables(tmp_path / "one", None, session=spark)[0], ApplicationProfile
    )
    with pytest.raises(EventLogError, match=r"no streaming query"):
        headway.profile(tmp_path / "one", session=spark)
    with pytest.raises(InputError, match=r"2 applications without a streaming query"):
        profile_and_tables(tmp_path, None, session=spark)
    each = headway.survey(tmp_path, session=spark).logs
    assert [isinstance(log.profile, ApplicationProfile) for log in each] == [True, True]
    assert not any(isinstance(log.profile, JobProfile) for log in each)


def test_a_log_of_line_ends_alone_is_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "log.gz"
    file.write_bytes(gzip.compress(b"\n" * 8_000_000))
    began_s = time.process_time()
    with pytest.raises(EventLogError, match="no Spark event in it"):
        headway.profile(file)
    assert time.process_time() - began_s < 2.0
