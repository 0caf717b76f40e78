"""What leaves the profiler: no secret of a known shape, and every ordinary name unchanged."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.profiler.known_values import KNOWN_VALUE_PROPERTIES, known_version
from headway.profiler.redaction import (
    ALLOWED_PROPERTIES,
    allowed_properties,
    describe_source,
)
from headway.redaction import redact
from tests.shared_data import EVENT_LOGS, RECORDED, lines_of_recorded, needs

MEBI = 1 << 20


def drawn(alphabet: str, length: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


BASE64 = string.ascii_letters + string.digits + "+/"
WORD = string.ascii_letters + string.digits

# Put together here, so that no scanner takes this file for a leak.
TOKENS = [
    "AKIA" + drawn(string.ascii_uppercase + string.digits, 16, 1),
    "ASIA" + drawn(string.ascii_uppercase + string.digits, 16, 2),
    "ghp_" + drawn(WORD, 36, 3),
    "github_pat_" + drawn(WORD + "_", 60, 4),
    "glpat-" + drawn(WORD, 20, 5),
    "xoxb-" + drawn(string.digits, 12, 6) + "-" + drawn(WORD, 24, 7),
    "AIza" + drawn(WORD + "-_", 35, 8),
    "ya29." + drawn(WORD, 40, 9),
    "dapi" + drawn("0123456789abcdef", 32, 10),
    "sk_live_" + drawn(WORD, 24, 11),
    "hf_" + drawn(WORD, 34, 12),
    drawn(BASE64, 86, 13) + "==",
    "eyJhbGciOiJIUzI1NiJ9." + drawn(WORD, 40, 14) + "." + drawn(WORD + "-_", 43, 15),
    drawn("0123456789abcdef", 40, 16),
    drawn("0123456789ABCDEF", 64, 17),
    base64.b64encode(random.Random(18).randbytes(48)).decode(),
    "-----BEGIN RSA PRIVATE KEY-----\n" + drawn(BASE64, 64, 19) + "\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_hidden_wherever_it_stands(token: str) -> None:
    assert redact(token) == "***"
    assert redact(f"login with {token} failed") == "login with *** failed"
    assert token not in redact(f"/data/{token}/part-0")
    assert token not in redact(f"PEM or key:{token}, and more", longest=10_000)


def test_random_keys_of_forty_characters_are_hidden() -> None:
    keys = [drawn(BASE64, 40, seed) for seed in range(1000)]
    shown = [key for key in keys if redact(key) == key]
    assert len(shown) <= 50  # those that chance made look like words or paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter2 for bob", "password=*** for bob"),
        ("Password: hunter2", "Password: ***"),
        ("dbPassword = hunter2", "dbPassword = ***"),
        ('{"password":"a \\" b","user":"bob"}', '{"password":***,"user":"bob"}'),
        ("{'client_secret': 'a b'}", "{'client_secret': ***}"),
        ("api key: abc", "api key: ***"),
        ("api_key=abc&n=1", "api_key=***"),
        ("fs.s3a.access.key=abc", "fs.s3a.access.key=***"),
        ("SharedAccessKey=a/b+c=;x", "SharedAccessKey=***"),
        (
            "fs.azure.account.key.a.core.windows.net=ab=",
            "fs.azure.account.key.a.core.windows.net=***",
        ),
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ("sent Bearer a1b2 on", "sent Bearer *** on"),
        ("run --token abc --n 3", "run --token *** --n 3"),
        ("sas=abc", "sas=***"),
        ("<password>abc</password>", "<password>***"),
        ("s3a://key:secret@bucket/very", "s3a://***@bucket/very"),
        ("s3a://key:sec/ret@bucket/very", "s3a://***@bucket/very"),
        ("https://token@host/x", "https://***@host/x"),
        ("https://h/x?n=a%2Fb&se=1#top", "https://h/x?n=***&se=***#top"),
        ("https://h/x?sig=a%2Fb&se=1#top", "https://h/x?sig=***"),
        ("jdbc:oracle:thin:scott/tiger@//db:1521/x", "jdbc:oracle:thin:***@//db:1521/x"),
    ],
)
def test_values_of_telling_names_are_hidden(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "application_1578436911597_0052",
        "spark-110be3a8424d4a2789cb88134418217b",
        "local-1596020211915",
        "app-20161115172038-0000",
        "3f1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a",
        "orders-by-customer_v2 (eu-west-1, production) 2024-01-31",
        "user-password-resets",
        "MyStreamingJobForTheOrderEnrichmentPipelineV2",
        "to_be_or_not_to_be_that_is_the_question_2024_v2",
        "org.apache.spark.sql.execution.streaming.StreamingSymmetricHashJoinExec",
        "hdfs://namenode:8020/user/ann/2024/01/part-00000-3f1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a-c000",
        "hdfs://namenode:8020/logs/app@v2",
        "/Users/Jose/IdeaProjects/spark/S3Data2024/Q1Results",
        "taxi-trip-9fa697a98f0548ab-driver-svc-0a1b2c3d",
        "author: Ann, design: good, sassafras: 1",
        "Größe der Fenster: 10 Minuten, 注文",
        "stateStoreSave",
        "0000000000000000000000000000000000000000",
    ],
)
def test_ordinary_names_survive(text: str) -> None:
    assert redact(text) == text


def test_control_and_invisible_characters_are_spaces() -> None:
    assert redact("a\nb\x1b[31mc\u202ed\u200be\x00f\ud800") == "a b [31mc d e f "


def test_length_is_bounded_after_hiding() -> None:
    assert redact("x" * 30, longest=10) == "x" * 9 + "…"
    assert redact("x" * 10, longest=10) == "x" * 10
    # Cutting first would show the beginning of a token.
    assert redact("a " + TOKENS[2], longest=20) == "a ***"
    with pytest.raises(ValueError, match="longest is 0"):
        redact("a", longest=0)


@given(st.text() | st.text(alphabet="aB3:/@?&= \"'\\-_.#*", max_size=80))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text, longest=100_000)
    assert redact(once, longest=100_000) == once
    assert len(redact(text, longest=7)) <= 7


BAIT = [
    "token",
    "eyJ",
    "a://",
    "a://@",
    "a:b@",
    "?a=",
    "password='",
    'password="\\',
    "-----BEGIN A-----",
    "-----BEGIN ",
    "aB3/",
    "0123456789abcdef",
    "--password ",
    "bearer ",
    "ghp_",
    "SG.a",
    "jdbc:oracle:a:",
    "3f1c7e0a-",
    "\u202e",
    " ",
]


@pytest.mark.parametrize("bait", BAIT)
def test_a_quarter_of_a_megabyte_of_bait_is_read(bait: str) -> None:
    text = bait * (MEBI // 4 // len(bait))
    assert len(redact(text)) <= 200
    assert len(describe_source(text)) < 1000


def test_only_sizing_and_behaviour_is_allowed() -> None:
    assert len(ALLOWED_PROPERTIES) > 100
    forbidden = ("dir", "path", "url", "host", "java", "env", "hadoop", "jars", "name", "password")
    for key in ALLOWED_PROPERTIES:
        assert not any(word in key.lower().split(".") for word in forbidden), key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.executor.memory", "8g"),
        ("spark.executor.memory", "1536m"),
        ("spark.executor.memoryOverhead", "384"),
        ("spark.executor.memoryOverheadFactor", "0.1"),
        ("spark.executor.instances", "3"),
        ("spark.kubernetes.executor.limit.cores", "3400m"),
        ("spark.sql.shuffle.partitions", "200"),
        ("spark.sql.autoBroadcastJoinThreshold", "-1"),
        ("spark.sql.adaptive.enabled", "TRUE"),
        ("spark.sql.adaptive.advisoryPartitionSizeInBytes", "64MB"),
        ("spark.locality.wait", "3s"),
        ("spark.network.timeout", "10 seconds"),
        ("spark.scheduler.mode", "FAIR"),
        ("spark.io.compression.codec", "lz4"),
        ("spark.serializer", "org.apache.spark.serializer.KryoSerializer"),
        ("spark.io.compression.codec", "org.apache.spark.io.ZStdCompressionCodec"),
        ("spark.submit.deployMode", "Cluster"),
        (
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        ),
        (
            "spark.sql.streaming.checkpointFileManagerClass",
            "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager",
        ),
        ("spark.sql.streaming.stateStore.providerClass", "com.acme.state.OwnStateStoreProvider"),
        ("spark.task.resource.gpu.amount", "0.25"),
        ("spark.executor.resource.acme_npu.amount", "2"),
    ],
)
def test_allowed_values_pass(key: str, value: str) -> None:
    assert allowed_properties({key: value}) == {key: value}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.executor.cores", "hunter2"),
        ("spark.executor.memory", "8g -Dpassword=x"),
        ("spark.executor.memory", ""),
        ("spark.executor.memory", "*********(redacted)"),
        ("spark.executor.instances", "1" * 40),
        ("spark.scheduler.mode", "two words"),
        ("spark.io.compression.codec", TOKENS[0]),
        # What looks like a class, a codec or a mode, and is a password in the wrong line.
        *(
            (key, value)
            for key in sorted(KNOWN_VALUE_PROPERTIES)
            for value in (
                "Hunter2",
                "com.acme.Hunter2",
                "correct-horse",
                "org.apache.spark.Pa55w0rd",
            )
        ),
        ("spark.sql.streaming.stateStore.providerClass", "Hunter2StateStoreProvider"),
        ("spark.sql.streaming.stateStore.providerClass", "db.internal.example.com"),
        ("spark.sql.streaming.stateStore.providerClass", "s3://bucket/x"),
        ("spark.sql.streaming.stateStore.providerClass", "eyJhbGciOiJI.Abcdefgh.Abc"),
        ("spark.serializer", "/opt/x.jar"),
        ("spark.executor.extraJavaOptions", "-Xmx1g"),
        ("spark.hadoop.fs.s3a.secret.key", "12"),
        ("spark.eventLog.dir", "10"),
        ("spark.app.name", "orders"),
        ("spark.executorEnv.N", "1"),
        ("spark.task.resource.npu.amount", "hunter2"),
        ("spark.task.resource.npu.discoveryScript", "1"),
        ("spark.task.resource.AKIAIOSFODNN7EXAMPLE.amount", "1"),
        (f"spark.task.resource.{'x' * 60}.amount", "1"),
    ],
)
def test_other_names_and_values_are_left_out(key: str, value: str) -> None:
    assert allowed_properties({key: value}) == {}


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        (None, "unknown"),
        ("", "unknown"),
        (" \n", "unknown"),
        ("KafkaV2[Subscribe[orders]]", "KafkaV2[Subscribe[orders]]"),
        ("KafkaV2[Subscribe[a, b.c]]", "KafkaV2[Subscribe[a,b.c]]"),
        ("KafkaSource[SubscribePattern[ord.*]]", "KafkaSource[SubscribePattern[ord.*]]"),
        ("KafkaV2[Assign[a-0, a-1]]", "KafkaV2[Assign[a-0,a-1]]"),
        (f"KafkaV2[Subscribe[a,{TOKENS[0]}]]", "KafkaV2[Subscribe[a,***]]"),
        (
            "RateStreamV2[rowsPerSecond=100, rampUpTimeSeconds=0, numPartitions=default",
            "RateStreamV2[rowsPerSecond=100, rampUpTimeSeconds=0, numPartitions=default]",
        ),
        ("ForeachBatchSink", "ForeachBatchSink"),
        ("NoopTable", "NoopTable"),
        ("org.apache.spark.sql.execution.datasources.noop.NoopTable$@5f6a", "NoopTable"),
        ("a.kafka010.KafkaSourceProvider$KafkaTable@1e", "KafkaSourceProvider$KafkaTable"),
    ],
)
def test_harmless_parts_of_a_source_stay(description: str | None, expected: str) -> None:
    assert describe_source(description) == expected


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        ("FileStreamSource[s3a://key:secret@bucket/very/secret]", "FileStreamSource"),
        ("FileSink[hdfs://secret:8020/a]", "FileSink"),
        ("TextSocketV2[host: secret, port: 9999]", "TextSocketV2"),
        ("DeltaSource[abfss://secret@a.dfs.core.windows.net/t]", "DeltaSource"),
        ("KinesisV2[arn:aws:kinesis:eu:123:stream/secret]", "KinesisV2"),
        ("KafkaV2[SubscribePattern[password=secret]]", "KafkaV2"),
        ("lab.PythonSource[token=secret]", "PythonSource"),
        ("Rate[password=secret]", "Rate"),
        ("/mnt/secret", "unknown"),
        ("custom source at secret", "custom"),
    ],
)
def test_places_become_digests(description: str, kind: str) -> None:
    shown = describe_source(description)
    assert "secret" not in shown
    name, _, digest = shown.removesuffix("]").partition("[#")
    assert name == kind
    assert len(digest) == 8
    assert set(digest) <= set("0123456789abcdef")


def test_two_paths_stay_two_and_a_new_login_changes_nothing() -> None:
    first = describe_source("FileStreamSource[s3a://key:old@bucket/a]")
    assert first == describe_source("FileStreamSource[s3a://key:new@bucket/a]")
    assert first != describe_source("FileStreamSource[s3a://key:old@bucket/b]")


@given(st.text())
def test_any_description_is_one_printable_line(text: str) -> None:
    shown = describe_source(text)
    assert shown
    assert shown.isprintable()


def check_properties(lines: Iterable[str]) -> int:
    """The number of properties that a profile would keep; none of them holds a place."""
    num_allowed = 0
    for line in lines:
        if '"SparkListenerEnvironmentUpdate"' not in line:
            continue
        properties = json.loads(line).get("Spark Properties", {})
        allowed = allowed_properties(properties)
        num_allowed += len(allowed)
        assert not any(set(value) & set("/") for value in allowed.values())
        # Whatever of sizing an application sets must come through.
        if "spark.executor.memory" in properties:
            assert "spark.executor.memory" in allowed
    return num_allowed


def test_properties_of_recorded_logs_hold_no_place() -> None:
    logs = sorted(RECORDED.rglob("*.zstd"))
    assert sum(check_properties(lines_of_recorded(log)) for log in logs) >= len(logs) > 3


@needs(
    EVENT_LOGS,
    stand_in="tests/profiler/test_redaction.py::test_properties_of_recorded_logs_hold_no_place",
)
def test_properties_of_published_logs_hold_no_place() -> None:
    logs = [
        path
        for path in EVENT_LOGS.rglob("*")
        if path.is_file() and path.suffix not in {".zstd", ".gz"}
    ]
    lines = (log.read_text(errors="replace").splitlines() for log in logs)
    assert sum(map(check_properties, lines)) > 100


@pytest.mark.parametrize(
    "version",
    [
        *(
            "3.1.1.119",
            "3.3.0-amzn-0",
            "2.5.0-SNAPSHOT",
            "3.0.0-preview2",
            "4.1.0",
            "13.3.x-scala2.12",
        ),
        *("17.0.12 (Eclipse Adoptium)", "1.8.0_382 (Amazon.com Inc.)", "21.0.9+10-LTS (BellSoft)"),
    ],
)
def test_version_numbers_are_kept(version: str) -> None:
    assert known_version(version) == version


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        *((None, None), ("", None), ("Hunter2", None), ("com.acme.Hunter2", None)),
        *(("17.0.1 (Hunter2)", "17.0.1"), ("17.0.1-Hunter2", "17.0.1"), ("3.5.1 Hunter2", "3.5.1")),
        ("17.0.1 (Ubuntu) Hunter2", "17.0.1"),
    ],
)
def test_what_is_no_version_does_not(version: str | None, shown: str | None) -> None:
    assert known_version(version) == shown
