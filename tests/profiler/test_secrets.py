"""Secrets planted wherever a log can hold one are in nothing that Headway writes or prints."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

import headway
from headway.api.profile import Survey
from headway.cli.main import run
from headway.errors import ExitCode
from headway.formats.as_json import json_text
from headway.formats.profile_file import dump_profile
from headway.profiler import schema
from headway.profiler.redaction import ALLOWED_PROPERTIES
from headway.report.profiles import profile_summary, survey_as_json, survey_as_text
from tests.profiler.event_log import AppLog, Event, Query, write_plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "Kq7vXw2pZr9tBn4mLs6dHj3fGc8yTe5u"
# As a path, in an address, as a property, as a token, as an option of a JVM.
FORMS = (
    f"s3a://AKIAIOSFODNN7EXAMPLE:{SECRET}@bucket/{SECRET}/orders",
    f"jdbc:postgresql://db/orders?user=me&password={SECRET}",
    f"-Djavax.net.ssl.keyStorePassword={SECRET}",
    f"token: {SECRET}",
    # Such as a class would be called.
    f"com.acme.{SECRET}",
)
PLAN = """== Physical Plan ==
WriteToDataSourceV2 (3)
+- StateStoreSave (2)
   +- MicroBatchScan (1)

(1) MicroBatchScan
Arguments: {secret}

(2) StateStoreSave
Arguments: [key#1], state info [ checkpoint = {secret}, runId = x, opId = 0, ver = 0, \
numPartitions = 4] stateStoreCkptIds = None, Update, 0, 0, 2

(3) WriteToDataSourceV2
Arguments: {secret}
"""


def planted(log: AppLog) -> list[str]:
    """The lines of a log with secrets in every text that an application can choose."""
    return [json.dumps(event) for event in _planted(log.events)]


def _planted(events: list[Event]) -> Iterator[dict[str, Any]]:
    for number, event in enumerate(events):
        form = FORMS[number % len(FORMS)]
        match event["Event"]:
            case schema.ENVIRONMENT:
                # Also behind allowed keys: what does not look like their value must not pass.
                event["Spark Properties"] |= dict.fromkeys(sorted(ALLOWED_PROPERTIES), form)
                event["Spark Properties"] |= {f"spark.custom.{n}": f for n, f in enumerate(FORMS)}
                event["System Properties"] = {f"system.{n}": f for n, f in enumerate(FORMS)}
                event["JVM Information"] = {"Java Version": form, "Java Home": form}
                event["Classpath Entries"] = {form: form}
            case schema.APPLICATION_START:
                event["App Name"] = f"orders {form}"
                event["User"] = form
                yield {
                    "Event": schema.SQL_EXECUTION_START,
                    "executionId": 0,
                    "rootExecutionId": 0,
                    "description": form,
                    "details": form,
                    "physicalPlanDescription": PLAN.format(secret=form),
                    "modifiedConfigs": {"spark.custom": form},
                    "time": 1_790_000_000_000,
                }
            case schema.JOB_START:
                event["Properties"] |= {"spark.custom": form, "callSite.short": form}
            case schema.STAGE_COMPLETED:
                event["Stage Info"] |= {"Stage Name": form, "Details": form}
            case schema.TASK_END:
                info = event["Task Info"]
                info |= {"Host": form, "Accumulables": [{"Name": form}], "Executor ID": form}
            case schema.QUERY_PROGRESS:
                progress = event["progress"]
                progress["name"] = f"orders {form}"
                for source in progress["sources"]:
                    source["description"] = f"FileStreamSource[{form}]"
                    source["startOffset"] = source["endOffset"] = {"path": form}
                progress["sink"] = {"description": f"FileSink[{form}]"}
                for operator in progress["stateOperators"]:
                    operator["operatorName"] = f"stateStoreSave {form}"
                progress["durationMs"][form] = 3
            case schema.QUERY_STARTED:
                event["name"] = f"orders {form}"
            case schema.QUERY_TERMINATED:
                event["exception"] = form
            case schema.EXECUTOR_ADDED:
                # Its tasks say the same.
                event["Executor ID"] = f"0 {form}"
        yield event


def texts_of(survey: Survey, spark: SparkSession) -> Iterator[str]:
    yield survey_as_text(survey.logs)
    yield survey_as_json(survey.logs, survey.failures)
    for log in survey.logs:
        if log.profile is not None:
            yield dump_profile(log.profile)
            yield profile_summary(log.profile)
    for table in survey.tables:
        yield str(spark.read.parquet(str(table)).collect())


@pytest.mark.parametrize("kind", ["streaming", "batch"])
def test_no_output_holds_a_planted_secret(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    log = AppLog(app_id="app-1")
    if kind == "streaming":
        log.add(Query(num_batches=12))
    else:
        from tests.profiler.event_log import Work

        log.add_job([Work(rows=(5, 6))], 1_790_000_020.0)
    lines = planted(log)
    assert sum(line.count(SECRET) for line in lines) > 20
    file = write_plain(lines, tmp_path / "log")
    survey = headway.survey(file, session=spark, tables=tmp_path / "tables")
    (found,) = survey.logs
    assert found.profile is not None, found.why_not
    assert {path.name for path in survey.tables} == {
        "applications", "queries", "batches", "jobs", "stages", "tasks", "plans",
    }  # fmt: skip
    for text in texts_of(survey, spark):
        assert SECRET not in text
        assert "AKIA" not in text
    # What is harmless is still there.
    assert "app-1" in dump_profile(found.profile)


def printed(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """All that a command says; it must find something to say."""
    code = run([str(one) for one in arguments])
    out, err = capsys.readouterr()
    assert code in (ExitCode.OK, ExitCode.INFEASIBLE, ExitCode.REGRESSION), err
    return str(out + err)


COMMANDS = {
    "profile": "profile LOG -o FOLDER/again.profile.yaml",
    "profile of a query": "profile LOG --query NAME -o FOLDER/query.profile.yaml",
    "profile --check": "profile LOG --check --json",
    "profile --advise": "profile LOG --advise --rate 20k/s",
    "profile --tables": "profile LOG --tables FOLDER/tables -o FOLDER/tables.profile.yaml",
    "predict": "predict PROFILE --json",
    "plan": "plan PROFILE --rate 20k/s --target 'p99 <= 3s' -v -o FOLDER/p.html",
    "plan --json": "plan PROFILE --rate 20k/s --target 'p99 <= 3s' --format json",
    "explain": "explain PLAN",
    "emit": "emit PLAN --format pyspark",
    "simulate": "simulate PLAN --runs 1 --rate-trace TRACE -o FOLDER/simulated.html",
    "report": "report PROFILE --log LOG -o FOLDER/report.html",
    "report of a plan": "report PLAN --profile PROFILE -o FOLDER/plan.html",
    "diff": "diff LOG PROFILE --json",
    "backtest": "backtest LOG LOG2 --json",
    "watch": "watch LOG --profile PROFILE --target 'p99 <= 30s' --once",
    "watch --json": "watch LOG --query NAME --profile PROFILE --target 'p99 <= 30s' --once --json",
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two logs with secrets, and what is made of them, by the words of `COMMANDS`."""
    folder, name = tmp_path_factory.mktemp("planted"), f"orders {FORMS[3]}"
    for number, rate_per_s in enumerate((20_000.0, 30_000.0)):
        log = AppLog(app_id=f"app-{number}")
        log.add(Query(num_batches=16, rate_per_s=rate_per_s, query_id=f"{number}" * 8))
        events = [json.loads(line) for line in planted(log)]
        for event in events:
            if event["Event"] == schema.QUERY_PROGRESS:
                event["progress"]["name"] = name  # one name, as a query has
        write_plain([json.dumps(event) for event in events], folder / f"log{number}")
    profile, plan, trace = (
        folder / "job.profile.yaml",
        folder / "plan.json",
        folder / "trace.csv",
    )
    trace.write_text("time,rate\n0s,10k/s\n2m,20k/s\n")
    assert run(["profile", str(folder / "log0"), "-o", str(profile)]) == ExitCode.OK
    planned = headway.plan(profile, rate="20k/s", target="p99 <= 3s")
    plan.write_text(json_text(planned.to_dict()))
    return {
        "LOG": str(folder / "log0"), "LOG2": str(folder / "log1"), "PROFILE": str(profile),
        "PLAN": str(plan), "TRACE": str(trace), "NAME": name,
    }  # fmt: skip


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_a_planted_secret(
    places: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    arguments = [
        places.get(word, word.replace("FOLDER", str(tmp_path)))
        for word in shlex.split(COMMANDS[command])
    ]
    texts = [printed(arguments, capsys), Path(places["PROFILE"]).read_text()]
    for file in tmp_path.rglob("*"):
        if file.suffix == ".parquet":
            texts.append(str(parquet.read_table(file).to_pylist()))
        elif file.is_file():
            texts.append(file.read_text())
    for text in texts:
        assert SECRET not in text
        assert "AKIA" not in text


def test_tables_hold_what_the_log_tells(spark: SparkSession, tmp_path: Path) -> None:
    file = write_plain(AppLog(app_id="app-1").add(Query(num_batches=12)).lines, tmp_path / "log")
    survey = headway.survey(file, session=spark, tables=tmp_path / "tables")
    tables = {path.name: spark.read.parquet(str(path)).collect() for path in survey.tables}
    sizes = {name: len(rows) for name, rows in tables.items()}
    assert sizes == {
        "applications": 1,
        "queries": 1,
        "batches": 12,
        "jobs": 12,
        "stages": 24,
        "tasks": 96,
        "plans": 12,
    }
    (application,) = tables["applications"]
    assert (application["application_id"], application["spark_version"]) == ("app-1", "4.0.1")
    assert application["properties"] == {"spark.executor.memory": "3g"}
    (query,) = tables["queries"]
    assert (query["num_batches"], query["terminated"], query["failed"]) == (12, True, False)
    assert tables["batches"][0]["sources"][0]["description"] == "KafkaV2[Subscribe[orders]]"
    # Written again, they are replaced, not doubled.
    again = headway.survey(file, session=spark, tables=tmp_path / "tables")
    assert spark.read.parquet(str(again.tables[2])).count() == 12
